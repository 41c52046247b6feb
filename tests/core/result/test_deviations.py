"""Standard deviations of interactions, and readable polynomials with their error."""

import numpy as np
import pytest

from harmonica_core import Surrogate, fit_surrogate
from harmonica_core.design.masks import all_masks


def rough(masks):
    """A kink, a product and something of every size."""
    x = masks @ np.linspace(0.2, 1.5, masks.shape[1])
    return np.maximum(x - 2, 0) + masks[:, 0] * masks[:, 1] + 0.1 * np.sin(9 * x)


@pytest.mark.parametrize(("n", "budget"), [(6, 30), (8, 61), (11, 120)])
def test_deviations_of_single_interactions_are_those_of_shapley_values(n, budget):
    g = fit_surrogate(rough, n, budget=budget)
    _, expected = g.shapley_values(return_std=True)
    values, std = g.interactions(order=1, index="SII", return_std=True)
    found = [std[(i,)] for i in range(n)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert set(values) == set(std) and min(found) > 0


def test_pairs_lie_within_their_deviations():
    g = fit_surrogate(rough, 11, budget=150)
    exact = fit_surrogate(rough, 11, budget=2**11).interaction_matrix()
    matrix, std = g.interaction_matrix(return_std=True)
    pairs = np.triu_indices(11, k=1)
    z = (matrix - exact)[pairs] / std[pairs]
    assert 0.85 < np.mean(np.abs(z) < 2) and np.sqrt(np.mean(z**2)) > 0.2
    np.testing.assert_array_equal(std, std.T)


def test_deviations_fall_with_more_calls():
    few, many = (
        fit_surrogate(rough, 12, budget=budget).interaction_matrix(return_std=True)[1]
        for budget in (60, 900)
    )
    assert np.median(many) < 0.5 * np.median(few)


def test_features_without_effect_have_no_deviation():
    g = fit_surrogate(rough, 8, budget=61)
    lifted = g.changed(n_features=10, mean=g.mean.relabelled(np.arange(1, 9)))
    _, std = lifted.interaction_matrix(return_std=True)
    _, own = g.interaction_matrix(return_std=True)
    np.testing.assert_allclose(std[1:9, 1:9], own)
    assert not std[0].any() and not std[:, 9].any()


@pytest.mark.parametrize("k", [0, 3, 10])
def test_a_readable_polynomial_is_the_nearest_of_its_size(k):
    g = fit_surrogate(rough, 9, budget=100)
    short = g.readable(k)
    sizes = sorted((abs(c) for term, c in g.spectrum.items() if term), reverse=True)
    assert len(short.terms) == k + 1
    lost = np.sqrt(np.sum(np.square(sizes[k:])))
    masks = all_masks(9)
    np.testing.assert_allclose(
        np.sqrt(np.mean((g(masks) - short(masks)) ** 2)), lost, rtol=1e-9
    )
    assert short.error.value == pytest.approx(np.hypot(g.error.value, lost))


def test_a_readable_polynomial_of_several_outputs():
    g = Surrogate(2, ((), (0,), (1,)), np.array([[1.0, 2.0], [0.1, 5.0], [0.2, 0.3]]))
    assert g.readable(1).terms == ((), (0,))
