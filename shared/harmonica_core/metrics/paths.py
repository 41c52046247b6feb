"""For every size, the mask that is best according to g."""

from __future__ import annotations

import numpy as np

from harmonica_core._types import Floats, Masks
from harmonica_core.design import masks as draw
from harmonica_core.evaluate import as_columns
from harmonica_core.metrics.inputs import Function, values_on

# Up to this many features all masks are tried.
_MAX_ENUMERATED = 16
_BEAM = 32


def best_masks(g: Function, n_features: int, largest: bool) -> Masks:
    """Masks that keep 0, ..., n features with the largest (smallest) g of their size.

    All masks are tried up to 16 features. Beyond, a beam search: from the 32 best masks
    of one size to all masks with one feature more (when g should be large) or one
    feature less (when it should be small).

    Returns
    -------
    bool (n_outputs, n_features + 1, n_features)
        Row k keeps k features.
    """
    if n_features <= _MAX_ENUMERATED:
        return _by_enumeration(g, n_features, largest)
    full = np.ones((1, n_features), dtype=bool)
    n_outputs = _scores(g, full, largest).shape[1]
    return np.stack([_by_beam(g, n_features, largest, k) for k in range(n_outputs)])


def _scores(g: Function, masks: Masks, largest: bool) -> Floats:
    """Values of g ``(m, n_outputs)``, turned so that more is better."""
    values = as_columns(values_on(g, masks, masks.shape[1], "g"))
    return values if largest else -values


def _by_enumeration(g: Function, n_features: int, largest: bool) -> Masks:
    masks = draw.all_masks(n_features)
    scores = _scores(g, masks, largest)
    sizes = masks.sum(axis=1)
    groups = [np.flatnonzero(sizes == k) for k in range(n_features + 1)]
    best = np.stack([rows[scores[rows].argmax(axis=0)] for rows in groups])
    return np.asarray(masks[best.T])


def _by_beam(g: Function, n_features: int, largest: bool, output: int) -> Masks:
    """Grow from nothing kept (shrink from everything kept), one feature a step."""
    beam = np.full((1, n_features), not largest)
    path = [beam[0]]
    for _ in range(n_features):
        beam = _neighbours(beam, largest)
        order = np.argsort(-_scores(g, beam, largest)[:, output], kind="stable")
        beam = beam[order[:_BEAM]]
        path.append(beam[0])
    return np.stack(path if largest else path[::-1])


def _neighbours(beam: Masks, add: bool) -> Masks:
    """Return the distinct masks one feature away from one of the beam."""
    row, feature = np.nonzero(beam != add)
    grown = beam[row]
    grown[np.arange(len(row)), feature] = add
    return np.unique(grown, axis=0)
