"""Posterior means and deviations against a dense Gaussian process on all masks."""

import numpy as np
import pytest
import reference
from core_games import random_prior

from harmonica_core import basis, fit_surrogate
from harmonica_core.design.masks import all_masks, mask_numbers, uniform_draws
from harmonica_core.engine.posterior import Regression, condition
from harmonica_core.engine.sample import Sample, find_pairs
from harmonica_core.result import found_terms as found_terms_module
from harmonica_core.result.found_terms import found_terms
from harmonica_core.result.mean import Mean

N = 6
# Pairs alone, pairs and singles, singles alone, very few.
SAMPLES = {"pairs": (15, 0), "mixed": (9, 8), "singles": (0, 20), "few": (1, 1)}


def drawn(kind, seed=0):
    """Distinct masks: so many pairs, so many without their complements."""
    n_pairs, n_singles = SAMPLES[kind]
    rng = np.random.default_rng(seed)
    halves = rng.permutation(1 << (N - 1))[: n_pairs + n_singles]
    masks = all_masks(N)[halves + (1 << (N - 1))]
    paired = np.stack([masks[:n_pairs], ~masks[:n_pairs]], axis=1).reshape(-1, N)
    both = np.concatenate([paired, masks[n_pairs:]])
    return both[rng.permutation(len(both))]


def values_of(masks, n_functions=2):
    rng = np.random.default_rng(3)
    hidden = np.tanh((2.0 * masks - 1) @ rng.normal(size=(N, 5)))
    return hidden @ rng.normal(size=(5, n_functions)) * [1.0, 300.0] + [0.0, 7.0]


class Problem:
    """A sample, its posterior, and the same from the definition."""

    def __init__(self, kind, degree=None, seed=0):
        self.masks = drawn(kind, seed)
        self.values = values_of(self.masks)
        self.prior = random_prior(N, degree, seed=seed + 5)
        self.sample = Sample.of(self.masks, self.values)
        self.posterior, self.left_out = condition(self.prior, self.sample)
        self.oracle = reference.GaussianProcess(self.prior, N)
        self.observe = np.eye(1 << N)[mask_numbers(self.masks)]

    def mean(self):
        empty = np.zeros((0, 0), dtype=np.int32)
        return Mean(
            self.posterior, self.values, False, empty, np.zeros((0, 2)), np.ones(2)
        )

    def smooth(self, k):
        """Mean of f without white, on all masks."""
        observed = self.observe @ self.oracle.whole @ self.observe.T
        inverse, y = np.linalg.inv(observed), self.values[:, k]
        centre = inverse.sum(axis=0) @ y / inverse.sum()
        dual = inverse @ (y - centre)
        return centre + self.oracle.smooth @ self.observe.T @ dual

    def expected(self, k):
        return self.oracle.condition(self.observe, self.values[:, k])


@pytest.fixture(params=list(SAMPLES))
def problem(request):
    return Problem(request.param)


def close(found, expected, rtol=1e-8):
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, atol=rtol * scale, rtol=0)


def test_the_mean_of_f_on_every_mask(problem):
    found = problem.mean().predict(all_masks(N))
    for k in range(2):
        close(found[:, k], problem.expected(k)[0])


def test_the_posterior_answers_for_masks_that_were_not_evaluated(problem):
    found = problem.posterior.predict(all_masks(N))
    new = ~problem.observe.any(axis=0)
    for k in range(2):
        close(found[new, k], problem.expected(k)[0][new])


def test_shapley_values_are_those_of_the_mean_of_f(problem):
    weights = reference.shapley_rows(N)
    for k in range(2):
        close(problem.posterior.shapley()[:, k], weights @ problem.expected(k)[0])


def test_deviations_of_shapley_values(problem):
    weights = reference.shapley_rows(N)
    for k in range(2):
        _, covariance, scale = problem.expected(k)
        variance = scale * np.einsum("ix,xy,iy->i", weights, covariance, weights)
        close(problem.posterior.shapley_std()[:, k] ** 2, variance)


@pytest.mark.parametrize("kind", ["pairs", "mixed", "singles"])
def test_deviations_of_answers_at_masks_that_were_not_evaluated(kind):
    problem = Problem(kind)
    found = problem.mean().predict_std(all_masks(N)) ** 2
    seen = problem.observe.any(axis=0)
    free = ~seen & ~seen[::-1]  # nor were their complements
    for k in range(2):
        _, covariance, scale = problem.expected(k)
        close(found[free, k], scale * np.diagonal(covariance)[free])
        assert not found[seen, k].any()


def test_deviations_of_answers_at_complements_of_evaluated_masks():
    problem = Problem("mixed")
    found = problem.mean().predict_std(all_masks(N)) ** 2
    seen = problem.observe.any(axis=0)
    opposite = ~seen & seen[::-1]
    _, covariance, scale = problem.expected(0)
    close(found[opposite, 0], scale * np.diagonal(covariance)[opposite])


