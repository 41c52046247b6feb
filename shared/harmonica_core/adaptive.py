"""The readable set chosen by the samples: sparse and smooth fits, honestly blended.

The sparse candidate is the LASSO on all terms up to a degree; with fewer samples than
terms there is a second one, up to one degree less. The smooth one is a mean of
Gaussian-process interpolants (`harmonica_core.smooth`), with terms of every size. All
are cross-validated on the same folds, screening and tuning included. The share of each,
for even and for odd terms, is the one with the least held-out error; a convex
combination of polynomials is a polynomial.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harmonica_core import basis
from harmonica_core._types import Floats, Masks, Table
from harmonica_core.kernel import ALL
from harmonica_core.lasso import SparseFit, fit_sparse
from harmonica_core.shares import PartRows, shares
from harmonica_core.smooth import fit_smooth

_MAX_TERMS = 1 << 17
# Masks in pairs, and pairs times outputs; beyond, the sparse fit stands alone.
_MAX_MASKS, _MAX_WORK = 4200, 1 << 15
_MAX_FEATURES = 64
# Terms are dropped while together they stay below this share of the error.
_NEGLIGIBLE = 0.05


@dataclass(frozen=True)
class AdaptiveFit:
    """A polynomial for each of K outputs.

    Attributes
    ----------
    table : int32 (n_terms, width)
        Terms active in at least one output, without the empty term.
    coef : float64 (n_terms, K)
    intercept : float64 (K,)
    alpha : float64 (K,)
        L1 strength of the sparse candidate.
    held_out : float64 (m, K)
        Out-of-sample predictions. Their residuals come from folds, scaled to what is
        expected of a fit on all rows.
    doubt : float64 (K,)
        Standard error that this scaling adds to the root mean square of the residuals.
    smooth : float64 (K, n_parts)
        Share of the smooth candidate, in the even and the odd terms (in all terms if
        masks do not come in pairs).
    """

    table: Table
    coef: Floats
    intercept: Floats
    alpha: Floats
    held_out: Floats
    doubt: Floats
    smooth: Floats


def fit_adaptive(
    masks: Masks,
    values: Floats,
    degree: int = 3,
    *,
    weights: Floats | None = None,
) -> AdaptiveFit:
    """Fit each column of ``values`` by the blend that predicts best.

    With very many rows, features or outputs the sparse candidate stands alone.

    Parameters
    ----------
    masks : bool (m, n_features)
        In complementary pairs (rows 2k and 2k + 1) for the best use of them.
    values : float64 (m, K)
    degree : int
        Largest term of the sparse candidate; the smooth one is not limited by it.
    weights : float64 (m,), optional
        Weight of each mask in the error that is made small.

    Returns
    -------
    AdaptiveFit
    """
    sparse = fit_sparse(masks, values, degree, weights=weights)
    rows = PartRows.of(masks, weights)
    n_features, n_outputs = masks.shape[1], values.shape[1]
    work = len(rows.signs) * n_outputs
    if not is_affordable(2 * len(rows.signs), n_features) or work > _MAX_WORK:
        return _sparse_alone(sparse, len(rows.parities))
    table = _candidate_terms(n_features, degree)
    fits = [sparse]
    if _fewer_samples_than_terms(masks, degree) and degree > 1:
        fits.append(fit_sparse(masks, values, degree - 1, weights=weights))
    dense = [_on_table(fit, table) for fit in fits]
    blends = []
    for k in range(n_outputs):
        held_out = [fit.held_out[:, k] for fit in fits]
        sparse_coef = [one[:, k] for one in dense]
        blends.append(_blend(rows, values[:, k], held_out, sparse_coef, table))
    coef = np.stack([b.coef for b in blends], axis=1)
    active = np.flatnonzero((coef[1:] != 0).any(axis=1)) + 1
    return AdaptiveFit(
        table=basis.trim(table[active]),
        coef=coef[active],
        intercept=coef[0],
        alpha=sparse.alpha,
        held_out=np.stack([b.held_out for b in blends], axis=1),
        doubt=np.array([b.doubt for b in blends]),
        smooth=np.stack([b.share for b in blends]),
    )


def is_affordable(n_masks: int, n_features: int) -> bool:
    """Whether masks, in pairs, and features are few enough for interpolation."""
    return n_features <= _MAX_FEATURES and n_masks <= _MAX_MASKS


def _fewer_samples_than_terms(masks: Masks, degree: int) -> bool:
    return len(masks) < basis.n_terms_up_to(masks.shape[1], degree)


def _sparse_alone(sparse: SparseFit, n_parts: int) -> AdaptiveFit:
    n_outputs = len(sparse.alpha)
    return AdaptiveFit(
        sparse.table,
        sparse.coef,
        sparse.intercept,
        sparse.alpha,
        sparse.held_out,
        np.zeros(n_outputs),
        np.zeros((n_outputs, n_parts)),
    )


def _candidate_terms(n_features: int, degree: int) -> Table:
    """All terms up to the largest size that keeps their number in bounds."""
    size = min(degree, n_features)
    while size < n_features and basis.n_terms_up_to(n_features, size + 1) <= _MAX_TERMS:
        size += 1
    return basis.terms_up_to(n_features, size)


def _on_table(fit: SparseFit, table: Table) -> Floats:
    """Coefficients ``(n_terms, K)`` of all terms of the table."""
    out = np.zeros((len(table), len(fit.intercept)))
    out[_positions(fit.table, table)] = fit.coef
    out[0] = fit.intercept
    return out


def _positions(terms: Table, table: Table) -> NDArray[np.int64]:
    """Row of each term in ``table``."""
    width = max(terms.shape[1], table.shape[1])
    where = {row: i for i, row in enumerate(_bytes(table, width))}
    return np.array([where[row] for row in _bytes(terms, width)], dtype=np.int64)


def _bytes(table: Table, width: int) -> list[bytes]:
    missing = width - table.shape[1]
    full = np.pad(table, ((0, 0), (0, missing)), constant_values=-1)
    return [row.tobytes() for row in np.ascontiguousarray(full, dtype=np.int32)]


@dataclass(frozen=True)
class _Blend:
    coef: Floats
    held_out: Floats
    doubt: float
    share: Floats


def _blend(
    rows: PartRows,
    values: Floats,
    held_out: list[Floats],
    sparse: list[Floats],
    table: Table,
) -> _Blend:
    """Blend the sparse coefficients ``(n_terms,)`` of one output with a smooth fit."""
    centre = float(np.average(rows.split(values)[0], weights=rows.weights))
    target = rows.split(values - centre)
    smooth = fit_smooth(rows, target, table)
    left = [target - rows.split(one - centre) for one in held_out]
    residuals = np.stack([*left, smooth.residual])
    power = float(rows.mean_square(target).sum())
    share, crossed = shares(rows, residuals, power)
    coef = np.zeros(len(table))
    for part, one in zip(share, (*sparse, smooth.coef), strict=True):
        coef += _by_size(table, rows.parities, part) * one
    coef[0] += centre * share[-1, 0]
    raw = (crossed * residuals).sum(axis=0)
    residuals[-1] *= smooth.gain[:, None]
    scaled = (crossed * residuals).sum(axis=0)
    stated = float(np.sqrt(rows.mean_square(scaled).sum()))
    # The scaling is a forecast: it may be off by half of what it takes away.
    doubt = (float(np.sqrt(rows.mean_square(raw).sum())) - stated) / 2
    return _Blend(
        _without_negligible(coef, _NEGLIGIBLE * stated),
        values - rows.join(scaled),
        max(doubt, 0.0),
        share[-1],
    )


def _by_size(table: Table, parities: tuple[int, ...], share: Floats) -> Floats:
    """Share of each term."""
    if parities == (ALL,):
        return np.full(len(table), share[0])
    return share[basis.term_sizes(table) % 2]


def _without_negligible(coef: Floats, bound: float) -> Floats:
    """Zero the smallest coefficients, whose joint energy is below ``bound**2``."""
    size = np.abs(coef)
    size[0] = np.inf
    order = np.argsort(size, kind="stable")
    count = np.searchsorted(np.cumsum(size[order] ** 2), bound**2, side="right")
    out = coef.copy()
    out[order[:count]] = 0
    return out
