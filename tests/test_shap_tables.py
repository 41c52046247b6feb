"""Rows of one table share masks and a prior; given that, a row stands alone."""

import ast
import io
from pathlib import Path

import joblib
import numpy as np
import pytest
import shap

import harmonica_core
import shap_harmonica
from harmonica_core import Prior, Settings, fit_surrogate, fit_with
from shap_harmonica import HarmonicaAnchor, HarmonicaExplainer, HarmonicaLocal

N = 13
RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, N))
MIXED = RNG.normal(size=(N, 6))
BACKGROUND = RNG.normal(size=(2, N))


def model(x):
    return np.tanh(x @ MIXED / 3).sum(axis=1) + x[:, 0] * x[:, 1]


def two_outputs(x):
    return np.stack([model(x), np.cos(x[:, 2]) * x[:, 3]], axis=1)


def game(x, function=model):
    def values(masks):
        rows = np.where(masks[:, None, :], x, BACKGROUND)
        answers = function(rows.reshape(-1, N))
        answers = answers.reshape(len(masks), len(BACKGROUND), *answers.shape[1:])
        return np.einsum("pb...,b->p...", answers, np.full(2, 0.5))

    return values


def same(one, other):
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.error_std, other.error_std)


@pytest.mark.parametrize("function", [model, two_outputs])
@pytest.mark.parametrize("options", [{}, {"engine": "lasso"}, {"degree": 2}])
def test_one_row_is_what_the_core_fits(function, options):
    explainer = HarmonicaExplainer(function, BACKGROUND, seed=3, **options)
    explainer(X[:1], max_evals=120)
    (found,) = explainer.surrogates
    expected = fit_surrogate(game(X[0], function), N, budget=120, seed=3, **options)
    masks = RNG.random((40, N)) < 0.5
    for one, other in zip(
        (found(masks), *found.shapley_values(return_std=True), found.error.value),
        (
            expected(masks),
            *expected.shapley_values(return_std=True),
            expected.error.value,
        ),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("variant", "method"), [(HarmonicaLocal, "local"), (HarmonicaAnchor, "anchor")]
)
def test_variants_are_one_name_of_the_core(variant, method):
    (found,) = variant(model, BACKGROUND).explain(X[:1], max_evals=120)
    expected = fit_with(Settings(method), game(X[0]), N, 120)
    np.testing.assert_array_equal(found.shapley_values(), expected.shapley_values())


def test_enumerated_rows_are_what_the_core_fits():
    small = np.zeros((1, 5))
    (found,) = HarmonicaExplainer(lambda x: x.prod(axis=1), small).explain(X[:1, :5])
    expected = fit_surrogate(lambda masks: np.where(masks, X[0, :5], 0).prod(axis=1), 5)
    np.testing.assert_array_equal(found.coef, expected.coef)


@pytest.fixture(scope="module")
def learnt():
    explainer = HarmonicaExplainer(model, BACKGROUND, max_evals=120)
    return explainer, explainer(X)


def fresh(explainer, **options):
    return HarmonicaExplainer(
        explainer.model, BACKGROUND, max_evals=120, prior=explainer.prior, **options
    )


def test_a_call_keeps_one_prior_and_the_next_one_uses_it(learnt):
    explainer, explanation = learnt
    assert list(explainer.prior) == [tuple(range(N))]
    (prior,) = explainer.prior.values()
    assert isinstance(prior, Prior)
    assert all(s.prior is prior for s in explainer.surrogates)
    again = HarmonicaExplainer(model, BACKGROUND, max_evals=120)
    same(again(X), explanation)
    same(again(X), explanation)


def test_rows_in_any_order_batch_and_process(learnt):
    explainer, explanation = learnt
    shuffled = np.random.default_rng(1).permutation(len(X))
    other = fresh(explainer)
    same(other(X[shuffled]), explanation[shuffled])
    for row in (0, 7, 49):
        one = other(X[row : row + 1])
        np.testing.assert_array_equal(one.values[0], explanation.values[row])
        np.testing.assert_array_equal(one.error_std[0], explanation.error_std[row])
    same(other(X, batch_size=50), explanation)
    with joblib.parallel_config(backend="threading"):
        same(fresh(explainer, n_jobs=2)(X, silent=True), explanation)
        unlearnt = HarmonicaExplainer(model, BACKGROUND, max_evals=120, n_jobs=2)
        same(unlearnt(X, silent=True), explanation)


def test_two_processes_find_the_same_bits(learnt):
    explainer, explanation = learnt
    same(fresh(explainer, n_jobs=2)(X, silent=True), explanation)


