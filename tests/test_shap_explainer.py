"""HarmonicaExplainer on tables: exact where it must be, shaped as SHAP shapes it."""

import joblib
import numpy as np
import pandas as pd
import pytest
import reference
import shap
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonica_core.design.masks import all_masks
from shap_harmonica import HarmonicaExplainer

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 5))
BACKGROUND = RNG.normal(size=(4, 5))


def one_output(x):
    return x[:, 0] * x[:, 1] + np.sin(x[:, 2] * x[:, 3]) + x[:, 4]


def tanh_of_sum(x):
    return np.tanh(x.sum(axis=1))


def three_outputs(x):
    odds = np.exp(np.stack([x[:, 0], x[:, 1] * x[:, 2], x[:, 3] - x[:, 4]], axis=1))
    return odds / odds.sum(axis=1, keepdims=True)


def largest_gap(explanation, outputs):
    """Distance of base + sum of values from the outputs; also for cubes."""
    features = tuple(range(1, explanation.values.ndim - (np.ndim(outputs) - 1)))
    total = explanation.values.sum(axis=features) + explanation.base_values
    assert total.shape == np.shape(outputs)
    return np.abs(total - outputs).max()


def game_of(model, x, background):
    """Values of all masks in the reference's order, by definition."""
    rows = [
        model(np.where(mask, x, background)).mean(axis=0) for mask in all_masks(len(x))
    ]
    return np.array(rows)


def test_the_gap_helper_can_fail():
    explanation = HarmonicaExplainer(one_output, BACKGROUND)(X)
    explanation.values[0, 0] += 1e-3
    assert largest_gap(explanation, one_output(X)) > 9e-4


@pytest.mark.parametrize("model", [one_output, three_outputs])
@pytest.mark.parametrize("interactions", [False, True, 2])
def test_values_and_cubes_add_up(model, interactions):
    explainer = HarmonicaExplainer(model, BACKGROUND)
    explanation = explainer(X, interactions=interactions)
    assert largest_gap(explanation, model(X)) < 1e-9


@pytest.mark.parametrize("n_background", [1, 6])
def test_sampled_values_and_cubes_add_up(n_background):
    rng = np.random.default_rng(1)
    data = rng.normal(size=(3, 14))

    def model(x):
        return np.tanh(x[:, :7].sum(axis=1)) + x[:, 8] * x[:, 9]

    explainer = HarmonicaExplainer(model, rng.normal(size=(n_background, 14)))
    for interactions in (False, True):
        explanation = explainer(data, max_evals=300, interactions=interactions)
        assert largest_gap(explanation, model(data)) < 1e-6
    std = explainer(data, max_evals=300).error_std
    assert (std >= 0).all() and (std > 0).mean() > 0.9


def test_values_are_brute_force_shapley_values_of_any_function():
    def of_all_orders(x):
        return np.tanh(2 * x.sum(axis=1)) + x.prod(axis=1)

    # With 6 features, terms of 5 are not told by the ends alone.
    rows, background = np.split(RNG.normal(size=(5, 6)), [3])
    explanation = HarmonicaExplainer(of_all_orders, background)(rows)
    for x, values in zip(rows, explanation.values, strict=True):
        game = game_of(of_all_orders, x, background)
        expected = reference.shapley_by_permutations(game)
        np.testing.assert_allclose(values, expected, atol=1e-9)


