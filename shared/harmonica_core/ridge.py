"""Thousands of functions on the same masks: ridge regression on all terms of C.

    min_a  sum_t (y_t - sum_{S in C} a_S chi_S(x_t))^2 + nugget * sum_S a_S^2 / v_S

with prior variances ``v_S = n**-|S|``, so that no size of terms outweighs the others.
The kernel ``k(x, x') = sum_S v_S chi_S(x) chi_S(x')`` depends on ``t = x . x'`` alone:
it is ``sum_d e_d(t) / n^d`` with the elementary symmetric polynomials ``e_d``. One
Cholesky factor of half the masks (or of the terms, where those are fewer) serves every
function, and the coefficients are ``a_S = v_S sum_t b_t chi_S(x_t)``.

The masks (`shapley_masks`) are complementary pairs of all sizes: uniform ones tell the
spectrum, those with few features kept or removed tell Shapley values and what happens
near the input.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, lapack
from scipy.special import gammaln

from harmonica_core import basis
from harmonica_core._types import Floats, Masks, Table
from harmonica_core.correlations import ParityDesign, Signs
from harmonica_core.estimate import Estimate
from harmonica_core.estimators import Fit
from harmonica_core.masks import are_paired, interleave_pairs
from harmonica_core.scaling import fit_scaled

# Share of pairs whose number of removed features follows Shapley's weights.
_SIZED_SHARE = 0.6
# Nuggets in units of the kernel's diagonal; each function takes its best.
_NUGGETS = (1e-5, 1e-1)
# Beyond, there are too many coefficients to hold, or too large a matrix to factor.
_MOST_TERMS = 1 << 16
_LARGEST_MATRIX = 5000
# Terms are dropped while together they stay below this share of the error.
_NEGLIGIBLE = 0.1
# Parity columns made at a time: they should stay in the processor's cache.
_BLOCK_BYTES = 1 << 20
_BLOCK_MASKS = 512
# Functions so few that each goes through products of the signs instead.
_FEW_COLUMNS = 8


def shapley_masks(n_features: int, n_masks: int, rng: np.random.Generator) -> Masks:
    """Complementary pairs of all sizes, ``(n_masks // 2 * 2, n_features)``.

    First (all kept, all removed), then each feature removed alone, then random pairs:
    60% with k features removed, k drawn in proportion to ``1 / (k (n - k))`` (the
    Shapley kernel), 40% uniform. Smaller budgets are prefixes of larger ones.
    """
    n_pairs = n_masks // 2
    fixed = np.concatenate(
        [np.ones((1, n_features), bool), ~np.eye(n_features, dtype=bool)]
    )
    n_random = max(0, n_pairs - len(fixed))
    uniforms = rng.random((n_random, n_features + 2))
    ranks = uniforms[:, 2:].argsort(axis=1).argsort(axis=1)
    cumulative = np.cumsum(size_probabilities(n_features))
    sizes = 1 + np.searchsorted(cumulative[:-1], uniforms[:, 1], side="right")
    sized = uniforms[:, 0] < _SIZED_SHARE
    halves = np.where(sized[:, None], ranks >= sizes[:, None], uniforms[:, 2:] < 0.5)
    return interleave_pairs(np.concatenate([fixed, halves])[:n_pairs])


def size_probabilities(n_features: int) -> Floats:
    """Probability that 1, 2, ..., n - 1 features are removed under Shapley's kernel."""
    k = np.arange(1, n_features)
    weights = 1.0 / (k * (n_features - k))
    return np.asarray(weights / weights.sum())


def uniform_weights(masks: Masks) -> Floats:
    """Importance weights ``(m,)`` that turn `shapley_masks` into uniform masks."""
    n = masks.shape[1]
    k = np.arange(1, n)
    log_uniform = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) - n * np.log(2)
    uniform = np.exp(log_uniform)
    drawn = _SIZED_SHARE * size_probabilities(n) + (1 - _SIZED_SHARE) * uniform
    # The two ends are always there rather than drawn.
    by_size = np.concatenate([[0.0], uniform / drawn, [0.0]])
    return np.asarray(by_size[masks.sum(axis=1)])


