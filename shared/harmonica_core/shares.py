"""How much of each candidate is in a blend: the least error on rows left out.

Candidates are polynomials fitted to the same rows and cross-validated on the same
folds. Even and odd terms are blended apart.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from harmonica_core import basis
from harmonica_core._types import Floats, Masks
from harmonica_core.folds import N_FOLDS
from harmonica_core.kernel import ALL, EVEN, ODD
from harmonica_core.masks import NEAR_RADIUS, are_paired_alike

# A share this small is none: exact recovery stays sparse.
_SMALL_SHARE = 1e-3
_ROUNDING = 1e-12
# A row of at most this weight was drawn on purpose.
_SELDOM = 0.5
# Weights of the error near the input, beside that over the cube, and how much the
# latter may rise.
_NEAR_WEIGHTS, _RISE = 0.2 * 0.5 ** np.arange(16), 1.02


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
        paired = are_paired_alike(masks, weights)
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

    def near(self) -> Floats:
        """1 or -1 ``(h,)`` where the row or its complement is near the input, else 0.

        All zero where masks were not drawn there on purpose.
        """
        if (self.weights == 1).all():
            return np.zeros(len(self.signs))
        removed = (self.signs < 0).sum(axis=1)
        kept = self.signs.shape[1] - removed
        close = (removed >= 1) & (removed <= NEAR_RADIUS)
        opposite = (kept >= 1) & (kept <= NEAR_RADIUS) & (len(self.parities) > 1)
        return np.where(close, 1.0, np.where(opposite, -1.0, 0.0))

    def usual(self) -> NDArray[np.bool_]:
        """Rows ``(h,)`` that stand for the cube: not drawn twice as often, or more."""
        usual = self.weights > _SELDOM
        return usual if usual.sum() >= N_FOLDS else np.ones_like(usual)

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
    # Where the first candidate is exact there is nothing to improve on.
    exact = rows.mean_square(residuals[0]) <= _ROUNDING**2 * power
    crossed = np.empty_like(residuals)
    for fold in range(N_FOLDS):
        out = rows.fold == fold
        found = _best_shares(rows.take(~out), residuals[..., ~out], exact)
        crossed[:, :, out] = found[:, :, None]
    return _best_shares(rows, residuals, exact), crossed


def _best_shares(rows: PartRows, residuals: Floats, exact: NDArray[np.bool_]) -> Floats:
    """Convex shares ``(n_candidates, n_parts)`` with the least square error.

    Over the cube, and near the input if masks were drawn there on purpose: each
    relative to what the best candidate has alone, and the second with the largest of
    its weights that hardly raises the first.
    """
    n_candidates, n_parts, _ = residuals.shape
    allowed = [[0] if one else list(range(n_candidates)) for one in exact]
    parts = np.einsum("t,apt,bpt->pab", rows.weights, residuals, residuals)
    cube = _relative(np.asarray(block_diag(*parts)), n_parts)
    share = _least(cube, allowed)
    toward = rows.near()
    if toward.any():
        ends = np.stack([np.ones_like(toward), toward])[:n_parts, None]
        signed = (ends * residuals.swapaxes(0, 1))[..., toward != 0]
        flat = signed.reshape(n_parts * n_candidates, -1)
        near = _relative(flat @ flat.T, n_parts)
        most = _RISE**2 * float(share @ cube @ share)
        for weight in _NEAR_WEIGHTS:
            found = _least(cube + weight * near, allowed)
            if found @ cube @ found <= most:
                share = found
                break
    return share.reshape(n_parts, n_candidates).T


def _relative(products: Floats, n_parts: int) -> Floats:
    """Products in units of the best single candidate's."""
    n = len(products) // n_parts
    alone = products.reshape(n_parts, n, n_parts, n).sum(axis=(0, 2)).diagonal()
    best = float(alone.min() or alone.mean())
    return products / best if best > 0 else products


def _least(products: Floats, allowed: list[list[int]]) -> Floats:
    """Minimiser of ``s^T P s`` with shares s that are convex in each part.

    Every set of candidates is tried; for a given set there is a closed form.
    """
    n_parts, size = len(allowed), len(products)
    n = size // n_parts
    lifted = products + _ROUNDING * float(np.trace(products)) * np.eye(size)
    best, share = np.inf, np.zeros(size)
    for sets in itertools.product(*map(_subsets, allowed)):
        chosen = [part * n + c for part, one in enumerate(sets) for c in one]
        of_part = np.repeat(np.eye(n_parts), [len(one) for one in sets], axis=1)
        system = np.block(
            [
                [lifted[np.ix_(chosen, chosen)], of_part.T],
                [of_part, np.zeros((n_parts, n_parts))],
            ]
        )
        right = np.concatenate([np.zeros(len(chosen)), np.ones(n_parts)])
        try:
            found = np.linalg.solve(system, right)[: len(chosen)]
        except np.linalg.LinAlgError:
            continue
        if (found < 0).any():
            continue
        found[found < _SMALL_SHARE] = 0.0
        one = np.zeros(size)
        one[chosen] = found / (of_part.T @ (of_part @ found))
        value = float(one @ products @ one)
        if value < best * (1 - _ROUNDING):
            best, share = value, one
    return share


def _subsets(members: list[int]) -> list[tuple[int, ...]]:
    sizes = range(1, len(members) + 1)
    return [one for size in sizes for one in itertools.combinations(members, size)]
