"""Evaluate a plan of masks, and stop in time with a sample that can be fitted."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from harmonica_core._types import Masks, Values
from harmonica_core.estimators import FEWEST_MASKS
from harmonica_core.evaluate import EvaluationTimeout
from harmonica_core.masks import are_paired, pair_numbers, rows_of_all


def evaluate_plan(
    evaluate: Callable[[Masks], Values], masks: Masks, rng: np.random.Generator
) -> tuple[Masks, Values, bool]:
    """Evaluate ``masks``; when time runs out return what is a fair sample of them.

    Random masks are evaluated in the order in which they were drawn, so any prefix is
    a smaller draw. All ``2**n`` masks in natural order are not (their first half
    never keeps the last feature): those are evaluated as complementary pairs in random
    order and put back in order at the end. A pair that was cut in two is left out.

    Parameters
    ----------
    evaluate : callable
        Values of masks, or `EvaluationTimeout`.
    masks : bool (m, n_features)
    rng : Generator

    Returns
    -------
    masks, values, stopped
        ``stopped`` tells whether they are fewer than were asked for.
    """
    order = _fair_order(masks, rng)
    planned = masks[order]
    try:
        values = evaluate(planned)
    except EvaluationTimeout as stop:
        kept = _whole_pairs(stop.rows, planned)
        if len(kept) < FEWEST_MASKS:
            raise
        warnings.warn(
            f"stopped by the timeout after {len(kept)} of {len(masks)} evaluations; "
            "the surrogate is fitted to those",
            stacklevel=4,
        )
        done = stop.evaluated.values[np.isin(stop.rows, kept)]
        return planned[kept], done, True
    restored = np.empty_like(values)
    restored[order] = values
    return masks, restored, False


def _fair_order(masks: Masks, rng: np.random.Generator) -> NDArray[np.int64]:
    """Row numbers in an order of which every prefix is a fair sample."""
    n_features = masks.shape[1]
    rows = rows_of_all(masks)
    if rows is None:
        return np.arange(len(masks))
    halves = pair_numbers(n_features, 1 << (n_features - 1), rng)
    pairs = np.stack([halves, len(masks) - 1 - halves], axis=1)
    return rows[pairs.reshape(-1)]


def _whole_pairs(rows: NDArray[np.int64], planned: Masks) -> NDArray[np.int64]:
    """Drop rows whose complement was not evaluated, where masks come in pairs."""
    if not are_paired(planned):
        return rows
    done = np.zeros(len(planned), dtype=bool)
    done[rows] = True
    both = done.reshape(-1, 2).all(axis=1)
    return np.flatnonzero(np.repeat(both, 2))
