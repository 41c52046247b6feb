"""What a metric accepts: functions of masks, or the values of all masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

from harmonica_core._types import Masks, Values
from harmonica_core.design.masks import all_masks, mask_numbers
from harmonica_core.evaluate import check_values, evaluate

# A value function, a surrogate or any callable on masks; or all 2**n values, in the
# order of `masks.all_masks`.
Function: TypeAlias = Callable[[Masks], Any] | Any
Norm: TypeAlias = float | Literal["inf", "L0"]

_G_BATCH = 1 << 16


def is_known(function: Function) -> bool:
    """Whether the function is given by its values (an array), not by a callable."""
    return not callable(function)


def values_on(
    function: Function,
    masks: Masks,
    n_features: int,
    name: str,
    batch_size: int = _G_BATCH,
) -> Values:
    """Values ``(m,)`` or ``(m, n_outputs)`` of a function given in either way.

    Parameters
    ----------
    function : callable on masks, or array (2**n_features[, n_outputs])
    masks : bool (m, n_features)
    n_features : int
    name : str
        What error messages call it.
    batch_size : int
    """
    if is_known(function):
        known = known_values(function, n_features, name)
        return np.asarray(known[mask_numbers(masks)])
    width = getattr(function, "n_features", n_features)
    if width != n_features:
        raise ValueError(
            f"{name} explains {width} features, but n_features={n_features}; needed "
            "the same number"
        )
    try:
        return evaluate(function, masks, batch_size=batch_size)
    except (TypeError, ValueError) as error:
        error.add_note(f"(here the value function is the argument {name})")
        raise


def known_values(values: Any, n_features: int, name: str) -> Values:
    """Return the values of all masks as float64, or say what is wrong with them."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} is {type(values).__name__}; needed a callable on masks or the "
            f"real values of all masks"
        )
    if n_features > 30 or array.ndim not in (1, 2) or len(array) != 1 << n_features:
        raise ValueError(
            f"{name} has shape {array.shape}; needed a callable, or 2**{n_features} "
            f"values: one row per mask of {n_features} features, in the order of "
            "masks.all_masks"
        )
    if np.isfinite(array).all() and array.size:
        return array.astype(np.float64)
    # The slow check names the first bad mask.
    return check_values(array, all_masks(n_features))


def check_norm(p: Norm) -> float | Literal["L0"]:
    """Return p > 0, ``inf`` or "L0"; refuse everything else."""
    if isinstance(p, str):
        if p.upper() == "L0":
            return "L0"
        if p.lower() in ("inf", "linf"):
            return np.inf
    elif isinstance(p, (int, float, np.integer, np.floating)) and p > 0:
        if not isinstance(p, bool):
            return float(p)
    raise ValueError(
        f'p={p!r}; needed a number > 0, "inf" for the largest error, or "L0" for the '
        "share of masks with |f - g| >= threshold"
    )


def check_threshold(threshold: float) -> float:
    """Return a finite threshold >= 0."""
    number = isinstance(threshold, (int, float, np.number))
    if not number or not 0 <= threshold < np.inf:
        raise ValueError(f"threshold={threshold!r}; needed a finite number >= 0")
    return float(threshold)
