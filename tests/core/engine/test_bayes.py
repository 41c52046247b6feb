"""The default engine by the front door: what it finds, from how many calls."""

import math

import numpy as np
import pytest
from core_games import random_network

from harmonica_core import Surrogate, basis, fit_surrogate, fit_surrogates
from harmonica_core.design.masks import all_masks, uniform_draws
from harmonica_core.engine.sample import standardise


def relative_error(g, f, masks):
    truth = f(masks)
    return np.sqrt(((g(masks) - truth) ** 2).mean()) / truth.std()


@pytest.mark.parametrize("n", [3, 5, 8, 12, 20, 64, 200])
def test_additive_functions_are_exact_from_n_plus_2_calls(n):
    weights = np.random.default_rng(n).normal(size=n)
    g = fit_surrogate(lambda masks: masks @ weights + 3, n, budget=n + 2)
    assert g.n_evaluations == n + 2
    np.testing.assert_allclose(g.shapley_values(), weights, atol=1e-8)
    masks = uniform_draws(n, 100, np.random.default_rng(0))
    np.testing.assert_allclose(g(masks), masks @ weights + 3, atol=1e-8)
    larger = [a for term, a in g.spectrum.items() if len(term) > 1]
    assert np.abs(larger).max(initial=0.0) < 1e-9


def degree_two(n, seed):
    table = basis.terms_up_to(n, 2)
    coef = np.random.default_rng(seed).normal(size=(len(table), 1))
    return lambda masks: basis.predict(masks, table, coef)[:, 0], coef[:, 0], table


@pytest.mark.parametrize("n", [5, 6, 7, 8, 9, 10, 12, 14, 20, 30])
@pytest.mark.parametrize("seed", [0, 1])
def test_degree_two_is_exact_from_a_tenth_more_calls_than_terms(n, seed):
    f, coef, table = degree_two(n, seed)
    budget = math.ceil(1.1 * len(table))
    g = fit_surrogate(f, n, budget=budget, seed=seed)
    masks = uniform_draws(n, 300, np.random.default_rng(9))
    np.testing.assert_allclose(g(masks), f(masks), atol=1e-8)
    expected = basis.shapley_of_terms(table, coef[:, None], n)[:, 0]
    np.testing.assert_allclose(g.shapley_values(), expected, atol=1e-8)
    larger = [a for term, a in g.spectrum.items() if len(term) > 2]
    assert np.abs(larger).max(initial=0.0) < 1e-9


def test_exact_and_other_outputs_side_by_side():
    network = random_network(12, np.random.default_rng(0))

    def f(masks):
        return np.c_[masks @ np.arange(12.0), network(masks), np.full(len(masks), 2.0)]

    g = fit_surrogate(f, 12, budget=200)
    masks = all_masks(12)
    np.testing.assert_allclose(g(masks)[:, 0], f(masks)[:, 0], atol=1e-8)
    np.testing.assert_allclose(g(masks)[:, 2], 2.0, atol=1e-12)
    np.testing.assert_allclose(g.shapley_values()[:, 0], np.arange(12.0), atol=1e-8)
    assert 0.01 < relative_error(g.output(1), lambda m: f(m)[:, 1], masks) < 0.5


def test_a_degree_below_the_polynomials_is_kept():
    f, *_ = degree_two(10, 0)
    g = fit_surrogate(f, 10, budget=200, degree=1)
    assert g.degree == 1 and g.max_degree == 1
    assert g.error.value > 0.1


def sparse_polynomial(n, n_terms, largest, rng):
    terms = set()
    while len(terms) < n_terms:
        size = int(rng.integers(1, largest + 1))
        terms.add(tuple(sorted(rng.choice(n, size, replace=False).tolist())))
    coef = rng.choice([-1, 1], n_terms) * rng.uniform(0.3, 1.0, n_terms)
    return Surrogate(n, [(), *sorted(terms)], np.append(0.7, coef))


def test_sparse_polynomials_are_recovered():
    for seed in range(2):
        truth = sparse_polynomial(14, 10, 5, np.random.default_rng(seed))
        g = fit_surrogate(truth, 14, budget=600, seed=seed)
        assert relative_error(g, truth, all_masks(14)) < 0.02
        assert set(g.top_terms(10)) == set(truth.terms) - {()}


@pytest.mark.parametrize("n", [14, 30])
def test_more_calls_lower_the_error(n):
    network = random_network(n, np.random.default_rng(1))

    def f(masks):
        return network(masks)[:, 0]

    masks = uniform_draws(n, 3000, np.random.default_rng(5))
    errors = [
        relative_error(fit_surrogate(f, n, budget=budget), f, masks)
        for budget in (60, 250, 800)
    ]
    assert errors[0] > 1.1 * errors[1] > 1.2 * errors[2]
    assert errors[2] < 0.4


