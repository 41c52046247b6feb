"""One polynomial per anchor, pulled towards their mean: a convex problem.

For anchors i = 1..k with the samples t of their cells (T in all),

    L_f + l1 L_r + l2 L_c,
    L_f = 1/T sum_t (g_{i(t)}(x_t) - y_t)^2,
    L_r = 1/k sum_i |a_i|_1                (without the intercepts),
    L_c = 1/k sum_i |a_i - abar|_2,        abar = 1/k sum_j a_j  (with them).

The last one is a norm, not its square: beyond a finite ``l2`` all polynomials are
equal. Solved by ADMM with the copies ``u = a`` (soft thresholding) and ``w = a - abar``
(group soft thresholding); the remaining least squares couple the anchors only by their
mean.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning

from harmonica_core._types import Floats, Masks, Table
from harmonica_core.engine.lasso.correlations import ParityDesign

_MOST_STEPS = 20_000
_CHECK_EVERY = 10
_RELAXATION = 1.6
# Up to this many terms all are in the working set; beyond, it grows by this many.
_WORKING_SET = 500
# A term joins when its slope exceeds what L1 can hold by this share.
_SLACK = 1e-3


@dataclass(frozen=True)
class Cells:
    """The least-squares problems of all anchors on the same terms.

    Attributes
    ----------
    gram : float64 (k, p, p)
        ``2/T X_i^T X_i``; the first column of ``X_i`` is the intercept's.
    right : float64 (k, p)
        ``2/T X_i^T y_i``.
    constant : float
        ``1/T sum_t y_t^2``.
    """

    gram: Floats
    right: Floats
    constant: float

    @classmethod
    def of(cls, designs: Sequence[Floats], values: Sequence[Floats]) -> Cells:
        """Build them from ``X_i (m_i, p)`` and ``y_i (m_i,)``."""
        total = sum(len(y) for y in values)
        pairs = list(zip(designs, values, strict=True))
        return cls(
            np.stack([2 / total * (x.T @ x) for x in designs]),
            np.stack([2 / total * (x.T @ y) for x, y in pairs]),
            sum(float(y @ y) for y in values) / total,
        )

    def loss(self, coef: Floats) -> float:
        """``L_f`` of ``coef (k, p)``."""
        quadratic = np.einsum("ip,ipq,iq->", coef, self.gram, coef)
        return float(self.constant + quadratic / 2 - (coef * self.right).sum())


def objective(cells: Cells, coef: Floats, l1: float, l2: float) -> float:
    """``L_f + l1 L_r + l2 L_c`` of ``coef (k, p)``, the intercepts in column 0."""
    spread = np.linalg.norm(coef - coef.mean(axis=0), axis=1).mean()
    size = np.abs(coef[:, 1:]).sum() / len(coef)
    return cells.loss(coef) + float(l1 * size + l2 * spread)


@dataclass
class _State:
    """ADMM: copies ``u, w`` and scaled multipliers ``s, t``, each ``(k, p)``.

    ``rho`` is the strength that ties u and w to the coefficients.
    """

    u: Floats
    w: Floats
    s: Floats
    t: Floats
    rho: float

    @classmethod
    def at(cls, coef: Floats, rho: float) -> _State:
        zero = np.zeros_like(coef)
        return cls(coef.copy(), _centred(coef), zero, zero, rho)

    def rescale(self, factor: float) -> None:
        """Change the strength and keep the multipliers' forces."""
        self.rho *= factor
        self.s, self.t = self.s / factor, self.t / factor


def minimise(
    cells: Cells,
    l1: float,
    l2: float,
    start: Floats | None = None,
    tolerance: float = 1e-6,
) -> tuple[Floats, Floats]:
    """Minimise the objective over ``coef (k, p)``.

    ``tolerance`` bounds the residuals of ADMM relative to the coefficients.

    Returns
    -------
    coef : float64 (k, p)
        Exact zeros where L1 puts them, and exactly the mean where the pull wins.
    pull : float64 (k, p)
        Subgradient of ``sum_i |a_i - abar|_2`` in the optimality conditions.
    """
    k, p = cells.right.shape
    rho = float(np.trace(cells.gram.mean(axis=0))) / p
    state = _State.at(np.zeros((k, p)) if start is None else start, rho)
    solve = _Coupled(cells, rho)
    for step in range(1, _MOST_STEPS + 1):
        previous = state.u, state.w
        _advance(state, solve(state), l1 / k, l2 / k)
        if step % _CHECK_EVERY == 0:
            primal, dual = _residuals(state, solve.coef, previous)
            if max(primal, dual) < tolerance:
                break
            if _rebalance(state, primal, dual, step):
                solve = _Coupled(cells, state.rho)
    else:
        warnings.warn(
            f"the anchored fit stopped after {_MOST_STEPS} steps with a residual of "
            f"{max(primal, dual):.1e}",
            ConvergenceWarning,
            stacklevel=2,
        )
    pull = state.t * (k * state.rho / l2) if l2 > 0 else np.zeros((k, p))
    return _settle(state), pull