def test_left_out_residuals_are_those_of_refits(problem):
    pairs, singles = find_pairs(problem.masks)
    first, second = problem.observe[pairs[:, 0]], problem.observe[pairs[:, 1]]
    parts = [(first + second) / 2, (first - second) / 2, problem.observe[singles]]
    functional = np.concatenate(parts)
    for k in range(2):
        game = np.zeros(1 << N)
        game[mask_numbers(problem.masks)] = problem.values[:, k]
        y = functional @ game
        if len(y) < 4:
            continue
        residual = reference.left_out(problem.oracle, functional, y)
        even, odd, single = np.split(residual, [len(pairs), 2 * len(pairs)])
        expected = np.empty(len(problem.masks))
        expected[pairs[:, 0]], expected[pairs[:, 1]] = even + odd, even - odd
        expected[singles] = single
        close(problem.left_out[:, k], expected)


def test_the_spectrum_is_that_of_the_mean_of_f(problem):
    table, coef = problem.mean().polynomial(N, None)
    for k in range(2):
        expected = reference.spectrum(problem.expected(k)[0])
        found = dict(zip(basis.terms_of(table), coef[:, k], strict=True))
        size = max(map(abs, expected.values()))
        for term, number in expected.items():
            assert found.get(term, 0.0) == pytest.approx(number, abs=1e-8 * size)


@pytest.mark.parametrize("kind", ["pairs", "mixed"])
@pytest.mark.parametrize("way", ["transformed", "listed", "grown"])
@pytest.mark.parametrize("degree", [None, 3])
def test_found_terms_are_those_of_the_smooth_part(monkeypatch, kind, way, degree):
    if way != "transformed":
        monkeypatch.setattr(found_terms_module, "_TRANSFORMED", 0)
    if way == "grown":
        monkeypatch.setattr(found_terms_module, "_CANDIDATES", 0)
    problem = Problem(kind, degree)
    table, coef = found_terms(problem.posterior, np.zeros(2))
    assert table[0].max() == -1 and len(np.unique(table, axis=0)) == len(table)
    assert basis.largest_size(table) <= (degree or N)
    found = basis.predict(all_masks(N), table, coef)
    for k in range(2):
        close(found[:, k], problem.smooth(k))


def test_terms_below_the_error_are_dropped_while_they_do_not_matter():
    problem = Problem("mixed")
    whole, every = found_terms(problem.posterior, np.zeros(2))
    error = 0.2 * np.sqrt((every[1:] ** 2).sum(axis=0))
    table, coef = found_terms(problem.posterior, error)
    assert 1 < len(table) < len(whole)
    gap = basis.predict(all_masks(N), table, coef) - basis.predict(
        all_masks(N), whole, every
    )
    # Parseval: what is left out has less than a thousandth of the error's energy.
    assert (np.sqrt((gap**2).mean(axis=0)) <= 0.05 * error).all()


@pytest.mark.parametrize("n", [20, 60])
def test_terms_of_odd_functions_are_found_beyond_the_missing_pairs(n):
    def odd(masks):
        a, b, c, d, e = (2.0 * masks - 1)[:, [2, 3, 5, 7, n - 1]].T
        return a + b * c * d - 0.5 * a * b * c * d * e

    g = fit_surrogate(odd, n, budget=900)
    masks = uniform_draws(n, 500, np.random.default_rng(0))
    polynomial = basis.predict(masks, g.table, g.coef_columns)[:, 0]
    assert {(2,), (3, 5, 7)} <= set(g.top_terms(4))
    gap = np.sqrt(((polynomial - g.mean.posterior.predict(masks)[:, 0]) ** 2).mean())
    assert gap <= 0.1 * g.error.value


def test_a_degree_answers_with_its_polynomial():
    problem = Problem("mixed", degree=2)
    found = problem.mean().predict(all_masks(N))
    close(found, problem.posterior.predict(all_masks(N)))
    spectrum = basis.spectrum_of_values(found)
    sizes = np.array([bin(number).count("1") for number in range(1 << N)])
    assert np.abs(spectrum[sizes > 2]).max() < 1e-12 * np.abs(spectrum).max()


def test_some_functions_can_be_taken():
    problem = Problem("mixed")
    second = problem.posterior.column(slice(1, 2))
    masks = all_masks(N)
    close(second.predict(masks), problem.posterior.predict(masks)[:, 1:], rtol=1e-12)


def test_a_row_that_says_nothing_new_does_no_harm():
    """The least white that is learnt, and values that others determine."""
    prior = random_prior(N, degree=1)
    prior = type(prior)(
        prior.relevance, prior.orders, prior.rates, prior.products, np.full(2, 1.5e-8)
    )
    masks = drawn("pairs")
    values = ((2.0 * masks - 1) @ np.arange(1.0, N + 1))[:, None]
    posterior, _ = condition(prior, Sample.of(masks, values))
    found = posterior.predict(all_masks(N))[:, 0]
    close(found, (2.0 * all_masks(N) - 1) @ np.arange(1.0, N + 1), rtol=1e-4)


def test_pairs_are_found_in_any_order():
    masks = drawn("mixed")
    pairs, singles = find_pairs(masks)
    assert len(pairs) == 9 and len(singles) == 8
    assert (masks[pairs[:, 0]] == ~masks[pairs[:, 1]]).all()
    assert sorted([*pairs.ravel(), *singles]) == list(range(len(masks)))
    regression = Regression.of(random_prior(N), masks)
    np.testing.assert_array_equal(regression.pairs, pairs)


def test_masks_given_twice_are_refused():
    masks = drawn("mixed")
    for again in (masks[3:4], masks[[3, 5]]):
        with pytest.raises(ValueError, match="needed distinct ones"):
            find_pairs(np.concatenate([masks, again]))
