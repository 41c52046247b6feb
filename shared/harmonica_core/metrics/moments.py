"""Smooth functions of means over a neighbourhood: value and standard error.

Sampled shells are jackknifed: leaving out each mask in turn gives the first-order bias
of a curved function of a mean (a root, a ratio), which is taken off, and the standard
error. For the mean itself both are the textbook ones. Listed shells add neither.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from harmonica_core._types import Floats
from harmonica_core.metrics.evaluations import EvaluationSet, Part
from harmonica_core.result.estimate import Estimate

# (k, ..., n_outputs) means -> (..., n_outputs)
Smooth: TypeAlias = Callable[[Floats], Floats]


def estimate(
    smooth: Smooth,
    columns: Floats,
    parts: Sequence[Part],
    evaluations: EvaluationSet,
    extra_evaluations: int = 0,
    unit: Floats | float = 1.0,
    power: float = 1.0,
) -> Estimate:
    """``smooth(E column_1, ..., E column_k)`` over the neighbourhood of ``parts``.

    Times ``unit ** power``, when the columns were made from values in units.

    Parameters
    ----------
    smooth : callable, (k, ..., n_outputs) -> (..., n_outputs)
    columns : float64 (k, m, n_outputs)
    parts : sequence of Part
    evaluations : EvaluationSet
        Gives the shape of the result.
    extra_evaluations : int
        Masks evaluated besides those of ``parts``.
    unit : float64 (n_outputs,)
    power : float
    """
    value, variance = jackknife(smooth, columns, parts)
    return Estimate(
        evaluations.shaped(from_units(value, unit, power)),
        evaluations.shaped(from_units(np.sqrt(variance), unit, power)),
        sum(len(part) for part in parts) + extra_evaluations,
        exact=is_exact(parts),
    )


def from_units(values: Floats, unit: Floats | float, power: float = 1.0) -> Floats:
    """``values * unit ** power``, or a ValueError where that is no number."""
    with np.errstate(over="ignore"):
        found = np.asarray(values * unit * unit ** (power - 1))
    if np.isinf(found).any():
        raise ValueError(
            f"values of about {np.max(unit):.0e} to the power {power:g} are beyond the "
            "largest number; needed smaller ones: divide f and g by the same number"
        )
    return found


def nonnegative(means: Floats) -> Floats:
    """Means of numbers >= 0, which rounding can leave a little below."""
    return np.maximum(means, 0.0)


def is_exact(parts: Sequence[Part]) -> bool:
    """Whether every mask of the neighbourhood was seen."""
    return all(part.enumerated for part in parts)


def jackknife(
    smooth: Smooth, columns: Floats, parts: Sequence[Part]
) -> tuple[Floats, Floats]:
    """Value less its first-order bias, and variance: each ``(n_outputs,)``."""
    means = [columns[:, part.rows].mean(axis=1) for part in parts]
    mean = sum(
        (part.weight * m for part, m in zip(parts, means, strict=True)),
        start=np.zeros_like(means[0]),
    )
    value = smooth(mean)
    bias, variance = np.zeros_like(value), np.zeros_like(value)
    for part, own in zip(parts, means, strict=True):
        if part.enumerated:
            continue
        step = part.weight / (len(part) - 1)
        without = mean[:, None] + step * (own[:, None] - columns[:, part.rows])
        left = smooth(without)
        share = (len(part) - 1) / len(part)
        bias += share * (left - value).sum(axis=0)
        variance += share * ((left - left.mean(axis=0)) ** 2).sum(axis=0)
    return value - bias, variance
