"""The readable set chosen by the samples: honest combination of sparse and smooth fits.

Each candidate is a polynomial: the LASSO up to a degree, and Gaussian-process
interpolants (`harmonica_core.kernel`) that reach every order. All are cross-validated
on the same folds, screening and tuning included, and are combined with non-negative
weights that sum to one, found from held-out predictions, for even and odd terms
separately. A convex combination of polynomials is a polynomial.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harmonica_core import basis
from harmonica_core._types import Floats, Masks, Table
from harmonica_core.alpha import N_FOLDS
from harmonica_core.kernel import ALL, EVEN, ODD, Interpolant, fit_interpolant
from harmonica_core.lasso import SparseFit, fit_sparse
from harmonica_core.masks import are_paired

# Sums of rates that the components of each interpolant start from.
INTERPOLANTS = ((1.0,), (0.5, 4.0))
_MAX_TERMS = 1 << 17
# Rows of one interpolant, and rows times outputs; beyond, the sparse fit stands alone.
_MAX_ROWS, _MAX_WORK = 2100, 1 << 15
_MAX_FEATURES = 64
# Terms are dropped while together they stay below this share of the error.
_NEGLIGIBLE = 0.05
_SMALL_WEIGHT = 1e-6


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
        Out-of-sample predictions: the residuals are those of folds, scaled to the
        error expected from a fit on all rows.
    mixture : float64 (K, n_parts, n_candidates)
        Weights of the candidates, the sparse one first.
    """

    table: Table
    coef: Floats
    intercept: Floats
    alpha: Floats
    held_out: Floats
    mixture: Floats


@dataclass(frozen=True)
class _Rows:
    """Masks as one regression, or as an even and an odd one over half the rows."""

    signs: Floats
    parities: tuple[int, ...]
    weights: Floats
    fold: NDArray[np.int64]

    @classmethod
    def of(cls, masks: Masks, weights: Floats | None) -> _Rows:
        weights = np.ones(len(masks)) if weights is None else weights
        paired = are_paired(masks) and bool((weights[0::2] == weights[1::2]).all())
        step = 2 if paired else 1
        signs = basis.signs(masks[::step])[:, :-1]
        # The sparse fit uses the same folds, so held-out predictions can be combined.
        fold = np.arange(len(signs)) % N_FOLDS
        parities = (EVEN, ODD) if paired else (ALL,)
        return cls(signs, parities, weights[::step], fold)

    def split(self, values: Floats) -> Floats:
        """Parts ``(n_parts, h)`` of ``values (m,)``."""
        if len(self.parities) == 1:
            return values[None, :]
        first, second = values[0::2], values[1::2]
        return np.stack([first + second, first - second]) / 2

    def join(self, parts: Floats) -> Floats:
        """Invert `split`."""
        if len(self.parities) == 1:
            return parts[0]
        even, odd = parts
        return np.stack([even + odd, even - odd], axis=1).ravel()


@dataclass(frozen=True)
class _Candidate:
    """Honest residuals ``(n_parts, h)`` of a candidate, and its coefficients."""

    residual: Floats
    coef: Floats


def fit_adaptive(
    masks: Masks,
    values: Floats,
    degree: int = 3,
    *,
    weights: Floats | None = None,
    rng: np.random.Generator | None = None,
) -> AdaptiveFit:
    """Fit each column of ``values`` by the combination that predicts best.

    Parameters
    ----------
    masks : bool (m, n_features)
        In complementary pairs (rows 2k and 2k + 1) for the best use of them.
    values : float64 (m, K)
    degree : int
        Largest term of the sparse candidate; the others are not limited.
    weights : float64 (m,), optional
        Weight of each mask in the error that is made small.
    rng : Generator, optional
        Not used: the fit is deterministic.

    Returns
    -------
    AdaptiveFit
    """
    sparse = fit_sparse(masks, values, degree, weights=weights)
    rows = _Rows.of(masks, weights)
    n_features, n_outputs = masks.shape[1], values.shape[1]
    work = len(rows.signs) * n_outputs
    if n_features > _MAX_FEATURES or len(rows.signs) > _MAX_ROWS or work > _MAX_WORK:
        return _sparse_alone(sparse, len(rows.parities))
    table = _candidate_terms(masks.shape[1], degree)
    coef = np.zeros((len(table), n_outputs))
    held_out = np.empty_like(values)
    mixture = np.empty((n_outputs, len(rows.parities), 1 + len(INTERPOLANTS)))
    for k in range(n_outputs):
        centre = values[:, k].mean()
        target = rows.split(values[:, k] - centre)
        candidates = [_sparse_candidate(rows, sparse, k, target, centre, table)]
        candidates += [_smooth(rows, target, table, s) for s in INTERPOLANTS]
        mixture[k], residual = _combine(rows, [c.residual for c in candidates])
        coef[:, k] = _mix(table, rows.parities, mixture[k], candidates)
        coef[0, k] += centre
        coef[:, k] = _compress(coef[:, k], residual)
        held_out[:, k] = values[:, k] - rows.join(residual)
    active = np.flatnonzero((coef[1:] != 0).any(axis=1)) + 1
    return AdaptiveFit(
        table=basis.trim(table[active]),
        coef=coef[active],
        intercept=coef[0],
        alpha=sparse.alpha,
        held_out=held_out,
        mixture=mixture,
    )


def _sparse_alone(sparse: SparseFit, n_parts: int) -> AdaptiveFit:
    mixture = np.zeros((len(sparse.alpha), n_parts, 1 + len(INTERPOLANTS)))
    mixture[:, :, 0] = 1
    return AdaptiveFit(
        sparse.table,
        sparse.coef,
        sparse.intercept,
        sparse.alpha,
        sparse.held_out,
        mixture,
    )


