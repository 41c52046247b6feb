"""The smallest change of a mask that carries g across a threshold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonica_core._types import Floats, Masks
from harmonica_core.design.masks import check_masks

# Candidate changes tried exhaustively; all masks of 17 features, triples of 100.
MAX_TRIES = 200_000
_CHUNK = 1 << 14


@dataclass(frozen=True)
class Change:
    """What `smallest_change` found.

    Attributes
    ----------
    found : bool
    features : tuple of int
        Features to flip (remove if kept, restore if removed); empty if none found.
    mask : bool (n_features,)
        The mask after the change.
    before, after : float
        g before and after it.
    exact : bool
        Whether no smaller change crosses (or, if none was found, none at all).
        Otherwise the change comes from a greedy search.
    searched : int
        Every change of up to this many features was tried.
    """

    found: bool
    features: tuple[int, ...]
    mask: Masks
    before: float
    after: float
    exact: bool
    searched: int


@dataclass(frozen=True)
class _Goal:
    """Strictly on the other side of the threshold; ``progress`` > 0 means there."""

    predict: Callable[[Masks], Floats]
    start: Masks
    threshold: float
    sign: float
    tolerance: float

    def progress(self, changes: np.ndarray) -> Floats:
        """How far past the threshold ``(m,)`` each row of features to flip leads."""
        masks = np.repeat(self.start[None, :], len(changes), axis=0)
        masks[np.arange(len(changes))[:, None], changes] ^= True
        past = self.sign * (self.predict(masks) - self.threshold)
        return np.asarray(past - self.tolerance)

    def best(self, progress: Floats) -> int:
        """Return the first row that is as good as the best one, up to rounding."""
        return int(np.flatnonzero(progress >= progress.max() - self.tolerance)[0])


def check_threshold(threshold: object) -> None:
    """Refuse what is not a finite number."""
    number = isinstance(threshold, (int, float, np.number))
    if not number or isinstance(threshold, bool) or not np.isfinite(threshold):  # type: ignore[call-overload]
        raise ValueError(f"threshold={threshold!r}; needed a finite number")


def smallest_change(
    predict: Callable[[Masks], Floats],
    start: Masks,
    threshold: float,
    *,
    tolerance: float = 0.0,
    max_tries: int = MAX_TRIES,
) -> Change:
    """Find the fewest features to flip so that g crosses ``threshold``.

    Sizes 1, 2, ... are searched exhaustively while all changes up to that size number
    at most ``max_tries``; a change found so is exact, and among those of its size it is
    the one that goes farthest. Beyond that the best single flip is taken again and
    again until g crosses, then flips that are not needed are undone: greedy.

    Parameters
    ----------
    predict : callable, bool (m, n_features) -> (m,)
    start : bool (n_features,)
    threshold : float
    tolerance : float
        Values this close to the threshold do not count as past it.
    max_tries : int
        Largest number of changes to try exhaustively.

    Returns
    -------
    Change

    Examples
    --------
    >>> both = lambda masks: 1.0 * (masks[:, 0] | masks[:, 1])
    >>> smallest_change(both, np.ones(4, dtype=bool), 0.5).features
    (0, 1)
    """
    check_threshold(threshold)
    before = float(predict(start[None, :])[0])
    sign = -1.0 if before >= threshold else 1.0
    goal = _Goal(predict, start, float(threshold), sign, tolerance)
    n_features = len(start)
    searched = tried = 0
    while searched < n_features:
        tried += math.comb(n_features, searched + 1)
        if tried > max_tries:
            return _result(goal, before, _greedy(goal), exact=False, searched=searched)
        searched += 1
        change = _best_of_size(goal, searched)
        if change is not None:
            return _result(goal, before, change, exact=True, searched=searched)
    return _result(goal, before, None, exact=True, searched=searched)


def _result(
    goal: _Goal,
    before: float,
    change: tuple[int, ...] | None,
    *,
    exact: bool,
    searched: int,
) -> Change:
    mask = goal.start.copy()
    mask[list(change or ())] ^= True
    after = float(goal.predict(mask[None, :])[0])
    found = change is not None
    return Change(found, change or (), mask, before, after, exact, searched)


def _best_of_size(goal: _Goal, size: int) -> tuple[int, ...] | None:
    """Return the change of ``size`` features that goes farthest past, if any does."""
    best: tuple[int, ...] | None = None
    reached = 0.0
    for changes in _chunks(len(goal.start), size):
        progress = goal.progress(changes)
        row = goal.best(progress)
        if progress[row] > reached + (goal.tolerance if best else 0.0):
            best, reached = tuple(changes[row].tolist()), float(progress[row])
    return best


def _chunks(n_features: int, size: int) -> Iterator[np.ndarray]:
    """Combinations of ``size`` features in lexicographic order, some at a time."""
    combinations = itertools.combinations(range(n_features), size)
    while chunk := list(itertools.islice(combinations, _CHUNK)):
        yield np.array(chunk, dtype=np.int64)


def _greedy(goal: _Goal) -> tuple[int, ...] | None:
    """Flip the best single feature until g crosses; then undo what is not needed.

    It goes on through flips that lead away, because two features together may cross
    where neither alone helps.
    """
    flipped: list[int] = []
    rest = list(range(len(goal.start)))
    crossed = False
    while rest and not crossed:
        progress = goal.progress(np.array([[*flipped, i] for i in rest]))
        row = goal.best(progress)
        crossed = bool(progress[row] > 0)
        flipped.append(rest.pop(row))
    if not crossed:
        return None
    for i in list(flipped):
        fewer = [j for j in flipped if j != i]
        if fewer and goal.progress(np.array([fewer]))[0] > 0:
            flipped = fewer
    return tuple(sorted(flipped))


def as_start(start: Any, n_features: int) -> Masks:
    """Return the mask to start from; None = everything kept."""
    if start is None:
        return np.ones(n_features, dtype=bool)
    checked = check_masks(start, n_features)
    if len(checked) != 1:
        raise ValueError(f"start holds {len(checked)} masks; needed one")
    return np.array(checked[0])
