"""HarmonicaExplainer beside KernelExplainer and Permutation at equal model rows.

``python tests/benchmarks/test_bench_shap.py [--cells mlp/1/20 rf/100/500 ...]`` runs
breast_cancer (30 features) with an MLP and a random forest, backgrounds of 1 and 100
rows, 20 and 500 rows to explain, and prints one table; the ratios are to
KernelExplainer in the same run. Errors are over the first 20 rows: the mean absolute
difference to converged Shapley values (exact for the forest, from TreeExplainer; 4,000
or 400 antithetic permutations for the MLP) and I_2 over masks with at most 4 features
removed and over all masks. Kernel's default keeps 10 features; "all" keeps all.
"""

import argparse
import time
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import shap
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from harmonica_core import from_attributions
from harmonica_core.design import masks as draw
from shap_harmonica import HarmonicaExplainer, metrics

CELLS = [f"{m}/{b}/{r}" for m in ("mlp", "rf") for b in (1, 100) for r in (20, 500)]
JUDGED = 20


class Counted:
    """A model that counts the rows it is given."""

    def __init__(self, estimator):
        self.estimator, self.rows = estimator, 0

    def __call__(self, x):
        self.rows += len(x)
        return self.estimator.predict_proba(x)[:, 1]


@dataclass
class Cell:
    """One model, background and number of rows, with what is true of it."""

    name: str
    model: Counted
    background: np.ndarray
    rows: np.ndarray
    budget: int
    shapley: np.ndarray
    near: tuple
    everywhere: tuple


