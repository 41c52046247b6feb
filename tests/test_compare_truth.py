"""The truth, and what explanations are judged by, against definitions."""

import numpy as np
import pytest
from reference import shapley_by_permutations, sii
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier

from harmonica_compare.case import Case
from harmonica_compare.explained import Explained, exact_indices, explained, pair_order
from harmonica_compare.judge import judge
from harmonica_compare.row_cases import Rows, row_cases
from harmonica_compare.truth import Truth, relative_error, sampled_shapley, truth_of
from harmonica_core import fit_surrogate, from_attributions
from harmonica_core.design.masks import all_masks
from harmonica_core.metrics import EvaluationSet


def game(n, seed=0):
    """A random function of masks as a callable, and its values."""
    values = np.random.default_rng(seed).normal(size=2**n)
    weights = 1 << np.arange(n)
    return (lambda masks: values[np.asarray(masks) @ weights]), values


def test_exact_indices_are_those_of_the_definition():
    _, values = game(5)
    shapley, pairs = exact_indices(values)
    np.testing.assert_allclose(shapley, shapley_by_permutations(values), atol=1e-12)
    slow = sii(values, 2)
    expected = [slow[int(i), int(j)] for i, j in zip(*pair_order(5), strict=True)]
    np.testing.assert_allclose(pairs, expected, atol=1e-12)


def test_a_surrogate_reads_like_its_enumeration():
    f, values = game(6)
    g = fit_surrogate(f, 6, budget=64)
    said = explained(g, 6)
    shapley, pairs = exact_indices(values)
    np.testing.assert_allclose(said.shapley, shapley, atol=1e-9)
    np.testing.assert_allclose(said.pairs, pairs, atol=1e-9)
    plain = explained(lambda masks: f(masks), 6)
    np.testing.assert_allclose(plain.pairs, pairs, atol=1e-9)


class States:
    """A surrogate that states standard deviations, some of them or only zeros."""

    max_degree = None

    def __init__(self, std):
        self.std = std

    def __call__(self, masks):
        return self.predict(masks)

    def predict(self, masks, return_std=False):
        answer = np.asarray(masks).sum(axis=1) * 1.0
        return (answer, self.std[0] + 0 * answer) if return_std else answer

    def shapley_values(self, return_std=False):
        return (np.ones(3), self.std) if return_std else np.ones(3)

    def interactions(self, order=2, index="SII", return_std=False):
        pairs = {(0, 1): 0.5}
        return (pairs, {(0, 1): self.std[0]}) if return_std else pairs


def test_stated_errors_are_read_unless_they_are_all_zero():
    said = explained(States(np.array([0.1, 0.2, 0.3])), 3)
    assert said.shapley_std.tolist() == [0.1, 0.2, 0.3]
    assert said.pairs.tolist() == [0.5, 0, 0] and said.pairs_std.tolist() == [0.1, 0, 0]
    assert said.answer_std(np.ones((2, 3), dtype=bool)).tolist() == [0.1, 0.1]
    # Scores as a polynomial, or a LASSO: nothing is stated about them.
    none = explained(States(np.zeros(3)), 3)
    assert none.shapley_std is None and none.pairs_std is None
    assert none.answer_std is None


def test_scores_of_single_features_say_nothing_about_pairs():
    said = explained(from_attributions(np.array([1.0, 2.0, 3.0]), 0.5), 3)
    np.testing.assert_allclose(said.shapley, [1, 2, 3])
    assert said.pairs is None and said.shapley_std is None


def gentle(masks):
    """A function of 20 features that is nearly a sum."""
    return np.tanh(np.asarray(masks, dtype=float) @ np.linspace(-0.3, 0.4, 20))


def smooth(masks):
    """A function of 20 features that a polynomial of degree 2 nearly is."""
    x = np.asarray(masks, dtype=float)
    return gentle(x) + x[:, 0] * x[:, 5] * x[:, 7]


