"""From coefficients to surrogates: of each function its terms, error and values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from harmonica_core import basis
from harmonica_core._types import Floats, Masks, Values
from harmonica_core.design import masks as draw
from harmonica_core.engine.bayes import BayesFit
from harmonica_core.engine.explicit import Fit, held_out_error
from harmonica_core.evaluate import Evaluated
from harmonica_core.result.ends import rows_of_ends, through_ends
from harmonica_core.result.estimate import Estimate
from harmonica_core.result.mean import Mean
from harmonica_core.result.stated_error import stated_error
from harmonica_core.result.surrogate import Surrogate
from harmonica_core.scaling import scale_of, unit_of


def surrogate_of(
    fit: Fit, masks: Masks, values: Values, *, max_degree: int, ends: bool = False
) -> Surrogate:
    """Return the surrogate of a fit to ``values (m,)`` or ``(m, n_outputs)``."""
    (found,) = surrogates_of(
        fit, masks, values[:, None], max_degree=max_degree, ends=ends
    )
    return found


def surrogates_of(
    fit: Fit,
    masks: Masks,
    values: Values,
    *,
    max_degree: int,
    radius: int | None = None,
    ends: bool = False,
) -> list[Surrogate]:
    """Surrogates of a joint fit to ``values (m, n_functions)`` or ``(.., n_outputs)``.

    The columns of the fit run over functions, and within them over outputs.
    """
    one_output = values.ndim == 2
    columns = values.reshape(*values.shape[:2], -1)
    if ends:
        flat = columns.reshape(len(values), -1)
        fit = _through_evaluated_ends(fit, masks, flat, radius)
    return _surrogates(fit, masks, columns, radius, one_output, max_degree)


def _through_evaluated_ends(
    fit: Fit, masks: Masks, values: Floats, radius: int | None
) -> Fit:
    full, empty = rows_of_ends(masks)
    n_features = masks.shape[1]
    table, coef = through_ends(
        fit.table, fit.coef, n_features, values[full], values[empty]
    )
    before = np.pad(fit.coef, ((0, len(coef) - len(fit.coef)), (0, 0)))
    inside = draw.in_ball(masks, radius)
    if radius is not None and fit.held_out is not None and inside.any():
        fitted = basis.predict(masks, table, coef)
        held_out = fit.held_out + fitted - basis.predict(masks, fit.table, fit.coef)
        unit = scale_of(values)
        seen, said, expected = (v[inside] / unit for v in (values, fitted, held_out))
        error = held_out_error(masks[inside], seen, said, expected, radius)
        error = replace(
            error,
            value=error.value * unit,
            standard_error=error.standard_error * unit,
        )
        return replace(fit, table=table, coef=coef, error=error, held_out=held_out)
    if fit.error.exact:
        gap = values - basis.predict(masks, table, coef)
        unit = unit_of(np.abs(gap).max(axis=0))
        value = unit * np.sqrt(((gap / unit) ** 2).mean(axis=0))
        # A fit without error meets both ends; rounding is no reason to move it.
        met = np.asarray(fit.error.value) == 0
        coef, value = np.where(met, before, coef), np.where(met, 0.0, value)
        exact = replace(fit.error, value=value)
        return replace(fit, table=table, coef=coef, error=exact)
    # The change lies in V_C, to which f - g is about orthogonal: energies add up.
    added = coef - before
    value = np.hypot(fit.error.value, np.hypot.reduce(added, axis=0))
    return replace(fit, table=table, coef=coef, error=replace(fit.error, value=value))


def _surrogates(
    fit: Fit,
    masks: Masks,
    values: Floats,
    radius: int | None,
    one_output: bool,
    max_degree: int,
) -> list[Surrogate]:
    n_functions, n_outputs = values.shape[1:]
    coef = fit.coef.T.reshape(n_functions, n_outputs, len(fit.table))
    shown = (coef != 0).any(axis=1) | (basis.term_sizes(fit.table) == 0)
    out = []
    for k in range(n_functions):
        active = np.flatnonzero(shown[k])
        block = slice(k * n_outputs, (k + 1) * n_outputs)
        pick = 0 if one_output else slice(None)
        value, standard_error = fit.error.value, fit.error.standard_error
        out.append(
            Surrogate(
                n_features=masks.shape[1],
                table=basis.trim(fit.table[active]),
                coef=coef[k][:, active].T[:, pick],
                error=Estimate(
                    np.asarray(value)[block][pick],
                    np.asarray(standard_error)[block][pick],
                    fit.error.n_evaluations,
                    fit.error.exact,
                ),
                n_evaluations=len(masks),
                alpha=fit.alpha[block][pick],
                radius=radius,
                max_degree=max_degree,
                evaluated=Evaluated(masks, values[:, k, pick]),
            )
        )
    return out


def posterior_surrogates(
    fit: BayesFit,
    masks: Masks,
    values: Values,
    radius: int | None,
    degree: int | None,
) -> list[Surrogate]:
    """Return surrogates of a fit to ``values (m, n_functions[, n_outputs])``."""
    one_output = values.ndim == 2
    columns = values.reshape(*values.shape[:2], -1)
    n_functions, n_outputs = columns.shape[1:]
    inside = draw.in_ball(masks, radius)
    flat = _by_rows(columns.reshape(len(columns), -1))
    left_out = _by_rows(fit.left_out[inside])
    scale = np.append(fit.posterior.scale, 0.0)
    model = scale * fit.posterior.regression.typical_std(radius)
    unit = unit_of(np.abs(flat).max(axis=0))
    spread = unit * (flat / unit).std(axis=0)
    stated = stated_error(masks[inside], left_out, model, spread, radius)
    error = stated.error
    out = []
    for k in range(n_functions):
        block = slice(k * n_outputs, (k + 1) * n_outputs)
        pick = 0 if one_output else slice(None)
        own = fit.coef[:, block]
        # Its own terms only: what is added up must not depend on other functions.
        active = np.flatnonzero(own.any(axis=1))
        mean = Mean(
            fit.posterior.column(block),
            columns[:, k],
            one_output,
            basis.trim(fit.table[active]),
            own[active],
            stated.calibration[block],
        )
        value = np.asarray(error.value)[block]
        out.append(
            Surrogate(
                n_features=masks.shape[1],
                error=Estimate(
                    value[pick],
                    np.asarray(error.standard_error)[block][pick],
                    len(masks),
                ),
                n_evaluations=len(masks),
                radius=radius,
                max_degree=degree,
                evaluated=Evaluated(masks, columns[:, k, pick]),
                mean=mean,
            )
        )
    return out


def _by_rows(columns: Floats) -> Floats:
    """Return columns, one of zeros added, that numpy adds up row by row.

    A single column, or one in Fortran's order, is added up in another order, and its
    last bit would depend on the functions beside it.
    """
    out = np.zeros((len(columns), columns.shape[1] + 1))
    out[:, :-1] = columns
    return out
