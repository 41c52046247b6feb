"""Low-degree: Fourier coefficients as plain sample means."""

from __future__ import annotations

import numpy as np

from harmonica_core import basis
from harmonica_core._types import Floats, Masks, Table, Values
from harmonica_core.design import masks as draw
from harmonica_core.engine.explicit import Fit, ReadableSet, fit_exact
from harmonica_core.result.estimate import Estimate
from harmonica_core.result.held_out_error import stated_error
from harmonica_core.result.surrogate import Surrogate
from harmonica_core.result.surrogates_of import surrogate_of
from harmonica_core.scaling import fit_scaled
from harmonica_core.settings import check_degree


def fit_low_degree(
    masks: Masks,
    values: Values,
    degree: int = 3,
    *,
    centred: bool = True,
    ends: bool = False,
) -> Surrogate:
    """``a_S = 1/T sum_t f(x_t) chi_S(x_t)`` for all terms up to ``degree``.

    A constant added to f leaks into every term of this sum, as ``chi_S`` does not
    average to zero over a sample. So f is taken around its mean, unless ``centred`` is
    False: then the published formula applies to f as it is.

    Parameters
    ----------
    masks : bool (T, n_features)
        Uniform; complementary pairs (rows 2k and 2k + 1) are left out together in the
        stated error.
    values : float64 (T,) or (T, n_outputs)
    degree : int
    centred : bool
    ends : bool
        Make g pass exactly through f(all kept) and f(all removed).
    """
    columns = values.reshape(len(values), -1)
    readable = ReadableSet.of(None, masks.shape[1], check_degree(degree))
    rows = draw.rows_of_all(masks)
    table = readable.table()

    def fit_ordinary(scaled: Floats, _: float | None) -> Fit:
        if rows is not None:
            return fit_exact(scaled, rows, readable, None)
        return _sample_means(masks, scaled, table, centred)

    fit = fit_scaled(fit_ordinary, columns, None)
    return surrogate_of(fit, masks, values, max_degree=readable.max_degree, ends=ends)


def _sample_means(masks: Masks, values: Floats, table: Table, centred: bool) -> Fit:
    """Means of ``f chi_S``, and of ``chi_S`` alone: what a constant leaks."""
    middle = values.mean(axis=0)
    weighted = np.column_stack([np.ones(len(masks)), values - middle])
    means = basis.correlate(masks, table, weighted) / len(masks)
    leak, coef = means[:, :1], means[:, 1:]
    coef += middle * ((basis.term_sizes(table) == 0)[:, None] if centred else leak)
    fitted = basis.predict(masks, table, coef)
    if centred:
        held_out = _left_out_centred(masks, values, table, fitted, leak)
    else:
        held_out = _left_out(masks, values, table, fitted)
    value, spread = stated_error(masks, values, fitted, held_out)
    error = Estimate(value, spread, len(masks))
    return Fit(table, coef, np.zeros(values.shape[1]), error, held_out)


def _left_out_centred(
    masks: Masks, values: Floats, table: Table, fitted: Floats, leak: Floats
) -> Floats:
    """Predictions of each mask from the others, around the mean of the others."""
    middle = values.mean(axis=0)
    leaked = basis.predict(masks, table, leak)
    around = _left_out(masks, values - middle, table, fitted - middle)
    constant = _left_out(masks, np.ones((len(masks), 1)), table, leaked)
    gone = _left_out(masks, values - middle, table[:1], np.zeros_like(fitted))
    return np.asarray(middle + around - gone * (constant - 1))


def _left_out(masks: Masks, values: Floats, table: Table, predicted: Floats) -> Floats:
    """Predictions of each mask by the sample means of the others, in closed form.

    A mask's own share of its prediction is ``f(x) |C| / T``, its complement's
    ``f(-x) (even - odd terms) / T``.
    """
    n_masks, n_terms = len(masks), len(table)
    own, left = values * n_terms, 1
    if draw.are_paired(masks):
        parity = (-1.0) ** basis.term_sizes(table)
        partner = np.arange(n_masks) ^ 1
        own, left = own + values[partner] * parity.sum(), 2
    return np.asarray((n_masks * predicted - own) / max(n_masks - left, 1))