@settings(max_examples=8, deadline=None)
@given(st.integers(2, 7), st.integers(0, 10_000))
def test_cubes_are_brute_force_interactions_of_cubic_functions(n, seed):
    rng = np.random.default_rng(seed)
    pairs, triples = rng.normal(size=(n, n)), rng.normal(size=(n, n, n))

    def model(x):
        return (
            x.sum(axis=1)
            + np.einsum("ri,rj,ij->r", x, x, np.triu(pairs, 1))
            + np.einsum("ri,rj,rk,ijk->r", x, x, x, _strictly_upper(triples))
        )

    x, background = rng.normal(size=n), rng.normal(size=(2, n))
    game = game_of(model, x, background)
    scale = max(1.0, np.abs(game).max())
    for index, oracle in (("SII", reference.sii), ("STII", reference.stii)):
        explainer = HarmonicaExplainer(model, background, interaction_index=index)
        cube = explainer.shap_interaction_values(x)
        expected = oracle(game, 2)
        for i in range(n):
            for j in range(i + 1, n):
                assert abs(2 * cube[i, j] - expected[i, j]) < 1e-6 * scale
        assert np.allclose(cube, cube.T)
        shapley = reference.shapley_by_permutations(game)
        np.testing.assert_allclose(cube.sum(axis=1), shapley, atol=1e-6 * scale)


def _strictly_upper(cube):
    i, j, k = np.ogrid[: len(cube), : len(cube), : len(cube)]
    return cube * ((i < j) & (j < k))


def test_sampled_fits_recover_a_cubic_function():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(2, 13))

    def model(x):
        return x[:, 0] - 2 * x[:, 1] * x[:, 2] + x[:, 3] * x[:, 4] * x[:, 5]

    explainer = HarmonicaExplainer(model, np.zeros((1, 13)))
    values = explainer.shap_values(x)
    cube = explainer.shap_interaction_values(x)
    for row, found, pairs in zip(x, values, cube, strict=True):
        expected = np.zeros(13)
        expected[0] = row[0]
        expected[[1, 2]] = -row[1] * row[2]
        expected[[3, 4, 5]] = row[3] * row[4] * row[5] / 3
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(found, expected, atol=1e-3 * scale)
        # SII of a pair is its own term plus half of each triple around it.
        assert abs(pairs[1, 2] + row[1] * row[2]) < 1e-3 * scale
        assert abs(pairs[3, 4] - row[3] * row[4] * row[5] / 4) < 1e-3 * scale


def test_explanation_has_every_field():
    explainer = HarmonicaExplainer(
        three_outputs, BACKGROUND, feature_names=list("abcde"), output_names=list("uvw")
    )
    explanation = explainer(X, main_effects=True)
    assert explanation.values.shape == (9, 5, 3)
    assert explanation.base_values.shape == (9, 3)
    assert explanation.main_effects.shape == (9, 5, 3)
    assert explanation.error_std.shape == (9, 5, 3)
    assert explanation.error_std.max() < 1e-12
    assert explanation.feature_names == list("abcde")
    assert explanation.output_names == list("uvw")
    assert explanation.compute_time > 0
    np.testing.assert_array_equal(explanation.data, X)
    np.testing.assert_allclose(explanation.base_values[0], explainer.expected_value)
    sliced = explanation[:, :, "v"]
    np.testing.assert_array_equal(sliced.values, explanation.values[:, :, 1])


def test_default_names_and_shapes_of_one_output():
    explanation = HarmonicaExplainer(one_output, BACKGROUND)(X)
    assert explanation.values.shape == (9, 5)
    assert explanation.base_values.shape == (9,)
    assert explanation.feature_names[1] == "Feature 1"
    assert explanation.output_names is None


def test_one_column_of_output_stays_a_column():
    explainer = HarmonicaExplainer(lambda x: one_output(x)[:, None], BACKGROUND)
    explanation = explainer(X)
    assert explanation.values.shape == (9, 5, 1)
    assert explainer.expected_value.shape == (1,)
    assert largest_gap(explanation, one_output(X)[:, None]) < 1e-9


def test_null_model_and_rows_equal_to_the_background():
    explainer = HarmonicaExplainer(lambda x: np.zeros(len(x)), np.ones((2, 10)))
    assert not explainer.shap_values(np.ones((1, 10))).any()
    assert not explainer.shap_values(RNG.normal(size=(2, 10))).any()
    same = HarmonicaExplainer(one_output, X[:1])(X[:2])
    assert not same.values[0].any()
    assert same.values[1].all()