def test_a_row_alone_learns_its_own_and_keeps_nothing():
    explainer = HarmonicaExplainer(model, BACKGROUND, max_evals=120)
    first = explainer(X[:1]).values
    assert not explainer.prior
    explainer(X[5:6])
    np.testing.assert_array_equal(explainer(X[:1]).values, first)


def test_learning_ahead():
    explainer = HarmonicaExplainer(two_outputs, BACKGROUND, max_evals=100)
    assert explainer.learn(X[:40]) is explainer
    (prior,) = explainer.prior.values()
    together = explainer(X)
    one_by_one = [explainer(row).values for row in X]
    np.testing.assert_array_equal(together.values, one_by_one)
    explainer(X, max_evals=900)  # far more than it was learnt from: it stays
    assert next(iter(explainer.prior.values())) is prior


def test_much_more_data_teaches_anew():
    explainer = HarmonicaExplainer(model, BACKGROUND)
    explainer(X[:3], max_evals=40)
    (prior,) = explainer.prior.values()
    explainer(X[:4], max_evals=40)
    assert next(iter(explainer.prior.values())) is prior
    explainer(X, max_evals=80)
    assert next(iter(explainer.prior.values())) is not prior


def test_priors_are_saved_as_arrays(learnt):
    explainer, explanation = learnt
    explainer.save(stream := io.BytesIO())
    stream.seek(0)
    again = HarmonicaExplainer.load(stream)
    assert list(again.prior) == list(explainer.prior)
    same(again(X[3:9]), explanation[3:9])
    stream = io.BytesIO()
    explainer.prior.write(stream)
    assert b"pickle" not in stream.getvalue()
    assert stream.getvalue().startswith(b"\x93NUMPY")


def test_rows_that_equal_the_background_in_places_use_what_others_taught():
    zeros = np.zeros((1, N))
    rows = X.copy()
    rows[40:, 4] = 0.0
    rows[45, 6] = 0.0
    explainer = HarmonicaExplainer(model, zeros, max_evals=120)
    together = explainer(rows)
    assert [len(key) for key in explainer.prior] == [N]
    assert not together.values[40:, 4].any()
    total = together.values.sum(axis=1) + together.base_values
    np.testing.assert_allclose(total, model(rows), atol=1e-9)
    for row in (2, 41, 45):
        np.testing.assert_array_equal(explainer(rows[row]).values, together.values[row])


def test_learning_from_rows_that_vary_in_other_features():
    rows = X.copy()
    rows[40:, 4] = 0.0
    explainer = HarmonicaExplainer(model, np.zeros((1, N)), max_evals=120)
    explainer.learn(rows)
    assert [len(key) for key in explainer.prior] == [N]
    words = HarmonicaExplainer(
        lambda texts: np.array([float(len(t)) for t in texts]),
        shap.maskers.Text(r"\W+"),
    )
    with pytest.raises(ValueError, match="features of their own"):
        words.learn(["one two", "three four"])


def test_no_model_row_is_asked_for_twice():
    asked = []

    def counted(x):
        asked.extend(map(bytes, x))
        return model(x)

    HarmonicaExplainer(counted, np.zeros((1, N)))(X, max_evals=100)
    # What is left when all is removed, the background, is known by then.
    assert len(asked) == len(set(asked)) == 1 + 99 * len(X)


def test_only_public_names_of_the_core_are_used():
    folder = Path(shap_harmonica.__file__).parent
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                parts = node.module.split(".")
                if parts[0] == "harmonica_core":
                    names = {alias.name for alias in node.names}
                    assert parts == ["harmonica_core"], (path.name, node.module)
                    assert names <= set(harmonica_core.__all__), (path.name, names)
            elif isinstance(node, ast.Import):
                inner = [a.name for a in node.names if "harmonica_core." in a.name]
                assert not inner, (path.name, inner)
    assert len(harmonica_core.__all__) <= 50


def test_modules_are_small_and_say_what_they_return():
    paths = list(Path(shap_harmonica.__file__).parent.glob("*.py"))
    sizes = {path.stem: len(path.read_text().splitlines()) for path in paths}
    assert max(sizes.values()) <= 350, sizes
    vague = {"reading", "calls", "rows", "fitting", "models", "masked"}
    assert not vague & sizes.keys()


def test_dask_workers_find_the_same_bits(learnt):
    distributed = pytest.importorskip("distributed", reason="needs dask.distributed")
    explainer, explanation = learnt
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        same(fresh(explainer, n_jobs=-1)(X, silent=True), explanation)
        unlearnt = HarmonicaExplainer(model, BACKGROUND, max_evals=120, n_jobs=-1)
        same(unlearnt(X, silent=True), explanation)