# The smaller budget has too few masks for all pairs.
@pytest.mark.parametrize("f, budget, most", [(gentle, 1100, 0.1), (smooth, 6000, 0.08)])
def test_sampled_values_are_unbiased_and_know_their_error(f, budget, most):
    exact, _ = exact_indices(f(all_masks(20)))
    found, errors = sampled_shapley(f, 20, budget, seed=0)
    z = (found - exact) / np.maximum(errors, 1e-12)
    assert relative_error(found, exact) < most
    assert np.abs(z).max() < 4 and 0.5 < np.sqrt(np.mean(z**2)) < 1.6


def test_how_the_truth_is_found():
    f, values = game(6)
    case = Case("game", 6, f)
    assert truth_of(case, f, 64, 0).how == "enumerated"
    sampled = truth_of(case, f, 63, 0)
    assert sampled.how == "sampled" and sampled.standard_error > 0
    inside = Case("game", 6, f, tree_shapley=lambda: np.arange(6.0))
    assert truth_of(inside, f, 63, 0).shapley.tolist() == list(range(6))


@pytest.mark.parametrize("n_background", [1, 3])
def test_values_from_inside_trees_are_exact(n_background):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 5))
    y = x[:, 0] * x[:, 1] + np.sin(x[:, 2]) + (x[:, 3] > 0)
    forest = RandomForestClassifier(10, random_state=0).fit(x, (3 * y).astype(int) % 3)
    boosted = HistGradientBoostingRegressor(max_iter=20).fit(x, y)
    for model in (forest, boosted):
        (case,) = row_cases(model, Rows(x[:1], x[5 : 5 + n_background]))
        exact, _ = exact_indices(case.value_function(all_masks(5)))
        np.testing.assert_allclose(case.tree_shapley(), exact, atol=1e-6)


def judged(said, f, values, n):
    known = EvaluationSet.draw(f, n, (1, 2, None), max_evaluations=2**n)
    truth = Truth(*exact_indices(values), "enumerated")
    return judge(said, truth, known, (1, 2, None), f, {})


def test_what_is_exact_has_no_error():
    f, values = game(6)
    numbers = judged(explained(fit_surrogate(f, 6, budget=64), 6), f, values, 6)
    for name in ("shapley", "pairs", "whatif@1", "whatif@inf", "L2@inf"):
        assert numbers[name][0] == pytest.approx(0, abs=1e-9)
    assert numbers["R2"][0] == pytest.approx(1)


def test_errors_are_relative_to_what_there_is_to_explain():
    f, values = game(6)
    shapley, pairs = exact_indices(values)
    said = Explained(lambda m: np.full(len(m), values.mean()), 0 * shapley, 3 * pairs)
    numbers = judged(said, f, values, 6)
    assert numbers["shapley"][0] == pytest.approx(1)
    assert numbers["pairs"][0] == pytest.approx(2)
    assert numbers["whatif@inf"][0] == pytest.approx(1)
    assert "coverage" not in numbers and "stated_over_true" not in numbers


def test_coverage_and_sharpness_of_stated_errors():
    f, values = game(6)
    shapley, _ = exact_indices(values)
    size = np.sqrt(np.mean(shapley**2))
    wrong = shapley + np.array([0, 0, 0, 1.0, 1.0, 1.0])
    said = Explained(
        f,
        shapley=wrong,
        shapley_std=np.full(6, 0.3),
        answer_std=lambda masks: np.full(len(masks), 0.1),
        stated=0.5,
    )
    numbers = judged(said, f, values, 6)
    assert numbers["coverage"][0] == pytest.approx(0.5)
    assert numbers["sharpness"][0] == pytest.approx(1.96 * 0.3 / size, rel=1e-3)
    assert numbers["coverage_whatif"][0] == pytest.approx(1)
    wide = judged(
        Explained(f, shapley=wrong, shapley_std=np.full(6, 0.6)), f, values, 6
    )
    assert wide["coverage"][0] == pytest.approx(1)