def is_affordable(n_features: int, degree: int, n_masks: int) -> bool:
    """Whether the terms fit into memory and a matrix is factored in a few seconds."""
    n_terms = basis.n_terms_up_to(n_features, degree)
    side = min(n_masks // 2, n_terms)
    return n_terms <= _MOST_TERMS and side <= _LARGEST_MATRIX


def check_solver(solver: object, alpha: object, terms: object) -> None:
    """Refuse solvers there are not, and settings that the ridge regression lacks."""
    if solver not in ("auto", "ridge", "lasso"):
        raise ValueError(f'solver={solver!r}; needed "auto", "ridge" or "lasso"')
    if solver == "ridge" and not _is_plain(alpha, terms):
        raise ValueError(
            f'solver="ridge" takes neither alpha nor terms, got {alpha!r} and '
            f'{terms!r}; leave them out or use solver="lasso"'
        )


def shares_ridge(
    solver: str,
    alpha: object,
    terms: object,
    n_features: int,
    degree: int,
    n_masks: int,
) -> bool:
    """Whether a plug-in's fit goes through this module rather than the LASSO."""
    if solver != "auto":
        return solver == "ridge"
    plain = _is_plain(alpha, terms)
    return plain and is_affordable(n_features, degree, n_masks)


def _is_plain(alpha: object, terms: object) -> bool:
    return isinstance(alpha, str) and alpha == "auto" and terms is None


def fit_ridge(masks: Masks, values: Floats, degree: int) -> Fit:
    """Fit each column of ``values (m, K)`` on all terms up to ``degree``.

    Parameters
    ----------
    masks : bool (m, n_features)
        Complementary pairs, from `shapley_masks`.
    values : float64 (m, K)
    degree : int

    Returns
    -------
    Fit
        Its error is ``I_2`` over uniform masks from leave-one-pair-out residuals.
    """
    if not are_paired(masks):
        raise ValueError(
            "the masks are not complementary pairs; needed masks from shapley_masks"
        )
    return fit_scaled(lambda scaled, _: _fit(masks, scaled, degree), values, None)


def _fit(masks: Masks, values: Floats, degree: int) -> Fit:
    """Fit values of an ordinary magnitude."""
    halves = masks[0::2]
    even = (values[0::2] + values[1::2]) / 2
    odd = (values[0::2] - values[1::2]) / 2
    centre = even.mean(axis=0)
    table = basis.terms_up_to(masks.shape[1], degree)
    sizes = basis.term_sizes(table)
    coef = np.zeros((len(table), values.shape[1]))
    coef[0] = centre
    square = np.zeros_like(even)
    for parity, target in ((0, even - centre), (1, odd)):
        members = np.flatnonzero(sizes % 2 == parity)
        part, left_out = _fit_part(halves, table[members], target)
        coef[members] += part
        square += left_out**2
    error = _error(square, uniform_weights(halves), len(masks))
    coef = _without_negligible(table, coef, np.asarray(error.value))
    return Fit(table, coef, np.zeros(values.shape[1]), error)


@dataclass(frozen=True)
class _Part:
    """Solution (size of the matrix, K) of one parity, left-out residuals (m, K)."""

    solution: Floats
    left_out: Floats


def _fit_part(halves: Masks, table: Table, target: Floats) -> tuple[Floats, Floats]:
    """Coefficients (n_terms, K) of one parity's terms, left-out residuals (m, K).

    The regression goes through whichever matrix is smaller, and every column takes the
    nugget that predicts its left-out pairs best.
    """
    variance = _variances(table, halves.shape[1])
    if len(halves) <= len(table):
        best = _best(_by_masks(halves, table, target))
        found = _correlations(halves, table, best.solution)
        return variance[:, None] * found, best.left_out
    scale = np.sqrt(variance)
    best = _best(_by_terms(halves, table, target, scale))
    return scale[:, None] * best.solution, best.left_out


def _best(parts: list[_Part]) -> _Part:
    """Return of each column the part with the smallest left-out residuals."""
    squares = [(part.left_out**2).sum(axis=0) for part in parts]
    best = np.argmin(squares, axis=0)
    columns = np.arange(len(best))
    return _Part(
        np.stack([part.solution for part in parts])[best, :, columns].T,
        np.stack([part.left_out for part in parts])[best, :, columns].T,
    )


def _by_masks(halves: Masks, table: Table, target: Floats) -> list[_Part]:
    """``(K + nugget) b = y``; left-out residuals are ``b_t / (K + nugget)^-1_tt``."""
    kernel = _kernel(halves, table)
    parts = []
    for nugget in _NUGGETS:
        factor = _factor(kernel, nugget * kernel[0, 0])
        dual, _ = lapack.dpotrs(factor, target, lower=1)
        # Sums of squares, which weigh residuals: single precision is close enough.
        inverse, _ = lapack.strtri(factor.astype(np.float32), lower=1)
        precision = np.einsum("st,st->t", inverse, inverse)
        parts.append(_Part(dual, dual / precision[:, None]))
    return parts


def _by_terms(
    halves: Masks, table: Table, target: Floats, scale: Floats
) -> list[_Part]:
    """``(Psi' Psi + nugget) c = Psi' y`` with ``Psi = Phi scale``, ``a = c scale``.

    Left-out residuals are ``r_t / (1 - h_t)``, ``h_t = psi_t' (..)^-1 psi_t``.
    """
    gram = np.zeros((len(table), len(table)))
    right = np.zeros((len(table), target.shape[1]))
    for block, columns in _columns(halves, table):
        gram += columns @ columns.T  # whole numbers: single precision is exact
        right += columns.astype(np.float64) @ target[block]
    gram *= np.outer(scale, scale)
    right *= scale[:, None]
    shift = float((scale**2).sum())
    factors = [_factor(gram, nugget * shift) for nugget in _NUGGETS]
    inverses = [lapack.dtrtri(one, lower=1, overwrite_c=1)[0] for one in factors]
    parts = [
        _Part(inverse.T @ (inverse @ right), np.empty_like(target))
        for inverse in inverses
    ]
    for block, columns in _columns(halves, table):
        design = scale[:, None] * columns
        for inverse, part in zip(inverses, parts, strict=True):
            # Rows of psi' L^-T, by a product that knows the factor is triangular.
            whitened = blas.dtrmm(1.0, inverse, design.T, side=1, lower=1, trans_a=1)
            leverage = np.einsum("tj,tj->t", whitened, whitened)
            residual = target[block] - design.T @ part.solution
            part.left_out[block] = residual / (1 - leverage)[:, None]
    return parts


def _kernel(halves: Masks, table: Table) -> Floats:
    """``sum_S v_S chi_S(x) chi_S(x')`` over the sizes in the table: (m, m).

    Only ``t = x . x'`` matters, so 2 n + 1 numbers fill the matrix;
    ``(d + 1) e_{d+1} = t e_d - (n - d + 1) e_{d-1}`` gives them.
    """
    n, sizes = halves.shape[1], set(basis.term_sizes(table).tolist())
    t = np.append(np.arange(n + 1), np.arange(-n, 0)) / n  # negative ones from the end
    before, now = np.zeros(len(t)), np.ones(len(t))
    total = now * (0 in sizes)
    for d in range(max(sizes, default=0)):
        before, now = now, (t * now - (n - d + 1) / n**2 * before) / (d + 1)
        total += now * (d + 1 in sizes)
    rows = basis.signs(halves, np.float32)[:, :-1]
    return np.asarray(total[(rows @ rows.T).astype(np.intp)])


def _variances(table: Table, n_features: int) -> Floats:
    """Prior variances ``n**-|S|`` of the terms."""
    return np.asarray(float(n_features) ** -basis.term_sizes(table))


def _factor(matrix: Floats, shift: float) -> Floats:
    """Lower L with ``L L' = matrix + shift``."""
    shifted = matrix.copy(order="F")
    shifted.flat[:: len(matrix) + 1] += shift
    factor, _ = lapack.dpotrf(shifted, lower=1, clean=1, overwrite_a=1)
    return np.asarray(factor)


def _correlations(halves: Masks, table: Table, dual: Floats) -> Floats:
    """``sum_t b_t chi_S(x_t)``: (n_terms, K), without the design or in its blocks."""
    if dual.shape[1] <= _FEW_COLUMNS:
        design = ParityDesign.of(halves, table)
        found = [design.correlations(column, np.float64) for column in dual.T]
        return np.stack(found, axis=1)
    rows = np.ascontiguousarray(basis.signs(halves).T)
    out = np.empty((len(table), dual.shape[1]))
    step = max(1, _BLOCK_BYTES // (8 * len(halves)))
    for start in range(0, len(table), step):
        block = slice(start, start + step)
        out[block] = basis.columns(rows, table[block]) @ dual
    return out


def _columns(halves: Masks, table: Table) -> Iterator[tuple[slice, Signs]]:
    """Parity columns (n_terms, b) of one block of masks after the other."""
    rows = basis.signs(halves, np.float32).T
    for start in range(0, len(halves), _BLOCK_MASKS):
        block = slice(start, start + _BLOCK_MASKS)
        part = np.ascontiguousarray(rows[:, block])
        yield block, basis.columns(part, table)


def _without_negligible(table: Table, coef: Floats, error: Floats) -> Floats:
    """Zero the smallest larger terms; together they stay far below the error.

    Ridge regression leaves no coefficient at zero. Dropped energy adds to ``I_2^2``,
    so a tenth of the error raises it by half a percent. What a dropped odd term gave
    to the Shapley values of its features goes to their single terms, so these values
    do not change.
    """
    sizes = basis.term_sizes(table)
    single, large = np.flatnonzero(sizes == 1), np.flatnonzero(sizes > 1)
    order = np.argsort(np.abs(coef[large]), axis=0)
    energy = np.cumsum(np.take_along_axis(coef[large], order, axis=0) ** 2, axis=0)
    dropped = np.empty(order.shape, dtype=bool)
    np.put_along_axis(dropped, order, energy <= (_NEGLIGIBLE * error) ** 2, axis=0)
    lost = np.where(dropped, coef[large], 0.0)
    kept = coef.copy()
    kept[large] -= lost
    odd = sizes[large] % 2 == 1
    share = lost[odd] / sizes[large][odd, None]
    for column in table[large][odd].T:
        members = np.flatnonzero(column >= 0)
        np.add.at(kept, single[column[members]], share[members])
    return kept


def _error(square: Floats, weights: Floats, n_masks: int) -> Estimate:
    """``I_2`` and its standard error from weighted squares (n_pairs, K)."""
    if not weights.any():  # hardly any masks: no random pair among them
        weights = np.ones_like(weights)
    total = weights.sum()
    mean = weights @ square / total
    spread = np.sqrt((weights**2) @ (square - mean) ** 2) / total
    value = np.sqrt(mean)
    se = np.divide(spread, 2 * value, out=np.zeros_like(value), where=value > 0)
    return Estimate(value, se, n_masks)
