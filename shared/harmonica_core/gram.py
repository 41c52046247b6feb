"""LASSO kernels on a Gram matrix, for many targets at once.

Each target solves ``min_a 1/2 a^T G a - c^T a + alpha |a|_1`` with one shared ``G``.
`descend` moves all targets together, so its cost is one matrix product a step;
`newton` finishes a single target to machine precision.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from harmonica_core._types import Floats

_STEPS = (0.02, 50.0)
_NEWTON_STEPS = 12


def soft_threshold(x: Floats, level: Floats) -> Floats:
    """``sign(x) * max(|x| - level, 0)``."""
    return x - np.clip(x, -level, level)


def descend(
    gram: Floats,
    corr: Floats,
    alpha: Floats,
    start: Floats,
    tol: float,
    max_iter: int = 1000,
) -> Floats:
    """Proximal gradient with Barzilai-Borwein steps, all targets in one product.

    ``a <- soft(a + s q, s alpha)`` with ``q = c - G a`` and ``s = |da|^2 / da^T G da``.
    The steps follow the curvature on the active terms, which for parities is close to
    one; a target stops when ``max |da| / s <= tol * alpha``.

    Parameters
    ----------
    gram : float64 (p, p)
    corr, start : float64 (p, K)
    alpha : float64 (K,)

    Returns
    -------
    float64 (p, K)
    """
    out = start.copy()
    live = np.arange(corr.shape[1])
    coef, step = start, np.full(len(live), 0.7)
    slope = corr - gram @ coef
    for _ in range(max_iter):
        moved = soft_threshold(coef + step * slope, step * alpha)
        change = moved - coef
        bend = gram @ change
        coef, slope = moved, slope - bend
        out[:, live] = coef
        going = np.abs(change).max(axis=0, initial=0.0) > tol * alpha * step
        if not going.any():
            break
        step = _next_step(change, bend)
        if not going.all():
            live, step, alpha = live[going], step[going], alpha[going]
            coef, slope = coef[:, going], slope[:, going]
    return out


def _next_step(change: Floats, bend: Floats) -> Floats:
    """Inverse Rayleigh quotient of the last change, kept within bounds."""
    along = np.einsum("ij,ij->j", change, bend)
    length = np.einsum("ij,ij->j", change, change)
    step = np.divide(length, along, out=np.ones_like(along), where=along > 0)
    return np.asarray(np.clip(step, *_STEPS))


def newton(
    gram: Floats, corr: Floats, alpha: float, coef: Floats
) -> tuple[Floats, bool]:
    """Semismooth Newton for one target: exact once the signs are known.

    The active set is ``A = {|a + q| > alpha}``, ``q = c - G a``, and the step solves
    ``G_AA a_A = c_A - alpha sign_A``. A repeated set and sign pattern is the LASSO
    solution.

    Returns
    -------
    coef : float64 (p,)
    done : bool
        False when the sets did not settle; ``coef`` is then the start.
    """
    start, pattern = coef, None
    for _ in range(_NEWTON_STEPS):
        shifted = coef + corr - gram @ coef
        signs = np.sign(shifted) * (np.abs(shifted) > alpha)
        if pattern is not None and (signs == pattern).all():
            return coef, True
        pattern, active = signs, np.flatnonzero(signs)
        coef = np.zeros_like(corr)
        solved = solve_spd(gram, active, corr[active] - alpha * signs[active])
        if solved is None:
            break
        coef[active] = solved
    return start, False


def solve_spd(gram: Floats, active: NDArray[np.int64], right: Floats) -> Floats | None:
    """Solve ``G_AA x = right`` by Cholesky; None when ``G_AA`` is singular."""
    block = gram[np.ix_(active, active)]
    try:
        factor = cho_factor(block, lower=True, check_finite=False)
    except LinAlgError:
        return None
    solved: Floats = cho_solve(factor, right, check_finite=False)
    # One step of refinement: noise-free targets are recovered to the last digits.
    solved += cho_solve(factor, right - block @ solved, check_finite=False)
    return solved if np.isfinite(solved).all() else None


def solve(gram: Floats, corr: Floats, alpha: Floats, start: Floats) -> Floats:
    """Exact LASSO of every target: `descend` until `newton` can finish."""
    coef = start
    open_ = np.arange(corr.shape[1])
    for tol in (1e-3, 1e-5, 1e-7):
        coef = coef.copy()
        coef[:, open_] = descend(
            gram, corr[:, open_], alpha[open_], coef[:, open_], tol
        )
        left = []
        for k in open_:
            coef[:, k], done = newton(gram, corr[:, k], float(alpha[k]), coef[:, k])
            if not done:
                left.append(k)
        open_ = np.array(left, dtype=np.int64)
        if not len(open_):
            break
    return coef


def least_squares(gram: Floats, corr: Floats, coef: Floats) -> Floats:
    """Refit each target without penalty on the support of its coefficients.

    Coefficients at rounding level are pruned; a singular support keeps ``coef``.
    """
    out = np.zeros_like(coef)
    for k in range(coef.shape[1]):
        active = np.flatnonzero(coef[:, k])
        solved = solve_spd(gram, active, corr[active, k])
        if solved is None:
            out[:, k] = coef[:, k]
        elif len(active):
            level = 1e-9 * np.abs(solved).max()
            out[active, k] = np.where(np.abs(solved) > level, solved, 0.0)
    return out
