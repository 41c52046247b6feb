"""From evaluated masks to one polynomial per anchor, and one honest error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from harmonica_core import basis
from harmonica_core import masks as draw
from harmonica_core._types import Floats, Masks, Table, Values
from harmonica_core.anchored import AnchoredSurrogate, common_terms, nearest_anchor
from harmonica_core.ends import rows_of_ends, through_ends
from harmonica_core.error import CAUTION, stated_error
from harmonica_core.estimate import Estimate
from harmonica_core.estimators import (
    FEWEST_MASKS,
    Fit,
    ReadableSet,
    Terms,
)
from harmonica_core.evaluate import Evaluated, check_values
from harmonica_core.fit import fit_values
from harmonica_core.scaling import scale_of
from harmonica_core.settings import check_alpha, check_degree
from harmonica_core.surrogate import Surrogate

Fitter = Callable[..., AnchoredSurrogate]


def fit_anchored(
    masks: Masks,
    values: Values,
    anchors: Masks,
    degree: int = 3,
    alpha: float | Literal["auto"] = "auto",
    *,
    terms: Terms = None,
    ends: bool = False,
    n_uniform: int | None = None,
) -> AnchoredSurrogate:
    """Fit one polynomial per anchor to the masks nearest to it.

    With a given ``alpha``, the published LASSO of each anchor's masks alone. With
    "auto", each anchor takes what predicts its held-out masks best: that, the
    polynomial of all uniform masks, or the latter plus a LASSO of what it leaves in the
    cell. So anchors cost little where one polynomial would do. An anchor that received
    fewer than 12 masks takes the polynomial of all uniform masks.

    Parameters
    ----------
    masks : bool (m, n_features)
    values : float64 (m,) or (m, n_outputs)
    anchors : bool (k, n_features)
        The first one is the input: everything kept.
    degree, alpha, terms
        As in `harmonica_core.fit_surrogate`; with ``terms="auto"`` and no alpha given,
        the polynomial of all uniform masks may hold larger terms.
    ends : bool
        Make g pass through f(all kept) and f(all removed), and the input's own
        polynomial through both.
    n_uniform : int, optional
        How many of the masks, the first ones, are uniform: those state the error.
    """
    sample = Sample.of(masks, values, anchors, n_uniform)
    readable = ReadableSet.of(terms, sample.n_features, check_degree(degree))
    strength = check_alpha(alpha)
    may_grow = readable.grows and strength is None

    def fit(masks: Masks, columns: Floats, grows: bool = False) -> _Candidate:
        some = replace(readable, grows=grows)
        return _Candidate.of(fit_values(masks, columns, some, strength, None), masks)

    small = any(len(rows) < FEWEST_MASKS for rows in sample.cells)
    compares = strength is None and len(sample.cells) > 1
    shared = None
    if small or compares:
        uniform = sample.masks[: sample.n_uniform], sample.columns[: sample.n_uniform]
        shared = fit(*uniform, may_grow).on(sample.masks)
    pieces, held_out = [], np.zeros_like(sample.columns)
    for rows in sample.cells:
        own = sample.masks[rows], sample.columns[rows]
        # Held-out residuals of a growing fit are scaled to what all rows would leave,
        # and so a little in its favour.
        candidates = [] if shared is None else [shared.only(rows)]
        if len(rows) >= FEWEST_MASKS and shared is not None and compares:
            left = fit(own[0], own[1] - shared.expected[rows])
            candidates += [fit(*own), candidates[0].plus(left)]
        elif len(rows) >= FEWEST_MASKS:
            candidates = [fit(*own, may_grow)]
        piece, held_out[rows] = _best(candidates, own[1] / sample.unit, sample.unit)
        pieces.append(piece)
    doubt = (shared or candidates[0]).doubt if may_grow else 0.0
    return assemble(sample, pieces, held_out, readable.max_degree, ends, doubt)


@dataclass(frozen=True)
class Sample:
    """Evaluated masks, and which anchor each belongs to."""

    masks: Masks
    values: Values
    anchors: Masks
    cell_of: np.ndarray
    n_uniform: int

    @classmethod
    def of(cls, masks: Any, values: Any, anchors: Any, n_uniform: int | None) -> Sample:
        """Check what was given, and find each mask's anchor."""
        masks = draw.check_masks(masks, np.shape(masks)[-1])
        values = check_values(values, masks)
        anchors = draw.check_masks(anchors, masks.shape[1])
        if not len(masks) or not len(anchors):
            raise ValueError(
                f"got {len(masks)} masks and {len(anchors)} anchors; needed at least "
                "one of each"
            )
        cell_of = nearest_anchor(masks, anchors)
        return cls(masks, values, anchors, cell_of, n_uniform or len(masks))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.masks.shape[1])

    @property
    def columns(self) -> Floats:
        """Values ``(m, K)``, one column an output."""
        return self.values.reshape(len(self.values), -1)

    @property
    def unit(self) -> Floats:
        """Powers of two ``(K,)``, 1 for ordinary values: see `scaling`."""
        return scale_of(self.columns)

    @property
    def scaled(self) -> Floats:
        """Values in units, whose squares are numbers."""
        return self.columns / self.unit

    @property
    def cells(self) -> list[np.ndarray]:
        """Rows of each anchor's masks."""
        return [np.flatnonzero(self.cell_of == i) for i in range(len(self.anchors))]


@dataclass(frozen=True)
class Piece:
    """One anchor's polynomial: ``table``, ``coef (n_terms, K)``, ``alpha (K,)``."""

    table: Table
    coef: Floats
    alpha: Floats


