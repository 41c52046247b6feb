"""The shared ridge regression against the same problem written out."""

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from harmonica_core import basis, ridge
from harmonica_core.design.masks import all_masks, are_paired


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 40), st.integers(2, 300), st.integers(0, 1000))
def test_masks_are_pairs_and_prefixes(n, n_masks, seed):
    masks = ridge.shapley_masks(n, n_masks, np.random.default_rng(seed))
    assert masks.shape == (n_masks // 2 * 2, n)
    assert are_paired(masks)
    assert masks[0].all()
    longer = ridge.shapley_masks(n, n_masks + 50, np.random.default_rng(seed))
    np.testing.assert_array_equal(longer[: len(masks)], masks)


def test_every_feature_is_removed_alone_once_there_is_room():
    masks = ridge.shapley_masks(9, 2 + 18, np.random.default_rng(0))
    np.testing.assert_array_equal(masks[2::2], ~np.eye(9, dtype=bool))


def test_weights_turn_the_masks_into_uniform_ones():
    n = 8
    masks = ridge.shapley_masks(n, 60_000, np.random.default_rng(0))
    weights = ridge.uniform_weights(masks)
    sizes = masks.sum(axis=1)
    for k in range(2, n - 1):
        share = weights[sizes == k].sum() / weights.sum()
        expected = np.count_nonzero(all_masks(n).sum(axis=1) == k) / (2**n - 2)
        assert share == pytest.approx(expected, abs=0.02)


def _written_out(masks, values, degree, nugget):
    """Weighted normal equations over all terms, with the centre as the intercept."""
    n = masks.shape[1]
    table = basis.terms_up_to(n, degree)
    sizes = basis.term_sizes(table)
    design = basis.design(masks, table)
    centre = ((values[0::2] + values[1::2]) / 2).mean(axis=0)
    coef = np.zeros((len(table), values.shape[1]))
    for parity in (0, 1):
        members = sizes % 2 == parity
        part = design[0::2][:, members]
        sign = 1 if parity == 0 else -1
        target = (values[0::2] + sign * values[1::2]) / 2 - (
            centre if not parity else 0
        )
        scale = sum((n ** -float(k)) * (sizes == k).sum() for k in set(sizes[members]))
        penalty = np.diag(nugget * scale * n ** sizes[members].astype(float))
        coef[members] = np.linalg.solve(part.T @ part + penalty, part.T @ target)
    coef[0] += centre
    return table, coef


@pytest.mark.parametrize("n_masks", [60, 200])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_equal_to_the_regression_written_out(degree, n_masks, monkeypatch):
    monkeypatch.setattr(ridge, "_NUGGETS", (0.05,))
    monkeypatch.setattr(ridge, "_NEGLIGIBLE", 0.0)
    rng = np.random.default_rng(1)
    masks = ridge.shapley_masks(7, n_masks, rng)
    values = rng.normal(size=(n_masks, 3))
    fit = ridge.fit_ridge(masks, values, degree)
    table, coef = _written_out(masks, values, degree, 0.05)
    np.testing.assert_array_equal(fit.table, table)
    np.testing.assert_allclose(fit.coef, coef, atol=1e-8)


def test_single_precision_is_close_enough_to_weigh_residuals():
    rng = np.random.default_rng(0)
    halves = ridge.shapley_masks(20, 1000, rng)[0::2]
    table = basis.terms_up_to(20, 3)
    table = table[basis.term_sizes(table) % 2 == 1]
    target = rng.normal(size=(len(halves), 3))
    kernel = ridge._kernel(halves, table)
    parts = ridge._by_masks(halves, table, target)
    for nugget, part in zip(ridge._NUGGETS, parts, strict=True):
        inverse = np.linalg.inv(kernel + nugget * kernel[0, 0] * np.eye(len(halves)))
        dual = inverse @ target
        rounding = 1e-9 * np.abs(dual).max()  # of the inverse
        np.testing.assert_allclose(part.solution, dual, atol=rounding)
        expected = dual / np.diag(inverse)[:, None]
        rounding = 1e-8 * np.abs(expected).max()
        np.testing.assert_allclose(part.left_out, expected, rtol=1e-5, atol=rounding)


@pytest.mark.parametrize("n_masks", [24, 80])  # fewer, and more, than terms
def test_left_out_residuals_are_those_of_refits(n_masks, monkeypatch):
    monkeypatch.setattr(ridge, "_NUGGETS", (0.05,))
    rng = np.random.default_rng(2)
    halves = ridge.shapley_masks(6, n_masks, rng)[0::2]
    table = basis.terms_up_to(6, 3)
    table = table[basis.term_sizes(table) % 2 == 1]
    target = rng.normal(size=(len(halves), 2))
    _, left_out = ridge._fit_part(halves, table, target)
    kernel = ridge._kernel(halves, table)
    for t in range(len(halves)):
        rest = np.arange(len(halves)) != t
        shifted = kernel + 0.05 * kernel[0, 0] * np.eye(len(halves))
        dual = np.linalg.solve(shifted[np.ix_(rest, rest)], target[rest])
        expected = target[t] - kernel[t, rest] @ dual
        np.testing.assert_allclose(left_out[t], expected, rtol=1e-6, atol=1e-9)


def test_both_matrices_give_the_same_fit():
    rng = np.random.default_rng(7)
    halves = ridge.shapley_masks(7, 120, rng)[0::2]
    target = rng.normal(size=(len(halves), 3))
    for parity in (0, 1):
        table = basis.terms_up_to(7, 3)
        table = table[basis.term_sizes(table) % 2 == parity]
        variance = ridge._variances(table, 7)[:, None]
        pairs = zip(
            ridge._by_masks(halves, table, target),
            ridge._by_terms(halves, table, target, np.sqrt(variance)[:, 0]),
            strict=True,
        )
        for first, second in pairs:
            dual = ridge._correlations(halves, table, first.solution)
            coef = np.sqrt(variance) * second.solution
            np.testing.assert_allclose(variance * dual, coef, atol=1e-6)
            np.testing.assert_allclose(first.left_out, second.left_out, rtol=1e-4)


@pytest.mark.parametrize("n_columns", [4, 20])
def test_columns_do_not_depend_on_each_other(n_columns):
    rng = np.random.default_rng(3)
    masks = ridge.shapley_masks(10, 100, rng)
    values = rng.normal(size=(100, n_columns))
    values[:, 1:3] *= [1e3, 1e-3]
    together = ridge.fit_ridge(masks, values, 3)
    alone = ridge.fit_ridge(masks, values[:, 2:3], 3)
    np.testing.assert_allclose(together.coef[:, 2:3], alone.coef, atol=1e-12)


def test_the_stated_error_is_the_error():
    n, rng = 12, np.random.default_rng(4)
    everything = all_masks(n)

    def f(masks):
        return np.tanh(masks @ np.linspace(-1, 1.5, n)) + masks[:, 0] * masks[:, 1]

    masks = ridge.shapley_masks(n, 500, rng)
    fit = ridge.fit_ridge(masks, f(masks)[:, None], 2)
    said = basis.predict(everything, fit.table, fit.coef)[:, 0]
    true = np.sqrt(np.mean((said - f(everything)) ** 2))
    stated, se = fit.error.value[0], fit.error.standard_error[0]
    assert abs(stated - true) < 4 * se + 0.05 * true


def test_dropping_small_terms_keeps_shapley_values(monkeypatch):
    rng = np.random.default_rng(5)
    masks = ridge.shapley_masks(6, 60, rng)
    values = rng.normal(size=(60, 1))

    def shapley(fit):
        game = basis.predict(all_masks(6), fit.table, fit.coef)[:, 0]
        return reference.shapley_by_permutations(game)

    dropped = ridge.fit_ridge(masks, values, 3)
    monkeypatch.setattr(ridge, "_NEGLIGIBLE", 0.0)
    full = ridge.fit_ridge(masks, values, 3)
    assert np.count_nonzero(dropped.coef) < np.count_nonzero(full.coef)
    np.testing.assert_allclose(shapley(dropped), shapley(full), atol=1e-9)


def test_what_is_affordable():
    assert ridge.is_affordable(30, 3, 2000)
    assert ridge.is_affordable(30, 3, 10**6)  # 4,526 terms, however many masks
    assert not ridge.is_affordable(100, 3, 2000)  # 166,751 terms
    assert not ridge.is_affordable(60, 3, 20_000)  # 36,051 terms and 10,000 pairs


def test_unpaired_masks_are_refused():
    with pytest.raises(ValueError, match="complementary pairs"):
        ridge.fit_ridge(all_masks(3)[1:4], np.zeros((3, 1)), 2)


@pytest.mark.parametrize("scale", [1e-300, 1e-120, 1e120, 1e300])
def test_values_of_any_magnitude(scale):
    rng = np.random.default_rng(0)
    masks = ridge.shapley_masks(8, 120, rng)
    values = (masks @ rng.normal(size=8))[:, None]
    one, other = (
        ridge.fit_ridge(masks, values, 2),
        ridge.fit_ridge(masks, scale * values, 2),
    )
    np.testing.assert_allclose(other.coef / scale, one.coef, atol=1e-9)
    np.testing.assert_allclose(other.error.value / scale, one.error.value, atol=1e-9)