def fitted():
    data, target = load_breast_cancer(return_X_y=True)
    train, test, labels, _ = train_test_split(
        data, target, test_size=0.4, random_state=0, stratify=target
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlp = make_pipeline(
            StandardScaler(), MLPClassifier((100,), max_iter=300, random_state=0)
        ).fit(train, labels)
    forest = RandomForestClassifier(50, random_state=0).fit(train, labels)
    rows = np.concatenate([test, train])[:500]
    return {"mlp": mlp, "rf": forest}, train, rows


def by_permutations(game, n, n_permutations, at_once=50):
    """Shapley values from permutations and their reverses."""
    rng = np.random.default_rng(0)
    total = np.zeros(n)
    for _ in range(n_permutations // at_once):
        ranks = rng.random((at_once, n)).argsort(axis=1)
        ranks = np.concatenate([ranks, n - 1 - ranks])
        grown = ranks[:, None, :] < np.arange(n + 1)[None, :, None]
        values = game(grown.reshape(-1, n)).reshape(len(ranks), n + 1)
        total += np.take_along_axis(np.diff(values, axis=1), ranks, axis=1).sum(axis=0)
    return total / (2 * n_permutations)


def converged(kind, estimator, model, background, rows):
    if kind == "rf":
        trees = shap.TreeExplainer(
            estimator,
            data=background,
            feature_perturbation="interventional",
            model_output="probability",
        )
        return trees.shap_values(rows, check_additivity=False)[..., 1]
    games = metrics.games(model, background, rows)
    count = 4000 if len(background) == 1 else 400
    return np.stack([by_permutations(g.function, g.n_features, count) for g in games])


def cells(names):
    estimators, train, rows = fitted()
    rng = np.random.default_rng(1)
    n = rows.shape[1]
    balls = draw.ball_draws(n, 4, 500, rng), draw.uniform_draws(n, 500, rng)
    truths = {}
    for name in names:
        kind, size, n_rows = name.split("/")
        size, n_rows = int(size), int(n_rows)
        background = train.mean(axis=0)[None] if size == 1 else train[:size]
        model = Counted(estimators[kind])
        if (kind, size) not in truths:
            judged = rows[:JUDGED]
            games = metrics.games(model, background, judged)
            truths[kind, size] = (
                converged(kind, estimators[kind], model, background, judged),
                *((m, np.stack([g.function(m) for g in games])) for m in balls),
            )
        # 500 rows of 100 background rows: fewer masks, so that it ends today.
        budget = 300 if size * n_rows > 10_000 else 2 * n + 2048
        yield Cell(name, model, background, rows[:n_rows], budget, *truths[kind, size])


def harmonica(cell):
    explainer = HarmonicaExplainer(cell.model, cell.background)
    values = explainer(cell.rows, max_evals=cell.budget, silent=True).values
    return values, explainer.surrogates


def with_interactions(cell):
    explainer = HarmonicaExplainer(cell.model, cell.background)
    cube = explainer.shap_interaction_values(
        cell.rows, nsamples=cell.budget, silent=True
    )
    return cube.sum(axis=2), explainer.surrogates


def kernel(cell, l1_reg="num_features(10)"):
    np.random.seed(0)  # noqa: NPY002 - KernelExplainer has no other seed
    explainer = shap.KernelExplainer(cell.model, cell.background)
    values = explainer.shap_values(
        cell.rows, nsamples=cell.budget - 2, l1_reg=l1_reg, silent=True
    )
    return values, additive(values, explainer.expected_value)


def kernel_all(cell):
    return kernel(cell, l1_reg=False)


def permutation(cell):
    masker = shap.maskers.Independent(cell.background)
    explainer = shap.PermutationExplainer(cell.model, masker, seed=0)
    found = explainer(cell.rows, max_evals=cell.budget, silent=True)
    return found.values, additive(found.values, found.base_values[0])


def additive(values, base):
    return [from_attributions(row, float(base)) for row in values[:JUDGED]]


METHODS = {
    "kernel": kernel,
    "kernel (all)": kernel_all,
    "permutation": permutation,
    "harmonica": harmonica,
    "harmonica+pairs": with_interactions,
}


def distance(surrogates, known):
    masks, values = known
    gaps = [g(masks) - v for g, v in zip(surrogates[:JUDGED], values, strict=True)]
    return float(np.sqrt(np.mean(np.square(gaps), axis=1)).mean())


def measure(cell, method):
    cell.model.rows = 0
    wall, cpu = time.perf_counter(), time.process_time()
    values, surrogates = METHODS[method](cell)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "seconds": wall,
        "cpu": cpu,
        "rows": cell.model.rows / len(cell.rows),
        "difference": float(np.abs(values[:JUDGED] - cell.shapley).mean()),
        "I_2 r=4": distance(surrogates, cell.near),
        "I_2 all": distance(surrogates, cell.everywhere),
    }


def main(names):
    """Print the table."""
    warm_up()
    columns = ("seconds", "cpu", "rows", "difference", "I_2 r=4", "I_2 all")
    print(f"{'cell':12}{'method':17}" + "".join(f"{c:>12}" for c in columns), end="")
    print("   cpu, difference, I_2, I_2 / kernel")
    for cell in cells(names):
        base = None
        for method in METHODS:
            found = measure(cell, method)
            base = base or found
            ratios = [
                found[c] / base[c] for c in ("cpu", "difference", "I_2 r=4", "I_2 all")
            ]
            numbers = "".join(f"{found[c]:12.5g}" for c in columns)
            shown = "  ".join(f"{ratio:.2f}" for ratio in ratios)
            print(f"{cell.name:12}{method:17}{numbers}   {shown}", flush=True)


def warm_up():
    """Compile what SHAP compiles, and load what is loaded lazily."""
    x = np.random.default_rng(0).normal(size=(2, 12))
    for explainer in (
        HarmonicaExplainer(lambda z: z.sum(axis=1), x[:1]),
        shap.PermutationExplainer(lambda z: z.sum(axis=1), shap.maskers.Independent(x)),
    ):
        explainer(x, max_evals=100, silent=True)


@pytest.mark.filterwarnings("ignore")
def test_beside_kernel_explainer():
    print()
    main(["mlp/1/20", "rf/1/20"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", nargs="+", default=CELLS, choices=CELLS)
    main(parser.parse_args().cells)
