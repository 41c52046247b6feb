"""One LASSO regression on parities: rows, targets and the working set of terms.

With weights ``w`` (sum = number of rows R) and an unpenalised intercept the columns
and targets are centred by their weighted means, and

    G = (1/R) sum_t w_t x_t x_t^T,    c = (1/R) sum_t w_t x_t y_t.

Terms enter a working set; its Gram matrix is all that the solver sees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonica_core import gram as kernels
from harmonica_core._types import Floats
from harmonica_core.correlations import Index, ParityDesign, Signs

# Terms that may enter the working set in one round, beside as many as are in it.
_ENTER = 200


@dataclass(frozen=True)
class Rows:
    """Data of one regression.

    Attributes
    ----------
    design : ParityDesign of shape (R, p)
    targets : float64 (R, K)
    weights : float64 (R,)
    center : bool
        Whether there is an intercept.
    """

    design: ParityDesign
    targets: Floats
    weights: Floats
    center: bool

    def take(self, keep: NDArray[np.bool_]) -> Rows:
        """Return some of the rows."""
        return Rows(
            self.design.take_rows(keep),
            self.targets[keep],
            self.weights[keep],
            self.center,
        )

    def of_targets(self, which: slice) -> Rows:
        """Return some of the targets."""
        return replace(self, targets=self.targets[:, which])


class Regression:
    """LASSO of ``rows.targets`` on the terms of ``rows.design``.

    Attributes
    ----------
    index : int64 (w,)
        The working set.
    gram : float64 (w, w)
    corr : float64 (w, K)
    coef : float64 (w, K)
        The latest solution, the next one's start.
    mean : float64 (K,)
        Weighted mean of the targets (zero without an intercept).
    power : float64 (K,)
        ``(1/R) sum w (y - mean)^2``.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.total = float(rows.weights.sum())
        n_targets = rows.targets.shape[1]
        self.mean = np.zeros(n_targets)
        if rows.center:
            self.mean = rows.weights @ rows.targets / self.total
        self.centred = rows.targets - self.mean
        self.power = rows.weights @ self.centred**2 / self.total
        # Sums of signs are exact in float32 (below 2^24 rows); weighted ones are not.
        plain = bool((rows.weights == 1).all())
        self.row_weights = np.float32(1) if plain else rows.weights
        self.index: Index = np.zeros(0, dtype=np.int64)
        self.columns: Signs = np.zeros((0, len(rows.weights)), dtype=np.float32)
        self.column_means = np.zeros(0)
        self.gram = np.zeros((0, 0))
        self.corr = np.zeros((0, n_targets))
        self.coef = np.zeros((0, n_targets))

    @property
    def complete(self) -> bool:
        """Whether every term of C is in the working set."""
        return len(self.index) == self.rows.design.shape[1]

    def add(self, index: Index) -> None:
        """Let terms enter the working set, with coefficient zero."""
        if not len(index):
            return
        new = self.rows.design.columns(index)
        weighted = new * self.row_weights
        means = np.zeros(len(index))
        if self.rows.center:
            means = weighted.sum(axis=1, dtype=np.float64) / self.total
        cross = _products(weighted, self.columns) / self.total
        cross -= np.outer(means, self.column_means)
        block = _products(weighted, new) / self.total - np.outer(means, means)
        self.gram = np.block([[self.gram, cross.T], [cross, block]])
        corr = (new.astype(np.float64) * self.rows.weights) @ self.centred / self.total
        self.corr = np.concatenate([self.corr, corr])
        self.coef = np.concatenate([self.coef, np.zeros_like(corr)])
        self.index = np.concatenate([self.index, index])
        self.columns = np.concatenate([self.columns, new])
        self.column_means = np.concatenate([self.column_means, means])

    def fill(self) -> Regression:
        """Put every term of C into the working set."""
        self.add(np.arange(self.rows.design.shape[1]))
        return self

    def start_from(self, other: Regression) -> None:
        """Take another regression's solution as the start of the next one."""
        active = np.flatnonzero(other.coef.any(axis=1))
        if self.complete:
            self.coef = other.coef.copy()
            return
        self.add(np.setdiff1d(other.index[active], self.index))
        order = np.argsort(self.index)
        rows = order[np.searchsorted(self.index, other.index[active], sorter=order)]
        self.coef[:] = 0.0
        self.coef[rows] = other.coef[active]

    def slopes(self) -> Floats:
        """``X^T r / R`` of the working set: ``(w, K)``."""
        return self.corr - self.gram @ self.coef

    def mean_square(self) -> Floats:
        """Mean square of the residuals ``(K,)``."""
        explained = np.einsum("ij,ij->j", self.coef, self.corr + self.slopes())
        return np.asarray(np.maximum(self.power - explained, 0.0))

    def all_slopes(self) -> Floats:
        """``X^T r / R`` over all of C for a single target: ``(p,)``."""
        residual = self.centred[:, 0] - self.fitted(self.coef)[:, 0]
        return self.rows.design.correlations(residual * self.rows.weights) / self.total

    def steepest(self) -> Floats:
        """``max_S |x_S^T r| / R`` over all of C: ``(K,)``."""
        if self.complete:
            return np.asarray(np.abs(self.slopes()).max(axis=0, initial=0.0))
        return np.asarray(np.abs(self.all_slopes()).max(keepdims=True, initial=0.0))

    def fitted(self, coef: Floats) -> Floats:
        """Centred predictions ``(R, K)`` of the own rows."""
        active = np.flatnonzero(coef.any(axis=1))
        columns = self.columns[active].astype(np.float64)
        fit: Floats = columns.T @ coef[active]
        return fit - self.column_means[active] @ coef[active]

    def predict(self, other: ParityDesign, coef: Floats, which: Index) -> Floats:
        """Predictions ``(rows, n_which)`` on other rows."""
        active = np.flatnonzero(coef.any(axis=1))
        columns = other.columns(self.index[active]).astype(np.float64)
        shift = self.mean[which] - self.column_means[active] @ coef[active]
        fit: Floats = columns.T @ coef[active]
        return fit + shift

    def solve(
        self, alpha: Floats, tol: float, which: Index, ahead: float = 1.0
    ) -> None:
        """Solve targets ``which`` at ``alpha (n_which,)``, over all terms of C.

        ``tol`` is relative to alpha; zero asks for the exact solution. Terms whose
        correlation exceeds ``alpha * (1 + tol)`` enter until there are none; with
        them those above ``ahead * alpha``, which the next, smaller strength will need.
        """
        self._solve_working_set(alpha, tol, which)
        while not self.complete:
            slopes = np.abs(self.all_slopes())
            slopes[self.index] = 0.0
            largest = slopes.max()
            self._enter(slopes, ahead * float(alpha[0]))
            if largest <= float(alpha[0]) * (1 + max(tol, 1e-6)):
                break
            self._solve_working_set(alpha, tol, which)

    def _enter(self, slopes: Floats, level: float) -> None:
        """Add the terms of the largest slopes above the level."""
        wanted = np.flatnonzero(slopes > level)
        room = _ENTER + len(self.index)
        if len(wanted) > room:
            best = np.argpartition(-slopes[wanted], room)[:room]
            wanted = np.sort(wanted[best])
        self.add(wanted)

    def _solve_working_set(self, alpha: Floats, tol: float, which: Index) -> None:
        corr, start = self.corr[:, which], self.coef[:, which]
        if tol > 0:
            coef = kernels.descend(self.gram, corr, alpha, start, tol)
        else:
            coef = kernels.solve(self.gram, corr, alpha, start)
        self.coef[:, which] = coef

    def refit(self, which: Index) -> Floats:
        """Least squares on the supports of targets ``which``: ``(w, n_which)``."""
        corr = self.corr[:, which]
        return kernels.least_squares(self.gram, corr, self.coef[:, which])


def _products(left: NDArray[Any], right: Signs) -> Floats:
    """``left @ right.T`` as float64."""
    return np.asarray(left @ right.T, dtype=np.float64)
