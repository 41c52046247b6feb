"""The kernels on a Gram matrix against the optimality conditions."""

import numpy as np
import pytest

from harmonica_core.engine.lasso import gram

POWER = np.ones(20)


def problem(rows, n_terms, n_targets, seed=0):
    rng = np.random.default_rng(seed)
    columns = rng.choice([-1.0, 1.0], size=(rows, n_terms))
    targets = columns[:, :5] @ rng.normal(size=(5, n_targets))
    targets += 0.5 * rng.normal(size=targets.shape)
    return columns.T @ columns / rows, targets.T @ columns / rows


def violation(matrix, corr, alpha, coef):
    """Largest breach of ``q = alpha sign(a)`` or ``|q| <= alpha``."""
    slope, alpha = corr - coef @ matrix, alpha[:, None]
    on = np.abs(slope - alpha * np.sign(coef)) * (coef != 0)
    off = np.maximum(np.abs(slope) - alpha, 0) * (coef == 0)
    return np.maximum(on, off).max(axis=1)


@pytest.mark.parametrize("rows", [60, 200])
def test_solutions_are_exact(rows):
    matrix, corr = problem(rows, 80, 4)
    alpha = np.array([0.02, 0.05, 0.1, 0.3])
    coef = gram.solve(matrix, corr, POWER[: len(corr)], alpha, 0 * corr, corr)
    assert violation(matrix, corr, alpha, coef).max() < 1e-12
    assert (np.count_nonzero(coef, axis=1) > 0).all()


def test_descent_reaches_its_tolerance_and_returns_its_slope():
    matrix, corr = problem(200, 80, 6)
    alpha = np.full(6, 0.05)
    coef, slope, left = gram.descend(
        matrix, np.zeros_like(corr), corr, alpha, 1e-4, 100
    )
    np.testing.assert_allclose(slope, corr - coef @ matrix, atol=1e-12)
    assert not len(left)
    assert violation(matrix, corr, alpha, coef).max() < 1e-3 * 0.05


def test_descent_of_a_target_ignores_the_others():
    matrix, corr = problem(200, 80, 6)
    alpha = np.geomspace(0.2, 0.005, 6)
    together, *_ = gram.descend(matrix, np.zeros_like(corr), corr, alpha, 1e-2, 100)
    for k in range(6):
        alone, *_ = gram.descend(
            matrix, np.zeros((1, 80)), corr[[k]], alpha[[k]], 1e-2, 100
        )
        np.testing.assert_allclose(together[[k]], alone, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_steps_in_single_precision_lead_to_the_same_solution(scale):
    matrix, corr = problem(200, 80, 12)
    corr *= scale
    alpha = scale * np.geomspace(0.5, 1e-4, 12)
    power, start = scale**2 * np.ones(12), np.zeros_like(corr)
    rounded = matrix.astype(np.float32)
    exact = gram.solve(matrix, corr, power, alpha, start, corr)
    found = gram.solve(matrix, corr, power, alpha, start, corr, rounded=rounded)
    np.testing.assert_allclose(found, exact, atol=1e-12 * scale)
    big = slice(0, 4)
    loose, slope = gram.solve_loosely(
        matrix,
        corr[big],
        power[big],
        alpha[big],
        start[big],
        corr[big],
        1e-2,
        rounded=rounded,
    )
    assert (loose == loose.astype(np.float32)).all(), "the rounded matrix was not used"
    off = np.abs(slope - (corr[big] - loose @ matrix)).max()
    assert off < 2e-6 * scale
    assert (violation(matrix, corr[big], alpha[big], loose) < 0.03 * alpha[big]).all()


def test_an_inverse_changes_nothing():
    matrix, corr = problem(200, 80, 12)
    alpha = np.geomspace(0.5, 1e-4, 12)
    plain = gram.solve(matrix, corr, POWER[: len(corr)], alpha, 0 * corr, corr)
    inverse = np.linalg.inv(matrix)
    quick = gram.solve(matrix, corr, POWER[: len(corr)], alpha, 0 * corr, corr, inverse)
    assert np.count_nonzero(plain, axis=1).max() > 60
    np.testing.assert_allclose(quick, plain, atol=1e-12)
    np.testing.assert_array_equal(quick != 0, plain != 0)


@pytest.mark.parametrize("alpha", [0.1, 1e-3, 1e-5])
def test_correlated_columns_are_solved_too(alpha):
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(100, 1)) + 0.2 * rng.normal(size=(100, 60))
    target = columns[:, :3].sum(axis=1, keepdims=True) + rng.normal(size=(100, 1))
    matrix, corr = columns.T @ columns / 100, target.T @ columns / 100
    power, strength = np.mean(target**2, axis=0), np.array([alpha])
    start = np.zeros_like(corr)
    coef = gram.solve(matrix, corr, power, strength, start, corr)
    assert violation(matrix, corr, strength, coef).max() < 1e-9
    loose, slope = gram.solve_loosely(matrix, corr, power, strength, start, corr, 1e-2)
    np.testing.assert_allclose(slope, corr - loose @ matrix, atol=1e-10)


def test_newton_says_where_it_did_not_settle():
    corr = np.array([[1.0, 1.0, 1.0]])
    start = np.zeros((1, 3))
    coef, done = gram.newton(np.ones((3, 3)), corr, np.array([0.1]), start)
    assert done.tolist() == [False]
    np.testing.assert_array_equal(coef, start)


def test_refit_prunes_what_least_squares_finds_to_be_zero():
    matrix, _ = problem(200, 20, 1)
    truth = np.zeros((1, 20))
    truth[0, [2, 7]] = [1.5, -0.2]
    support = np.zeros((1, 20))
    support[0, [2, 7, 11]] = 1.0
    refit = gram.least_squares(matrix, truth @ matrix, support)
    assert np.flatnonzero(refit).tolist() == [2, 7]
    np.testing.assert_allclose(refit, truth, atol=1e-12)


def test_explained_by_support_is_the_quadratic_form():
    matrix, corr = problem(200, 20, 2)
    support = np.zeros((2, 20))
    support[0, [1, 4]] = 1.0
    block = matrix[np.ix_([1, 4], [1, 4])]
    want = corr[0, [1, 4]] @ np.linalg.solve(block, corr[0, [1, 4]])
    found = gram.explained_by_support(matrix, corr, support)
    np.testing.assert_allclose(found, [want, 0.0])