def test_many_features_of_which_three_matter():
    weights = np.zeros(300)
    weights[[3, 50, 73]] = 2.0, -1.0, 0.5

    def f(masks):
        return masks @ weights + 3.0 * (masks[:, 3] & masks[:, 50])

    g = fit_surrogate(f, 300, budget=1000)
    phi = g.shapley_values()
    np.testing.assert_allclose(phi[[3, 50, 73]], [3.5, 0.5, 0.5], atol=1e-3)
    assert np.abs(np.delete(phi, [3, 50, 73])).max() < 1e-3
    assert set(g.top_terms(4)) == {(3,), (50,), (73,), (3, 50)}
    assert g.error.value < 0.05


@pytest.fixture(scope="module")
def five():
    """Masks and the values of five functions on them."""
    f = random_network(12, np.random.default_rng(2), 5)
    masks = fit_surrogate(f, 12, budget=150).evaluated.masks
    return masks, f(masks) * [1.0, 1.0, 1e3, 1.0, 1e-3]


def test_outputs_and_functions_share_one_prior(five):
    masks, values = five
    functions = fit_surrogates(masks, values)
    (outputs,) = fit_surrogates(masks, values[:, None, :])
    for k, one in enumerate(functions):
        assert one.prior is functions[0].prior
        np.testing.assert_array_equal(one.prior.rates, outputs.prior.rates)
        cube = all_masks(12)
        np.testing.assert_allclose(
            one(cube), outputs(cube)[:, k], rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(
            outputs.output(k).shapley_values(), one.shapley_values(), rtol=1e-9
        )
    alone = fit_surrogates(masks, values[:, :1])[0]
    assert (alone.prior.rates != functions[0].prior.rates).any()


def test_a_given_prior_is_used_as_it_is(five):
    masks, values = five
    prior = fit_surrogates(masks, values)[0].prior
    (again,) = fit_surrogates(masks, values[:, :1], prior=prior)
    assert again.prior is prior


def test_a_given_prior_makes_functions_independent_of_each_other(five):
    masks, values = five
    prior = fit_surrogates(masks, values)[0].prior
    together = fit_surrogates(masks, values, prior=prior)
    alone = [fit_surrogates(masks, values[:, [k]], prior=prior)[0] for k in range(5)]
    reordered = fit_surrogates(masks, values[:, ::-1], prior=prior)[::-1]
    cube = all_masks(12)
    for one, two, three in zip(together, alone, reordered, strict=True):
        assert one(cube).tobytes() == two(cube).tobytes() == three(cube).tobytes()
        assert one.shapley_values().tobytes() == two.shapley_values().tobytes()
        assert one.error.value == two.error.value


def test_deviations_of_seen_masks_are_zero_and_of_others_positive():
    f = random_network(12, np.random.default_rng(1))
    g = fit_surrogate(lambda masks: f(masks)[:, 0], 12, budget=200)
    answers, std = g.predict(g.evaluated.masks, return_std=True)
    np.testing.assert_array_equal(answers, g.evaluated.values)
    assert not std.any()
    answers, std = g.predict(all_masks(12), return_std=True)
    seen = std == 0
    assert seen.sum() == 200 and np.isfinite(std).all()
    phi, std = g.shapley_values(return_std=True)
    assert (std > 0).all() and std.shape == phi.shape == (12,)


@pytest.mark.parametrize("budget", [201, 600])  # pairs and one single, unlike sizes
@pytest.mark.parametrize("degree", [None, 3])
def test_closed_forms_are_those_of_all_answers_of_12_features(budget, degree):
    f = random_network(12, np.random.default_rng(4))
    g = fit_surrogate(lambda masks: f(masks)[:, 0], 12, budget, degree)
    answers = g(all_masks(12))
    full = basis.spectrum_of_values(answers)
    table = basis.terms_up_to(12, 12)
    coef = full[basis.term_numbers(table, 12)]
    found = [g.spectrum.get(term, 0.0) for term in basis.terms_of(table)]
    np.testing.assert_allclose(found, coef, atol=1e-8)
    phi = basis.shapley_of_terms(table, coef[:, None], 12)[:, 0]
    np.testing.assert_allclose(g.shapley_values(), phi, atol=1e-8)


@pytest.mark.parametrize("factor, shift", [(-3.0, 0.0), (1e-7, 1e-4), (1e9, -1e12)])
def test_standardised_values_are_the_same_digits(factor, shift):
    values = np.random.default_rng(0).normal(size=(50, 2))
    centre, spread, standard = standardise(values)
    np.testing.assert_allclose(centre + spread * standard, values, atol=1e-10)
    _, _, moved = standardise(factor * values + shift)
    np.testing.assert_allclose(moved, np.sign(factor) * standard, atol=2e-11)


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e300])
def test_values_of_any_magnitude_are_standardised(size):
    values = size * np.array([[1.0, 1.0], [-1.0, 1.0], [0.5, 1.0]])
    centre, spread, standard = standardise(values)
    assert np.isfinite(standard).all() and not standard[:, 1].any()
    np.testing.assert_allclose(
        (centre + spread * standard) / size, values / size, rtol=1e-6
    )
