"""Covariances on the cube in closed form, against sums over all terms."""

from dataclasses import replace

import numpy as np
import pytest
import reference
from core_games import random_prior

from harmonica_core import basis
from harmonica_core.basis import kernel
from harmonica_core.design.masks import all_masks

PRIORS = [
    pytest.param(n, degree, id=f"n={n}, degree={degree}")
    for n in (1, 2, 5, 8)
    for degree in (None, 1, 2, 3, 5)
    if degree is None or degree <= n
] + [pytest.param(12, None, id="n=12, degree=None")]


def signs_of(n, n_masks=40, seed=0):
    """Rows of signs, the two ends among them."""
    rng = np.random.default_rng(seed)
    masks = rng.random((n_masks, n)) < 0.5
    masks[0], masks[1] = True, False
    return 2.0 * masks - 1.0


def explicit(prior):
    """Terms, their variances by definition, and their parities on all masks."""
    table = basis.terms_up_to(prior.n_features, prior.n_features)
    variance = [reference.prior_variance(prior, t) for t in basis.terms_of(table)]
    return table, np.array(variance)


@pytest.mark.parametrize("n, degree", PRIORS)
def test_variances_of_terms_are_the_definition(n, degree):
    prior = random_prior(n, degree)
    table, variance = explicit(prior)
    found = kernel.term_variances(prior, table)
    np.testing.assert_allclose(found[1:], variance[1:], rtol=1e-10)
    assert found[0] == 0  # the intercept is not penalised


@pytest.mark.parametrize("n, degree", PRIORS)
def test_covariances_are_sums_over_terms_of_each_parity(n, degree):
    prior = random_prior(n, degree)
    table, variance = explicit(prior)
    left, right = signs_of(n), signs_of(n, 25, seed=1)
    chi = [basis.design(one > 0, table) for one in (left, right)]
    odd = basis.term_sizes(table) % 2
    for parity, found in enumerate(kernel.covariances(prior, left, right)):
        expected = (chi[0] * variance * (odd == parity)) @ chi[1].T
        np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("n, degree", PRIORS)
def test_prior_variances_of_the_parts_are_sums_over_terms(n, degree):
    prior = random_prior(n, degree)
    table, variance = explicit(prior)
    odd = basis.term_sizes(table) % 2 == 1
    found = kernel.variances(prior)
    np.testing.assert_allclose(found, [variance[~odd].sum(), variance[odd].sum()])


@pytest.mark.parametrize("n, degree", PRIORS)
def test_covariances_with_shapley_values_are_sums_over_terms(n, degree):
    prior = random_prior(n, degree)
    table, variance = explicit(prior)
    rows = signs_of(n)
    chi = basis.design(rows > 0, table)
    expected = basis.shapley_of_terms(table, variance[:, None] * chi.T, n).T
    found = kernel.shapley_covariances(prior, rows)
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("n, degree", PRIORS)
def test_variances_of_shapley_values_are_sums_over_terms(n, degree):
    prior = replace(random_prior(n, degree), white=np.zeros(2))
    table, variance = explicit(prior)
    expected = np.zeros(n)
    for row, term in enumerate(basis.terms_of(table)):
        if len(term) % 2:
            expected[list(term)] += 4 * variance[row] / len(term) ** 2
    np.testing.assert_allclose(kernel.shapley_variances(prior), expected, rtol=1e-8)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_white_adds_the_squares_of_shapleys_weights(n):
    prior = random_prior(n)
    weights = kernel.shapley_weights(all_masks(n))
    dark = replace(prior, white=np.zeros(2))
    added = kernel.shapley_variances(prior) - kernel.shapley_variances(dark)
    # The white of x and that of its complement are opposite in the odd part.
    expected = 2 * prior.white[kernel.ODD] * (weights**2).sum(axis=0)
    np.testing.assert_allclose(added, expected, rtol=1e-8)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_shapley_weights_give_the_shapley_values(n):
    game = np.random.default_rng(n).normal(size=1 << n)
    weights = kernel.shapley_weights(all_masks(n))
    found = weights.T @ game
    np.testing.assert_allclose(found, reference.shapley_by_permutations(game))


def test_shapley_weights_of_many_features_are_finite_and_add_up():
    masks = np.stack([np.ones(1000, bool), np.zeros(1000, bool), np.arange(1000) < 500])
    weights = kernel.shapley_weights(masks)
    assert np.isfinite(weights).all()
    np.testing.assert_allclose(weights[:2].sum(axis=1), [1.0, -1.0])


def test_features_without_relevance_are_in_no_term():
    prior = random_prior(5)
    idle = np.array([True, False, True, False, False])
    prior = replace(
        prior,
        relevance=np.where(idle, 0.0, prior.relevance),
        rates=np.where(idle, 0.0, prior.rates),
    )
    table = basis.terms_up_to(5, 5)
    held = np.isin(table, np.flatnonzero(idle)).any(axis=1)
    found = kernel.term_variances(prior, table)
    assert (found[held] < 1e-200).all() and (found[~held][1:] > 0).all()
    rows = signs_of(5)
    assert np.abs(kernel.shapley_covariances(prior, rows)[:, idle]).max() < 1e-12
    flipped = np.where(idle, -rows, rows)
    for one, other in zip(
        kernel.covariances(prior, rows, rows),
        kernel.covariances(prior, flipped, rows),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("n", [65, 1000])
def test_closed_forms_hold_for_many_features(n):
    """One order and one product that only a few features take part in."""
    few = random_prior(4)
    where = np.arange(4) * (n // 4) + 3
    relevance, rates = np.zeros(n), np.zeros((len(few.rates), n))
    relevance[where], rates[:, where] = few.relevance, few.rates
    prior = replace(few, relevance=relevance, rates=rates, white=np.zeros(2))
    rows = signs_of(n)
    small, dark = rows[:, where], replace(few, white=np.zeros(2))
    for one, other in zip(
        kernel.covariances(prior, rows, rows),
        kernel.covariances(dark, small, small),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, atol=1e-9)
    expected = kernel.shapley_covariances(dark, small)
    found = kernel.shapley_covariances(prior, rows)
    np.testing.assert_allclose(found[:, where], expected, atol=1e-9)
    assert np.abs(np.delete(found, where, axis=1)).max() < 1e-12
    np.testing.assert_allclose(
        kernel.shapley_variances(prior)[where], kernel.shapley_variances(dark)
    )


def test_the_degree_of_a_prior_is_that_of_its_largest_term():
    assert random_prior(5).degree is None
    assert random_prior(5, 2).degree == 2


def test_symmetric_sums_are_the_definition():
    relevance = np.array([0.3, 2.0, 0.7, 1.1])
    expected = [
        sum(np.prod(relevance[list(t)]) for t in reference.subsets(range(4), k, k))
        for k in range(5)
    ]
    np.testing.assert_allclose(kernel.symmetric_sums(relevance, 4), expected)
