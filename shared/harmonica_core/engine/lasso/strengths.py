"""The path of strengths, and a closed form of the cross-validated error on it.

For least squares of R rows on k terms chosen beforehand, leaving out a fifth of the
rows costs, on uniform masks, where all rows have nearly the same leverage,

    mean square residual / ((1 - d) (1 - d / 0.8)),   d = k / R.

The LASSO's degrees of freedom are its number of active terms, so the same holds for
it. A refit without penalty pays for its search among p terms, too: it counts as
``k (1 + search log(p / k))``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harmonica_core._types import Floats
from harmonica_core.engine.lasso.correlations import Index
from harmonica_core.engine.lasso.held_out import N_FOLDS, Part
from harmonica_core.engine.lasso.regression import Regression

RATIO = 2**-0.5
N_STRENGTHS = 36  # down to 5e-6 of the largest
_FAR = 26  # 1e-4 of the largest: only sparse functions gain by less than that

_STRIDE = 2
_FINE = 0.5
_IMPROVED, _PATIENCE = 0.999, 2
_NOTHING_LEFT, _NEARLY_EXACT = 1e-13, 1e-6
_FEW = 0.1
_LARGEST_SHARE = (N_FOLDS - 1) / N_FOLDS


@dataclass(frozen=True)
class Pace:
    """How far a path is followed, and how closely.

    Attributes
    ----------
    loose : float
        Tolerance of its solutions, relative to alpha; scores hardly notice.
    rise : float
        A score that is so many times the best counts as two without improvement.
    search : float
        Price of a refit's choice of terms, see `searched`.
    """

    loose: float
    rise: float
    search: float


# Where the score decides, and where it only tells the folds, which have the last word,
# where to start: with few rows a score may rise and fall again.
DECIDES = Pace(loose=0.2, rise=1.005, search=1.0)
SUGGESTS = Pace(loose=0.1, rise=1.2, search=0.5)


@dataclass
class Path:
    """The best score so far of each target, and its position on the grid.

    ``stale`` counts the steps since the score last improved, a clear rise twice.
    ``deepest`` is the lowest position visited before the active terms were about as
    many as rows; below it the LASSO interpolates, and nothing is unique. ``last`` is
    the latest score, ``before`` and ``after`` those on either side of the best.
    """

    score: Floats
    position: Index
    stale: Index
    deepest: Index
    last: Floats
    before: Floats
    after: Floats

    @classmethod
    def start(cls, nothing: Floats) -> Path:
        """Only ``nothing (K,)`` is known, the score of a constant."""
        ones = np.ones(len(nothing), dtype=np.int64)
        best = np.full(len(nothing), np.inf)
        return cls(
            best, ones, 0 * ones, ones.copy(), nothing.copy(), nothing.copy(), -best
        )

    def record(
        self, step: Index | int, score: Floats, which: Index, rise: float
    ) -> Index:
        """Return those of the targets ``which`` whose step is their best."""
        step = np.broadcast_to(step, which.shape)
        before = self.score[which]
        better = score < before
        self.before[which[better]] = self.last[which[better]]
        self.after[which[better]] = -np.inf  # not visited: it may be better yet
        next_one = ~better & (self.after[which] == -np.inf)
        self.after[which[next_one]] = score[next_one]
        self.last[which] = score
        self.position[which[better]] = step[better]
        self.score[which] = np.minimum(before, score)
        sound = np.isfinite(score)
        self.deepest[which[sound]] = np.maximum(self.deepest[which], step)[sound]
        count = self.stale[which] + 1 + (score > rise * before)
        self.stale[which] = np.where(score < _IMPROVED * before, 0, count)
        return which[better]

    def between(self) -> tuple[Floats, Floats]:
        """Position and score ``(K,)`` where a parabola through three visits is least.

        The best itself where the path did not go beyond it.
        """
        left, right = self.before - self.score, self.after - self.score
        sound = np.isfinite(left) & np.isfinite(right) & (left + right > 0)
        left, right = np.where(sound, (left, right), 1.0)
        shift = _STRIDE * (left - right) / (left + right) / 2
        least = self.score - shift * (left - right) / (4 * _STRIDE)
        # Scores are loose: equal functions should not differ by their last digits.
        return self.position + np.round(shift / _FINE) * _FINE, least

    def going(self, which: Index) -> Index:
        """Return the targets whose scores may still improve."""
        more = (self.stale[which] < _PATIENCE) & (self.score[which] > _NOTHING_LEFT)
        return which[more]


def largest_alpha(parts: list[Part]) -> Floats:
    """Smallest strength ``(K,)`` at which all coefficients are zero."""
    top = np.max([part.full.steepest() for part in parts], axis=0)
    return np.where(top > 0, top, 1.0)


def follow_path(
    parts: list[Part],
    top: Floats,
    relax: Literal["auto"] | bool,
    pace: Pace,
) -> tuple[Path, Path]:
    """Walk down the path and leave each target's best solution in ``part.full``.

    Returns
    -------
    lasso, refitted : Path
        Scores of the LASSO, and of least squares on its support.
    """
    live = every = np.arange(len(top))
    nothing = score(parts, every)
    lasso, refitted = Path.start(nothing), Path.start(nothing)
    kept = [_Kept(part.full) for part in parts]
    both = every[:0] if relax is False else every
    for step in range(_STRIDE, N_STRENGTHS, _STRIDE):
        for part in parts:
            alpha = top[live] * RATIO**step
            part.full.solve(alpha, pace.loose, live, ahead=RATIO, rough=True)
        better = lasso.record(step, score(parts, live), live, pace.rise)
        for one in kept:
            one.store(better)
        if relax == "auto":
            both = both[_are_few(parts, both)]
        again = refitted_score(parts, both, pace.search)
        refitted.record(step, again, both, pace.rise)
        live = lasso.going(live[refitted.score[live] > _NOTHING_LEFT])
        if step >= _FAR:
            live = live[_are_few(parts, live)]
        both = np.intersect1d(refitted.going(both), live)
        if not len(live):
            break
    for one in kept:
        one.restore()
    if relax is not False:
        # Where next to nothing is left, the LASSO may have found all terms there are.
        found = every[lasso.score < _NEARLY_EXACT]
        again = refitted_score(parts, found, pace.search)
        refitted.record(lasso.position[found], again, found, pace.rise)
    return lasso, refitted


def _are_few(parts: list[Part], which: Index) -> NDArray[np.bool_]:
    """Whether the active terms are few enough for a refit to be of use."""
    few = np.ones(len(which), dtype=bool)
    for part in parts:
        n_active = part.full.n_active(which)
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
            self.coef[which] = coef[which]
        elif len(which):
            self.index, self.coef = index, coef.copy()

    def restore(self) -> None:
        self.regression.restart(self.index, self.coef)


def score(parts: list[Part], which: Index) -> Floats:
    """Closed form of the cross-validated mean square ``(n_which,)``, over the parts."""
    total = np.zeros(len(which))
    for part in parts:
        n_active = part.full.n_active(which)
        square = part.full.mean_square(which)
        total += _charged(square, n_active / len(part.rows.weights))
    return total


def slack(share: Floats) -> Floats:
    """``(1 - d) (1 - d / 0.8)``, next to nothing from ``d = 0.8`` on."""
    left = (1 - share) * (1 - np.minimum(share / _LARGEST_SHARE, 1))
    return np.asarray(np.maximum(left, 1e-9))


def _charged(square: Floats, share: Floats) -> Floats:
    """Mean square in a fold's place; infinite where the rest could not carry it."""
    return np.where(share < _LARGEST_SHARE, square / slack(share), np.inf)


def refitted_score(parts: list[Part], which: Index, search: float) -> Floats:
    """The same after a refit, which pays for the choice of its k terms out of p."""
    total = np.zeros(len(which))
    for part in parts:
        n_rows, n_terms = part.rows.design.shape
        n_active = part.full.n_active(which)
        square = part.full.refitted_mean_square(which)
        share = searched(n_active, n_terms, search) / n_rows
        total += _charged(square, share)
    return total


def searched(n_active: NDArray[np.int64], n_terms: int, search: float) -> Floats:
    """Parameters ``k (1 + search log(p / k))`` that k terms out of p count as."""
    some = np.maximum(n_active, 1)
    return np.asarray(n_active * (1 + search * np.log(max(n_terms, 1) / some)))
