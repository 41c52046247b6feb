"""How much of each candidate is in a blend: the least error on rows left out.

Candidates are polynomials fitted to the same rows and cross-validated on the same
folds. Even and odd terms are blended apart.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harmonica_core import basis
from harmonica_core._types import Floats, Masks
from harmonica_core.folds import N_FOLDS
from harmonica_core.kernel import ALL, EVEN, ODD
from harmonica_core.masks import are_paired

# A share this small is none: exact recovery stays sparse.
_SMALL_SHARE = 1e-3
_ROUNDING = 1e-12


@dataclass(frozen=True)
class PartRows:
    """Masks as one regression, or as an even and an odd one over half the rows.

    Attributes
    ----------
    signs : float64 (h, n_features)
    parities : tuple of ALL, EVEN or ODD, one a part
    weights : float64 (h,)
    fold : int64 (h,)
    """

    signs: Floats
    parities: tuple[int, ...]
    weights: Floats
    fold: NDArray[np.int64]

    @classmethod
    def of(cls, masks: Masks, weights: Floats | None) -> PartRows:
        """Split masks that come in complementary pairs."""
        weights = np.ones(len(masks)) if weights is None else weights
        paired = are_paired(masks) and bool((weights[0::2] == weights[1::2]).all())
        step = 2 if paired else 1
        signs = basis.signs(masks[::step])[:, :-1]
        # The folds of the sparse fit, so that held-out predictions can be combined.
        fold = np.arange(len(signs)) % N_FOLDS
        parities = (EVEN, ODD) if paired else (ALL,)
        return cls(signs, parities, weights[::step], fold)

    def split(self, values: Floats) -> Floats:
        """Parts ``(n_parts, h)`` of ``values (m,)``."""
        if len(self.parities) == 1:
            return values[None, :]
        first, second = values[0::2], values[1::2]
        return np.stack([first + second, first - second]) / 2

    def join(self, parts: Floats) -> Floats:
        """Invert `split`."""
        if len(self.parities) == 1:
            return np.asarray(parts[0])
        even, odd = parts
        return np.stack([even + odd, even - odd], axis=1).ravel()

    def mean_square(self, residual: Floats) -> Floats:
        """Weighted mean square ``(n_parts,)``."""
        return np.asarray(residual**2 @ self.weights / self.weights.sum())

    def take(self, chosen: NDArray[np.bool_]) -> PartRows:
        """Return the chosen rows."""
        return PartRows(
            self.signs[chosen], self.parities, self.weights[chosen], self.fold[chosen]
        )


def shares(rows: PartRows, residuals: Floats, power: float) -> tuple[Floats, Floats]:
    """Share of each candidate from residuals ``(n_candidates, n_parts, h)``.

    ``power`` is the mean square of the target.

    Returns
    -------
    share : float64 (n_candidates, n_parts)
    crossed : float64 (n_candidates, n_parts, h)
        For each row, the share found without the row's fold.
    """
    products = np.einsum("t,apt,bpt->tpab", rows.weights, residuals, residuals)
    # Where the first candidate is exact there is nothing to improve on.
    exact = rows.mean_square(residuals[0]) <= _ROUNDING**2 * power
    crossed = np.empty_like(residuals)
    for fold in range(N_FOLDS):
        out = rows.fold == fold
        found = _best_shares(products[~out].sum(axis=0), exact)
        crossed[:, :, out] = found[:, :, None]
    return _best_shares(products.sum(axis=0), exact), crossed


def _best_shares(products: Floats, exact: NDArray[np.bool_]) -> Floats:
    """Minimisers ``(n_candidates, n_parts)`` of ``s^T P s`` over convex shares s.

    ``products (n_parts, n_candidates, n_candidates)`` hold P of each part.
    """
    first = np.eye(products.shape[-1])[0]
    found = [
        first if known else _best_share(one)
        for one, known in zip(products, exact, strict=True)
    ]
    return np.stack(found, axis=1)


def _best_share(products: Floats) -> Floats:
    """Try every set of candidates; for a given set the minimiser has a closed form."""
    n = len(products)
    lift = _ROUNDING * float(np.trace(products)) * np.eye(n)
    best = np.inf
    share: Floats = np.eye(n)[0]
    for size in range(1, n + 1):
        for chosen in map(list, itertools.combinations(range(n), size)):
            block = (products + lift)[np.ix_(chosen, chosen)]
            if not block.any():
                continue
            along = np.linalg.solve(block, np.ones(size))
            if (along < 0).any():
                continue
            one = np.zeros(n)
            one[chosen] = np.where(along < _SMALL_SHARE * along.sum(), 0.0, along)
            one /= one.sum()
            value = float(one @ products @ one)
            if value < best * (1 - _ROUNDING):
                best, share = value, one
    return share