def test_features_equal_to_the_background_are_skipped():
    calls = []

    def model(x):
        calls.append(len(x))
        return x.sum(axis=1)

    rng = np.random.default_rng(3)
    background = rng.normal(size=(1, 40))
    row = background.copy()
    row[0, [3, 30]] += 1.0
    explainer = HarmonicaExplainer(model, background)
    values = explainer(row).values[0]
    assert sum(calls) == 1 + 3  # the expected value, and masks that keep a feature
    np.testing.assert_allclose(values[[3, 30]], 1.0)
    assert np.count_nonzero(values) == 2
    surrogate = explainer.surrogates[0]
    evaluated = surrogate.evaluated
    np.testing.assert_allclose(surrogate(evaluated.masks), evaluated.values)
    removed = np.ones(40, dtype=bool)
    removed[3] = False
    assert surrogate(removed)[0] == pytest.approx(row.sum() - 1.0)


def test_max_evals_is_kept():
    rows = []

    def model(x):
        rows.append(len(x))
        return x.sum(axis=1)

    background = np.zeros((3, 12))
    HarmonicaExplainer(model, background)(np.ones((2, 12)), max_evals=100)
    assert sum(rows) <= 3 + 2 * 100 * 3


@pytest.mark.parametrize("batch_size", [1, 7, 64, 10_000])
def test_batch_size_bounds_calls_and_changes_nothing(batch_size):
    rows = []

    def model(x):
        rows.append(len(x))
        return one_output(x)

    found = HarmonicaExplainer(model, BACKGROUND)(X, batch_size=batch_size)
    assert max(rows) <= max(batch_size, 4)
    expected = HarmonicaExplainer(one_output, BACKGROUND)(X)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-12)


def test_calls_run_across_rows():
    calls = []

    def model(x):
        calls.append(len(x))
        return one_output(x)

    HarmonicaExplainer(model, BACKGROUND)(X)
    assert len(calls) == 2  # the expected value, then 9 rows x 32 masks x 4


def test_surrogates_answer_what_if_questions():
    explainer = HarmonicaExplainer(one_output, BACKGROUND)
    explainer(X)
    assert len(explainer.surrogates) == len(X)
    game = game_of(one_output, X[3], BACKGROUND)
    np.testing.assert_allclose(explainer.surrogates[3](all_masks(5)), game, atol=1e-9)


def test_seeds_repeat():
    data = np.random.default_rng(4).normal(size=(4, 16))

    def explain(rows, seed=0):
        explainer = HarmonicaExplainer(tanh_of_sum, np.zeros((1, 16)), seed=seed)
        return explainer(rows, max_evals=200).values

    together = explain(data)
    np.testing.assert_array_equal(together, explain(data))
    assert not np.allclose(together, explain(data, seed=1))


def test_equivariant_to_scale_and_shift():
    rng = np.random.default_rng(5)
    data = rng.normal(size=(2, 15))

    def model(x):
        return np.tanh(x.sum(axis=1))

    plain = HarmonicaExplainer(model, np.zeros((1, 15)))(data, max_evals=200)
    scaled = HarmonicaExplainer(lambda x: 5 - 1e3 * model(x), np.zeros((1, 15)))(
        data, max_evals=200
    )
    np.testing.assert_allclose(scaled.values, -1e3 * plain.values, atol=1e-6)


def test_the_lasso_is_sparse_and_adds_up():
    rng = np.random.default_rng(6)
    data = rng.normal(size=(1, 12))

    def model(x):
        return x[:, 0] * x[:, 1] + x[:, 2]

    explainer = HarmonicaExplainer(model, np.zeros((1, 12)), engine="lasso")
    explanation = explainer(data, max_evals=300)
    assert largest_gap(explanation, model(data)) < 1e-9
    assert len(explainer.surrogates[0].terms) < 30


