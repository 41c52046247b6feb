"""Which features are kept: every way of drawing masks.

All draws are prefix-stable: with the same generator state, the masks of a smaller
budget are the first rows of those of a larger one, so that more budget extends what
was already evaluated.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonica_core._types import Floats, Masks
from harmonica_core.checks import is_whole

# Up to this many pairs (or ball members) we draw without replacement from a list.
_LISTABLE = 1 << 19


def check_masks(masks: Any, n_features: int) -> Masks:
    """Return ``masks`` as a bool array ``(n_masks, n_features)`` or say what is wrong.

    One mask ``(n_features,)`` is taken as one row. Integers are accepted only when
    they are 0 or 1; -1/+1 signs are refused, because -1 would silently mean "kept".

    Examples
    --------
    >>> check_masks([1, 0, 1], 3)
    array([[ True, False,  True]])
    """
    array = np.asarray(masks)
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim != 2 or array.shape[1] != n_features:
        raise ValueError(
            f"masks have shape {np.shape(masks)}; needed (n_masks, {n_features}), one "
            "column per feature, True = kept"
        )
    if array.dtype == np.bool_:
        return array
    if array.dtype.kind in "iuf" and np.isin(array, (0, 1)).all():
        return array.astype(bool)
    raise ValueError(
        f"masks have dtype {array.dtype} with values other than 0 and 1; needed bool "
        "(True = kept); for -1/+1 signs pass `signs > 0`"
    )


def all_masks(n_features: int) -> Masks:
    """Every mask, ``(2**n_features, n_features)``: bit i of the row number = i is kept.

    Examples
    --------
    >>> all_masks(2).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    return masks_from_numbers(np.arange(1 << n_features), n_features)


def masks_from_numbers(numbers: np.ndarray, n_features: int) -> Masks:
    """Masks ``(m, n_features)`` whose bits are the given row numbers of `all_masks`."""
    bits = np.asarray(numbers, dtype=np.int64)[:, None] >> np.arange(n_features)
    return (bits & 1).astype(bool)


def mask_numbers(masks: Masks) -> np.ndarray:
    """Row numbers ``(m,)`` of masks in `all_masks`; needs at most 62 features."""
    if masks.shape[1] > 62:
        raise ValueError(
            f"got {masks.shape[1]} features; needed at most 62 for numbers of masks "
            "(one int64)"
        )
    return masks.astype(np.int64) @ (np.int64(1) << np.arange(masks.shape[1]))


