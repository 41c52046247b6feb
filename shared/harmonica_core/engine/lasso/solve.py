"""Sparse regression of values on parities: the LASSO over all terms of C.

    min_{a,b}  1/(2T) sum_t (y_t - b - sum_{S in C} a_S chi_S(x_t))^2 + alpha |a|_1

For complementary pairs ``x, ~x`` the even part ``(f(x) + f(~x)) / 2`` depends on even
terms only and the odd part on odd terms only, and the objective is the sum of two
LASSO objectives over T/2 rows with the same alpha. Two small regressions replace one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harmonica_core import basis
from harmonica_core._types import Floats, Masks, Table
from harmonica_core.design.masks import are_paired_alike
from harmonica_core.engine.lasso import alpha as choice
from harmonica_core.engine.lasso.correlations import Index, ParityDesign
from harmonica_core.engine.lasso.held_out import N_FOLDS, Part
from harmonica_core.engine.lasso.regression import Regression, Rows

MEMORY = 1 << 30
_DENSE_TERMS = 1200
_BYTES_PER_PAIR = 32  # of terms: sums, the Gram matrix and its copies
_UNIFORM = 1.5
# A strength in units of the spread that no correlation comes near.
_NOTHING_LEFT = 1e6


@dataclass(frozen=True)
class SparseFit:
    """A sparse polynomial for each of K targets.

    Attributes
    ----------
    table : int32 (n_active, width)
        Terms active in at least one target, without the empty term.
    coef : float64 (n_active, K)
    intercept : float64 (K,)
    alpha : float64 (K,)
        Strength in scikit-learn's convention.
    gap : float64 (K,)
        Duality gap of the LASSO at ``alpha`` over all terms of C, relative to its
        objective.
    relaxed : bool (K,)
        Whether ``coef`` is the refit without penalty on the LASSO's support.
    held_out : float64 (m, K)
        Cross-validated predictions: no row has seen its own value.
    """

    table: Table
    coef: Floats
    intercept: Floats
    alpha: Floats
    gap: Floats
    relaxed: NDArray[np.bool_]
    held_out: Floats


def fit_sparse(
    masks: Masks,
    values: Floats,
    terms: int | Table,
    alpha: Literal["auto"] | ArrayLike = "auto",
    *,
    weights: Floats | None = None,
    relax: Literal["auto"] | bool = "auto",
    memory: int = MEMORY,
) -> SparseFit:
    """Fit each column of ``values`` by the LASSO on the given terms.

    Parameters
    ----------
    masks : bool (m, n_features)
    values : float64 (m, K)
    terms : int or int32 (n_terms, width)
        All terms up to a degree, or a table (an empty term in it is ignored).
    alpha : "auto", float or float (K,)
        L1 strength; "auto" chooses it for each target by cross-validation.
    weights : float64 (m,), optional
    relax : "auto" or bool
        Whether the support is refitted without penalty; "auto" lets cross-validation
        decide (for a given alpha: no refit).
    memory : int
        Bytes to stay within, roughly, beside the arguments and the result.
    """
    table = _penalised(terms, masks.shape[1])
    centre, scale = _standardise(values)
    split = Split.of(masks, table, weights)
    dense = _is_dense(split, memory)
    step = _targets_at_once(split, memory) if dense else 1
    given = _given_alpha(alpha, scale)
    fits = []
    for start in range(0, values.shape[1], step):
        block = slice(start, start + step)
        standard = (values[:, block] - centre[block]) / scale[block]
        parts = [Part(rows, dense) for rows in split.rows(standard)]
        fits.append(_fit(parts, None if given is None else given[block], relax))
    return _join(split, fits, centre, scale)


def _is_dense(split: Split, memory: int) -> bool:
    """Whether all terms are in the Gram matrix from the start.

    With few terms, or where a single path on all rows decides and memory allows it.
    """
    if len(split.table) <= _DENSE_TERMS:
        return True
    shapes = [design.shape for design in split.designs]
    held = sum(_BYTES_PER_PAIR * n_terms**2 for _, n_terms in shapes)
    one_path = split.uniform and all(choice.enough_rows(*shape) for shape in shapes)
    return one_path and held <= memory


def _penalised(terms: int | Table, n_features: int) -> Table:
    """Return the table without the empty term."""
    if isinstance(terms, (int, np.integer)):
        return basis.terms_up_to(n_features, int(terms))[1:]
    table = np.asarray(terms, dtype=np.int32)
    return table[basis.term_sizes(table) > 0]


def _standardise(values: Floats) -> tuple[Floats, Floats]:
    """Mean and spread ``(K,)``; infinite for a constant, which then becomes zero."""
    centre = values.mean(axis=0)
    rounding = 8 * np.finfo(np.float64).eps * np.abs(values).max(axis=0)
    constant = np.ptp(values, axis=0) <= rounding
    return centre, np.where(constant, np.inf, values.std(axis=0))


def _given_alpha(alpha: Literal["auto"] | ArrayLike, scale: Floats) -> Floats | None:
    """Strengths ``(K,)`` of the standardised targets, None where they are chosen."""
    if isinstance(alpha, str):
        return None
    given = np.broadcast_to(np.asarray(alpha, dtype=np.float64), scale.shape)
    with np.errstate(over="ignore"):
        return np.minimum(given / scale, _NOTHING_LEFT)


def _targets_at_once(split: Split, memory: int) -> int:
    """Targets whose coefficients, in every fold, and predictions fit into memory."""
    n_terms = sum(design.shape[1] for design in split.designs)
    each = 8 * (n_terms * (N_FOLDS + 8) + 8 * split.n_masks)
    return max(1, memory // (2 * each))


@dataclass(frozen=True)
class Split:
    """Masks and terms as independent regressions: even and odd, or one of all.

    Attributes
    ----------
    paired : bool
        Rows 2k and 2k + 1 are complementary.
    table : int32 (n_terms, width)
    designs : one ParityDesign a regression
    members : the rows of ``table`` in each regression
    weights : float64 (R,) of each row of a regression, mean one
    uniform : bool
        The masks look uniform and are not weighted.
    """

    paired: bool
    table: Table
    designs: tuple[ParityDesign, ...]
    members: tuple[Index, ...]
    weights: Floats
    uniform: bool

    @classmethod
    def of(cls, masks: Masks, table: Table, weights: Floats | None) -> Split:
        """Split by parity where the masks come in complementary pairs."""
        weights = np.ones(len(masks)) if weights is None else weights
        weights = weights / weights.mean()
        paired = are_paired_alike(masks, weights)
        rows = slice(None, None, 2) if paired else slice(None)
        members: tuple[Index, ...] = (np.arange(len(table)),)
        if paired:
            odd = basis.term_sizes(table) % 2 == 1
            members = (np.flatnonzero(~odd), np.flatnonzero(odd))
        designs = tuple(ParityDesign.of(masks[rows], table[which]) for which in members)
        uniform = bool((weights == 1).all()) and _look_uniform(masks[rows], paired)
        return cls(paired, table, designs, members, weights[rows], uniform)

    @property
    def n_masks(self) -> int:
        """Number of masks."""
        return len(self.weights) * (2 if self.paired else 1)

    def rows(self, values: Floats) -> list[Rows]:
        """Return the regressions of ``values (m, K)``; only the first is centred."""
        targets = [values]
        if self.paired:
            kept, removed = values[0::2], values[1::2]
            targets = [(kept + removed) / 2, (kept - removed) / 2]
        return [
            Rows(design, target, self.weights, centred, self.uniform)
            for design, target, centred in zip(
                self.designs, targets, (True, False), strict=False
            )
        ]

    def join(self, parts: list[Floats]) -> Floats:
        """Predictions ``(m, K)`` of masks from those of the regressions."""
        if not self.paired:
            return parts[0]
        even, odd = parts
        out = np.empty((2 * len(even), even.shape[1]))
        out[0::2], out[1::2] = even + odd, even - odd
        return out


def _look_uniform(masks: Masks, paired: bool) -> bool:
    """Whether signs and their pairs average to zero within what chance allows.

    The mean of R fair signs has mean square 1 / R. A single row tells nothing. Which
    mask stands for a complementary pair is free, and only pairs of signs do not depend
    on that.
    """
    signs = basis.signs(masks, np.float32)[:, : -1 if paired else None]
    n_rows, width = signs.shape
    means = np.asarray(signs.T @ signs, dtype=np.float64) / n_rows
    square = np.square(means).sum() - width
    return bool(square * n_rows <= _UNIFORM * width * (width - 1))


@dataclass(frozen=True)
class _Block:
    """Result for some targets: sparse coefficients of each part, standardised."""

    index: list[Index]
    coef: list[Floats]
    intercept: Floats
    alpha: Floats
    gap: Floats
    relaxed: NDArray[np.bool_]
    held_out: list[Floats]


def _fit(
    parts: list[Part], given: Floats | None, relax: Literal["auto"] | bool
) -> _Block:
    """Choose strengths where none are given, then solve exactly on all rows."""
    if given is None:
        chosen = choice.choose(parts, relax)
    else:
        chosen = choice.keep(parts, given, relax is True)
    alpha = chosen.alpha if given is not None else choice.for_all_rows(chosen)
    every = np.arange(len(alpha))
    for part in parts:
        part.full.solve(alpha, 0.0, every)
    gap = _relative_gap([part.full for part in parts], alpha)
    again = np.flatnonzero(chosen.relaxed)
    intercept = np.zeros(len(every))
    index, coef = [], []
    for part in parts:
        full = part.full
        full.coef[again] = full.refit(again)
        active = np.flatnonzero(full.coef.any(axis=0))
        index.append(full.index[active])
        coef.append(full.coef[:, active].T)
        intercept += full.mean - full.coef[:, active] @ full.column_means[active]
    held_out = chosen.held_out
    if not held_out:
        held_out = [choice.leave_out(part, chosen.relaxed) for part in parts]
    return _Block(index, coef, intercept, alpha, gap, chosen.relaxed, held_out)


def _relative_gap(regressions: list[Regression], alpha: Floats) -> Floats:
    """``(P - D) / P`` with the dual point ``r`` scaled into the feasible set.

    ``P = |r|^2 / 2R + alpha |a|_1`` and ``D = s y^T r / R - s^2 |r|^2 / 2R`` with
    ``s = min(1, alpha / max_S |x_S^T r| / R)`` over all terms of C.
    """
    primal, dual = np.zeros(len(alpha)), np.zeros(len(alpha))
    for one in regressions:
        square = one.mean_square(np.arange(len(alpha)))
        steepest = one.steepest()
        inside = np.divide(
            alpha, steepest, out=np.ones_like(steepest), where=steepest > alpha
        )
        along = one.power - np.einsum("kj,kj->k", one.coef, one.corr)
        primal += square / 2 + alpha * np.abs(one.coef).sum(axis=1)
        dual += inside * along - inside**2 * square / 2
    return np.maximum(primal - dual, 0.0) / np.maximum(primal, 1e-300)


def _join(split: Split, fits: list[_Block], centre: Floats, scale: Floats) -> SparseFit:
    """Undo the standardisation; one table for the terms of all targets."""
    spread = np.where(np.isinf(scale), 0.0, scale)
    positions = [
        [split.members[i][index] for i, index in enumerate(fit.index)] for fit in fits
    ]
    active = np.unique(np.concatenate([p for fit in positions for p in fit]))
    coef = np.zeros((len(active), len(centre)))
    start = 0
    for fit, rows in zip(fits, positions, strict=True):
        block = slice(start, start + len(fit.alpha))
        for row, part in zip(rows, fit.coef, strict=True):
            coef[np.searchsorted(active, row), block] = part
        start = block.stop
    held_out = np.concatenate([split.join(fit.held_out) for fit in fits], axis=1)
    return SparseFit(
        table=split.table[active],
        coef=coef * spread,
        intercept=centre + spread * np.concatenate([fit.intercept for fit in fits]),
        alpha=spread * np.concatenate([fit.alpha for fit in fits]),
        gap=np.concatenate([fit.gap for fit in fits]),
        relaxed=np.concatenate([fit.relaxed for fit in fits]),
        held_out=centre + spread * held_out,
    )
