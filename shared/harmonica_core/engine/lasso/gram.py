"""LASSO kernels on a Gram matrix, for many targets at once.

Each target solves ``min_a 1/2 a^T G a - c^T a + alpha |a|_1`` with one shared ``G``;
targets are rows, so that what belongs to one of them lies together in memory.
`descend` moves all targets together, so its cost is one matrix product a step. It is
fast where ``G`` is near the identity, as it is for uniform masks; elsewhere
`coordinate_descent` is. `newton` finishes to machine precision.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lasso_path

from harmonica_core._types import Floats

_STEPS = (1e-4, 1e4)
_SINGULAR = 1e-5  # a pivot of a Cholesky factor, where columns of signs have length 1
_DESCENT_STEPS, _NEWTON_STEPS = 100, 12
_GAP = 1e-5  # of the objective
_SINGLE = 1e-6  # of a target's spread: what steps in single precision still resolve
_SMALL_REST = 1e-3  # of a target's square: residuals that rounded slopes would falsify
_SWEEPS = 10_000
# Sweeps on the way: as many as so many operations allow, within bounds.
_LOOSE_WORK, _LOOSE_SWEEPS = 3e8, (100, 1000)


def descend(
    gram: NDArray[Any],
    start: Floats,
    slope: Floats,
    alpha: Floats,
    tol: float,
    max_iter: int,
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Proximal gradient with Barzilai-Borwein steps, all targets in one product.

    ``a <- soft(a + s q, s alpha)`` with ``q = c - G a`` and ``s = |da|^2 / da^T G da``.
    The steps follow the curvature on the active terms, which for parities is close to
    one; a target stops when ``max |da| <= tol * alpha * s``.

    Parameters
    ----------
    gram : float32 or float64 (p, p)
        Its precision is that of the steps.
    start, slope : float64 (K, p)
        Where to begin, and ``q`` there.
    alpha : float64 (K,)

    Returns
    -------
    coef, slope : float64 (K, p)
    left : int64
        The targets that have not reached the tolerance.
    """
    out, slopes = np.empty_like(start), np.empty_like(start)
    live = np.arange(len(start))
    coef, slope, alpha = (one.astype(gram.dtype) for one in (start, slope, alpha))
    step = np.full(len(live), 0.7, dtype=gram.dtype)
    room = np.empty((2, *coef.shape), dtype=gram.dtype)
    for _ in range(max_iter):
        change, bend = room[:, : len(live)]
        _proximal_change(coef, slope, step, alpha, change, bend)
        np.matmul(change, gram, out=bend)
        coef += change
        slope -= bend
        going = _largest(change) > tol * alpha * step
        step = _next_step(change, bend)
        if not going.all():
            done = ~going
            out[live[done]], slopes[live[done]] = coef[done], slope[done]
            live, alpha, step = live[going], alpha[going], step[going]
            if not len(live):
                break
            coef, slope = coef[going], slope[going]
    if len(live):
        out[live], slopes[live] = coef, slope
    return out, slopes, live


def _proximal_change(
    coef: NDArray[Any],
    slope: NDArray[Any],
    step: NDArray[Any],
    alpha: NDArray[Any],
    out: NDArray[Any],
    room: NDArray[Any],
) -> None:
    """``soft(a + s q, s alpha) - a`` into ``out``; ``room`` is overwritten."""
    level = (step * alpha)[:, None]
    np.multiply(slope, step[:, None], out=out)
    out += coef
    np.minimum(out, level, out=room)  # faster than np.clip
    np.maximum(room, -level, out=room)
    out -= room
    out -= coef


def _largest(change: NDArray[Any]) -> NDArray[Any]:
    """``max_j |change_kj|`` without a temporary of that size."""
    top = change.max(axis=1, initial=0.0)
    return np.asarray(np.maximum(top, -change.min(axis=1, initial=0.0)))


def _next_step(change: NDArray[Any], bend: NDArray[Any]) -> NDArray[Any]:
    """Inverse Rayleigh quotient of the last change, kept within bounds."""
    along = np.einsum("kj,kj->k", change, bend)
    length = np.einsum("kj,kj->k", change, change)
    step = np.divide(length, along, out=np.ones_like(along), where=along > 0)
    return np.asarray(np.clip(step, *_STEPS))