def test_banzhaf_index():
    explanation = HarmonicaExplainer(one_output, BACKGROUND, index="BV")(X[:1])
    game = game_of(one_output, X[0], BACKGROUND)
    expected = reference.bii(game, 1)
    for i in range(5):
        assert explanation.values[0, i] == pytest.approx(expected[(i,)])


def test_n_jobs_changes_nothing():
    expected = HarmonicaExplainer(one_output, BACKGROUND)(X).values
    with joblib.parallel_config(backend="threading"):  # processes start slowly
        found = HarmonicaExplainer(one_output, BACKGROUND, n_jobs=2)(X, silent=True)
    np.testing.assert_allclose(found.values, expected, atol=1e-12)


def test_outputs_are_chosen_by_number_name_and_op_chain():
    explainer = HarmonicaExplainer(three_outputs, BACKGROUND, output_names=list("uvw"))
    everything = explainer(X)
    some = explainer(X, outputs=[2, 0])
    np.testing.assert_allclose(some.values, everything.values[:, :, [2, 0]])
    assert some.output_names == ["w", "u"]
    assert explainer(X, outputs="v").output_names == ["v"]
    top = explainer(X, outputs=shap.Explanation.argsort.flip[:1])
    best = three_outputs(X).argmax(axis=1)
    np.testing.assert_allclose(
        top.values[:, :, 0], everything.values[range(9), :, best]
    )
    np.testing.assert_allclose(
        top.base_values[:, 0], np.asarray(explainer.expected_value)[best]
    )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda e: e(X[:, :3]), "columns of the background"),
        (lambda e: e(X[:0]), "at least one row"),
        (lambda e: e(X, max_evals=1), "too small"),
        (lambda e: e(X, batch_size=0), "at least 1"),
        (lambda e: e(X, interactions=3), "pairs"),
        (lambda e: e(X, outputs=[0]), "one output"),
    ],
)
def test_mistakes_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call(HarmonicaExplainer(one_output, BACKGROUND))


def test_models_that_can_not_be_explained_are_named():
    class Classifier:
        def predict_proba(self, x):
            return x

    with pytest.raises(TypeError, match=r"pass model\.predict_proba"):
        HarmonicaExplainer(Classifier(), BACKGROUND)(X)
    with pytest.raises(ValueError, match="NaN or infinity"):
        HarmonicaExplainer(lambda x: np.full(len(x), np.nan), BACKGROUND)(X)
    with pytest.raises(ValueError, match="for 4 rows"):
        HarmonicaExplainer(lambda x: np.zeros(2), BACKGROUND)(X)
    with pytest.raises(TypeError, match="unknown arguments"):
        HarmonicaExplainer(one_output, BACKGROUND, degre=2)


def test_columns_in_another_order_are_refused():
    background = pd.DataFrame(BACKGROUND, columns=list("abcde"))
    explainer = HarmonicaExplainer(lambda x: one_output(x.to_numpy()), background)
    with pytest.raises(ValueError, match="another order"):
        explainer(pd.DataFrame(X, columns=list("bacde")))


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_a_small_degree_is_a_limit(degree):
    explainer = HarmonicaExplainer(one_output, BACKGROUND, degree=degree)
    explainer(X)
    largest = max(map(len, explainer.surrogates[0].terms))
    assert largest <= degree or degree == 3


def test_the_model_names_its_outputs():
    def model(x):
        return three_outputs(x)

    model.output_names = ["p", "q", "r"]
    assert HarmonicaExplainer(model, BACKGROUND)(X).output_names == ["p", "q", "r"]


