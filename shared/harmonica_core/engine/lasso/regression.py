"""One LASSO regression on parities: its moments and its working set of terms.

With weights ``w`` (sum R) and an unpenalised intercept, columns and targets are
centred by their weighted means, and

    G = (1/R) sum_t w_t x_t x_t^T,    c = (1/R) sum_t w_t x_t y_t.

Both come from sums over rows, so leaving out a fold is a subtraction. Where C is
small all its terms are in from the start; otherwise terms enter a working set when
their correlation with the residual asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harmonica_core._types import Floats
from harmonica_core.engine.lasso import gram as kernels
from harmonica_core.engine.lasso.correlations import Index, ParityDesign, Signs

# Terms that may enter the working set in one round, beside as many as are active.
_ENTER = 50
# A working set this many times larger than its active part is cut down.
_SLACK = 4
# Steps and tolerance, both relative to alpha, on the way to a strength.
_APPROACH, _LOOSE = 4, 5e-2
# Terms are gathered at this tolerance before the exact solution.
_GATHERING = 1e-3
# Terms enter at most so often; correlated columns may ask for ever more of them.
_ROUNDS = 40
# Columns in double precision at a time: they should stay in the processor's cache.
_CACHE_BYTES = 1 << 20
# Targets that pay for inverting the Gram matrix once.
_MANY_TARGETS = 10


@dataclass(frozen=True)
class Rows:
    """Data of one regression.

    Attributes
    ----------
    design : ParityDesign of shape (R, p)
    targets : float64 (R, K)
    weights : float64 (R,)
    centred : bool
        Whether there is an intercept.
    uniform : bool
        Whether the masks look uniform, so that all rows have much the same leverage.
    """

    design: ParityDesign
    targets: Floats
    weights: Floats
    centred: bool
    uniform: bool

    def take(self, keep: NDArray[Any]) -> Rows:
        """Return some of the rows."""
        return replace(
            self,
            design=self.design.take_rows(keep),
            targets=self.targets[keep],
            weights=self.weights[keep],
        )


@dataclass(frozen=True)
class Moments:
    """Weighted sums over rows, for columns ``x (p,)`` and targets ``y (K,)``.

    ``xy`` is ``(K, p)``: what belongs to one target is a row. ``xx`` is in single
    precision where there are no weights: sums of signs are whole numbers.
    """

    total: float
    x: Floats
    y: Floats
    xx: NDArray[Any]
    xy: Floats
    yy: Floats

    @classmethod
    def of(cls, columns: Signs, rows: Rows) -> Moments:
        """Sum over ``rows``; ``columns`` is ``(p, R)``."""
        weighted = weigh(columns, rows.weights)
        targets = weigh(rows.targets.T, rows.weights).T
        return cls(
            float(rows.weights.sum()),
            weighted.sum(axis=1, dtype=np.float64),
            targets.sum(axis=0),
            weighted @ columns.T,
            target_products(columns, targets),
            np.einsum("tk,tk->k", targets, rows.targets),
        )

    def minus(self, other: Moments) -> Moments:
        """Leave out the rows of ``other``."""
        return Moments(
            self.total - other.total,
            self.x - other.x,
            self.y - other.y,
            self.xx - other.xx,
            self.xy - other.xy,
            self.yy - other.yy,
        )


def weigh(columns: NDArray[Any], weights: Floats) -> NDArray[Any]:
    """Columns times weights; plain signs stay in float32, where sums are exact."""
    return columns if (weights == 1).all() else columns * weights


def target_products(columns: Signs, targets: Floats) -> Floats:
    """``targets^T columns^T`` in double precision: ``(K, p)``."""
    out = np.empty((targets.shape[1], len(columns)))
    for block in _cachefuls(columns):
        out[:, block] = targets.T @ columns[block].T.astype(np.float64)
    return out


def _cachefuls(columns: Signs) -> list[slice]:
    """Blocks of rows that fit into the processor's cache in double precision."""
    step = max(1, _CACHE_BYTES // (8 * max(1, columns.shape[1])))
    return [slice(i, i + step) for i in range(0, len(columns), step)]


class Regression:
    """LASSO of K targets on the terms of C, through a working set.

    Attributes
    ----------
    index : int64 (w,)
        The working set.
    gram, column_means : float64 (w, w), (w,)
    corr, coef, slope : float64 (K, w)
        ``coef`` is the latest solution and the start of the next one, ``slope`` the
        ``c - G coef`` of that solution.
    mean, power : float64 (K,)
        Weighted mean of the targets (zero without an intercept), and mean square
        about it.
    """

    def __init__(self, moments: Moments, rows: Rows, dense: bool) -> None:
        """``dense`` says that ``moments`` holds all terms of C."""
        self.rows = None if dense else rows
        self.centred = centred = rows.centred
        self.uniform = rows.uniform
        self.total = moments.total or 1.0  # no rows: nothing but zeros
        self.column_means = moments.x / self.total if centred else 0 * moments.x
        self.mean = moments.y / self.total if centred else 0 * moments.y
        gram = np.divide(moments.xx, self.total, dtype=np.float64)
        self.corr = moments.xy / self.total
        if centred:
            gram -= np.outer(self.column_means, self.column_means)
            self.corr -= np.outer(self.mean, self.column_means)
        self._set_gram(gram)
        self.power = moments.yy / self.total - self.mean**2
        self.coef, self.slope = np.zeros_like(self.corr), self.corr.copy()
        self.index: Index = np.arange(self.corr.shape[1])
        self.columns: Signs = np.zeros((0, 0), dtype=np.float32)

    @classmethod
    def growing(cls, rows: Rows) -> Regression:
        """Start with an empty working set."""
        empty = np.zeros((0, len(rows.weights)), dtype=np.float32)
        out = cls(Moments.of(empty, rows), rows, dense=False)
        out.columns = empty
        return out

    def _set_gram(self, gram: Floats) -> None:
        self.gram = gram
        self._single: NDArray[np.float32] | None = None

    def _rounded(self) -> NDArray[np.float32]:
        """``gram`` in single precision."""
        if self._single is None:
            self._single = self.gram.astype(np.float32)
        return self._single

    def add(self, index: Index) -> None:
        """Let terms enter the working set, with coefficient zero."""
        if self.rows is None or not len(index):
            return
        new = self.rows.design.columns(index)
        weighted = weigh(new, self.rows.weights)
        means = weighted.sum(axis=1, dtype=np.float64) / self.total * self.centred
        self.columns = np.concatenate([self.columns, new])
        self.column_means = np.concatenate([self.column_means, means])
        cross = np.divide(weighted @ self.columns.T, self.total, dtype=np.float64)
        cross -= np.outer(means, self.column_means)
        self._set_gram(_bordered(self.gram, cross))
        centred = (self.rows.targets - self.mean) * self.rows.weights[:, None]
        corr = target_products(new, centred) / self.total
        slope = corr - self.coef @ cross[:, : len(self.index)].T
        self.corr = np.concatenate([self.corr, corr], axis=1)
        self.coef = np.concatenate([self.coef, np.zeros_like(corr)], axis=1)
        self.slope = np.concatenate([self.slope, slope], axis=1)
        self.index = np.concatenate([self.index, index])

    def keep(self, which: Index) -> None:
        """Reduce the working set to positions ``which``."""
        self._set_gram(self.gram[which[:, None], which])
        for name in ("columns", "column_means", "index"):
            setattr(self, name, getattr(self, name)[which])
        for name in ("corr", "coef", "slope"):
            setattr(self, name, getattr(self, name)[:, which])

    def restart(self, index: Index, coef: Floats) -> None:
        """Start the next solution from ``coef`` on the terms ``index``."""
        if self.rows is not None:
            self.keep(np.zeros(0, dtype=np.int64))
            self.add(index)
        self.coef = coef.copy()
        self.slope = self.corr - self.coef @ self.gram

    def solution(self) -> tuple[Index, Floats]:
        """Terms and coefficients of the latest solution, as `restart` takes them."""
        if self.rows is None:
            return self.index, self.coef
        active = np.flatnonzero(self.coef[0])
        return self.index[active], self.coef[:, active]

    def mean_square(self, which: Index) -> Floats:
        """Mean square ``|y|^2 - a^T (c + q)`` of the residuals of ``which``."""
        some = self.some(which)
        coef = self.coef[some]
        explained = np.einsum("kj,kj->k", coef, self.corr[some])
        explained += np.einsum("kj,kj->k", coef, self.slope[some])
        return np.asarray(np.maximum(self.power[which] - explained, 0.0))

    def n_active(self, which: Index) -> Index:
        """Active terms ``(n_which,)`` of targets ``which``."""
        return np.asarray(np.count_nonzero(self.coef[self.some(which)], axis=1))

    def some(self, which: Index) -> Index | slice:
        """Return an index of targets ``which`` that does not copy all of them."""
        return which if len(which) < len(self.coef) else slice(None)

    def all_slopes(self) -> Floats:
        """``|x_S^T r| / R`` of all terms: ``(K, p)``; K = 1 for a working set."""
        if self.rows is None:
            return np.abs(self.slope)
        fit = np.full(len(self.rows.weights), self.mean[0])
        fit -= self.column_means @ self.coef[0]
        for block in _cachefuls(self.columns):
            fit += self.coef[0, block] @ self.columns[block].astype(np.float64)
        residual = (self.rows.targets[:, 0] - fit) * self.rows.weights
        slopes = self.rows.design.correlations(residual)[None]
        return np.asarray(np.abs(slopes) / self.total)

    def steepest(self) -> Floats:
        """``max_S |x_S^T r| / R`` over all of C: ``(K,)``."""
        return np.asarray(self.all_slopes().max(axis=1, initial=0.0))

    def solve(
        self,
        alpha: Floats,
        tol: float,
        which: Index,
        ahead: float = 1.0,
        rough: bool = False,
    ) -> None:
        """Solve targets ``which`` at ``alpha (n_which,)``, over all terms of C.

        ``tol`` is relative to alpha; zero asks for the exact solution. Terms whose
        correlation exceeds ``alpha * (1 + tol)`` enter until there are none; with
        them those above ``ahead * alpha``, which the next, smaller strength will need.
        ``rough`` allows steps in single precision.
        """
        if self.rows is not None and tol == 0:
            self.solve(alpha, _GATHERING, which)
        self._solve_working_set(alpha, tol, which, rough)
        if self.rows is None:
            return
        for _ in range(_ROUNDS):
            slopes = self.all_slopes()[0]
            slopes[self.index] = 0.0
            largest = slopes.max(initial=0.0)
            self._enter(slopes, ahead * float(alpha[0]))
            if largest <= float(alpha[0]) * (1 + max(tol, 1e-6)):
                break
            self._solve_working_set(alpha, tol, which, rough)

    def approach(self, top: Floats, alpha: Floats, which: Index) -> None:
        """Come down from zero at ``top`` to a loose solution at ``alpha``."""
        now, left = top.copy(), np.flatnonzero(top > alpha)
        while len(left):
            now[left] = np.maximum(now[left] / _APPROACH, alpha[left])
            self.solve(now[left], _LOOSE, which[left], ahead=0.7)
            left = left[now[left] > alpha[left]]

    def _enter(self, slopes: Floats, level: float) -> None:
        """Add the terms of the largest slopes above the level; drop idle ones first."""
        active = np.flatnonzero(self.coef[0])
        if len(self.index) > _SLACK * (len(active) + _ENTER):
            self.keep(active)
        wanted = np.flatnonzero(slopes > level)
        room = _ENTER + len(active)
        if len(wanted) > room:
            best = np.argpartition(-slopes[wanted], room)[:room]
            wanted = np.sort(wanted[best])
        self.add(wanted)

    def _solve_working_set(
        self, alpha: Floats, tol: float, which: Index, rough: bool
    ) -> None:
        some = self.some(which)
        coef, slope, corr = self.coef[some], self.slope[some], self.corr[some]
        power = np.maximum(self.power[some], np.finfo(np.float64).tiny)
        if tol > 0:
            coef, slope = kernels.solve_loosely(
                self.gram,
                corr,
                power,
                alpha,
                coef,
                slope,
                tol,
                self.uniform,
                self._rounded() if rough else None,
            )
        else:
            inverse = self._inverse(len(alpha))
            coef = kernels.solve(
                self.gram,
                corr,
                power,
                alpha,
                coef,
                slope,
                inverse,
                self.uniform,
                self._rounded(),
            )
            slope = corr - coef @ self.gram
        if isinstance(some, slice):  # all of them: nothing to copy into
            self.coef, self.slope = coef, slope
        else:
            self.coef[some], self.slope[some] = coef, slope

    def _inverse(self, n_targets: int) -> Floats | None:
        """Inverse of the Gram matrix, where rows and targets are many enough for it."""
        if n_targets < _MANY_TARGETS or 2 * len(self.gram) > self.total:
            return None
        return np.asarray(np.linalg.inv(self.gram))

    def refitted_mean_square(self, which: Index) -> Floats:
        """Mean square after least squares on the supports of targets ``which``."""
        corr, coef = self.corr[which], self.coef[which]
        explained = kernels.explained_by_support(self.gram, corr, coef)
        return np.asarray(np.maximum(self.power[which] - explained, 0.0))

    def refit(self, which: Index) -> Floats:
        """Least squares on the supports of targets ``which``: ``(n_which, w)``."""
        return kernels.least_squares(self.gram, self.corr[which], self.coef[which])

    def predict(self, design: ParityDesign, coef: Floats, which: Index) -> Floats:
        """Predictions ``(rows, n_which)`` of coefficients ``(n_which, w)``."""
        active = np.flatnonzero(coef.any(axis=0))
        columns = design.columns(self.index[active]).T
        coef = coef[:, active]
        out = np.empty((len(columns), len(which)))
        for rows in _cachefuls(columns):
            out[rows] = columns[rows].astype(np.float64) @ coef.T
        out += self.mean[which] - coef @ self.column_means[active]
        return out


def _bordered(square: Floats, border: Floats) -> Floats:
    """Append rows ``border (b, w + b)`` and their transpose to a ``(w, w)`` matrix."""
    old, size = len(square), border.shape[1]
    out = np.empty((size, size))
    out[:old, :old] = square
    out[old:] = border
    out[:old, old:] = border[:, :old].T
    return out
