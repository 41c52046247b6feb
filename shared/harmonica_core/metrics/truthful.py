"""Truthful gap: what g leaves unsaid of the readable part of f.

    T_C(f, g) = sum_{S in C} <f - g, chi_S>^2,

a sum of squares over the terms of C (not the square of a sum, which lets errors of
opposite sign cancel: a g with two wrong terms could look perfect).

From sampled masks, ``mean(r chi_S)^2`` exceeds ``<r, chi_S>^2`` by the variance of that
mean, for each of possibly a million terms. Here each square has the estimated variance
taken off. With plain uniform masks that leaves the pairs of distinct masks,

    1 / (T (T-1)) sum_{t != u} r_t r_u K(x_t, x_u),   K(x, y) = sum_{S in C} chi_S(x y),

which is unbiased, and may be slightly negative where the gap is about zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Unpack

import numpy as np

from harmonica_core import basis
from harmonica_core._types import Floats, Table
from harmonica_core.basis import term_numbers
from harmonica_core.basis.transform import spectrum_of_values
from harmonica_core.checks import check_count
from harmonica_core.design.masks import mask_numbers
from harmonica_core.metrics.evaluations import (
    EvaluationSet,
    Part,
    Sampling,
    evaluations_of,
)
from harmonica_core.metrics.inputs import Function
from harmonica_core.metrics.kernels import DegreeKernel, Kernel, TermKernel
from harmonica_core.metrics.moments import from_units, is_exact
from harmonica_core.result.estimate import Estimate
from harmonica_core.scaling import unit_of

# The spread of the products of pairs is estimated from this many pairs (or from all),
# and from this many pairs per mask if that is more.
_N_PAIRS = 1 << 13
_PAIRS_PER_MASK = 8


# Two masks make one pair, and one pair has no spread.
_FEWEST_DRAWS = 3


def truthful_gap(
    f: Function | EvaluationSet,
    g: Function,
    n_features: int,
    degree: int | None = None,
    terms: Iterable[Sequence[int]] | Table | None = None,
    **sampling: Unpack[Sampling],
) -> Estimate:
    """``T_C(f, g)`` over uniform masks, for all terms up to a degree or for given ones.

    Parameters
    ----------
    f, g, n_features, **sampling
        As for `interpretation_error`.
    degree : int, optional
        C = all terms of size 0 to ``degree``; 3 when ``terms`` is not given either.
    terms : iterable of tuples, optional
        C = these terms, e.g. ``g.terms``.

    Returns
    -------
    Estimate
        Exact when all masks are enumerated, else unbiased.

    Examples
    --------
    >>> f = lambda masks: 1.0 * (masks[:, 0] & masks[:, 1])
    >>> g = lambda masks: 0.5 * masks[:, 0]
    >>> truthful_gap(f, g, n_features=2, degree=1)
    0.0625 (exact)
    """
    known = evaluations_of(f, n_features, (None,), sampling)
    readable = _check_readable(degree, terms, known.n_features)
    parts = known.parts(None)
    residual = known.columns() - known.predictions(g)
    unit = unit_of(np.abs(residual).max(axis=0))
    residual /= unit
    if is_exact(parts):
        value = _enumerated(known, residual, readable)
        variance = np.zeros_like(value)
    elif len(known) < _FEWEST_DRAWS:
        raise ValueError(
            f"{len(known)} sampled masks tell nothing of their own spread; needed at "
            f"least {_FEWEST_DRAWS}: raise max_evaluations"
        )
    else:
        kernel = (
            DegreeKernel(known.n_features, readable)
            if isinstance(readable, int)
            else TermKernel(readable)
        )
        value, variance = _sampled(known, residual, parts, kernel)
    return Estimate(
        known.shaped(from_units(value, unit, 2)),
        known.shaped(from_units(np.sqrt(variance), unit, 2)),
        len(known),
        exact=is_exact(parts),
    )


def _check_readable(
    degree: int | None, terms: Iterable[Sequence[int]] | Table | None, n_features: int
) -> Table | int:
    """Return the degree, or the table of the given terms."""
    if terms is not None:
        if degree is not None:
            raise ValueError(f"got degree={degree} and terms; needed one of the two")
        return basis.check_table(terms, n_features)
    degree = 3 if degree is None else degree
    return min(check_count(degree, "degree"), n_features)


def _enumerated(
    known: EvaluationSet, residual: Floats, readable: Table | int
) -> Floats:
    """Sum of squares from the whole spectrum of the residual."""
    dense = np.empty_like(residual)
    dense[mask_numbers(known.masks)] = residual
    squares = spectrum_of_values(dense) ** 2
    if isinstance(readable, int):
        # Row numbers are bit sets of features, so mask k also lists the terms.
        sizes = known.masks.sum(axis=1)
        rows = mask_numbers(known.masks)[sizes <= readable]
    else:
        rows = term_numbers(readable, known.n_features)
    return np.asarray(squares[rows].sum(axis=0))


def _sampled(
    known: EvaluationSet, residual: Floats, parts: Sequence[Part], kernel: Kernel
) -> tuple[Floats, Floats]:
    """Unbiased value and its variance, each ``(n_outputs,)``.

    With ``A_S = sum_t y_t chi_S(x_t)``, ``y_t = weight * r_t / count``, an unbiased
    estimate of ``<r, chi_S>``, and ``Omega`` its covariance over the terms, the value
    is ``|A|^2 - tr Omega`` and its variance ``4 A' Omega A + 2 tr Omega^2``. Estimated
    from the same masks, the first part comes out too large by ``4 tr Omega^2``.
    """
    share = np.concatenate([np.full(len(p), p.weight / len(p)) for p in parts])
    y = share[:, None] * residual
    by_part = np.zeros((len(y), len(parts), y.shape[1]))
    for k, part in enumerate(parts):
        by_part[part.rows, k] = y[part.rows]
    sums = kernel.apply(known.masks, by_part.reshape(len(y), -1)).reshape(by_part.shape)
    value = (y[:, None] * sums).sum(axis=(0, 1))
    variance = np.zeros_like(value)
    for k, part in enumerate(parts):
        if part.enumerated:
            continue
        count, own, mine = len(part), sums[part.rows, k], y[part.rows]
        ratio = count / (count - 1)
        value -= ratio * kernel.n_terms * (mine**2).sum(axis=0)
        value += (mine * own).sum(axis=0) / (count - 1)
        others = sums[part.rows].sum(axis=1) - own
        without = mine * (others + ratio * (own - kernel.n_terms * mine))
        variance += 4 * count * without.var(axis=0, ddof=1)
    excess = 2 * _trace_of_square(known, y, parts, kernel)
    # In expectation the excess is at most half of the first part.
    return value, np.maximum(variance - excess, variance / 2)


def _trace_of_square(
    known: EvaluationSet, y: Floats, parts: Sequence[Part], kernel: Kernel
) -> Floats:
    """Estimate ``tr Omega^2 = sum_{t != u} (y_t y_u K_tu)^2`` from some pairs."""
    rows = np.concatenate(
        [np.arange(p.rows.start, p.rows.stop) for p in parts if not p.enumerated]
    )
    # Shifts s and -s give the same pairs.
    n_shifts = min(len(rows) // 2, max(_PAIRS_PER_MASK, _N_PAIRS // len(rows)))
    shifts = np.linspace(1, len(rows) // 2, n_shifts).astype(np.int64)
    places = (np.arange(len(rows)) + shifts[:, None]) % len(rows)
    first, partner = np.tile(rows, n_shifts), rows[places.ravel()]
    k = kernel.pairs(known.masks[first], known.masks[partner])
    squares = (y[first] * y[partner] * k[:, None]) ** 2
    return np.asarray(squares.sum(axis=0) * (len(rows) - 1) / n_shifts)