class Counted:
    """A model that says how often it was called."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return one_output(x)


def times_mask(mask, x):
    return (x * mask).reshape(1, -1)


WRONG = [
    ({"degree": 0}, "degree=0"),
    ({"degree": "a"}, "degree='a'"),
    ({"alpha": "foo"}, "alpha='foo'"),
    ({"alpha": -1.0}, "alpha=-1.0"),
    ({"engine": "foo"}, "engine='foo'"),
    ({"engine": "bayes", "alpha": 100.0}, "neither alpha nor terms"),
    ({"engine": "bayes", "terms": [(0,)]}, "neither alpha nor terms"),
    ({"max_evals": 1}, "max_evals=1 is too small"),
    ({"max_evals": "many"}, "max_evals='many'"),
    ({"terms": [(0,), (9,)]}, "9"),
    ({"terms": "foo"}, "terms='foo'"),
    ({"terms": 5}, "terms=5"),
    ({"index": "foo"}, "index='foo'"),
    ({"interaction_index": "foo"}, "interaction_index='foo'"),
    ({"interaction_index": "SV"}, "interaction_index='SV'; needed one of"),
]


@pytest.mark.parametrize("masker", [BACKGROUND, times_mask], ids=["table", "masker"])
@pytest.mark.parametrize(("wrong", "words"), WRONG)
def test_wrong_settings_are_refused_before_any_model_call(masker, wrong, words):
    model = Counted()
    with pytest.raises(ValueError, match=words):
        HarmonicaExplainer(model, masker, **wrong)(X)
    assert model.calls == 0


def test_an_argument_that_was_renamed_is_named():
    with pytest.raises(TypeError, match="solver='ridge' is gone; needed engine="):
        HarmonicaExplainer(one_output, BACKGROUND, solver="ridge")


def test_a_generator_as_seed_starts_every_call_anew():
    data = np.random.default_rng(2).normal(size=(1, 14))
    model = lambda x: np.tanh(x.sum(axis=1))  # noqa: E731
    seed = np.random.default_rng(5)
    explainer = HarmonicaExplainer(model, np.zeros((1, 14)), seed=seed, max_evals=100)
    first = explainer(data).values
    np.testing.assert_array_equal(explainer(data).values, first)
    number = HarmonicaExplainer(model, np.zeros((1, 14)), seed=5, max_evals=100)
    np.testing.assert_array_equal(number(data).values, first)


def test_labels_instead_of_numbers_are_named():
    labels = np.array(["no", "yes"], dtype=object)
    with pytest.raises(
        TypeError, match="object; needed numbers: explain predict_proba"
    ):
        HarmonicaExplainer(lambda x: labels[[0] * len(x)], BACKGROUND)(X)
    numbers = HarmonicaExplainer(lambda x: one_output(x).astype(object), BACKGROUND)(X)
    assert largest_gap(numbers, one_output(X)) < 1e-9


def test_a_missing_masker_is_named():
    with pytest.raises(TypeError, match="masker=None; needed a background"):
        HarmonicaExplainer(one_output)(X)


class KnowsWhatVaries(shap.maskers.Independent):
    """Not asked for its background, as its masking is its own."""

    def __call__(self, mask, x):
        return super().__call__(mask, x)


@pytest.mark.parametrize(
    "masker", [np.zeros((1, 4)), KnowsWhatVaries(np.zeros((1, 4)))]
)
def test_terms_name_features_also_where_some_equal_the_background(masker):
    def model(x):
        return 2 * x[:, 1] + 5 * x[:, 2] + x[:, 3]

    rows = np.array([[0.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]])
    settings = {"terms": [(1,), (3,)], "ends": False}
    explanation = HarmonicaExplainer(model, masker, **settings)(rows)
    np.testing.assert_allclose(explanation.values, [[0, 2, 0, 1]] * 2, atol=1e-9)
    with pytest.raises(ValueError, match="outside 0 to 3"):
        HarmonicaExplainer(model, masker, terms=[(4,)])(rows)


def test_terms_that_can_be_read_once_serve_every_call():
    terms = ((i,) for i in range(5))
    explainer = HarmonicaExplainer(one_output, BACKGROUND, terms=terms)
    first = explainer(X).values
    np.testing.assert_array_equal(explainer(X).values, first)