@dataclass(frozen=True)
class _Candidate:
    """A polynomial for a cell, and what it expects of masks that it has not seen.

    ``expected (m, K)`` are held-out predictions; the fitted ones where all masks are
    known, and nothing is left to predict. ``doubt (K,)`` is the standard error of the
    fit's own stated error, relative to it.
    """

    surrogate: Surrogate
    alpha: Floats
    expected: Floats
    doubt: Floats

    @classmethod
    def of(cls, fit: Fit, masks: Masks) -> _Candidate:
        expected = fit.held_out
        if expected is None:
            expected = basis.predict(masks, fit.table, fit.coef)
        value, spread = map(np.asarray, (fit.error.value, fit.error.standard_error))
        doubt = np.divide(spread, value, out=np.zeros_like(spread), where=value > 0)
        found = Surrogate(masks.shape[1], fit.table, fit.coef)
        return cls(found, fit.alpha, expected, doubt)

    def on(self, masks: Masks) -> _Candidate:
        """Expect something of all masks, the first of which it was fitted to."""
        others = masks[len(self.expected) :]
        predicted = self.surrogate(others).reshape(len(others), self.expected.shape[1])
        return replace(self, expected=np.concatenate([self.expected, predicted]))

    def only(self, rows: np.ndarray) -> _Candidate:
        return replace(self, expected=self.expected[rows])

    def plus(self, other: _Candidate) -> _Candidate:
        table, coef = common_terms([self.surrogate, other.surrogate])
        both = Surrogate(self.surrogate.n_features, table, coef.sum(axis=0))
        expected = self.expected + other.expected
        return _Candidate(both, other.alpha, expected, self.doubt)


def _best(
    candidates: list[_Candidate], scaled: Floats, unit: Floats
) -> tuple[Piece, Floats]:
    """Of each output the candidate with the least held-out error, and what it expects.

    ``scaled (m, K)`` are the values of the cell's masks in units.
    """
    if len(candidates) == 1:
        (only,) = candidates
        piece = Piece(only.surrogate.table, only.surrogate.coef_columns, only.alpha)
        return piece, only.expected
    errors = [((scaled - c.expected / unit) ** 2).sum(axis=0) for c in candidates]
    best = np.argmin(errors, axis=0)
    outputs = np.arange(len(best))
    table, coef = common_terms([one.surrogate for one in candidates])
    alpha = np.stack([one.alpha for one in candidates])[best, outputs]
    expected = np.stack([one.expected for one in candidates])[best, :, outputs].T
    return Piece(table, coef[best, :, outputs].T, alpha), expected


def assemble(
    sample: Sample,
    pieces: list[Piece],
    held_out: Floats,
    max_degree: int,
    ends: bool,
    doubt: Floats | float = 0.0,
) -> AnchoredSurrogate:
    """Surrogates of all pieces, and the error of the whole.

    Its standard error, relative to it, is ``doubt (K,)`` at least.
    """
    if ends:
        pieces, held_out = _through_ends(sample, pieces, held_out)
    flat = sample.values.ndim == 1
    surrogates = []
    for piece, rows in zip(pieces, sample.cells, strict=True):
        active = basis.active_rows(piece.table, piece.coef)
        coef = piece.coef[active]
        surrogates.append(
            Surrogate(
                sample.n_features,
                basis.trim(piece.table[active]),
                coef[:, 0] if flat else coef,
                n_evaluations=len(rows),
                alpha=piece.alpha[0] if flat else piece.alpha,
                max_degree=max_degree,
            )
        )
    found = AnchoredSurrogate(
        sample.anchors,
        tuple(surrogates),
        n_evaluations=len(sample.masks),
        evaluated=Evaluated(sample.masks, sample.values),
    )
    return replace(found, error=_error(found, sample, held_out, doubt))


def _error(
    found: AnchoredSurrogate,
    sample: Sample,
    held_out: Floats,
    doubt: Floats | float,
) -> Estimate:
    """``I_2`` over uniform masks, from those that were drawn that way."""
    uniform = slice(sample.n_uniform)
    masks, columns, unit = sample.masks[uniform], sample.scaled[uniform], sample.unit
    fitted = found(masks).reshape(columns.shape) / unit
    exact = draw.rows_of_all(sample.masks) is not None
    value, spread = stated_error(masks, columns, fitted, held_out[uniform] / unit)
    spread = np.where(spread > 0, np.maximum(CAUTION * spread, doubt * value), 0.0)
    value, spread = unit * value, unit * spread
    if sample.values.ndim == 1:
        return Estimate(float(value[0]), float(spread[0]), len(masks), exact)
    return Estimate(value, spread, len(masks), exact)


def _through_ends(
    sample: Sample, pieces: list[Piece], held_out: Floats
) -> tuple[list[Piece], Floats]:
    """Correct the input's own piece at both ends, and the other end's owner there."""
    full, empty = rows_of_ends(sample.masks)
    above, below = sample.columns[full], sample.columns[empty]
    pieces, held_out = list(pieces), held_out.copy()
    for i in {0, int(sample.cell_of[empty])}:
        old = pieces[i]
        top = above if i == 0 else old.coef.sum(axis=0)
        table, coef = through_ends(old.table, old.coef, sample.n_features, top, below)
        pieces[i] = replace(old, table=table, coef=coef)
        rows = sample.cells[i]
        held_out[rows] += basis.predict(sample.masks[rows], table, coef)
        held_out[rows] -= basis.predict(sample.masks[rows], old.table, old.coef)
    return pieces, held_out
