"""Inconsistency of k local models, each explaining its own region of the cube.

    inconsistency = log k,
    I_total = sum_i ||(f - g_i) restricted to X_i||_2,
    D_total = sum_i ||spectrum of (g_i - gbar)||_2,      gbar = mean of the g_i.

The norm of a restriction is ``sqrt(E [1_{X_i} (f - g_i)^2])`` over uniform masks: zero
outside of X_i, not renormalised. With it (and Parseval) the paper's trade-off holds,
``I_total + D_total >= sum_i ||(f - gbar) restricted to X_i||_2``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from harmonica_core._types import Floats, Masks
from harmonica_core.metrics.evaluations import (
    EvaluationSet,
    Sampling,
    evaluations_of,
)
from harmonica_core.metrics.inputs import Function
from harmonica_core.metrics.moments import estimate, nonnegative
from harmonica_core.result.anchored import AnchoredSurrogate, common_terms
from harmonica_core.result.estimate import Estimate
from harmonica_core.result.surrogate import Surrogate
from harmonica_core.scaling import unit_of

# Masks -> number of the model that explains each, (m,).
Regions = Callable[[Masks], Any]


class Inconsistency(NamedTuple):
    """What it costs to explain with several models.

    Attributes
    ----------
    log_k : Estimate
        Inconsistency, the logarithm of the number of models.
    I_total : Estimate
        Sum of the models' errors on their own regions.
    D_total : Estimate
        Sum of the models' distances from their mean.

    Examples
    --------
    >>> f = lambda masks: 1.0 * (masks[:, 0] & masks[:, 1])
    >>> local = [lambda masks: 0.0 * masks[:, 0], lambda masks: 1.0 * masks[:, 1]]
    >>> found = inconsistency(f, local, 2, regions=lambda masks: masks[:, 0])
    >>> found.log_k, found.D_total
    (0.693 (exact), 0.707 (exact))
    """

    log_k: Estimate
    I_total: Estimate
    D_total: Estimate


def inconsistency(
    f: Function | EvaluationSet,
    models: Any,
    n_features: int,
    regions: Regions | None = None,
    **sampling: Unpack[Sampling],
) -> Inconsistency:
    """``log k``, ``I_total`` and ``D_total`` of local models.

    Parameters
    ----------
    f, n_features, **sampling
        As for `interpretation_error`.
    models : AnchoredSurrogate, Surrogate, or sequence of functions of masks
        A single surrogate is one model for everything.
    regions : callable, bool (m, n_features) -> int (m,)
        Which model explains each mask; not for an AnchoredSurrogate, which knows.

    Examples
    --------
    >>> f = lambda masks: 1.0 * (masks[:, 0] & masks[:, 1])
    >>> local = [lambda masks: 0.0 * masks[:, 0], lambda masks: 1.0 * masks[:, 1]]
    >>> log_k, I_total, D_total = inconsistency(
    ...     f, local, n_features=2, regions=lambda masks: masks[:, 0]
    ... )
    >>> I_total
    0 (exact)
    """
    known = evaluations_of(f, n_features, (None,), sampling)
    local, regions = _local_models(models, regions)
    owner = _owners(regions, known.masks, len(local))
    predictions = np.stack(
        [known.predictions(g, f"models[{i}]") for i, g in enumerate(local)]
    )
    inside = owner == np.arange(len(local))[:, None]
    residuals = inside[..., None] * (known.columns() - predictions)
    log_k = float(np.log(len(local)))
    return Inconsistency(
        Estimate(log_k, 0.0, 0, exact=True),
        _sum_of_norms(residuals, known),
        _distance_from_mean(local, predictions, known),
    )


def _distance_from_mean(
    local: Sequence[Function], predictions: Floats, known: EvaluationSet
) -> Estimate:
    """``D_total``: from the spectra if all are known, else by Parseval from values."""
    polynomials = [g for g in local if isinstance(g, Surrogate)]
    if len(polynomials) == len(local):
        _, spectra = common_terms(polynomials)
        apart = spectra - spectra.mean(axis=0)
        unit = unit_of(np.abs(apart).max(axis=(0, 1), initial=0.0))
        total = unit * _sum_of_roots(((apart / unit) ** 2).sum(axis=1))
        none = known.shaped(np.zeros_like(total))
        return Estimate(known.shaped(total), none, 0, exact=True)
    return _sum_of_norms(predictions - predictions.mean(axis=0), known)


def _sum_of_norms(columns: Floats, known: EvaluationSet) -> Estimate:
    """``sum_i sqrt(E column_i^2)`` over the cube, for ``columns (k, m, n_outputs)``."""
    unit = unit_of(np.abs(columns).max(axis=(0, 1)))
    squares = (columns / unit) ** 2
    return estimate(_sum_of_roots, squares, known.parts(None), known, unit=unit)


def _sum_of_roots(means: Floats) -> Floats:
    return np.asarray(np.sqrt(nonnegative(means)).sum(axis=0))


def _local_models(
    models: Any, regions: Regions | None
) -> tuple[list[Function], Regions]:
    """Return the models and the function that says which one explains a mask."""
    if isinstance(models, AnchoredSurrogate):
        if regions is not None:
            raise ValueError(
                "got regions, but an AnchoredSurrogate has its own; leave them out"
            )
        return list(models.surrogates), models.nearest
    if not callable(models) and not isinstance(models, Iterable):
        raise ValueError(
            f"models is {type(models).__name__}; needed an AnchoredSurrogate, one "
            "surrogate or callable, or several of them with regions="
        )
    local = [models] if callable(models) else list(models)
    if not local:
        raise ValueError("got no models; needed at least one")
    if regions is None:
        if len(local) > 1:
            raise ValueError(
                f"got {len(local)} models without regions; needed regions=, a function "
                "of masks that returns the number of the model for each"
            )
        return local, lambda masks: np.zeros(len(masks), dtype=np.int64)
    return local, regions


def _owners(regions: Regions, masks: Masks, n_models: int) -> np.ndarray:
    """Return the model of each mask ``(m,)``, checked."""
    owner = np.asarray(regions(masks))
    whole = owner.dtype.kind in "biu" and owner.shape == (len(masks),)
    if not whole or owner.min() < 0 or owner.max() >= n_models:
        raise ValueError(
            f"regions returned shape {owner.shape} and dtype {owner.dtype} for "
            f"{len(masks)} masks; needed whole numbers 0 to {n_models - 1}, one a mask"
        )
    return owner.astype(np.int64)
