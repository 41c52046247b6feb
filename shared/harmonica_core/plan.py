"""Evaluate a plan of masks, and stop in time with a sample that can be fitted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from harmonica_core._types import Masks, Values
from harmonica_core.estimators import FEWEST_MASKS
from harmonica_core.evaluate import EvaluationTimeout
from harmonica_core.masks import are_paired, pair_numbers, rows_of_all
from harmonica_core.resilience import CallPolicy
from harmonica_core.surrogate import Surrogate

# Masks of the first round; every further round has twice as many.
_FIRST_ROUND = 128


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
        done = stop.evaluated.values[np.isin(stop.rows, kept)]
        return planned[kept], done, True
    restored = np.empty_like(values)
    restored[order] = values
    return masks, restored, False


def fit_in_rounds(
    evaluate: Callable[..., Values],
    fit: Callable[[Masks, Values], Surrogate],
    masks: Masks,
    rng: np.random.Generator,
    tolerance: float,
    policy: CallPolicy,
) -> Surrogate:
    """Evaluate and fit twice as many masks each time until the error is small enough.

    Returns
    -------
    Surrogate
        Its ``stopped`` is "tolerance" when the stated error of every output is at most
        that, "budget" when all masks were evaluated first, "timeout" when time ran out.
    """
    start = time.monotonic()
    planned = masks[_fair_order(masks, rng)]
    done, size = 0, min(_FIRST_ROUND, len(planned))
    seen: list[Masks] = []
    values: list[Values] = []
    surrogate: Surrogate | None = None
    while True:
        rest = partial(evaluate, policy=policy)
        if policy.timeout is not None and surrogate is not None:
            left = max(policy.timeout - (time.monotonic() - start), 1e-9)
            rest = partial(evaluate, policy=replace(policy, timeout=left))
        try:
            # A round that was cut short has other masks than its first ones.
            sample, new, late = evaluate_plan(rest, planned[done:size], rng)
        except EvaluationTimeout:
            if surrogate is None:
                raise
            return replace(surrogate, stopped="timeout")
        seen.append(sample)
        values.append(new)
        done += len(new)
        surrogate = fit(np.concatenate(seen), np.concatenate(values))
        if late:
            return replace(surrogate, stopped="timeout")
        stated = surrogate.error
        if stated is not None and np.max(stated.value) <= tolerance:
            return replace(surrogate, stopped="tolerance")
        if done == len(planned):
            return replace(surrogate, stopped="budget")
        size = min(2 * size, len(planned))


def check_tolerance(tolerance: object) -> float | None:
    """Return a number > 0, or None."""
    if tolerance is None:
        return None
    number = isinstance(tolerance, (int, float, np.number))
    if not number or isinstance(tolerance, bool) or not 0 < float(tolerance) < np.inf:  # type: ignore[arg-type]
        raise ValueError(
            f"tolerance={tolerance!r}; needed a finite number > 0, in the units of the "
            "output, or None"
        )
    return float(tolerance)  # type: ignore[arg-type]


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