class _Coupled:
    """The quadratic step: anchors are coupled by their mean alone.

    ``(H_i + 2 rho) a_i - rho abar = r_i``, so with ``M_i = (H_i + 2 rho)^-1`` the mean
    solves ``(1 - rho mean_i M_i) abar = mean_i M_i r_i``.
    """

    def __init__(self, cells: Cells, rho: float) -> None:
        k, p = cells.right.shape
        eye = np.eye(p)
        self.right, self.rho = cells.right, rho
        self.inverse = np.stack(
            [cho_solve(cho_factor(gram + 2 * rho * eye), eye) for gram in cells.gram]
        )
        self.mean = cho_factor(eye - rho * self.inverse.mean(axis=0))
        self.coef = np.zeros((k, p))

    def __call__(self, state: _State) -> Floats:
        wanted = state.u - state.s + _centred(state.w - state.t)
        alone = self._apply(self.right + self.rho * wanted)
        middle = cho_solve(self.mean, alone.mean(axis=0))
        self.coef = alone + self.rho * (self.inverse @ middle)
        return self.coef

    def _apply(self, rows: Floats) -> Floats:
        return np.asarray((self.inverse @ rows[:, :, None])[:, :, 0])


def _advance(state: _State, coef: Floats, each_l1: float, each_l2: float) -> None:
    """Threshold both copies of ``coef``, over-relaxed, and update the multipliers."""
    mixed = _RELAXATION * coef + (1 - _RELAXATION) * state.u
    apart = _RELAXATION * _centred(coef) + (1 - _RELAXATION) * state.w
    wanted = mixed + state.s
    state.u = np.sign(wanted) * np.maximum(np.abs(wanted) - each_l1 / state.rho, 0)
    state.u[:, 0] = wanted[:, 0]
    state.s = wanted - state.u
    wanted = apart + state.t
    size = np.linalg.norm(wanted, axis=1, keepdims=True)
    shrunk = np.maximum(size - each_l2 / state.rho, 0)
    state.w = wanted * np.divide(shrunk, size, out=np.zeros_like(size), where=size > 0)
    state.t = wanted - state.w


def _residuals(
    state: _State, coef: Floats, previous: tuple[Floats, Floats]
) -> tuple[float, float]:
    """Primal and dual residual, relative to the coefficients and multipliers."""
    gap = np.hypot(
        np.linalg.norm(coef - state.u), np.linalg.norm(_centred(coef) - state.w)
    )
    move = (state.u - previous[0]) + _centred(state.w - previous[1])
    force = float(np.linalg.norm(state.s + _centred(state.t)))
    size = max(float(np.linalg.norm(coef)), 1e-12)
    return float(gap) / size, float(np.linalg.norm(move)) / max(force, size)


def _rebalance(state: _State, primal: float, dual: float, step: int) -> bool:
    """Change rho when one residual lags far behind; ever more rarely."""
    if step & (step - 1) and step % 320:  # powers of two, then every 320 steps
        return False
    factor = float(np.clip(np.sqrt(primal / max(dual, 1e-300)), 0.1, 10))
    if 1 / 3 < factor < 3:
        return False
    state.rescale(factor)
    return True


def _settle(state: _State) -> Floats:
    """Make anchors whose pull won exactly equal to the mean of the others."""
    free = state.w.any(axis=1)
    coef = state.u.copy()
    if not free.all():
        coef[~free] = coef[free if free.any() else slice(None)].mean(axis=0)
    return coef


def _centred(coef: Floats) -> Floats:
    return np.asarray(coef - coef.mean(axis=0))