def coordinate_descent(
    gram: Floats,
    corr: Floats,
    power: float,
    alpha: float,
    start: Floats,
    gap: float,
    max_sweeps: int,
) -> Floats:
    """scikit-learn's coordinate descent for one target, for correlated columns.

    It needs no more than ``gram``, ``corr (p,)`` and the target's mean square
    ``power``: with these given it never looks at its ``X``, so a single row of zeros
    takes that place and makes "per sample" mean per unit of ``gram``.

    Parameters
    ----------
    gap : float
        Duality gap to reach, relative to ``power``.
    """
    with warnings.catch_warnings():
        # Whoever wants the gap that was reached computes it over all of C.
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, path, _ = lasso_path(
            np.zeros((1, len(corr)), order="F"),
            np.array([np.sqrt(power)]),
            alphas=[alpha],
            precompute=np.ascontiguousarray(gram),
            Xy=np.ascontiguousarray(corr),
            coef_init=start,
            tol=gap,
            max_iter=max_sweeps,
            check_input=False,
        )
    return np.ascontiguousarray(path[:, 0])


def newton(
    gram: Floats,
    corr: Floats,
    alpha: Floats,
    start: Floats,
    inverse: Floats | None = None,
) -> tuple[Floats, NDArray[np.bool_]]:
    """Semismooth Newton: exact once the signs are known.

    The active set is ``A = {|a + q| > alpha}``, ``q = c - G a``, and the step solves
    ``G_AA a_A = c_A - alpha sign_A``. A repeated set and sign pattern is the LASSO
    solution.

    Parameters
    ----------
    gram, inverse : float64 (p, p)
        The inverse, where there is one, makes large active sets cheap.
    corr, start : float64 (K, p)
    alpha : float64 (K,)

    Returns
    -------
    coef : float64 (K, p)
    done : bool (K,)
        False where the sets did not settle; that target's ``coef`` is its start.
    """
    out, done = start.copy(), np.zeros(len(alpha), dtype=bool)
    live, coef = np.arange(len(alpha)), start
    pattern = np.full(start.shape, np.nan)
    for _ in range(_NEWTON_STEPS):
        shifted = coef + corr[live] - coef @ gram
        signs = np.sign(shifted) * (np.abs(shifted) > alpha[live, None])
        same = (signs == pattern).all(axis=1)
        out[live[same]], done[live[same]] = coef[same], True
        live, pattern = live[~same], signs[~same]
        right = (corr[live] - alpha[live, None] * pattern) * (pattern != 0)
        coef, solved = _solve_supports(gram, pattern != 0, right, inverse)
        live, pattern, coef = live[solved], pattern[solved], coef[solved]
        if not len(live):
            break
    return out, done


def _solve_supports(
    gram: Floats,
    support: NDArray[np.bool_],
    right: Floats,
    inverse: Floats | None,
) -> tuple[Floats, NDArray[np.bool_]]:
    """Solve ``G_AA x_A = right_A``, ``x = 0`` elsewhere, for each target's A.

    Where A is most of the terms, ``x = H right - H_:I (H_II)^-1 (H right)_I`` with
    ``H = G^-1`` and I the few others.
    """
    coef, solved = np.zeros_like(right), np.ones(len(right), dtype=bool)
    whole = None if inverse is None else right @ inverse
    few = support.sum(axis=1) <= len(gram) / 2
    for k in range(len(right)):
        if inverse is None or whole is None or few[k]:
            (active,) = support[k].nonzero()
            found = solve_spd(gram, active, right[k, active])
            if found is not None:
                coef[k, active] = found
        else:
            (idle,) = (~support[k]).nonzero()
            rows = inverse.take(idle, axis=0)
            found = _solve_block(rows.take(idle, axis=1), whole[k, idle])
            if found is not None:
                coef[k] = whole[k] - found @ rows
                coef[k, idle] = 0.0
        solved[k] = found is not None
    return coef, solved


def solve_spd(gram: Floats, active: NDArray[np.int64], right: Floats) -> Floats | None:
    """Solve ``G_AA x = right`` by Cholesky; None when ``G_AA`` is singular."""
    return _solve_block(_block(gram, active), right)


def _block(gram: Floats, active: NDArray[np.int64]) -> Floats:
    """``G_AA``; np.take is the fastest for small blocks."""
    return gram.take(active, axis=0).take(active, axis=1)


