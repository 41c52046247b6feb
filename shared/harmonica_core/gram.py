"""LASSO kernels on a Gram matrix, for many targets at once.

Each target solves ``min_a 1/2 a^T G a - c^T a + alpha |a|_1`` with one shared ``G``.
`descend` moves all targets together, so its cost is one matrix product a step;
`newton` finishes a single target to machine precision.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from harmonica_core._types import Floats

_STEPS = (0.02, 50.0)
_NEWTON_STEPS = 12


def descend(
    gram: Floats,
    start: Floats,
    slope: Floats,
    alpha: Floats,
    tol: float,
    max_iter: int = 1000,
) -> tuple[Floats, Floats]:
    """Proximal gradient with Barzilai-Borwein steps, all targets in one product.

    ``a <- soft(a + s q, s alpha)`` with ``q = c - G a`` and ``s = |da|^2 / da^T G da``.
    The steps follow the curvature on the active terms, which for parities is close to
    one; a target stops when ``max |da| <= tol * alpha * s``.

    Parameters
    ----------
    gram : float64 (p, p)
    start, slope : float64 (p, K)
        Where to begin, and ``q`` there.
    alpha : float64 (K,)

    Returns
    -------
    coef, slope : float64 (p, K)
    """
    out, slopes = np.empty_like(start), np.empty_like(start)
    live = np.arange(start.shape[1])
    coef, step = start, np.full(len(live), 0.7)
    for _ in range(max_iter):
        change = _proximal_change(coef, slope, step, alpha)
        bend = gram @ change
        coef, slope = coef + change, slope - bend
        going = _largest(change) > tol * alpha * step
        if not going.all():
            out[:, live], slopes[:, live] = coef, slope
            live, alpha = live[going], alpha[going]
            if not len(live):
                return out, slopes
            coef, slope = coef[:, going], slope[:, going]
            change, bend = change[:, going], bend[:, going]
        step = _next_step(change, bend)
    out[:, live], slopes[:, live] = coef, slope
    return out, slopes


def _proximal_change(
    coef: Floats, slope: Floats, step: Floats, alpha: Floats
) -> Floats:
    """``soft(a + s q, s alpha) - a``, in place where arrays are large."""
    moved = slope * step
    moved += coef
    level = step * alpha
    moved -= np.clip(moved, -level, level)
    change: Floats = np.subtract(moved, coef, out=moved)
    return change


def _largest(change: Floats) -> Floats:
    """``max_j |change_jk|`` without a temporary of that size."""
    top = change.max(axis=0, initial=0.0)
    return np.asarray(np.maximum(top, -change.min(axis=0, initial=0.0)))


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
    if not len(active):
        return right
    block = gram[active[:, None], active]
    factor, singular = lapack.dpotrf(block, lower=1)
    if singular:
        return None
    solved: Floats = lapack.dpotrs(factor, right, lower=1)[0]
    # One step of refinement: noise-free targets are recovered to the last digits.
    solved += lapack.dpotrs(factor, right - block @ solved, lower=1)[0]
    return solved if np.isfinite(solved).all() else None


def solve(gram: Floats, corr: Floats, alpha: Floats, start: Floats) -> Floats:
    """Exact LASSO of every target: `descend` until `newton` can finish."""
    coef = start.copy()
    left = np.arange(corr.shape[1])
    for tol in (1e-3, 1e-5, 1e-7):
        slope = corr[:, left] - gram @ coef[:, left]
        near, _ = descend(gram, coef[:, left], slope, alpha[left], tol)
        settled = np.zeros(len(left), dtype=bool)
        for i, k in enumerate(left):
            coef[:, k], settled[i] = newton(
                gram, corr[:, k], float(alpha[k]), near[:, i]
            )
        left = left[~settled]
        if not len(left):
            break
    return coef


def explained_by_support(gram: Floats, corr: Floats, coef: Floats) -> Floats:
    """``c_A^T G_AA^-1 c_A`` of each target: what least squares on its support explains.

    Zero where the support is singular.
    """
    out = np.zeros(coef.shape[1])
    for k in range(len(out)):
        active = np.flatnonzero(coef[:, k])
        if len(active):
            right = corr[active, k]
            factor, singular = lapack.dpotrf(gram[active[:, None], active], lower=1)
            if not singular:
                out[k] = right @ lapack.dpotrs(factor, right, lower=1)[0]
    return out


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
