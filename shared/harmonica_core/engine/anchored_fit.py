"""From evaluated masks to one polynomial per anchor, and one honest error."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harmonica_core import basis
from harmonica_core._types import Floats, Masks, Table, Values
from harmonica_core.design import masks as draw
from harmonica_core.design.draw import Design
from harmonica_core.engine.bayes import fit_bayes
from harmonica_core.engine.explicit import (
    FEWEST_MASKS,
    Fit,
    ReadableSet,
    fit_values,
)
from harmonica_core.evaluate import Evaluated, check_values
from harmonica_core.result.anchored import (
    AnchoredSurrogate,
    common_terms,
    nearest_anchor,
)
from harmonica_core.result.ends import rows_of_ends, through_ends
from harmonica_core.result.estimate import Estimate
from harmonica_core.result.held_out_error import CAUTION, stated_error
from harmonica_core.result.surrogate import Surrogate
from harmonica_core.result.surrogates_of import posterior_surrogates
from harmonica_core.scaling import scale_of
from harmonica_core.settings import Settings


def fit_anchored(
    design: Design, values: Values, settings: Settings
) -> AnchoredSurrogate:
    """Fit one polynomial per anchor to the masks nearest to it.

    With the LASSO engine and a given ``alpha``, the published LASSO of each anchor's
    masks alone. Otherwise each anchor takes what predicts its held-out masks best: the
    polynomial of all masks, or that plus a LASSO of what it leaves in the cell, so
    anchors cost little where one polynomial would do. An anchor that received fewer
    than 12 masks takes the polynomial of all masks.

    Parameters
    ----------
    design : Design
        With anchors.
    values : float64 (m,) or (m, n_outputs)
    settings : Settings
    """
    sample = Sample.of(design.masks, values, design.anchors, design.n_uniform)
    n, strength = sample.n_features, settings.strength
    readable = ReadableSet.of(settings.terms, n, settings.published_degree)

    def fit(masks: Masks, columns: Floats) -> _Candidate:
        return _Candidate.of(
            fit_values(masks, columns, readable, strength, None), masks
        )

    small = any(len(rows) < FEWEST_MASKS for rows in sample.cells)
    compares = strength is None and len(sample.cells) > 1
    shared = None
    if settings.solver == "bayes":
        shared = _of_all(sample, settings)
    elif small or compares:
        uniform = sample.masks[: sample.n_uniform], sample.columns[: sample.n_uniform]
        shared = fit(*uniform).on(sample.masks)
    pieces, held_out = [], np.zeros_like(sample.columns)
    for rows in sample.cells:
        own = sample.masks[rows], sample.columns[rows]
        candidates = [] if shared is None else [shared.only(rows)]
        if len(rows) >= FEWEST_MASKS and shared is not None and compares:
            left = fit(own[0], own[1] - shared.expected[rows])
            candidates.append(candidates[0].plus(left))
        elif len(rows) >= FEWEST_MASKS and shared is None:
            candidates = [fit(*own)]
        piece, held_out[rows] = _best(candidates, own[1] / sample.unit, sample.unit)
        pieces.append(piece)
    largest = n if settings.solver == "bayes" else readable.max_degree
    return assemble(sample, pieces, held_out, largest, settings.ends)


def _of_all(sample: Sample, settings: Settings) -> _Candidate:
    """Return the Bayesian engine's polynomial of all masks, known ones as they are."""
    n = sample.n_features
    degree = None if settings.degree is None else min(settings.degree, n)
    rows = draw.rows_of_all(sample.masks)
    if rows is not None:
        readable = ReadableSet.of(None, n, degree or n)
        found = fit_values(sample.masks, sample.columns, readable, None, None)
        return _Candidate.of(found, sample.masks)
    fit = fit_bayes(sample.masks, sample.columns, degree)
    (whole,) = posterior_surrogates(
        fit, sample.masks, sample.columns[:, None, :], None, degree
    )
    expected = sample.columns - fit.left_out
    return _Candidate(whole, np.zeros(sample.columns.shape[1]), expected)


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
    known, and nothing is left to predict.
    """

    surrogate: Surrogate
    alpha: Floats
    expected: Floats

    @classmethod
    def of(cls, fit: Fit, masks: Masks) -> _Candidate:
        expected = fit.held_out
        if expected is None:
            expected = basis.predict(masks, fit.table, fit.coef)
        return cls(Surrogate(masks.shape[1], fit.table, fit.coef), fit.alpha, expected)

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
        return _Candidate(both, other.alpha, expected)


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
) -> AnchoredSurrogate:
    """Return surrogates of all pieces, and the error of the whole."""
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
    found = replace(found, error=_error(found, sample, held_out))
    if draw.rows_of_all(sample.masks) is None:
        return found
    every = ReadableSet.of(None, sample.n_features, sample.n_features)
    return replace(found, exact=_exact(sample, every, flat))


def _exact(sample: Sample, every: ReadableSet, flat: bool) -> Surrogate:
    """Return f itself, from all its values."""
    fit = fit_values(sample.masks, sample.columns, every, None, None)
    coef = fit.coef[:, 0] if flat else fit.coef
    return Surrogate(sample.n_features, fit.table, coef, max_degree=sample.n_features)


def _error(found: AnchoredSurrogate, sample: Sample, held_out: Floats) -> Estimate:
    """``I_2`` over uniform masks, from those that were drawn that way."""
    uniform = slice(sample.n_uniform)
    masks, columns, unit = sample.masks[uniform], sample.scaled[uniform], sample.unit
    fitted = found(masks).reshape(columns.shape) / unit
    exact = draw.rows_of_all(sample.masks) is not None
    value, spread = stated_error(masks, columns, fitted, held_out[uniform] / unit)
    value, spread = unit * value, unit * CAUTION * spread
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
