"""Moments that can be left out, and working sets against all terms at once."""

import numpy as np
import pytest

from harmonica_core import basis
from harmonica_core.engine.lasso.correlations import ParityDesign
from harmonica_core.engine.lasso.regression import Moments, Regression, Rows

N_FEATURES = 8
TABLE = basis.terms_up_to(N_FEATURES, 3)[1:]


def make_rows(weighted, n_rows=120, seed=0, uniform=False):
    rng = np.random.default_rng(seed)
    masks = rng.random((n_rows, N_FEATURES)) < 0.6
    weights = rng.uniform(0.2, 2, n_rows) if weighted else np.ones(n_rows)
    signs = np.where(masks, 1.0, -1.0)
    targets = np.tanh(signs @ rng.normal(size=(N_FEATURES, 1)) / 3) + 2
    return Rows(
        ParityDesign.of(masks, TABLE), targets, weights, centred=True, uniform=uniform
    )


def whole(rows):
    return Regression(Moments.of(rows.design.columns(), rows), rows, dense=True)


@pytest.mark.parametrize("weighted", [False, True])
def test_leaving_out_rows_is_a_subtraction(weighted):
    rows = make_rows(weighted)
    out, rest = np.arange(0, 120, 5), np.flatnonzero(np.arange(120) % 5)
    every = Moments.of(rows.design.columns(), rows)
    gone = rows.take(out)
    left = every.minus(Moments.of(gone.design.columns(), gone))
    found, want = Regression(left, rows, dense=True), whole(rows.take(rest))
    for name in ("gram", "corr", "mean", "power", "column_means"):
        np.testing.assert_allclose(getattr(found, name), getattr(want, name), atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_centred_gram_is_the_covariance(weighted):
    rows = make_rows(weighted)
    columns = rows.design.columns().T.astype(float)
    cov = np.cov(columns.T, aweights=rows.weights, ddof=0)
    np.testing.assert_allclose(whole(rows).gram, cov, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("alpha", [0.1, 0.01, 0.001])
def test_working_set_finds_the_solution_over_all_terms(weighted, alpha):
    rows = make_rows(weighted)
    which, strength = np.array([0]), np.array([alpha])
    full, growing = whole(rows), Regression.growing(rows)
    full.solve(strength, 0.0, which)
    growing.solve(strength, 0.0, which)
    found = np.zeros(len(TABLE))
    found[growing.index] = growing.coef[0]
    np.testing.assert_allclose(found, full.coef[0], atol=1e-5)
    np.testing.assert_allclose(growing.mean_square(which), full.mean_square(which))
    assert growing.steepest() <= alpha * (1 + 1e-4)


def test_idle_terms_leave_the_working_set():
    rows = make_rows(False)
    growing = Regression.growing(rows)
    growing.add(np.arange(len(TABLE)))
    growing.solve(np.array([0.2]), 1e-3, np.array([0]))
    active = np.flatnonzero(growing.coef[0])
    growing.keep(active)
    assert growing.gram.shape == (len(active), len(active))
    np.testing.assert_allclose(
        growing.gram, whole(rows).gram[np.ix_(growing.index, growing.index)], atol=1e-12
    )


def test_prediction_is_intercept_plus_parities():
    rows = make_rows(True)
    fit = whole(rows)
    fit.solve(np.array([0.01]), 0.0, np.array([0]))
    predicted = fit.predict(rows.design, fit.coef, np.array([0]))[:, 0]
    residual = rows.targets[:, 0] - predicted
    assert abs(rows.weights @ residual) < 1e-10
    square = rows.weights @ residual**2 / rows.weights.sum()
    np.testing.assert_allclose(square, fit.mean_square(np.array([0]))[0])
