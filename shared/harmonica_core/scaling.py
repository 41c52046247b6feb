"""Values of any magnitude, fitted where squares neither overflow nor vanish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from harmonica_core._types import Floats
from harmonica_core.result.estimate import Estimate

if TYPE_CHECKING:
    from harmonica_core.engine.explicit import Fit

# Sums of a million fourth powers (the spread of squares) are ordinary numbers.
_SMALL, _LARGE = 1e-50, 1e50


def fit_scaled(
    fit: Callable[[Floats, float | None], Fit], values: Floats, alpha: float | None
) -> Fit:
    """Call ``fit(values, alpha)`` at an ordinary scale and undo the scaling.

    Explaining ``c f`` gives ``c`` times the coefficients, so scaling changes nothing
    else; by powers of two it does not even round. Ordinary values are left alone.

    Parameters
    ----------
    fit : callable
    values : float64 (m, n_outputs)
    alpha : float or None
        A given strength is in the units of the values: then one scale serves all.
    """
    scale = scale_of(values)
    if (scale == 1).all():
        return fit(values, alpha)
    if alpha is not None:
        scale[:] = scale.max()
        with np.errstate(over="ignore"):
            alpha = float(np.minimum(alpha / scale[0], _LARGE))
    return _times(fit(values / scale, alpha), scale)


def scale_of(values: Floats) -> Floats:
    """Return a power of two for each extreme output, 1 for all others."""
    size = np.abs(values).max(axis=0, initial=0.0)
    extreme = (size > 0) & ((size < _SMALL) | (size > _LARGE))
    return np.where(extreme, unit_of(size), 1.0)


def unit_of(size: Floats) -> Floats:
    """Return a power of two about as large as ``size``: dividing by it does not round.

    1 for a size of 0.
    """
    # 2**1023 is the largest double, and values / 2**-1022 the largest exact quotient.
    return np.asarray(np.ldexp(1.0, np.clip(np.frexp(size)[1], -1022, 1023)))


def _times(fit: Fit, scale: Floats) -> Fit:
    error = fit.error
    return replace(
        fit,
        coef=fit.coef * scale,
        alpha=fit.alpha * scale,
        error=Estimate(
            error.value * scale,
            error.standard_error * scale,
            error.n_evaluations,
            error.exact,
        ),
        held_out=None if fit.held_out is None else fit.held_out * scale,
    )
