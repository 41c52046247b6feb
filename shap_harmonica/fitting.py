"""The five algorithms on values of many rows: which masks, and what fits them."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from harmonica_core import Estimate, Surrogate, draw_masks, fit_surrogates
from harmonica_core._types import Masks, Values
from harmonica_core.result.anchored import draw_anchors
from harmonica_core.engine.anchored_fit import Fitter, fit_anchored
from harmonica_core.engine.constrained_fit import check_consistency, fit_constrained
from harmonica_core.engine.explicit import Fit
from harmonica_core.family import anchor_masks, check_anchors, count_anchors
from harmonica_core.engine.low_degree import fit_low_degree
from harmonica_core.design.masks import clip_radius, covers
from harmonica_core.ridge import (
    check_solver,
    fit_ridge,
    shapley_masks,
    shares_ridge,
)
from harmonica_core.settings import check_budget, check_degree, check_settings
from harmonica_core.result.surrogates_of import surrogate_of


@dataclass(frozen=True)
class Plan:
    """Masks ``(m, n_varying)`` that every row with as many features is evaluated on.

    ``anchors (k, n_varying)`` and the number of uniform masks belong to anchors only.
    """

    masks: Masks
    anchors: Masks | None = None
    n_uniform: int | None = None


@dataclass(frozen=True)
class Method:
    """What all algorithms share; see `HarmonicaExplainer` for the settings."""

    degree: int = 3
    alpha: Any = "auto"
    terms: Any = None
    ends: bool = True
    seed: Any = 0
    solver: str = "auto"

    def check(self) -> None:
        """Refuse wrong settings before any model call."""
        # Whether named features exist is known only once there are rows.
        terms = None if self.names_features else self.terms
        check_settings(1, self.degree, self.alpha, terms)
        self._check_solver()

    @property
    def names_features(self) -> bool:
        """Whether ``terms`` lists features: all are needed then, in their order."""
        return isinstance(self.terms, Iterable) and not isinstance(self.terms, str)

    def plan(self, n_varying: int, max_evals: Any) -> Plan:
        """Draw the masks, from a fresh generator: no row depends on other rows."""
        if n_varying == 0:
            return Plan(np.ones((1, 0), dtype=bool))
        budget = check_budget(max_evals, n_varying, "max_evals")
        check_settings(n_varying, self.degree, self.alpha, self.terms)
        rng = np.random.default_rng(copy.deepcopy(self.seed))
        return self._draw(n_varying, budget, rng)

    def fit(self, plan: Plan, values: Values) -> list[Any]:
        """One surrogate per function in ``values (m, R)`` or ``(m, R, n_outputs)``."""
        if plan.masks.shape[1] == 0:
            return [_constant(values[0, row]) for row in range(values.shape[1])]
        return self._fit(plan, values)

    def _check_solver(self) -> None:
        if self.solver != "auto":
            raise ValueError(
                f'solver={self.solver!r}; needed "auto": this variant has no choice of '
                "solvers; leave it out or use HarmonicaExplainer"
            )

    def _draw(self, n_varying: int, budget: int, rng: np.random.Generator) -> Plan:
        return Plan(draw_masks(n_varying, budget, rng, ends=self.ends))

    def _fit(self, plan: Plan, values: Values) -> list[Any]:
        return self._fit_shared(plan.masks, values, self.terms)

    def _fit_shared(
        self, masks: Masks, values: Values, terms: Any, radius: int | None = None
    ) -> list[Any]:
        return list(
            fit_surrogates(
                masks,
                values,
                self.degree,
                self.alpha,
                terms=terms,
                radius=radius,
                ends=self.ends,
            )
        )


@dataclass(frozen=True)
class Harmonica(Method):
    """One polynomial per row, all rows fitted together.

    Where all masks are evaluated the spectrum is exact, with every term in it. From
    samples, ``solver="ridge"`` (the default where it applies) shares one factor among
    all rows; ``"lasso"`` is the published algorithm on uniform masks, sparse, and
    slower by orders of magnitude for many rows.
    """

    def _check_solver(self) -> None:
        check_solver(self.solver, self.alpha, self.terms)

    def _draw(self, n_varying: int, budget: int, rng: np.random.Generator) -> Plan:
        if covers(n_varying, budget) or not self._shares_ridge(n_varying, budget):
            return super()._draw(n_varying, budget, rng)
        return Plan(shapley_masks(n_varying, budget, rng))

    def _fit(self, plan: Plan, values: Values) -> list[Any]:
        masks, n = plan.masks, plan.masks.shape[1]
        if covers(n, len(masks)):
            # With all masks known every term is, unless a small degree says less.
            whole = self.terms is None and check_degree(self.degree) >= 3
            terms = "auto" if whole else self.terms
            return self._fit_shared(masks, values, terms)
        if not self._shares_ridge(n, len(masks)):
            return self._fit_shared(masks, values, self.terms)
        degree = min(check_degree(self.degree), n)
        fit = fit_ridge(masks, values.reshape(len(values), -1), degree)
        return [
            surrogate_of(
                _of_row(fit, row, values),
                masks,
                values[:, row],
                max_degree=degree,
                ends=self.ends,
            )
            for row in range(values.shape[1])
        ]

    def _shares_ridge(self, n_varying: int, n_masks: int) -> bool:
        return shares_ridge(
            self.solver, self.alpha, self.terms, n_varying, self.degree, n_masks
        )


@dataclass(frozen=True)
class Local(Method):
    """The LASSO on masks with 1 to ``radius`` features removed."""

    radius: int = 4

    def check(self) -> None:
        """Refuse wrong settings before any model call."""
        super().check()
        clip_radius(self.radius, 1)

    def _draw(self, n_varying: int, budget: int, rng: np.random.Generator) -> Plan:
        radius = clip_radius(self.radius, n_varying)
        masks = draw_masks(n_varying, budget, rng, radius=radius, ends=self.ends)
        return Plan(masks)

    def _fit(self, plan: Plan, values: Values) -> list[Any]:
        radius = clip_radius(self.radius, plan.masks.shape[1])
        return self._fit_shared(plan.masks, values, self.terms, radius)


@dataclass(frozen=True)
class Anchor(Method):
    """One LASSO per anchor, each for the masks nearest to it."""

    anchors: int = 3

    def check(self) -> None:
        """Refuse wrong settings before any model call."""
        super().check()
        check_anchors(self.anchors)

    def _draw(self, n_varying: int, budget: int, rng: np.random.Generator) -> Plan:
        n_anchors = count_anchors(self.anchors, n_varying)
        masks, n_uniform = anchor_masks(n_varying, budget, n_anchors, rng)
        return Plan(masks, draw_anchors(n_varying, n_anchors, rng), n_uniform)

    def _fit(self, plan: Plan, values: Values) -> list[Any]:
        fitter = self._fitter()
        return [
            fitter(
                plan.masks,
                values[:, row],
                plan.anchors,
                self.degree,
                self.alpha,
                terms=self.terms,
                ends=self.ends,
                n_uniform=plan.n_uniform,
            )
            for row in range(values.shape[1])
        ]

    def _fitter(self) -> Fitter:
        return fit_anchored


@dataclass(frozen=True)
class AnchorConstrained(Anchor):
    """All anchors of a row at once, pulled towards their mean."""

    consistency: Any = "auto"

    def check(self) -> None:
        """Refuse wrong settings before any model call."""
        super().check()
        check_consistency(self.consistency)

    def _fitter(self) -> Fitter:
        return partial(fit_constrained, consistency=self.consistency)


@dataclass(frozen=True)
class LowDegree(Method):
    """Coefficients as sample means."""

    def check(self) -> None:
        """Refuse wrong settings before any model call."""
        super().check()
        if self.alpha != "auto" or self.terms is not None:
            raise ValueError(
                f"alpha={self.alpha!r}, terms={self.terms!r}; LowDegree takes neither: "
                "leave them out or use HarmonicaExplainer"
            )

    def _fit(self, plan: Plan, values: Values) -> list[Any]:
        return [
            fit_low_degree(plan.masks, values[:, row], self.degree, ends=self.ends)
            for row in range(values.shape[1])
        ]


def _of_row(fit: Fit, row: int, values: Values) -> Fit:
    """Take one function's columns out of a joint fit to ``values (m, R[, K])``."""
    n_outputs = 1 if values.ndim == 2 else values.shape[2]
    block = slice(row * n_outputs, (row + 1) * n_outputs)
    error = Estimate(
        np.asarray(fit.error.value)[block],
        np.asarray(fit.error.standard_error)[block],
        fit.error.n_evaluations,
        fit.error.exact,
    )
    return Fit(fit.table, fit.coef[:, block], fit.alpha[block], error)


def _constant(value: Any) -> Surrogate:
    return Surrogate(0, np.zeros((1, 0), dtype=np.int32), np.asarray(value)[None])
