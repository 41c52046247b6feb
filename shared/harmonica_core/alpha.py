"""The choice of the L1 strength: a path, then honest cross-validation near its best.

1. A path from the smallest strength that gives zero downwards, on all rows, warm
   started. Each point is scored by a closed form of 5-fold cross-validation,

       mean square residual / ((1 - d) (1 - d / 0.8)),   d = active terms / rows,

   which is what leaving out a fifth of the rows costs a least-squares fit on that
   many terms. The path of a target ends when its score has turned upwards.
2. Real 5-fold cross-validation, downhill on the same grid from the best score. Each
   fold screens its own terms, and complementary masks share a fold, so held-out
   predictions have never seen their own values. The refit without penalty
   (``relaxed``) competes on the same folds where its own score gives it a chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harmonica_core._types import Floats
from harmonica_core.correlations import Index, ParityDesign
from harmonica_core.regression import Moments, Regression, Rows

N_FOLDS = 5
RATIO = 2**-0.5
N_STRENGTHS = 36  # down to 5e-6 of the largest

_LOOSE = 1e-2
_IMPROVED, _RISE, _PATIENCE = 0.999, 1.05, 3
_NOTHING_LEFT = 1e-13
_NEARLY_EXACT = 1e-6
_SEARCH = 0.5
_FEW = 0.2


@dataclass(frozen=True)
class Part:
    """A regression on all rows, and on the rows outside each fold.

    Attributes
    ----------
    rows : Rows
    folds : the row numbers of each fold
    held_out : the design on each fold's rows
    full : Regression on all rows
    trained : Regression on the rows outside each fold
    """

    rows: Rows
    folds: tuple[Index, ...]
    held_out: tuple[ParityDesign, ...]
    full: Regression
    trained: tuple[Regression, ...]

    @classmethod
    def of(cls, rows: Rows, dense: bool) -> Part:
        """Build the regressions; ``dense`` puts all terms into the working sets."""
        number = np.arange(len(rows.weights))
        folds = tuple(number[fold::N_FOLDS] for fold in range(N_FOLDS))
        taken = [rows.take(fold) for fold in folds]
        if dense:
            moments = [Moments.of(fold.design.columns(), fold) for fold in taken]
            every = moments[0]
            for one in moments[1:]:
                every = every.plus(one)
            full = Regression(every, rows.center, None)
            trained = [
                Regression(every.plus(one, -1), rows.center, None) for one in moments
            ]
        else:
            full = Regression.growing(rows)
            trained = [
                Regression.growing(rows.take(np.setdiff1d(number, fold)))
                for fold in folds
            ]
        held_out = tuple(fold.design for fold in taken)
        return cls(rows, folds, held_out, full, tuple(trained))

    def predict_held_out(self, which: Index, relaxed: bool) -> Floats:
        """Predictions ``(R, n_which)`` of every row by the fit that left it out."""
        out = np.zeros((len(self.rows.weights), len(which)))
        for fold, design, fit in zip(
            self.folds, self.held_out, self.trained, strict=True
        ):
            coef = fit.refit(which) if relaxed else fit.coef[:, which]
            out[fold] = fit.predict(design, coef, which)
        return out

    def mean_square(self, predicted: Floats, which: Index) -> Floats:
        """Weighted mean square ``(n_which,)`` of the residuals."""
        residual = self.rows.targets[:, which] - predicted
        weights = self.rows.weights / self.rows.weights.sum()
        return np.asarray(np.einsum("t,tk,tk->k", weights, residual, residual))


@dataclass
class Choice:
    """What was chosen for each target.

    Attributes
    ----------
    alpha : float64 (K,)
    relaxed : bool (K,)
    error : float64 (K,)
        Cross-validated mean square.
    held_out : one float64 (R, K) for each part
    """

    alpha: Floats
    relaxed: NDArray[np.bool_]
    error: Floats
    held_out: list[Floats]

    @classmethod
    def none(cls, parts: list[Part]) -> Choice:
        """Nothing chosen yet: every candidate is better."""
        n_targets = parts[0].rows.targets.shape[1]
        return cls(
            np.zeros(n_targets),
            np.zeros(n_targets, dtype=bool),
            np.full(n_targets, np.inf),
            [np.zeros_like(part.rows.targets) for part in parts],
        )

    def consider(
        self, parts: list[Part], alpha: Floats, which: Index, relaxed: bool
    ) -> Floats:
        """Cross-validate the current fits of ``which``; keep those that are better."""
        predicted = [part.predict_held_out(which, relaxed) for part in parts]
        error = np.zeros(len(which))
        for part, one in zip(parts, predicted, strict=True):
            error += part.mean_square(one, which)
        won = error < self.error[which]
        self.alpha[which[won]] = alpha[won]
        self.relaxed[which[won]] = relaxed
        self.error[which[won]] = error[won]
        for out, new in zip(self.held_out, predicted, strict=True):
            out[:, which[won]] = new[:, won]
        return error


def choose(parts: list[Part], relax: Literal["auto"] | bool) -> Choice:
    """Choose the strength of each target, and whether it is refitted."""
    top = largest_alpha(parts)
    path = follow_path(parts, top, relax)
    return cross_validate(parts, top, path, relax)


def keep(parts: list[Part], alpha: Floats, relaxed: bool) -> Choice:
    """Take given strengths; only the held-out predictions are to be found."""
    which, now = np.arange(len(alpha)), largest_alpha(parts)
    while (now > alpha).any():
        now = np.maximum(now / 2, alpha)
        for part in parts:
            part.full.solve(now, _LOOSE, which, ahead=0.7)
    _start_folds(parts)
    _solve_folds(parts, alpha, which)
    choice = Choice.none(parts)
    choice.consider(parts, alpha, which, relaxed)
    return choice


def largest_alpha(parts: list[Part]) -> Floats:
    """Smallest strength ``(K,)`` at which all coefficients are zero."""
    top = np.max([part.full.steepest() for part in parts], axis=0)
    return np.where(top > 0, top, 1.0)


@dataclass
class Path:
    """The best score so far of each target, and its position on the grid.

    ``stale`` counts the steps since the score last improved; a clear rise counts
    twice.
    """

    score: Floats
    position: Index
    stale: Index

    @classmethod
    def start(cls, n_targets: int) -> Path:
        """Nothing scored yet."""
        ones = np.ones(n_targets, dtype=np.int64)
        return cls(np.full(n_targets, np.inf), ones, 0 * ones)

    def record(self, step: Index, score: Floats, which: Index) -> Index:
        """Return those of the targets for which their step is the best."""
        before = self.score[which]
        better = score < before
        self.position[which[better]] = step[better]
        self.score[which] = np.minimum(before, score)
        count = self.stale[which] + 1 + (score > _RISE * before)
        self.stale[which] = np.where(score < _IMPROVED * before, 0, count)
        return which[better]

    def going(self, which: Index) -> Index:
        """Return the targets whose scores may still improve."""
        more = (self.stale[which] < _PATIENCE) & (self.score[which] > _NOTHING_LEFT)
        return which[more]


def follow_path(
    parts: list[Part], top: Floats, relax: Literal["auto"] | bool
) -> tuple[Path, Path]:
    """Walk down the path and leave each target's best solution in ``part.full``.

    Returns
    -------
    lasso, refitted : Path
        Scores of the LASSO, and of least squares on its support.
    """
    lasso, refitted = Path.start(len(top)), Path.start(len(top))
    kept = [_Kept(part.full) for part in parts]
    live = every = np.arange(len(top))
    both = every[:0] if relax is False else every
    for step in range(1, N_STRENGTHS):
        for part in parts:
            part.full.solve(top[live] * RATIO**step, _LOOSE, live, ahead=RATIO)
        now = np.full(len(live), step)
        better = lasso.record(now, _score(parts, live), live)
        for one in kept:
            one.store(better)
        if relax == "auto":
            both = both[_are_few(parts, both)]
        if step % 2:
            refitted.record(now[: len(both)], _refitted_score(parts, both), both)
        live = lasso.going(live[refitted.score[live] > _NOTHING_LEFT])
        both = np.intersect1d(refitted.going(both), live)
        if not len(live):
            break
    for one in kept:
        one.restore()
    if relax is not False:
        # Where next to nothing is left, the LASSO may have found all terms there are.
        found = every[lasso.score < _NEARLY_EXACT]
        refitted.record(lasso.position[found], _refitted_score(parts, found), found)
    return lasso, refitted


def _are_few(parts: list[Part], which: Index) -> NDArray[np.bool_]:
    """Whether the active terms are few enough for a refit to be of use."""
    few = np.ones(len(which), dtype=bool)
    for part in parts:
        n_active = np.count_nonzero(part.full.coef[:, which], axis=0)
        few &= n_active <= _FEW * len(part.rows.weights)
    return few


class _Kept:
    """The best solutions of a regression so far; its working set may change."""

    def __init__(self, regression: Regression) -> None:
        self.regression = regression
        self.index, self.coef = regression.solution()
        self.coef = self.coef.copy()

    def store(self, which: Index) -> None:
        index, coef = self.regression.solution()
        if self.regression.rows is None:
            self.coef[:, which] = coef[:, which]
        elif len(which):
            self.index, self.coef = index, coef.copy()

    def restore(self) -> None:
        self.regression.restart(self.index, self.coef)


def _score(parts: list[Part], which: Index) -> Floats:
    """Closed form of the cross-validated mean square ``(n_which,)``, over the parts."""
    total = np.zeros(len(which))
    for part in parts:
        n_active = np.count_nonzero(part.full.coef[:, which], axis=0)
        square = part.full.mean_square(which)
        total += square / _slack(n_active / len(part.rows.weights))
    return total


def _slack(share: Floats) -> Floats:
    """``(1 - d) (1 - d / 0.8)``, next to nothing from ``d = 0.8`` on."""
    left = (1 - share) * (1 - share * N_FOLDS / (N_FOLDS - 1))
    return np.where(share * N_FOLDS < N_FOLDS - 1, np.maximum(left, 1e-9), 1e-9)


def _refitted_score(parts: list[Part], which: Index) -> Floats:
    """The same after a refit, which pays for the choice of its k terms out of p.

    It counts as ``k (1 + log(p / k) / 2)`` parameters.
    """
    total = np.zeros(len(which))
    for part in parts:
        n_rows, n_terms = part.rows.design.shape
        n_active = np.count_nonzero(part.full.coef[:, which], axis=0)
        choices = np.log(max(n_terms, 1) / np.maximum(n_active, 1))
        square = part.full.refitted_mean_square(which)
        total += square / _slack(n_active * (1 + _SEARCH * choices) / n_rows)
    return total


def cross_validate(
    parts: list[Part],
    top: Floats,
    path: tuple[Path, Path],
    relax: Literal["auto"] | bool,
) -> Choice:
    """Go downhill on the grid in honest error, from the best scores of the path."""
    choice = Choice.none(parts)
    every = np.arange(len(top))
    promising = every[path[1].score < path[0].score]
    if relax is not True:
        _start_folds(parts)
        _downhill(parts, top, path[0].position, every, choice, relaxed=False)
    if relax is not False:
        _start_folds(parts)
        which = every if relax is True else promising
        _downhill(parts, top, path[1].position, which, choice, relaxed=True)
    return choice


def _downhill(
    parts: list[Part],
    top: Floats,
    start: Index,
    which: Index,
    choice: Choice,
    relaxed: bool,
) -> None:
    """Visit the start and neighbours of the best position until none are left."""
    errors = np.full((N_STRENGTHS + 1, len(top)), np.inf)
    at = start
    while len(which):
        alpha = top * RATIO**at
        _solve_folds(parts, alpha[which], which)
        error = choice.consider(parts, alpha[which], which, relaxed)
        errors[at[which], which] = error
        at = _next_position(errors)
        which = which[at[which] > 0]


def _start_folds(parts: list[Part]) -> None:
    """Start from the solution on all rows, which is near; it does not matter where."""
    for part in parts:
        for regression in part.trained:
            regression.restart(*part.full.solution())


def _solve_folds(parts: list[Part], alpha: Floats, which: Index) -> None:
    for part in parts:
        for regression in part.trained:
            regression.solve(alpha, _LOOSE, which)


def _next_position(errors: Floats) -> Index:
    """Return an unvisited neighbour of each target's best position; 0 where none."""
    every = np.arange(errors.shape[1])
    best = np.argmin(errors, axis=0)
    out = np.zeros(len(every), dtype=np.int64)
    for neighbour in (best + 1, best - 1):
        inside = (neighbour >= 1) & (neighbour < N_STRENGTHS)
        new = inside & np.isinf(errors[neighbour, every])
        out[new] = neighbour[new]
    return out