def _candidate_terms(n_features: int, degree: int) -> Table:
    """All terms up to the largest size that keeps their number in bounds."""
    size = min(degree, n_features)
    while size < n_features and basis.n_terms_up_to(n_features, size + 1) <= _MAX_TERMS:
        size += 1
    return basis.terms_up_to(n_features, size)


def _sparse_candidate(
    rows: _Rows, sparse: SparseFit, k: int, target: Floats, centre: float, table: Table
) -> _Candidate:
    held_out = rows.split(sparse.held_out[:, k] - centre)
    coef = np.zeros(len(table))
    coef[_positions(sparse.table, table)] = sparse.coef[:, k]
    coef[0] = sparse.intercept[k] - centre
    return _Candidate(target - held_out, coef)


def _positions(terms: Table, table: Table) -> NDArray[np.int64]:
    """Row of each term in ``table``."""
    width = max(terms.shape[1], table.shape[1])
    where = {row: i for i, row in enumerate(_bytes(table, width))}
    return np.array([where[row] for row in _bytes(terms, width)], dtype=np.int64)


def _bytes(table: Table, width: int) -> list[bytes]:
    missing = width - table.shape[1]
    full = np.pad(table, ((0, 0), (0, missing)), constant_values=-1)
    return [row.tobytes() for row in np.ascontiguousarray(full, dtype=np.int32)]


def _smooth(
    rows: _Rows, target: Floats, table: Table, starts: tuple[float, ...]
) -> _Candidate:
    """Interpolate, and cross-validate with rates learnt again in each fold."""
    degree = table.shape[1]
    full = fit_interpolant(rows.signs, target, rows.parities, starts)
    residual = np.empty_like(target)
    inner = np.zeros(len(target))
    for fold in range(N_FOLDS):
        out = rows.fold == fold
        part = fit_interpolant(
            rows.signs[~out], target[:, ~out], rows.parities, starts, first=full.prior
        )
        residual[:, out] = target[:, out] - part.predict(rows.signs[out], degree)
        inner += _mean_square(part, target[:, ~out], rows.weights[~out]) / N_FOLDS
    # Folds lack a fifth of the rows. Leaving out one row, in closed form, says what
    # those rows are worth at the same rates.
    gain = _mean_square(full, target, rows.weights) / np.where(inner > 0, inner, 1)
    residual *= np.sqrt(np.minimum(gain, 1))[:, None]
    return _Candidate(residual, full.coefficients(table))


def _mean_square(fit: Interpolant, target: Floats, weights: Floats) -> Floats:
    """Weighted mean square of leave-one-out residuals ``(n_parts,)``."""
    return np.asarray((target - fit.left_out) ** 2 @ weights / weights.sum())


def _combine(rows: _Rows, residuals: list[Floats]) -> tuple[Floats, Floats]:
    """Weights ``(n_parts, n_candidates)`` and the honest residuals ``(n_parts, h)``.

    A row's residual uses weights found without the row's fold.
    """
    stacked = np.stack(residuals, axis=1)
    mixture = np.empty(stacked.shape[:2])
    combined = np.empty((len(stacked), stacked.shape[2]))
    for part, each in enumerate(stacked):
        grams = [
            (each[:, rows.fold == f] * rows.weights[rows.fold == f])
            @ each[:, rows.fold == f].T
            for f in range(N_FOLDS)
        ]
        total = np.sum(grams, axis=0)
        mixture[part] = convex_weights(total)
        for fold, gram in enumerate(grams):
            out = rows.fold == fold
            combined[part, out] = convex_weights(total - gram) @ each[:, out]
    return mixture, combined


def convex_weights(gram: Floats) -> Floats:
    """Minimise ``w^T G w`` over ``w >= 0, sum(w) = 1``: the best of all supports.

    Parameters
    ----------
    gram : float64 (c, c)
        Inner products of the residuals of a few candidates.

    Returns
    -------
    float64 (c,)
    """
    count = len(gram)
    best = np.zeros(count)
    best[int(np.argmin(np.diag(gram)))] = 1.0
    least = float(np.diag(gram).min())
    for size in range(2, count + 1):
        for support in itertools.combinations(range(count), size):
            inner = gram[np.ix_(support, support)]
            raw = np.linalg.lstsq(inner, np.ones(size), rcond=None)[0]
            if raw.sum() <= 0 or (raw < 0).any():
                continue
            raw /= raw.sum()
            error = float(raw @ inner @ raw)
            if error < least:
                least, best = error, np.zeros(count)
                best[list(support)] = raw
    best[best < _SMALL_WEIGHT] = 0
    return best / best.sum()


def _mix(
    table: Table, parities: tuple[int, ...], mixture: Floats, fits: list[_Candidate]
) -> Floats:
    odd = basis.term_sizes(table) % 2 == 1
    out = np.zeros(len(table))
    for weights, parity in zip(mixture, parities, strict=True):
        mixed = sum(w * c.coef for w, c in zip(weights, fits, strict=True))
        out += mixed if parity == ALL else np.where(odd == (parity == ODD), mixed, 0)
    return out


def _compress(coef: Floats, residual: Floats) -> Floats:
    """Zero the smallest coefficients whose joint energy is negligible."""
    bound = _NEGLIGIBLE**2 * (residual**2).mean(axis=1).sum()
    size = np.abs(coef)
    size[0] = np.inf
    order = np.argsort(size, kind="stable")
    count = np.searchsorted(np.cumsum(size[order] ** 2), bound, side="right")
    out = coef.copy()
    out[order[:count]] = 0
    return out
