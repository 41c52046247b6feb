"""Evaluated masks as a regression sees them: standardised, paired, split, once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from harmonica_core._types import Floats, Masks

# Digits of standardised values: a*f + b gives the very same numbers as f, so no
# choice between equally good candidates can depend on a or b.
_DIGITS = 11


@dataclass(frozen=True)
class Sample:
    """Distinct masks, the values of C functions on them, and which masks are pairs.

    Attributes
    ----------
    masks : bool (m, n_features)
    centre, spread : float64 (C,)
        ``values = centre + spread * standard``.
    standard : float64 (m, C)
    pairs : int64 (p, 2)
        Rows of complementary masks.
    singles : int64 (u,)
        Rows whose complement was not evaluated.
    """

    masks: Masks
    centre: Floats
    spread: Floats
    standard: Floats
    pairs: NDArray[np.int64]
    singles: NDArray[np.int64]

    @classmethod
    def of(cls, masks: Masks, values: Floats) -> Sample:
        """Standardise ``values (m, C)`` and find the pairs."""
        centre, spread, standard = standardise(values)
        pairs, singles = find_pairs(masks)
        return cls(masks, centre, spread, standard, pairs, singles)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.masks.shape[1])

    @cached_property
    def signs(self) -> Floats:
        """Rows of -1 and +1: ``(m, n_features)``."""
        return signs_of(self.masks)

    @cached_property
    def even(self) -> Floats:
        """``(f(x) + f(-x)) / 2`` of the pairs: ``(p, C)``."""
        first, second = self.standard[self.pairs.T]
        return np.asarray((first + second) / 2)

    @cached_property
    def odd(self) -> Floats:
        """``(f(x) - f(-x)) / 2`` of the pairs: ``(p, C)``."""
        first, second = self.standard[self.pairs.T]
        return np.asarray((first - second) / 2)


def signs_of(masks: Masks) -> Floats:
    """Rows of -1 and +1 of masks."""
    return np.where(masks, 1.0, -1.0)


def standardise(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Return centre, spread and standardised values ``(m, C)``, at any magnitude."""
    # Powers of two do not round, and keep squares away from 0 and infinity.
    size = np.abs(values).max(axis=0, initial=0.0)
    unit = np.ldexp(1.0, np.clip(np.frexp(size)[1], -1000, 1000))
    scaled = values / unit
    centre = scaled.mean(axis=0)
    spread = np.where(np.ptp(scaled, axis=0) > 0, scaled.std(axis=0), 0.0)
    # What rounding of the values leaves is no spread.
    spread = np.where(spread > 1e-14, spread, 1.0)
    standard = np.round((scaled - centre) / spread, _DIGITS)
    return centre * unit, spread * unit, standard


def find_pairs(masks: Masks) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows of complementary masks ``(p, 2)`` and all other rows ``(u,)``.

    The first of a pair keeps at least as many features as the second.
    """
    m, n = masks.shape
    sizes = masks.sum(axis=1)
    # Either mask of a pair has the same key: the packed bits of the larger one.
    larger = (2 * sizes > n) | ((2 * sizes == n) & masks[:, 0]) if n else sizes > 0
    keys = np.packbits(np.where(larger[:, None], masks, ~masks), axis=1)
    _, key_of = np.unique(keys, axis=0, return_inverse=True)
    order = np.lexsort((~larger, key_of.ravel()))
    same = np.append(key_of.ravel()[order][1:] == key_of.ravel()[order][:-1], False)
    first = np.flatnonzero(same)
    pairs = np.stack([order[first], order[first + 1]], axis=1)
    if not (larger[pairs[:, 0]] & ~larger[pairs[:, 1]]).all():
        raise ValueError(
            f"got {m} masks, some of them twice; needed distinct ones (take the "
            "mean of the values of a mask that was evaluated more than once)"
        )
    pairs = pairs[np.argsort(pairs.min(axis=1), kind="stable")]
    alone = np.ones(m, dtype=bool)
    alone[pairs.ravel()] = False
    return pairs, np.flatnonzero(alone)