def match_masks(
    masks: Masks, known: Masks
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows of ``masks`` that are among ``known``, and their rows there.

    Examples
    --------
    >>> match_masks(np.eye(2, dtype=bool), np.array([[True, True], [False, True]]))
    (array([1]), array([1]))
    """
    left, right = _keys(masks), _keys(known)
    order = np.argsort(right)
    place = np.searchsorted(right, left, sorter=order)
    place = order[np.minimum(place, len(order) - 1)] if len(order) else place
    hits = np.flatnonzero(right[place] == left) if len(order) else place[:0]
    return hits, place[hits]


def _keys(masks: Masks) -> NDArray[Any]:
    """One number or string of bytes for each mask."""
    if masks.shape[1] <= 62:
        return mask_numbers(masks)
    packed = np.packbits(masks, axis=1)
    return packed.view(f"S{packed.shape[1]}").ravel()


def paired_masks(n_features: int, n_masks: int, rng: np.random.Generator) -> Masks:
    """Uniform masks in complementary pairs, ``(n_masks // 2 * 2, n_features)``.

    Rows 2k and 2k+1 are x and its complement, so the even part
    ``(f(x) + f(-x)) / 2`` and the odd part ``(f(x) - f(-x)) / 2`` separate exactly.
    The first pair is (all kept, all removed). No pair occurs twice; when more pairs
    are asked for than exist, all of them are returned.

    Examples
    --------
    >>> paired_masks(3, 4, np.random.default_rng(0)).astype(int)[:2].tolist()
    [[1, 1, 1], [0, 0, 0]]
    """
    n_pairs = n_masks // 2
    if n_features <= 20:
        halves = _listed_halves(n_features, n_pairs, rng)
    else:
        halves = _drawn_halves(n_features, n_pairs, rng)
    return interleave_pairs(halves)


def interleave_pairs(halves: Masks) -> Masks:
    """Rows x, ~x, x', ~x', ... from rows x, x', ..."""
    pairs = np.stack([halves, ~halves], axis=1)
    return np.asarray(pairs.reshape(-1, halves.shape[1]))


def are_paired(masks: Masks) -> bool:
    """Whether rows 2k and 2k+1 are complementary throughout."""
    return len(masks) % 2 == 0 and bool((masks[0::2] != masks[1::2]).all())


def are_paired_alike(masks: Masks, weights: Floats) -> bool:
    """Whether masks come in complementary pairs, both of one weight."""
    alike = len(masks) > 0 and are_paired(masks)
    return alike and bool((weights[0::2] == weights[1::2]).all())


def rows_of_all(masks: Masks) -> NDArray[np.int64] | None:
    """Row ``(2**n,)`` of each member of `all_masks`, or None if one is missing."""
    n_features = masks.shape[1]
    if n_features > 30 or len(masks) != 1 << n_features:
        return None
    rows = np.full(len(masks), -1)
    rows[mask_numbers(masks)] = np.arange(len(masks))
    return None if (rows < 0).any() else rows


def pair_numbers(
    n_features: int, n_pairs: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Random distinct pairs: the number of the member that keeps the last feature.

    The first pair is (all kept, all removed).
    """
    n_listed = 1 << (n_features - 1)
    order = rng.permutation(n_listed - 1)[: max(n_pairs - 1, 0)]
    return (np.concatenate([[n_listed - 1], order]) + n_listed)[:n_pairs]


def _listed_halves(n_features: int, n_pairs: int, rng: np.random.Generator) -> Masks:
    """Pairs without replacement: one member of each."""
    return masks_from_numbers(pair_numbers(n_features, n_pairs, rng), n_features)


def _drawn_halves(n_features: int, n_pairs: int, rng: np.random.Generator) -> Masks:
    """Pairs by coin flips; a repeated pair is drawn again."""
    halves = np.ones((1, n_features), dtype=bool)
    while len(halves) < n_pairs:
        # One double per coin keeps the stream independent of the chunk sizes.
        coins = rng.random((n_pairs - len(halves), n_features)) < 0.5
        halves = _first_occurrences(np.concatenate([halves, coins]))
    return halves[:n_pairs]


def _first_occurrences(halves: Masks) -> Masks:
    """Drop rows that equal an earlier row or its complement."""
    oriented = halves ^ ~halves[:, -1:]
    packed = np.packbits(oriented, axis=1)
    _, first = np.unique(packed, axis=0, return_index=True)
    return halves[np.sort(first)]


def check_radius(radius: int | None, n_features: int) -> int | None:
    """Return a valid radius (1 .. n_features, or None for the whole cube)."""
    if radius is None:
        return None
    if not is_whole(radius):
        raise ValueError(
            f"radius={radius!r} is not a whole number; needed 1 to {n_features} "
            "features removed, or None for all masks"
        )
    if not 1 <= radius <= n_features:
        raise ValueError(
            f"radius={radius} with {n_features} features; needed 1 <= radius <= "
            f"{n_features}, or None for all masks"
        )
    return int(radius)


def covers(n_features: int, budget: int) -> bool:
    """Whether a budget is enough for all masks."""
    return n_features <= 30 and 1 << n_features <= budget


def ball_size(n_features: int, radius: int, fewest: int = 1) -> int:
    """Number of masks with ``fewest`` to ``radius`` features removed."""
    if 2 * radius > n_features:  # fewer sizes are outside
        smaller = ball_size(n_features, fewest - 1, 0)
        return (
            (1 << n_features)
            - smaller
            - ball_size(n_features, n_features - radius - 1, 0)
        )
    count, total = math.comb(n_features, fewest), 0
    for removed in range(fewest, radius + 1):
        total += count
        count = count * (n_features - removed) // (removed + 1)
    return total


def removal_probabilities(n_features: int, radius: int, fewest: int = 1) -> Floats:
    """Probability ``(radius - fewest + 1,)`` that fewest, ..., radius are removed.

    Uniform on these masks means proportional to ``C(n_features, i)``.
    """
    logs = np.array(
        [
            math.lgamma(n_features + 1)
            - math.lgamma(i + 1)
            - math.lgamma(n_features - i + 1)
            for i in range(fewest, radius + 1)
        ]
    )
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def ball(n_features: int, radius: int, fewest: int = 1) -> Masks:
    """Every mask with ``fewest`` to ``radius`` features removed, fewest first.

    Examples
    --------
    >>> ball(3, 1).astype(int).tolist()
    [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    """
    masks = np.ones((ball_size(n_features, radius, fewest), n_features), dtype=bool)
    start = 0
    for size in range(fewest, radius + 1):
        count = math.comb(n_features, size)
        flat = itertools.chain.from_iterable(
            itertools.combinations(range(n_features), size)
        )
        removed = np.fromiter(flat, dtype=np.int64, count=count * size)
        rows = np.arange(start, start + count)[:, None]
        masks[rows, removed.reshape(count, size)] = False
        start += count
    return masks


def in_ball(masks: Masks, radius: int | None) -> NDArray[np.bool_]:
    """Whether 1 to ``radius`` features are removed; None: any mask at all."""
    if radius is None:
        return np.ones(len(masks), dtype=bool)
    removed = (~masks).sum(axis=1)
    return np.asarray((removed >= 1) & (removed <= radius))


def ball_masks(
    n_features: int, radius: int, n_masks: int, rng: np.random.Generator
) -> Masks:
    """Masks uniform on the ball: 1 to ``radius`` removed, each mask equally likely.

    Distinct, and at most the whole ball.
    """
    if ball_size(n_features, radius) <= _LISTABLE:
        members = ball(n_features, radius)
        return members[rng.permutation(len(members))[:n_masks]]
    masks = np.zeros((0, n_features), dtype=bool)
    while len(masks) < n_masks:
        more = ball_draws(n_features, radius, n_masks - len(masks), rng)
        masks = _first_of_each(np.concatenate([masks, more]))
    return masks


def _first_of_each(masks: Masks) -> Masks:
    """Drop rows that equal an earlier one."""
    _, first = np.unique(np.packbits(masks, axis=1), axis=0, return_index=True)
    return masks[np.sort(first)]


def ball_draws(
    n_features: int,
    radius: int,
    n_masks: int,
    rng: np.random.Generator,
    fewest: int = 1,
) -> Masks:
    """Independent uniform draws, with ``fewest`` to ``radius`` features removed."""
    cumulative = np.cumsum(removal_probabilities(n_features, radius, fewest))
    uniforms = rng.random((n_masks, n_features + 1))
    sizes = fewest + np.searchsorted(cumulative[:-1], uniforms[:, 0], side="right")
    ranks = uniforms[:, 1:].argsort(axis=1).argsort(axis=1)
    return np.asarray(ranks >= sizes[:, None])


def uniform_draws(n_features: int, n_masks: int, rng: np.random.Generator) -> Masks:
    """Independent uniform draws ``(n_masks, n_features)`` from the whole cube."""
    return rng.random((n_masks, n_features)) < 0.5
