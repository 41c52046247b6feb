"""Interpretation error: how far g is from f on a neighbourhood of the input.

    I_p(f, g) = (E_mu |f - g|^p)^(1/p),

mu uniform on the masks with 1 to ``radius`` features removed, or on all masks.
"""

from __future__ import annotations

from typing import Unpack

import numpy as np

from harmonica_core._types import Floats
from harmonica_core.metrics.evaluations import (
    EvaluationSet,
    Sampling,
    evaluations_of,
)
from harmonica_core.metrics.inputs import Function, Norm, check_norm, check_threshold
from harmonica_core.metrics.moments import estimate, is_exact, nonnegative
from harmonica_core.result.estimate import Estimate
from harmonica_core.scaling import unit_of


def interpretation_error(
    f: Function | EvaluationSet,
    g: Function,
    n_features: int,
    p: Norm = 2,
    radius: float | None = None,
    threshold: float = 0.1,
    *,
    root: bool = True,
    **sampling: Unpack[Sampling],
) -> Estimate:
    """``I_p(f, g)`` on a neighbourhood.

    Parameters
    ----------
    f : value function, array (2**n_features[, n_outputs]) or EvaluationSet
        An array holds the values of all masks in the order of `masks.all_masks`.
    g : surrogate, callable on masks, or array like f
    n_features : int
    p : float > 0, "inf" or "L0"
        "inf" is the largest error, "L0" the share of masks with
        ``|f - g| >= threshold``.
    radius : int or None
        Masks with 1 to ``radius`` features removed, each equally likely (the full
        mask is not among them, whatever the radius). None or inf: all masks.
    threshold : float
        For "L0" only.
    root : bool
        False leaves the root out: ``E |f - g|^p``.
    **sampling
        See `Sampling`: ``max_evaluations``, ``seed``, ``batch_size``.

    Returns
    -------
    Estimate
        Exact when the neighbourhood has at most ``max_evaluations`` masks. Sampled:
        unbiased without the root and for "L0"; with the root, the first-order bias is
        taken off. A sampled "inf" is a lower bound, and its standard error nan.

    Examples
    --------
    >>> f = lambda masks: 1.0 * masks[:, 0] + masks[:, 1]
    >>> interpretation_error(f, lambda masks: 1.0 * masks[:, 0], n_features=2, p=1)
    0.5 (exact)
    """
    norm, threshold = check_norm(p), check_threshold(threshold)
    known = evaluations_of(f, n_features, (radius,), sampling)
    residual = known.columns() - known.predictions(g)
    return norm_of_residuals(known, residual, norm, radius, threshold, root)


def error_difference(
    f: Function | EvaluationSet,
    g: Function,
    h: Function,
    n_features: int,
    p: Norm = 2,
    radius: float | None = None,
    threshold: float = 0.1,
    **sampling: Unpack[Sampling],
) -> Estimate:
    """``I_p(f, g) - I_p(f, h)`` on the same masks; negative where g is closer.

    The standard error is that of the difference: what moves both errors alike
    cancels. Arguments as for `interpretation_error`.

    Examples
    --------
    >>> f = lambda masks: 1.0 * masks[:, 0] + masks[:, 1]
    >>> g, h = (lambda m: 1.0 * m[:, 0] + 0.5), (lambda m: 1.0 * m[:, 0])
    >>> error_difference(f, g, h, n_features=2)
    -0.207 (exact)
    """
    norm, threshold = check_norm(p), check_threshold(threshold)
    known = evaluations_of(f, n_features, (radius,), sampling)
    residuals = np.stack(
        [
            known.columns() - known.predictions(g),
            known.columns() - known.predictions(h, "h"),
        ]
    )
    return difference_of_residuals(known, residuals, norm, radius, threshold)


def norm_of_residuals(
    known: EvaluationSet,
    residual: Floats,
    norm: Norm,
    radius: float | None,
    threshold: float,
    root: bool = True,
) -> Estimate:
    """Return the p-norm of residuals ``(m, n_outputs)`` over a neighbourhood."""
    parts = known.parts(radius)
    if norm == np.inf:
        rows = slice(parts[0].rows.start, parts[-1].rows.stop)
        return _largest(known, np.abs(residual[rows]).max(axis=0), radius)
    powers, unit = _powers(residual[None], norm, threshold)
    power = 1.0 if root or norm == "L0" else float(norm)
    exponent = _exponent(norm) if root else 1.0
    return estimate(
        lambda mean: nonnegative(mean[0]) ** exponent,
        powers,
        parts,
        known,
        unit=unit,
        power=power,
    )


def difference_of_residuals(
    known: EvaluationSet,
    residuals: Floats,
    norm: Norm,
    radius: float | None,
    threshold: float,
) -> Estimate:
    """Norm of ``residuals[0]`` less that of ``residuals[1]``: ``(2, m, n_outputs)``."""
    parts = known.parts(radius)
    if norm == np.inf:
        rows = slice(parts[0].rows.start, parts[-1].rows.stop)
        first, second = np.abs(residuals[:, rows]).max(axis=1)
        return _largest(known, first - second, radius)
    powers, unit = _powers(residuals, norm, threshold)
    exponent = _exponent(norm)

    def difference(mean: Floats) -> Floats:
        first, second = nonnegative(mean) ** exponent
        return np.asarray(first - second)

    return estimate(difference, powers, parts, known, unit=unit)


def _exponent(norm: Norm) -> float:
    """``1 / p`` of the root, 1 for a share of masks."""
    return 1.0 if norm == "L0" else 1 / float(norm)


def _powers(residuals: Floats, norm: Norm, threshold: float) -> tuple[Floats, Floats]:
    """``|r / unit|^p`` and the unit ``(n_outputs,)``, chosen so that nothing overflows.

    For "L0" the indicators of ``|r| >= threshold``, with unit 1.
    """
    size = np.abs(residuals)
    if norm == "L0":
        return (size >= threshold).astype(np.float64), np.ones(size.shape[-1])
    unit = unit_of(size.max(axis=(0, 1)))
    return (size / unit) ** float(norm), unit


def _largest(known: EvaluationSet, value: Floats, radius: float | None) -> Estimate:
    """Return the largest error seen: exact, or of unknown uncertainty."""
    parts = known.parts(radius)
    exact = is_exact(parts)
    unsure = np.full(len(value), 0.0 if exact else np.nan)
    seen = sum(len(part) for part in parts)
    return Estimate(known.shaped(value), known.shaped(unsure), seen, exact)
