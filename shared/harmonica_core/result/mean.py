"""The posterior mean of one function's outputs, as a surrogate holds it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harmonica_core import basis
from harmonica_core._types import Floats, Masks, Table
from harmonica_core.design.masks import all_masks, match_masks
from harmonica_core.engine.posterior import Posterior
from harmonica_core.result.estimate import Estimate
from harmonica_core.result.found_terms import found_terms
from harmonica_core.result.interaction_std import interaction_std

# Up to this many features the spectrum is complete.
_COMPLETE = 12


@dataclass(frozen=True, eq=False)
class Mean:
    """``E[f | what was evaluated]``, and how far f may be from it.

    Attributes
    ----------
    posterior : Posterior
        Of ``n_outputs`` functions of the features that have an effect.
    values : float64 (m, n_outputs)
        At the posterior's masks.
    one_output : bool
        Whether values are asked for as ``(m,)``.
    table, coef : int32 (n_terms, width), float64 (n_terms, n_outputs)
        A polynomial that the posterior is the rest of.
    calibration : float64 (n_outputs,)
        What the posterior's standard deviations are multiplied by.
    features : int64 (k,), optional
        Which of a surrogate's features those of the posterior are; None: all.
    """

    posterior: Posterior
    values: Floats
    one_output: bool
    table: Table
    coef: Floats
    calibration: Floats
    features: NDArray[np.int64] | None = None

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return int(self.values.shape[1])

    @property
    def masks(self) -> Masks:
        """Masks that were evaluated, of the posterior's features."""
        return self.posterior.regression.masks

    def output(self, k: int) -> Mean:
        """Return the mean of output k alone."""
        chosen = slice(k, k + 1)
        return replace(
            self,
            posterior=self.posterior.column(chosen),
            values=self.values[:, chosen],
            one_output=True,
            coef=self.coef[:, chosen],
            calibration=self.calibration[chosen],
        )

    def relabelled(self, features: NDArray[np.int64]) -> Mean:
        """Return the same function of ``features`` of a larger set."""
        own = features if self.features is None else features[self.features]
        return replace(self, features=own)

    def predict(self, masks: Masks) -> Floats:
        """Return E[f]: known values where a mask was evaluated: (m, n_outputs)."""
        own = self._own(masks)
        out = self._smooth(own)
        if self.posterior.regression.interpolates:
            known, rows = match_masks(own, self.masks)
            out[known] = self.values[rows]
        return out

    def _smooth(self, masks: Masks) -> Floats:
        out = self.posterior.predict(masks)
        if len(self.table):
            out += basis.predict(masks, self.table, self.coef)
        return out

    def predict_std(self, masks: Masks) -> Floats:
        """Return standard deviations of f at masks, 0 where it is known."""
        own = self._own(masks)
        out = self.posterior.predict_std(own) * self.calibration
        if self.posterior.regression.interpolates:
            known, _ = match_masks(own, self.masks)
            out[known] = 0.0
        return out

    def shapley(self, n_features: int) -> Floats:
        """Return the Shapley values of E[f]: (n_features, n_outputs)."""
        n = self.masks.shape[1]
        own = self.posterior.shapley()
        if len(self.table):
            own = own + basis.shapley_of_terms(self.table, self.coef, n)
        if self.posterior.regression.prior.degree is None:
            own = own + self._rounding(own)
        return self._scattered(own, n_features)

    def _rounding(self, shapley: Floats) -> Floats:
        """Return each value's share of what rounding left them to differ from f."""
        kept = self.masks.sum(axis=1)
        full, empty = int(kept.argmax()), int(kept.argmin())
        if kept[full] < self.masks.shape[1] or kept[empty] > 0:
            return np.zeros(self.n_outputs)
        gap = self.values[full] - self.values[empty] - shapley.sum(axis=0)
        return np.asarray(gap / self.masks.shape[1])

    def shapley_std(self, n_features: int) -> Floats:
        """Return their standard deviations: (n_features, n_outputs)."""
        own = self.posterior.shapley_std() * self.calibration
        return self._scattered(own, n_features)

    def interaction_std(self, members: Table, index: str, order: int) -> Floats:
        """Return deviations ``(n_interactions, n_outputs)`` of interactions of f.

        Interactions of features without an effect are 0, and so are their deviations.
        """
        if self.features is None:
            return self._own_interaction_std(members, index, order)
        label = np.full(int(max(members.max(initial=0), self.features.max())) + 2, -2)
        label[self.features] = np.arange(len(self.features))
        label[-1] = -1  # padding stays padding
        own = label[members]
        known = (own > -2).all(axis=1)
        out = np.zeros((len(members), self.n_outputs))
        held = own[known].astype(np.int32)
        out[known] = self._own_interaction_std(held, index, order)
        return out

    def _own_interaction_std(self, members: Table, index: str, order: int) -> Floats:
        found = interaction_std(self.posterior, members, index, order)
        return np.asarray(found * self.calibration)

    def polynomial(
        self, n_features: int, error: Estimate | None
    ) -> tuple[Table, Floats]:
        """Return terms and coefficients: all of them, or all that matter."""
        n = self.masks.shape[1]
        if n <= _COMPLETE:
            table, coef = _spectrum(self.predict_own(all_masks(n)), n)
        else:
            least = np.zeros(self.n_outputs) if error is None else np.ravel(error.value)
            table, coef = found_terms(self.posterior, least)
            table, coef = sum_of_terms(table, coef, self.table, self.coef)
        if self.features is None:
            return table, coef
        label = np.append(self.features, -1).astype(np.int32)
        return label[table], coef

    def predict_own(self, masks: Masks) -> Floats:
        """Return E[f] at masks of the posterior's features."""
        return replace(self, features=None).predict(masks)

    def _own(self, masks: Masks) -> Masks:
        return masks if self.features is None else masks[:, self.features]

    def _scattered(self, own: Floats, n_features: int) -> Floats:
        if self.features is None:
            return own
        out = np.zeros((n_features, own.shape[1]))
        out[self.features] = own
        return out


def _spectrum(values: Floats, n: int) -> tuple[Table, Floats]:
    """Return all terms with a coefficient above rounding, from all values."""
    full = basis.spectrum_of_values(values)
    rounding = 4 * np.finfo(float).eps * n * np.abs(values).max(axis=0)
    full[np.abs(full) <= rounding] = 0.0
    numbers = np.flatnonzero((full != 0).any(axis=1) | (np.arange(len(full)) == 0))
    table = basis.table_of_numbers(numbers, n)
    return table, full[basis.term_numbers(table, n)]


def sum_of_terms(
    left: Table, left_coef: Floats, right: Table, right_coef: Floats
) -> tuple[Table, Floats]:
    """Return the union of two tables and the sums of their coefficients."""
    if not len(right):
        return left, left_coef
    if not len(left):
        return right, right_coef
    width = max(left.shape[1], right.shape[1])
    both = np.concatenate(
        [
            np.pad(one, ((0, 0), (0, width - one.shape[1])), constant_values=-1)
            for one in (left, right)
        ]
    )
    table, place = np.unique(both, axis=0, return_inverse=True)
    coef = np.zeros((len(table), left_coef.shape[1]))
    np.add.at(coef, place.ravel(), np.concatenate([left_coef, right_coef]))
    order = np.argsort(basis.term_sizes(table), kind="stable")
    return table[order], coef[order]