def _solve_block(block: Floats, right: Floats) -> Floats | None:
    """Solve ``block x = right``; one matrix, already gathered."""
    if not len(block):
        return right
    factor = _factor(block)
    if factor is None:
        return None
    solved: Floats = lapack.dpotrs(factor, right, lower=1)[0]
    # One step of refinement: noise-free targets are recovered to the last digits.
    solved += lapack.dpotrs(factor, right - block @ solved, lower=1)[0]
    return solved if np.isfinite(solved).all() else None


def _factor(block: Floats) -> Floats | None:
    """Lower Cholesky factor of a symmetric matrix; None when it is singular."""
    # The transpose is the same matrix in LAPACK's order: nothing is rearranged.
    factor, singular = lapack.dpotrf(block.T, lower=1, clean=0)
    if singular or factor.diagonal().min() < _SINGULAR:
        return None
    return np.asarray(factor)


def solve_loosely(
    gram: Floats,
    corr: Floats,
    power: Floats,
    alpha: Floats,
    start: Floats,
    slope: Floats,
    tol: float,
    descent: bool = True,
    rounded: NDArray[np.float32] | None = None,
) -> tuple[Floats, Floats]:
    """LASSO of every target to ``tol`` (relative to alpha), and its slope.

    Without ``descent`` coordinate descent is tried at once. Steps on the ``rounded``
    matrix take half the time and serve all but the smallest strengths.
    """
    max_iter = _DESCENT_STEPS if descent else 0
    rough = bool((tol * alpha >= _SINGLE * np.sqrt(power)).all())
    matrix = gram if rounded is None or not rough else rounded
    coef, slope, left = descend(matrix, start, slope, alpha, tol, max_iter)
    if matrix is rounded:
        explained = np.einsum("kj,kj->k", coef, corr)
        explained += np.einsum("kj,kj->k", coef, slope)
        close = np.flatnonzero(power - explained < _SMALL_REST * power)
        slope[close] = corr[close] - coef[close] @ gram
    sweeps = int(np.clip(_LOOSE_WORK / max(1, len(gram)) ** 2, *_LOOSE_SWEEPS))
    for k in left:
        gap = min(tol * alpha[k] / np.sqrt(power[k]), 1e-4)
        coef[k] = coordinate_descent(
            gram, corr[k], power[k], alpha[k], coef[k], gap, sweeps
        )
    slope[left] = corr[left] - coef[left] @ gram
    return coef, slope


def solve(
    gram: Floats,
    corr: Floats,
    power: Floats,
    alpha: Floats,
    start: Floats,
    slope: Floats,
    inverse: Floats | None = None,
    descent: bool = True,
    rounded: NDArray[np.float32] | None = None,
) -> Floats:
    """Exact LASSO of every target: come near, then `newton`; nearer where it fails."""
    near, _ = solve_loosely(
        gram, corr, power, alpha, start, slope, 1e-3, descent, rounded
    )
    coef, settled = newton(gram, corr, alpha, near, inverse)
    for k in np.flatnonzero(~settled):
        left = power[k] - coef[k] @ (2 * corr[k] - gram @ coef[k])
        objective = left / 2 + alpha[k] * np.abs(coef[k]).sum()
        gap = _GAP * min(objective / power[k], 1.0)
        coef[k] = coordinate_descent(
            gram, corr[k], power[k], alpha[k], coef[k], gap, _SWEEPS
        )
        one = slice(k, k + 1)
        coef[one], _ = newton(gram, corr[one], alpha[one], coef[one])
    return coef


def explained_by_support(gram: Floats, corr: Floats, coef: Floats) -> Floats:
    """``c_A^T G_AA^-1 c_A`` of each target: what least squares on its support explains.

    Zero where the support is singular.
    """
    out = np.zeros(len(coef))
    for k in range(len(out)):
        (active,) = coef[k].nonzero()
        if len(active):
            factor = _factor(_block(gram, active))
            if factor is not None:
                half = lapack.dtrtrs(factor, corr[k, active], lower=1)[0]
                out[k] = half @ half
    return out


def least_squares(gram: Floats, corr: Floats, coef: Floats) -> Floats:
    """Refit each target without penalty on the support of its coefficients.

    Coefficients at rounding level are pruned; a singular support keeps ``coef``.
    """
    out = np.zeros_like(coef)
    for k in range(len(coef)):
        active = np.flatnonzero(coef[k])
        solved = solve_spd(gram, active, corr[k, active])
        if solved is None:
            out[k] = coef[k]
        elif len(active):
            level = 1e-9 * np.abs(solved).max()
            out[k, active] = np.where(np.abs(solved) > level, solved, 0.0)
    return out