def fit_cells(
    masks: Sequence[Masks],
    values: Sequence[Floats],
    table: Table,
    l1: float,
    l2: float,
    tolerance: float = 1e-5,
) -> tuple[Floats, Floats]:
    """Minimise over all terms of ``table``, on a working set that grows.

    Parameters
    ----------
    masks : k arrays bool (m_i, n_features)
        A cell may be empty.
    values : k arrays float64 (m_i,)
    table : int32 (n_terms, width)
        Without the empty term.
    l1, l2 : float
        As in the objective above.
    tolerance : float
        See `minimise`.

    Returns
    -------
    intercept : float64 (k,)
    coef : float64 (k, n_terms)
    """
    centre, scale = _standard(np.concatenate(values))
    standard = [(y - centre) / scale for y in values]
    designs = [ParityDesign.of(m, table) for m in masks]
    l1, l2 = l1 / scale, l2 / scale
    found = np.zeros((len(masks), 1 + len(table)))
    pull, members = np.zeros_like(found), np.zeros(0, dtype=np.int64)
    value, before = np.inf, np.inf
    while value == np.inf or before - value > tolerance * value:
        new = _missing(designs, standard, found, members, pull, l1, l2)
        if not len(new):
            break
        if len(members) > _WORKING_SET:  # terms that went back to zero may leave
            members = members[found[:, members + 1].any(axis=0)]
        members = np.union1d(members, new)
        inside = np.append(0, members + 1)
        columns = [_columns(design, members) for design in designs]
        cells = Cells.of(columns, standard)
        pull[:] = 0
        found[:, inside], pull[:, inside] = minimise(
            cells, l1, l2, found[:, inside], tolerance
        )
        before, value = value, objective(cells, found[:, inside], l1, l2)
    found *= scale
    return found[:, 0] + centre, found[:, 1:]


def _standard(values: Floats) -> tuple[float, float]:
    spread = float(values.std()) if len(values) else 0.0
    small = 1e-14 * float(np.abs(values).max(initial=0.0))
    return float(values.mean()), spread if spread > small else 1.0


def _columns(design: ParityDesign, members: np.ndarray) -> Floats:
    """Explicit columns of the working set, the intercept's first."""
    block = design.columns(members).T.astype(np.float64)
    return np.concatenate([np.ones((len(block), 1)), block], axis=1)


def _missing(
    designs: Sequence[ParityDesign],
    values: Sequence[Floats],
    found: Floats,
    members: np.ndarray,
    pull: Floats,
    l1: float,
    l2: float,
) -> np.ndarray:
    """Terms outside the working set that the optimality conditions ask for.

    An absent term needs ``|G_iS| <= l1 / k`` for the gradient ``G`` of L_f at every
    anchor that is away from the mean, and ``|sum_i G_iS| <= l1``; at an anchor that
    equals the mean, what exceeds ``l1 / k`` is held as long as the pull's subgradient
    stays within the unit ball.
    """
    k, n_terms = len(found), found.shape[1] - 1
    outside = np.ones(n_terms, dtype=bool)
    outside[members] = False
    if n_terms <= _WORKING_SET or not outside.any():
        return np.flatnonzero(outside)
    slope = _gradient(designs, values, found, members)
    excess = np.maximum(np.abs(slope) - l1 / k, 0) * outside
    held = np.zeros(k, dtype=bool)
    if l2 > 0 and len(members):
        room = 1 - (pull**2).sum(axis=1)
        equal = ~(found - found.mean(axis=0)).any(axis=1)
        held = equal & ((k / l2) ** 2 * (excess**2).sum(axis=1) <= room)
    excess[held] = 0
    together = np.maximum(np.abs(slope.sum(axis=0)) - l1, 0) * outside
    worst = np.maximum(excess.max(axis=0), together / k)
    wanted = np.flatnonzero(worst > _SLACK * max(l1, 1e-3) / k)
    return wanted[np.argsort(-worst[wanted], kind="stable")[:_WORKING_SET]]


def _gradient(
    designs: Sequence[ParityDesign],
    values: Sequence[Floats],
    found: Floats,
    members: np.ndarray,
) -> Floats:
    """Gradient of L_f ``(k, n_terms)``."""
    total = sum(len(y) for y in values)
    active = np.append(0, members + 1)
    rows = []
    for design, y, coef in zip(designs, values, found, strict=True):
        residual = _columns(design, members) @ coef[active] - y
        rows.append(2 / total * design.correlations(residual))
    return np.stack(rows)
