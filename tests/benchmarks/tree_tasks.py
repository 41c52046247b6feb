"""Tree models of 30, 64 and 100 features with exact interventional Shapley values.

``KINDS`` maps a kind to a function of no arguments that returns a `TreeTask`. The
Shapley values are those of SHAP's TreeExplainer; the first task of a process checks it
against all masks of a model of eight features, and each task checks its own evaluator
against scikit-learn and its Shapley values against the efficiency axiom.
"""

from functools import cache, partial

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from tasks import TreeTask, all_masks, relative_error, shapley

N_GAMES = 3


def boosting():
    return GradientBoostingRegressor(
        n_estimators=120, max_depth=4, subsample=0.7, random_state=0
    )


def forest():
    return RandomForestRegressor(60, max_depth=9, max_features=0.4, random_state=0)


def cancer():
    """Breast cancer, 30 columns: 1 for a benign tumour."""
    x, y = load_breast_cancer(return_X_y=True)
    return x, y.astype(float)


def digits():
    """Digits, 64 pixels: 1 for a digit below five."""
    x, y = load_digits(return_X_y=True)
    return x, (y < 5).astype(float)


def digits_and_noise():
    """Digits with 36 columns of noise, shuffled."""
    x, y = digits()
    rng = np.random.default_rng(21)
    columns = np.hstack([x, rng.integers(0, 17, size=(len(x), 36))])
    return columns[:, rng.permutation(100)], y


def products():
    """A table of 100 correlated columns: about 60 matter, alone and in products."""
    rng = np.random.default_rng(22)
    n_rows, n = 4000, 100
    factors = rng.normal(size=(n_rows, 15)) @ rng.normal(size=(15, n)) / 4
    x = factors + rng.normal(size=(n_rows, n))
    y = x[:, :40] @ (rng.normal(size=40) * 0.97 ** np.arange(40))
    for _ in range(30):
        a, b, c = rng.choice(60, size=3, replace=False)
        y = y + rng.normal() * 1.5 * (x[:, a] > 0) * x[:, b]
        y = y + rng.normal() * 1.5 * (x[:, a] > x[:, b].mean()) * (x[:, c] < 0.5)
    return x, y + rng.normal(size=n_rows) * 0.5


def flatten(model):
    """Arrays of a scikit-learn ensemble of regression trees, as `TreeTask` has them."""
    boosted = isinstance(model, GradientBoostingRegressor)
    trees = [e.tree_ for e in np.ravel(model.estimators_)]
    scale = model.learning_rate if boosted else 1 / len(trees)
    roots = np.cumsum([0] + [t.node_count for t in trees[:-1]])
    own = [np.arange(t.node_count) for t in trees]

    def children(side):
        parts = [getattr(t, f"children_{side}") for t in trees]
        return np.concatenate(
            [
                np.where(c < 0, i, c) + r
                for c, i, r in zip(parts, own, roots, strict=True)
            ]
        )

    leaf = np.concatenate([t.children_left < 0 for t in trees])
    value = np.concatenate([t.value[:, 0, 0] for t in trees])
    return {
        "feature": np.maximum(np.concatenate([t.feature for t in trees]), 0),
        "threshold": np.concatenate([t.threshold for t in trees]),
        "left": children("left"),
        "right": children("right"),
        "leaf_value": np.where(leaf, scale * value, 0.0),
        "roots": roots,
        "base": np.array(model.init_.constant_.ravel()[0] if boosted else 0.0),
    }


def explain(model, inputs, background):
    """Exact interventional Shapley values (n_games, n) of the model."""
    import shap

    explainer = shap.TreeExplainer(
        model, data=background, feature_perturbation="interventional"
    )
    return np.asarray(explainer.shap_values(inputs, check_additivity=True))


def make(table, model, n_background, seed=0):
    """The `TreeTask` of a model trained on all rows but those it is explained with."""
    check_explainer()
    return task(*table(), model(), n_background, seed)


def task(x, y, model, n_background, seed):
    """The `TreeTask`, checked: outputs and the sum of the Shapley values."""
    # scikit-learn compares in single precision: data that lose nothing by it.
    x = x.astype(np.float32).astype(float)
    order = np.random.default_rng(seed).permutation(len(x))
    stop = N_GAMES + n_background
    inputs, background = x[order[:N_GAMES]], x[order[N_GAMES:stop]]
    model.fit(x[order[stop:]], y[order[stop:]])
    made = TreeTask(
        **flatten(model),
        inputs=inputs,
        background=background,
        truth=explain(model, inputs, background),
    )
    ends = np.repeat([[True], [False]], x.shape[1], axis=1)
    for game, row in enumerate(model.predict(inputs)):
        full, empty = made.value(ends, game)
        wanted = [row, model.predict(background).mean(), row - empty]
        np.testing.assert_allclose(
            [full, empty, made.truth[game].sum()], wanted, rtol=1e-5, atol=1e-6
        )
    return made


@cache
def check_explainer():
    """Raise unless TreeExplainer has the Shapley values of all masks of 8 features."""
    x, y = load_breast_cancer(return_X_y=True)
    for model in (boosting(), forest()):
        made = task(x[:, :8], y.astype(float), model, 5, 0)
        for game, truth in enumerate(made.truth):
            masks = all_masks(8)
            rows = np.where(masks[:, None], made.inputs[game], made.background)
            slow = model.predict(rows.reshape(-1, 8)).reshape(len(masks), -1).mean(1)
            np.testing.assert_allclose(made.value(masks, game), slow, atol=1e-9)
            error = relative_error(truth, shapley(slow))
            if error > 1e-5:
                raise AssertionError(f"TreeExplainer is {error:.1e} from all masks")


_TABLES = {
    "cancer30": cancer,
    "digits64": digits,
    "noisy_digits100": digits_and_noise,
    "products100": products,
}
_MODELS = {"gb": boosting, "rf": forest}
KINDS = {
    f"{table}_{model}_b{rows}": partial(make, _TABLES[table], _MODELS[model], rows)
    for rows in (1, 20)
    for table in _TABLES
    for model in _MODELS
    if (table, model) != ("noisy_digits100", "rf")
}
