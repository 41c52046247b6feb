"""Which of the model's outputs are explained: SHAP's ``outputs=`` argument."""

from __future__ import annotations

from typing import Any

import numpy as np
import shap
from shap.utils import OpChain

from shap_harmonica._types import Masks, Values


def select(
    outputs: Any, masks: Masks, values: Values, names: Any = None
) -> tuple[Values, np.ndarray | None]:
    """Return the chosen outputs of ``values (m, R, K)`` and their numbers (R, k).

    ``outputs`` are None (all), a number, a name, several of these, or an op chain such
    as ``shap.Explanation.argsort.flip[:2]``: that is applied to each row's own model
    output (at the mask that keeps most), so rows may differ in what they explain.
    """
    if outputs is None:
        return values, None
    if values.ndim == 2:
        raise ValueError(
            f"outputs={outputs!r}, but the model has one output (it returns one number "
            "per row); leave outputs out"
        )
    own = values[int(masks.sum(axis=1).argmax())]
    if isinstance(outputs, OpChain):
        chosen = np.stack([_apply(outputs, row) for row in own])
    else:
        picks = [_number(pick, names) for pick in np.atleast_1d(outputs).tolist()]
        chosen = np.tile(np.asarray(picks, dtype=int), (len(own), 1))
    n_outputs = values.shape[2]
    if chosen.size and not (-n_outputs <= chosen.min() <= chosen.max() < n_outputs):
        raise ValueError(
            f"outputs={outputs!r} of a model with {n_outputs} outputs; needed numbers "
            f"0 to {n_outputs - 1}"
        )
    return np.take_along_axis(values, chosen[None] % n_outputs, axis=2), chosen


def _apply(chain: Any, row: np.ndarray) -> np.ndarray:
    found = chain.apply(shap.Explanation(row))
    return np.atleast_1d(np.asarray(getattr(found, "values", found), dtype=int))


def _number(pick: Any, names: Any) -> int:
    if isinstance(pick, (int, np.integer)):
        return int(pick)
    if not isinstance(pick, str):
        raise ValueError(
            f"outputs={pick!r}; needed output numbers, names, or a function of the "
            "values such as shap.Explanation.argsort.flip[:2]"
        )
    known = [] if names is None else list(names)
    if pick not in known:
        raise ValueError(f"output {pick!r} is unknown; needed one of {known}")
    return known.index(pick)
