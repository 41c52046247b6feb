"""A regression on all rows and on the rows outside each of five folds.

Complementary masks are one row (of the even and of the odd regression), so they share
a fold, and a held-out prediction has seen neither value of its pair.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from harmonica_core._types import Floats
from harmonica_core.engine.lasso.correlations import Index
from harmonica_core.engine.lasso.regression import Moments, Regression, Rows

N_FOLDS = 5


class Part:
    """The even, the odd, or the only regression of a fit.

    Attributes
    ----------
    rows : Rows
    folds : the row numbers of each fold
    full : Regression on all rows
    trained : Regression on the rows outside each fold, built when first needed
    """

    def __init__(self, rows: Rows, dense: bool) -> None:
        """``dense`` puts all terms of C into the working sets."""
        number = np.arange(len(rows.weights))
        self.rows = rows
        self.folds = [number[fold::N_FOLDS] for fold in range(N_FOLDS)]
        self._every = Moments.of(rows.design.columns(), rows) if dense else None
        self.full = (
            Regression.growing(rows)
            if self._every is None
            else Regression(self._every, rows, dense=True)
        )

    @cached_property
    def _taken(self) -> list[Rows]:
        """Rows of each fold."""
        return [self.rows.take(fold) for fold in self.folds]

    @cached_property
    def trained(self) -> list[Regression]:
        """One regression for each fold, on the other rows."""
        if self._every is not None:
            gone = [Moments.of(one.design.columns(), one) for one in self._taken]
            rest = [self._every.minus(one) for one in gone]
            return [Regression(one, self.rows, dense=True) for one in rest]
        number = np.arange(len(self.rows.weights))
        rest_rows = [np.setdiff1d(number, fold) for fold in self.folds]
        return [Regression.growing(self.rows.take(rest)) for rest in rest_rows]

    def start_folds(self, top: Floats, alpha: Floats) -> None:
        """Bring each fold's own fit from zero at ``top`` down to ``alpha (K,)``.

        The fit on all rows would be a nearer start, but it has seen the held-out
        values, and where columns are correlated a loose solution remembers its start.
        """
        every = np.arange(len(alpha))
        for regression in self.trained:
            regression.approach(top, alpha, every)

    def solve_folds(self, alpha: Floats, tol: float, which: Index) -> None:
        """Solve targets ``which`` outside each fold, over all terms of C."""
        for regression in self.trained:
            regression.solve(alpha, tol, which)

    def predict_held_out(self, which: Index, relaxed: bool) -> Floats:
        """Predictions ``(R, n_which)`` of every row by the fit that left it out."""
        out = np.zeros((len(self.rows.weights), len(which)))
        for fold, rows, fit in zip(self.folds, self._taken, self.trained, strict=True):
            coef = fit.refit(which) if relaxed else fit.coef[which]
            out[fold] = fit.predict(rows.design, coef, which)
        return out

    def mean_square(self, predicted: Floats, which: Index) -> Floats:
        """Weighted mean square ``(n_which,)`` of the residuals."""
        residual = self.rows.targets[:, which] - predicted
        weights = self.rows.weights / self.rows.weights.sum()
        return np.asarray(np.einsum("t,tk,tk->k", weights, residual, residual))
