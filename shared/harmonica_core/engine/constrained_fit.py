"""From evaluated masks to polynomials of all anchors at once, pulled together.

The objective and its solver are in `harmonica_core.engine.constrained`.
"""

from __future__ import annotations

import numpy as np

from harmonica_core import basis
from harmonica_core._types import Floats, Table, Values
from harmonica_core.design import masks as draw
from harmonica_core.design.draw import Design
from harmonica_core.engine.anchored_fit import Piece, Sample, assemble, fit_anchored
from harmonica_core.engine.constrained import fit_cells
from harmonica_core.engine.explicit import FEWEST_MASKS, ReadableSet
from harmonica_core.engine.lasso.held_out import N_FOLDS
from harmonica_core.engine.lasso.solve import fit_sparse
from harmonica_core.result.anchored import AnchoredSurrogate
from harmonica_core.settings import Settings, check_consistency

_AUTO_CONSISTENCY = 0.2


def fit_constrained(
    design: Design, values: Values, settings: Settings
) -> AnchoredSurrogate:
    """Fit all anchors at once, pulled towards their mean with ``consistency``.

    See `harmonica_core.engine.constrained` for the objective; ``l1 = 2 alpha`` and
    ``l2 = consistency``. Parameters as in `fit_anchored`.
    """
    sample = Sample.of(design.masks, values, design.anchors, design.n_uniform)
    whole = draw.rows_of_all(sample.masks) is not None
    readable = ReadableSet.of(
        settings.terms, sample.n_features, settings.published_degree
    )
    l2 = check_consistency(settings.consistency)
    if len(sample.masks) < FEWEST_MASKS and not whole:  # a constant, for all anchors
        return fit_anchored(design, values, settings)
    table = readable.table()[1:]
    n_outputs = sample.columns.shape[1]
    l1 = (
        np.full(n_outputs, 2 * settings.strength)
        if settings.strength is not None
        else (2 * _cell_strengths(sample, table))
    )
    spread = sample.unit * sample.scaled.std(axis=0)
    pull = np.full(n_outputs, l2) if l2 is not None else _AUTO_CONSISTENCY * spread
    every = np.ones(len(sample.masks), dtype=bool)
    coef = _constrained(sample, every, table, l1, pull, 1e-5)
    held_out = np.zeros_like(sample.columns)
    if not whole:
        held_out = _constrained_held_out(sample, table, l1, pull)
    full = basis.with_empty_term(table)
    pieces = [Piece(full, one, l1 / 2) for one in coef]
    return assemble(sample, pieces, held_out, readable.max_degree, settings.ends)


def _cell_strengths(sample: Sample, table: Table) -> Floats:
    """Strengths ``(K,)`` that the cells choose on their own, weighted by their size."""
    cells = [rows for rows in sample.cells if len(rows) >= FEWEST_MASKS]
    cells = cells or [np.arange(len(sample.masks))]
    chosen = [
        fit_sparse(sample.masks[rows], sample.scaled[rows], table, relax=False).alpha
        for rows in cells
    ]
    weights = [len(rows) for rows in cells]
    return sample.unit * np.average(chosen, axis=0, weights=weights)


def _constrained(
    sample: Sample,
    used: np.ndarray,
    table: Table,
    l1: Floats,
    l2: Floats,
    tolerance: float,
) -> Floats:
    """Coefficients ``(k, 1 + n_terms, K)`` from the used rows."""
    rows_of = [rows[used[rows]] for rows in sample.cells]
    masks = [sample.masks[rows] for rows in rows_of]
    out = np.zeros((len(masks), 1 + len(table), len(l1)))
    scaled = sample.scaled
    with np.errstate(over="ignore"):  # a strength as large as that leaves nothing
        l1, l2 = (np.minimum(size / sample.unit, 1e100) for size in (l1, l2))
    for k in range(len(l1)):
        values = [scaled[rows, k] for rows in rows_of]
        out[:, 0, k], out[:, 1:, k] = fit_cells(
            masks, values, table, float(l1[k]), float(l2[k]), tolerance
        )
    return out * sample.unit


def _constrained_held_out(
    sample: Sample, table: Table, l1: Floats, l2: Floats
) -> Floats:
    """Cross-validated predictions; complementary masks share a fold."""
    fold = np.arange(len(sample.masks)) // 2 % N_FOLDS
    out = np.zeros_like(sample.columns)
    full = basis.with_empty_term(table)
    for left_out in np.unique(fold):
        # Held-out errors do not need the last digits of the optimum.
        coef = _constrained(sample, fold != left_out, table, l1, l2, 1e-3)
        for one, rows in zip(coef, sample.cells, strict=True):
            test = rows[fold[rows] == left_out]
            out[test] = basis.predict(sample.masks[test], full, one)
    return out
