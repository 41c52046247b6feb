"""The choice of the L1 strength of each target, and of a refit without penalty.

A path on all rows is scored in closed form (`strengths`). Where the form is known to
hold - uniform masks, at least a quarter more rows than terms - its best
position is the choice. Elsewhere real 5-fold cross-validation goes downhill on the same
grid from there: each fold screens its own terms, so that held-out predictions have
never seen their own values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harmonica_core._types import Floats
from harmonica_core.engine.lasso.correlations import Index
from harmonica_core.engine.lasso.held_out import N_FOLDS, Part
from harmonica_core.engine.lasso.strengths import (
    DECIDES,
    N_STRENGTHS,
    RATIO,
    SUGGESTS,
    Path,
    follow_path,
    largest_alpha,
    searched,
    slack,
)

__all__ = [
    "Choice",
    "choose",
    "closed_form_holds",
    "enough_rows",
    "for_all_rows",
    "keep",
    "leave_out",
]

_MANY_ROWS, _ROWS_PER_TERM = 100, 1.25
# A smaller strength has to earn a thousandth for each step down the grid.
_PARSIMONY = 1.001
# A constant explains nothing: it is the choice only where it is clearly better.
_CONSTANT = 1.02
_CLOSE = 1e-2  # of alpha, in the folds


@dataclass
class Choice:
    """What was chosen for each target.

    Attributes
    ----------
    alpha : float64 (K,)
    relaxed : bool (K,)
    error : float64 (K,)
        Cross-validated mean square, times the handicap.
    held_out : one float64 (R, K) for each part
        Empty where the closed form holds: `leave_out` gives them from the final fit.
    """

    alpha: Floats
    relaxed: NDArray[np.bool_]
    error: Floats = field(default_factory=lambda: np.zeros(0))
    held_out: list[Floats] = field(default_factory=list)

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
        self,
        parts: list[Part],
        alpha: Floats,
        which: Index,
        relaxed: bool,
        handicap: Floats | float = 1.0,
    ) -> Floats:
        """Cross-validate the current fits of ``which``; keep those that are better.

        Returns the mean squares ``(n_which,)`` times the handicap.
        """
        predicted = [part.predict_held_out(which, relaxed) for part in parts]
        error = np.zeros(len(which))
        for part, one in zip(parts, predicted, strict=True):
            error += part.mean_square(one, which)
        error *= handicap
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
    if closed_form_holds(parts):
        return _by_score(top, follow_path(parts, top, relax, DECIDES), relax)
    path = follow_path(parts, top, relax, SUGGESTS)
    return _cross_validate(parts, top, path, relax)


def for_all_rows(choice: Choice) -> Floats:
    """Strengths ``(K,)`` for all rows of those that are best for four fifths of them.

    What noise adds to a term's correlation falls as one over the root of the rows, and
    so does the strength that hides it. A refit keeps the support that was chosen.
    """
    return np.where(choice.relaxed, 1.0, np.sqrt(1 - 1 / N_FOLDS)) * choice.alpha


def keep(parts: list[Part], alpha: Floats, relaxed: bool) -> Choice:
    """Take given strengths; only the held-out predictions are to be found."""
    which, top = np.arange(len(alpha)), largest_alpha(parts)
    for part in parts:
        part.full.approach(top, alpha, which)
    if closed_form_holds(parts):
        return Choice(alpha, np.full(len(alpha), relaxed))
    choice = Choice.none(parts)
    for part in parts:
        part.start_folds(top, alpha)
        part.solve_folds(alpha, _CLOSE, which)
    choice.consider(parts, alpha, which, relaxed)
    return choice


def closed_form_holds(parts: list[Part]) -> bool:
    """Whether leverages are even: uniform masks, and many more rows than terms."""
    return all(
        part.rows.uniform
        and part.full.rows is None
        and enough_rows(*part.rows.design.shape)
        for part in parts
    )


def enough_rows(n_rows: int, n_terms: int) -> bool:
    """Whether the closed form holds for uniform masks."""
    return n_rows >= max(_MANY_ROWS, _ROWS_PER_TERM * n_terms)


def _by_score(
    top: Floats, path: tuple[Path, Path], relax: Literal["auto"] | bool
) -> Choice:
    """Take the best score of the path."""
    lasso, refitted = path
    position, score = lasso.between()
    relaxed = refitted.score < score
    if relax != "auto":
        relaxed = np.full(len(top), relax)
    position = np.where(relaxed, refitted.position, position)
    return Choice(top * RATIO**position, relaxed)


def leave_out(part: Part, relaxed: NDArray[np.bool_]) -> Floats:
    """Held-out predictions ``(R, K)`` in closed form, from the fit on all rows.

    Leaving a row out raises its residual by ``1 / sqrt((1 - d) (1 - d / 0.8))``.
    """
    n_rows, n_terms = part.rows.design.shape
    coef = part.full.coef
    n_active = np.count_nonzero(coef, axis=1)
    count = np.where(relaxed, searched(n_active, n_terms, DECIDES.search), n_active)
    every = np.arange(len(coef))
    residual = part.rows.targets - part.full.predict(part.rows.design, coef, every)
    return part.rows.targets - residual / np.sqrt(slack(count / n_rows))


def _cross_validate(
    parts: list[Part],
    top: Floats,
    path: tuple[Path, Path],
    relax: Literal["auto"] | bool,
) -> Choice:
    """Go downhill on the grid in honest error, from the best scores of the path."""
    lasso, refitted = path
    deepest = lasso.deepest + 1
    choice = Choice.none(parts)
    every = np.arange(len(top))
    choice.consider(parts, top, every, relaxed=False, handicap=_CONSTANT)
    for part in parts:
        part.start_folds(top, top * RATIO**lasso.position)
    if relax is not True:
        _downhill(parts, top, lasso.position, deepest, every, choice, relaxed=False)
    if relax is not False:
        which = every if relax is True else every[refitted.score < lasso.score]
        _downhill(parts, top, refitted.position, deepest, which, choice, relaxed=True)
    return choice


def _downhill(
    parts: list[Part],
    top: Floats,
    start: Index,
    deepest: Index,
    which: Index,
    choice: Choice,
    relaxed: bool,
) -> None:
    """Visit the start and neighbours of the best position until none are left."""
    errors = np.full((N_STRENGTHS + 2, len(top)), np.inf)
    at = start
    while len(which):
        alpha = top * RATIO**at
        for part in parts:
            part.solve_folds(alpha[which], _CLOSE, which)
        handicap = np.power(_PARSIMONY, at[which], dtype=np.float64)
        errors[at[which], which] = choice.consider(
            parts, alpha[which], which, relaxed, handicap
        )
        at = _next_position(errors, deepest)
        which = which[at[which] > 0]


def _next_position(errors: Floats, deepest: Index) -> Index:
    """Return an unvisited neighbour of each target's best position; 0 where none."""
    every = np.arange(errors.shape[1])
    best = np.argmin(errors, axis=0)
    out = np.zeros(len(every), dtype=np.int64)
    for neighbour in (best + 1, best - 1):
        inside = (neighbour >= 1) & (neighbour <= deepest)
        new = inside & np.isinf(errors[neighbour, every])
        out[new] = neighbour[new]
    return out
