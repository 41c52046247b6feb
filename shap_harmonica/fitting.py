"""Rows that share a number of varying features share one design; then lift back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harmonica_core import Surrogate, auto_budget, draw_masks, fit_surrogates
from harmonica_core._types import Masks, Values
from harmonica_core.basis import trim
from harmonica_core.evaluate import Evaluated
from harmonica_core.fit import check_budget


@dataclass(frozen=True)
class Harmonica:
    """The plain method: one LASSO on uniform masks; see `HarmonicaExplainer`."""

    degree: int = 3
    alpha: Any = "auto"
    terms: Any = None
    ends: bool = True
    seed: Any = 0

    def masks(self, n_varying: int, max_evals: Any) -> Masks:
        """Masks ``(m, n_varying)``, the same for every row with as many features."""
        if n_varying == 0:
            return np.ones((1, 0), dtype=bool)
        budget = (
            auto_budget(n_varying)
            if max_evals == "auto"
            else check_budget(max_evals, n_varying)
        )
        return draw_masks(n_varying, budget, self.rng(), ends=self.ends)

    def rng(self) -> np.random.Generator:
        """Return a fresh generator, so that no row depends on the rows before it."""
        return np.random.default_rng(self.seed)

    def fit(self, masks: Masks, values: Values) -> list[Surrogate]:
        """One surrogate per function in ``values (m, R)`` or ``(m, R, n_outputs)``.

        Where all masks were evaluated every term is known, so by default all are kept
        and Shapley values are exact for any function.
        """
        if masks.shape[1] == 0:
            return [_constant(values[0, k]) for k in range(values.shape[1])]
        terms = self.terms
        if terms is None and len(masks) == 1 << masks.shape[1]:
            terms = "auto"
        return fit_surrogates(
            masks,
            values,
            self.degree,
            self.alpha,
            self.rng(),
            terms=terms,
            ends=self.ends,
        )


    def lift(
        self, surrogates: list[Surrogate], varying: np.ndarray, n_features: int
    ) -> list[Surrogate]:
        """See `lift`."""
        return lift(surrogates, varying, n_features)


def _constant(value: Any) -> Surrogate:
    return Surrogate(0, np.zeros((1, 0), dtype=np.int32), np.asarray(value)[None])


def lift(
    surrogates: list[Surrogate], varying: np.ndarray, n_features: int
) -> list[Surrogate]:
    """Relabel features: number k of surrogate r becomes ``varying[r, k]``.

    Features that equal the background do not occur in any term, so their attribution
    is zero. Masks of rows with the same varying features are shared.
    """
    if varying.shape[1] == n_features:
        return surrogates
    lifted_masks: dict[bytes, Masks] = {}
    out = []
    for surrogate, features in zip(surrogates, varying, strict=True):
        out.append(_lift(surrogate, features, n_features, lifted_masks))
    return out


def _lift(
    surrogate: Surrogate,
    features: np.ndarray,
    n_features: int,
    lifted_masks: dict[bytes, Masks],
) -> Surrogate:
    names = np.append(features, -1).astype(np.int32)  # padding -1 stays -1
    evaluated = surrogate.evaluated
    if evaluated is not None:
        key = features.tobytes()
        if key not in lifted_masks:
            full = np.ones((len(evaluated.masks), n_features), dtype=bool)
            full[:, features] = evaluated.masks
            lifted_masks[key] = full
        evaluated = Evaluated(lifted_masks[key], evaluated.values)
    return replace(
        surrogate,
        n_features=n_features,
        table=trim(names[surrogate.table]),
        evaluated=evaluated,
    )
