"""Simple measures of fit: at the input itself, explained variance, infidelity."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from harmonica_core._types import Floats
from harmonica_core.checks import check_feature_count
from harmonica_core.metrics.evaluations import (
    EvaluationSet,
    Sampling,
    evaluations_of,
)
from harmonica_core.metrics.inputs import Function, values_on
from harmonica_core.metrics.moments import estimate
from harmonica_core.result.estimate import Estimate
from harmonica_core.scaling import unit_of


def efficiency_gap(
    f: Function | EvaluationSet, g: Function, n_features: int
) -> Estimate:
    """``|g(x) - f(x)|`` at the input itself (everything kept); exact.

    Parameters
    ----------
    f, g, n_features
        As for `interpretation_error`.

    Examples
    --------
    >>> f = lambda masks: 1.0 * masks[:, 0] + masks[:, 1]
    >>> efficiency_gap(f, lambda masks: 1.5 * masks[:, 0], n_features=2)
    0.5 (exact)
    """
    n_features = check_feature_count(n_features)
    true = _values_of_input(f, n_features, "f")
    said = _values_of_input(g, n_features, "g")
    if said.size != true.size:
        raise ValueError(
            f"g has {said.size} outputs and f has {true.size}; needed the same number"
        )
    gap = np.abs(said.reshape(true.shape) - true)
    flat = gap.ndim == 0
    return Estimate(
        float(gap) if flat else gap,
        0.0 if flat else np.zeros_like(gap),
        n_evaluations=1,
        exact=True,
    )


def r_squared(
    f: Function | EvaluationSet,
    g: Function,
    n_features: int,
    radius: float | None = None,
    **sampling: Unpack[Sampling],
) -> Estimate:
    """``1 - E (f - g)^2 / Var f`` on a neighbourhood; nan where f is constant there.

    Parameters
    ----------
    f, g, n_features, radius, **sampling
        As for `interpretation_error`.

    Examples
    --------
    >>> f = lambda masks: 1.0 * masks[:, 0] + masks[:, 1]
    >>> r_squared(f, lambda masks: masks[:, 0] + 0.5, n_features=2)
    0.5 (exact)
    """
    known = evaluations_of(f, n_features, (radius,), sampling)
    parts = known.parts(radius)
    values = known.columns()
    # Any fixed shift keeps the variance; this one makes a constant exactly zero.
    centred = values - values[parts[0].rows.start]
    residual = values - known.predictions(g)
    size = np.maximum(np.abs(residual).max(axis=0), np.abs(centred).max(axis=0))
    residual, centred = residual / unit_of(size), centred / unit_of(size)
    columns = np.stack([residual**2, centred**2, centred])
    return estimate(_explained, columns, parts, known)


def infidelity(
    f: Function | EvaluationSet,
    g: Function,
    n_features: int,
    radius: float | None = None,
    *,
    normalize: bool = False,
    **sampling: Unpack[Sampling],
) -> Estimate:
    """``E ((g(x) - g(mask)) - (f(x) - f(mask)))^2`` on a neighbourhood.

    Captum's infidelity, ``E (I^T phi - (f(x) - f(x - I)))^2``, with the linear drop
    ``I^T phi`` replaced by the drop that g predicts; for ``g = base + sum_kept phi``
    they are the same number.

    Parameters
    ----------
    f, g, n_features, radius, **sampling
        As for `interpretation_error`.
    normalize : bool
        First scale the drops of g by the factor that fits best, as Captum does.

    Examples
    --------
    >>> f = lambda masks: 1.0 * (masks[:, 0] & masks[:, 1])
    >>> g = lambda masks: 0.5 * masks[:, 0] + 0.5 * masks[:, 1]
    >>> infidelity(f, g, n_features=2)
    0.125 (exact)
    """
    known = evaluations_of(f, n_features, (radius,), sampling)
    at_f = np.atleast_1d(_values_of_input(f, known.n_features, "f"))
    at_g = np.atleast_1d(_values_of_input(g, known.n_features, "g"))
    said = at_g - known.predictions(g)
    true = at_f - known.columns()
    unit = unit_of(np.maximum(np.abs(said).max(axis=0), np.abs(true).max(axis=0)))
    said, true = said / unit, true / unit
    if normalize:
        columns = np.stack([said**2, said * true, true**2])
        smooth = _least_squares
    else:
        columns, smooth = ((said - true) ** 2)[None], _first
    extra = 0 if isinstance(f, EvaluationSet) else 1
    parts = known.parts(radius)
    return estimate(smooth, columns, parts, known, extra, unit=unit, power=2)


def _values_of_input(
    function: Function | EvaluationSet, n_features: int, name: str
) -> Floats:
    """Value of the full mask: 0-dimensional or ``(n_outputs,)``."""
    if not isinstance(function, EvaluationSet):
        full = np.ones((1, n_features), dtype=bool)
        return np.asarray(values_on(function, full, n_features, name)[0])
    rows = np.flatnonzero(function.masks.all(axis=1))
    if len(rows) == 0:
        raise ValueError(
            "these evaluations do not hold the full mask, which this metric needs; "
            "draw them with radii=(1, ..., None)"
        )
    return np.asarray(function.values[rows[0]])


def _first(means: Floats) -> Floats:
    return np.asarray(means[0])


def _explained(means: Floats) -> Floats:
    """Explained share from the means of (residual^2, f^2, f)."""
    spread = means[1] - means[2] ** 2
    unknown = np.full_like(spread, np.nan)
    return np.asarray(1 - np.divide(means[0], spread, out=unknown, where=spread > 0))


def _least_squares(means: Floats) -> Floats:
    """``min_b E (b said - true)^2`` from the means of (said^2, said true, true^2)."""
    none = np.zeros_like(means[0])
    return np.asarray(
        means[2] - np.divide(means[1] ** 2, means[0], out=none, where=means[0] > 0)
    )
