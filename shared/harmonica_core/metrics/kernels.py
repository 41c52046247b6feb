"""Sums over a set of terms for pairs of masks, ``K(x, y) = sum_{S in C} chi_S(x y)``.

``chi_S(x) chi_S(y) = chi_S(x y)`` and ``x y`` keeps the features on which the two masks
agree. For all terms up to a degree, K depends on the number of disagreements alone, so
millions of terms cost no more than a few.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from harmonica_core import basis
from harmonica_core._types import Floats, Masks, Table

# Bytes that one block of K may take.
_BLOCK_BYTES = 1 << 23


class Kernel(Protocol):
    """What the truthful gap needs to know of C."""

    @property
    def n_terms(self) -> int:
        """Number of terms, ``K(x, x)``."""

    def apply(self, masks: Masks, weighted: Floats) -> Floats:
        """``sum_u K(x_t, x_u) weighted_u``: ``(m, k)``."""

    def pairs(self, first: Masks, second: Masks) -> Floats:
        """``K(x_t, y_t)`` row by row: ``(m,)``."""


@dataclass(frozen=True)
class TermKernel:
    """C given term by term."""

    table: Table

    @property
    def n_terms(self) -> int:
        """Number of terms."""
        return len(self.table)

    def apply(self, masks: Masks, weighted: Floats) -> Floats:
        """Project on the terms, and back."""
        coef = basis.correlate(masks, self.table, weighted)
        return basis.predict(masks, self.table, coef)

    def pairs(self, first: Masks, second: Masks) -> Floats:
        """Evaluate the sum of all terms where the masks agree."""
        ones = np.ones((self.n_terms, 1))
        return basis.predict(first == second, self.table, ones)[:, 0]


@dataclass(frozen=True)
class DegreeKernel:
    """C = all terms of size 0 to ``degree``."""

    n_features: int
    degree: int

    @property
    def n_terms(self) -> int:
        """Number of terms."""
        return basis.n_terms_up_to(self.n_features, self.degree)

    def by_distance(self) -> Floats:
        """K for 0 to n_features disagreements (a sum of Krawtchouk polynomials)."""
        n = self.n_features
        return np.array(
            [
                sum(
                    (-1) ** i * math.comb(far, i) * math.comb(n - far, size - i)
                    for size in range(self.degree + 1)
                    for i in range(size + 1)
                )
                for far in range(n + 1)
            ],
            dtype=np.float64,
        )

    def apply(self, masks: Masks, weighted: Floats) -> Floats:
        """Sum over all terms, or over all pairs of masks if these are fewer."""
        if self.n_terms <= len(masks):
            terms = basis.terms_up_to(self.n_features, self.degree)
            return TermKernel(terms).apply(masks, weighted)
        return self.apply_by_distance(masks, weighted)

    def apply_by_distance(self, masks: Masks, weighted: Floats) -> Floats:
        """Sum over all pairs, a block of rows at a time."""
        table = self.by_distance()
        signs = basis.signs(masks, np.float32)[:, :-1]
        out = np.empty_like(weighted)
        step = max(1, _BLOCK_BYTES // (8 * len(masks)))
        for start in range(0, len(masks), step):
            # Agreements less disagreements; whole numbers, exact in float32.
            balance = signs[start : start + step] @ signs.T
            far = ((self.n_features - balance) / 2).astype(np.int32)
            out[start : start + step] = table.take(far) @ weighted
        return out

    def pairs(self, first: Masks, second: Masks) -> Floats:
        """Look K up by the number of disagreements."""
        return np.asarray(self.by_distance()[(first != second).sum(axis=1)])
