"""Passing through f(all kept) and f(all removed) by the least change."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize

from harmonica_core import basis, fit_surrogate
from harmonica_core.result.ends import through_ends


@given(seed=st.integers(0, 10_000), full=st.floats(-9, 9), empty=st.floats(-9, 9))
def test_both_ends_are_met(seed, full, empty):
    rng = np.random.default_rng(seed)
    table = basis.terms_up_to(5, 3)
    coef = rng.normal(size=(len(table), 2)) * (rng.random((len(table), 2)) < 0.2)
    table, coef = through_ends(
        table, coef, 5, np.array([full, 1.0]), np.array([empty, 2.0])
    )
    ends = np.array([[True] * 5, [False] * 5])
    np.testing.assert_allclose(
        basis.predict(ends, table, coef), [[full, 1.0], [empty, 2.0]], atol=1e-9
    )


def test_the_change_is_the_least_one_on_the_active_terms():
    table = basis.terms_up_to(4, 3)
    rng = np.random.default_rng(1)
    coef = rng.normal(size=(len(table), 1))
    coef[[2, 6, 9]] = 0
    _, moved = through_ends(table, coef, 4, np.array([3.0]), np.array([-1.0]))
    active = np.flatnonzero(moved[:, 0])
    assert not set(active) & {2, 6, 9}
    ends = basis.design(np.array([[True] * 4, [False] * 4]), table[active])
    best = minimize(
        lambda c: ((c - coef[active, 0]) ** 2).sum(),
        coef[active, 0],
        constraints=LinearConstraint(ends, [3.0, -1.0], [3.0, -1.0]),
        method="SLSQP",
        options={"ftol": 1e-14},
    )
    np.testing.assert_allclose(moved[active, 0], best.x, atol=1e-6)


def test_an_output_without_odd_terms_uses_the_single_features():
    table = basis.table_of([(), (0, 1)])
    table, coef = through_ends(
        table, np.array([[1.0], [2.0]]), 3, np.array([5.0]), np.array([1.0])
    )
    spectrum = dict(zip(basis.terms_of(table), coef[:, 0], strict=True))
    assert spectrum[(0,)] == spectrum[(1,)] == spectrum[(2,)] == pytest.approx(2 / 3)


def test_fit_with_ends_is_exact_there_and_states_the_larger_error():
    rng = np.random.default_rng(0)
    values = rng.normal(size=16)

    def f(masks):
        return values[masks @ (1 << np.arange(4))]

    plain = fit_surrogate(f, 4, degree=1, ends=False)
    fixed = fit_surrogate(f, 4, degree=1)
    assert fixed.full_value == pytest.approx(values[-1])
    assert fixed.base_value == pytest.approx(values[0])
    masks = np.array([[bool(k >> i & 1) for i in range(4)] for k in range(16)])
    for g in (plain, fixed):
        true = np.sqrt(np.mean((g(masks) - values) ** 2))
        assert g.error.value == pytest.approx(true)
    assert fixed.error.value > plain.error.value


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_an_exact_fit_is_not_moved_by_rounding(n_outputs):
    values = np.random.default_rng(0).normal(size=(32, n_outputs)) / 3
    values[:, 0] = 0.1 * np.arange(32)

    def f(masks):
        return values[masks @ (1 << np.arange(5))]

    plain, fixed = (fit_surrogate(f, 5, ends=ends) for ends in (False, True))
    assert (fixed.error.value == 0).all()
    assert fixed.spectrum.keys() == plain.spectrum.keys()
    np.testing.assert_array_equal(fixed.coef, plain.coef)
