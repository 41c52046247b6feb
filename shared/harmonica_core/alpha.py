"""The choice of the L1 strength: a path, then honest cross-validation near its best.

1. A path from the smallest strength that gives zero downwards, on all rows, warm
   started. Each point is scored by a closed form of 5-fold cross-validation,

       mean square residual / ((1 - d) (1 - d / 0.8)),   d = active terms / rows,

   which is what leaving out a fifth of the rows costs a least-squares fit on that
   many terms. The path of a target ends when its score has turned upwards.
2. Real 5-fold cross-validation, downhill on the same grid from the best score. Each
   fold screens its own terms, and complementary masks share a fold, so held-out
   predictions have never seen their own values. The refit without penalty
   (``relaxed``) competes on the same folds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harmonica_core._types import Floats
from harmonica_core.correlations import Index
from harmonica_core.regression import Regression, Rows

N_FOLDS = 5
RATIO = 2**-0.5
N_STRENGTHS = 36  # down to 5e-6 of the largest

_LOOSE = 1e-2
_GIVE_UP, _RISES = 1.05, 2
_NOTHING_LEFT = 1e-13


@dataclass(frozen=True)
class Part:
    """A regression on all rows, and on the rows outside each fold."""

    rows: Rows
    full: Regression
    trained: tuple[Regression, ...]
    fold_of_row: Index

    @classmethod
    def of(cls, rows: Rows, dense: bool) -> Part:
        """Build the regressions; ``dense`` puts all terms into the working sets."""
        fold_of_row = np.arange(len(rows.weights)) % N_FOLDS
        full = Regression(rows)
        trained = [Regression(rows.take(fold_of_row != f)) for f in range(N_FOLDS)]
        if dense:
            for regression in (full, *trained):
                regression.fill()
        return cls(rows, full, tuple(trained), fold_of_row)


@dataclass
class Choice:
    """What was chosen for each target.

    Attributes
    ----------
    alpha : float64 (K,)
    relaxed : bool (K,)
    held_out : one float64 (R, K) for each part
    """

    alpha: Floats
    relaxed: NDArray[np.bool_]
    held_out: list[Floats]


def largest_alpha(parts: list[Part]) -> Floats:
    """Smallest strength ``(K,)`` at which all coefficients are zero."""
    top = np.max([part.full.steepest() for part in parts], axis=0)
    return np.where(top > 0, top, 1.0)


def choose(parts: list[Part], relax: Literal["auto"] | bool) -> Choice:
    """Choose the strength of each target, and whether it is refitted."""
    top = largest_alpha(parts)
    position = follow_path(parts, top)
    return cross_validate(parts, top, position, np.full(len(top), relax is not False))


def keep(parts: list[Part], alpha: Floats, relaxed: bool) -> Choice:
    """Take given strengths; only the held-out predictions are to be found."""
    _approach(parts, alpha)
    for part in parts:
        for regression in part.trained:
            regression.start_from(part.full)
    which = np.arange(len(alpha))
    held_out = [_held_out(part, alpha, which, False) for part in parts]
    if relaxed:
        held_out = [_held_out(part, alpha, which, True) for part in parts]
    return Choice(alpha, np.full(len(alpha), relaxed), held_out)


def _approach(parts: list[Part], alpha: Floats) -> None:
    """Solve ``part.full`` at ``alpha``, halving from the largest strength."""
    which, now = np.arange(len(alpha)), largest_alpha(parts)
    while (now > alpha).any():
        now = np.maximum(now / 2, alpha)
        for part in parts:
            part.full.solve(now, _LOOSE, which, ahead=0.7)


def follow_path(parts: list[Part], top: Floats) -> Index:
    """Walk down the path and leave each target's best solution in ``part.full``.

    Returns
    -------
    int64 (K,)
        Grid position of the best score.
    """
    best = np.full(len(top), np.inf)
    position = np.zeros(len(top), dtype=np.int64)
    rises = np.zeros(len(top), dtype=np.int64)
    kept = [part.full.coef for part in parts]
    live = np.arange(len(top))
    for step in range(1, N_STRENGTHS):
        for part in parts:
            part.full.solve(top[live] * RATIO**step, _LOOSE, live, ahead=RATIO)
        score = _score(parts, live)
        better = live[score < best[live]]
        position[better] = step
        kept = [
            _keep_better(old, part.full.coef, better)
            for old, part in zip(kept, parts, strict=True)
        ]
        best[live] = np.minimum(best[live], score)
        rises[live] = np.where(score > _GIVE_UP * best[live], rises[live] + 1, 0)
        live = live[(rises[live] < _RISES) & (score > _NOTHING_LEFT)]
        if not len(live):
            break
    for part, coef in zip(parts, kept, strict=True):
        part.full.coef = coef
    return position


def _keep_better(old: Floats, new: Floats, better: Index) -> Floats:
    """Columns ``better`` of ``new``, the others of ``old``, which has fewer rows."""
    out = np.zeros_like(new)
    out[: len(old)] = old
    out[:, better] = new[:, better]
    return out


def _score(parts: list[Part], which: Index) -> Floats:
    """Closed form of the cross-validated mean square ``(n_which,)``, over the parts."""
    total = np.zeros(len(which))
    for part in parts:
        n_rows = len(part.rows.weights)
        share = np.count_nonzero(part.full.coef[:, which], axis=0) / n_rows
        slack = np.maximum((1 - share) * (1 - share * N_FOLDS / (N_FOLDS - 1)), 1e-9)
        slack[share >= 1 - 1 / N_FOLDS] = 1e-9
        total += part.full.mean_square()[which] / slack
    return total


def cross_validate(
    parts: list[Part], top: Floats, position: Index, relax: NDArray[np.bool_]
) -> Choice:
    """Go downhill on the grid in honest error, from ``position (K,)``."""
    n_targets = len(top)
    errors = np.full((2, N_STRENGTHS + 1, n_targets), np.inf)
    best = np.full(n_targets, np.inf)
    choice = Choice(
        np.ones(n_targets),
        np.zeros(n_targets, dtype=bool),
        [np.zeros_like(part.rows.targets) for part in parts],
    )
    for part in parts:
        for regression in part.trained:
            regression.start_from(part.full)
    live, at = np.arange(n_targets), np.maximum(position, 1)
    while len(live):
        for relaxed in (False, True):
            which = live[relax[live]] if relaxed else live
            if not len(which):
                continue
            alpha = top[which] * RATIO ** at[which]
            held_out = [_held_out(part, alpha, which, relaxed) for part in parts]
            error = _mean_square(parts, held_out, which)
            errors[int(relaxed), at[which], which] = error
            won = error < best[which]
            best[which] = np.minimum(best[which], error)
            choice.alpha[which[won]] = alpha[won]
            choice.relaxed[which[won]] = relaxed
            for out, new in zip(choice.held_out, held_out, strict=True):
                out[:, which[won]] = new[:, won]
        at = _next_position(errors, at)
        live = np.flatnonzero(at > 0)
    return choice


def _held_out(part: Part, alpha: Floats, which: Index, relaxed: bool) -> Floats:
    out = np.zeros((len(part.rows.weights), len(which)))
    for fold, regression in enumerate(part.trained):
        if relaxed:
            coef = regression.refit(which)
        else:
            regression.solve(alpha, _LOOSE, which)
            coef = regression.coef[:, which]
        rows = part.fold_of_row == fold
        out[rows] = regression.predict(part.rows.design.take_rows(rows), coef, which)
    return out


def _mean_square(parts: list[Part], held_out: list[Floats], which: Index) -> Floats:
    """Weighted mean square of held-out residuals ``(n_which,)``, over the parts."""
    total = np.zeros(len(which))
    for part, predicted in zip(parts, held_out, strict=True):
        residual = part.rows.targets[:, which] - predicted
        total += part.rows.weights @ residual**2 / part.rows.weights.sum()
    return total


def _next_position(errors: Floats, at: Index) -> Index:
    """Return an unvisited neighbour of each target's best position; 0 where none."""
    nxt = np.zeros_like(at)
    for k in range(len(at)):
        for kind in range(2):
            if not np.isfinite(errors[kind, :, k]).any():
                continue
            centre = int(np.argmin(errors[kind, :, k]))
            for neighbour in (centre - 1, centre + 1):
                if 1 <= neighbour < N_STRENGTHS and np.isinf(errors[0, neighbour, k]):
                    nxt[k] = neighbour
    return nxt
