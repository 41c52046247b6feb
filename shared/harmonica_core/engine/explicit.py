"""Explicit polynomials: exact from all masks, or the LASSO from some of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from harmonica_core import basis
from harmonica_core._types import Floats, Masks, Table
from harmonica_core.basis import transform
from harmonica_core.design.masks import ball_size, in_ball, rows_of_all
from harmonica_core.engine.lasso.solve import MEMORY, fit_sparse
from harmonica_core.result.estimate import Estimate
from harmonica_core.result.held_out_error import CAUTION, stated_error
from harmonica_core.scaling import fit_scaled

# Fewer masks than these support nothing but their mean: each fold of a
# cross-validation needs a pair to be left out and a few to learn from.
FEWEST_MASKS = 12

Terms: TypeAlias = Iterable[Sequence[int]] | None


@dataclass(frozen=True)
class ReadableSet:
    """The readable set C.

    Attributes
    ----------
    n_features, degree : int
    given : int32 (n_terms, width), optional
        The terms themselves, when they are not the ball of ``degree``.
    """

    n_features: int
    degree: int
    given: Table | None = None

    @classmethod
    def of(cls, terms: Terms, n_features: int, degree: int) -> ReadableSet:
        """Read the ``terms`` argument of `fit_surrogate`."""
        degree = min(degree, n_features)
        if terms is None:
            return cls(n_features, degree)
        table = basis.check_table(terms, n_features)
        return cls(n_features, degree, table[basis.term_sizes(table) > 0])

    @property
    def max_degree(self) -> int:
        """Size of the largest candidate term."""
        if self.given is None:
            return self.degree
        return basis.largest_size(self.given)

    def table(self) -> Table:
        """All terms of C, the empty term first."""
        if self.given is None:
            return basis.terms_up_to(self.n_features, self.degree)
        return basis.with_empty_term(self.given)


@dataclass(frozen=True)
class Fit:
    """What an estimator found for each output.

    Attributes
    ----------
    table : int32 (n_terms, width)
        Holds the empty term.
    coef : float64 (n_terms, n_outputs)
    alpha : float64 (n_outputs,)
    error : Estimate
        With arrays ``(n_outputs,)``.
    held_out : float64 (m, n_outputs), optional
        Predictions of each mask by a fit that has not seen it; None when exact.
    """

    table: Table
    coef: Floats
    alpha: Floats
    error: Estimate
    held_out: Floats | None = None


def fit_exact(
    values: Floats,
    rows: NDArray[np.int64],
    readable: ReadableSet,
    alpha: float | None,
) -> Fit:
    """Project onto C from the values ``(2**n, n_outputs)`` of all masks.

    ``rows (2**n,)`` says where each member of `all_masks` stands.

    The parities are orthonormal on the cube, so the LASSO with a given ``alpha`` is
    the soft-thresholded spectrum, and without one the spectrum itself. The error is
    exact by Parseval: the energy of everything that g does not hold.
    """
    full = transform.spectrum_of_values(values[rows])
    noise = np.finfo(float).eps * readable.n_features * np.abs(values).max(axis=0)
    full[np.abs(full) <= 4 * noise] = 0
    if readable.given is None and readable.degree == readable.n_features:
        numbers = np.flatnonzero((full != 0).any(axis=1) | (np.arange(len(full)) == 0))
        table = basis.table_of_numbers(numbers, readable.n_features)
    else:
        table = readable.table()
    numbers = basis.term_numbers(table, readable.n_features)
    coef = full[numbers]
    if alpha is not None:
        shrunk = np.sign(coef) * np.maximum(np.abs(coef) - alpha, 0)
        coef = np.where(numbers[:, None] == 0, coef, shrunk)
    full[numbers] -= coef
    lost = np.sqrt((full**2).sum(axis=0))
    error = Estimate(lost, np.zeros_like(lost), len(values), exact=True)
    return Fit(table, coef, np.full(len(lost), alpha or 0.0), error)


def fit_values(
    masks: Masks,
    values: Floats,
    readable: ReadableSet,
    alpha: float | None,
    radius: int | None,
    memory: int = MEMORY,
) -> Fit:
    """Fit ``values (m, n_outputs)``: exactly when these are all masks."""
    rows = rows_of_all(masks) if radius is None else None
    if rows is not None:
        return fit_scaled(lambda v, a: fit_exact(v, rows, readable, a), values, alpha)
    return fit_scaled(
        lambda v, a: fit_sampled(masks, v, readable, a, radius, memory), values, alpha
    )


def fit_sampled(
    masks: Masks,
    values: Floats,
    readable: ReadableSet,
    alpha: float | None,
    radius: int | None,
    memory: int = MEMORY,
) -> Fit:
    """Fit C to sampled masks, and state the error from held-out predictions."""
    if len(masks) < FEWEST_MASKS:
        inside = in_ball(masks, radius)
        if radius is not None and inside.sum() == population(masks.shape[1], radius):
            return _fit_small_ball(masks, values, readable, inside)
        return fit_constant(values)
    centre, spread, standard = _standardise(values, chosen=alpha is None)
    terms = readable.degree if readable.given is None else readable.given
    strength = "auto" if alpha is None else alpha
    found = fit_sparse(masks, standard, terms, strength, memory=memory)
    table = basis.with_empty_term(found.table)
    coef = np.concatenate([found.intercept[None, :], found.coef]) * spread
    coef[0] += centre
    held_out = found.held_out * spread + centre
    fitted = basis.predict(masks, table, coef)
    error = held_out_error(masks, values, fitted, held_out, radius)
    return Fit(table, coef, found.alpha * spread, error, held_out)


def held_out_error(
    masks: Masks,
    values: Floats,
    fitted: Floats,
    held_out: Floats,
    radius: int | None,
) -> Estimate:
    """Return the stated error of a chosen fit, over the cube or the ball."""
    share = len(masks) / population(masks.shape[1], radius)
    value, se = stated_error(masks, values, fitted, held_out, None, share)
    exact = radius is not None and share >= 1
    return Estimate(value, CAUTION * se, len(masks), exact)


def _fit_small_ball(
    masks: Masks, values: Floats, readable: ReadableSet, inside: NDArray[np.bool_]
) -> Fit:
    """Least squares of least norm on a whole ball, too small for a choice of alpha."""
    table = readable.table()
    design = basis.design(masks, table)
    coef = np.linalg.lstsq(design, values, rcond=None)[0]
    fitted = design @ coef
    error = np.sqrt(((values - fitted)[inside] ** 2).mean(axis=0))
    stated = Estimate(error, np.zeros_like(error), len(masks), exact=True)
    return Fit(table, coef, np.zeros(values.shape[1]), stated, fitted)


def _standardise(values: Floats, chosen: bool) -> tuple[Floats, Floats, Floats]:
    """Mean, spread and standardised values, where the strength is to be chosen.

    Rounding to eleven digits makes a*f + b the very same numbers as f, so that a
    choice between equally good candidates can not depend on a or b.
    """
    n_outputs = values.shape[1]
    if not chosen:
        return np.zeros(n_outputs), np.ones(n_outputs), values
    centre = values.mean(axis=0)
    spread = np.where(np.ptp(values, axis=0) > 0, values.std(axis=0), 0)
    spread = np.where(spread > 0, spread, 1)
    return centre, spread, np.round((values - centre) / spread, 11)


def fit_constant(values: Floats) -> Fit:
    """Return the mean of ``values (m, n_outputs)``, all that a few masks support."""
    m = len(values)
    mean = values.mean(axis=0)
    held_out = mean - (values - mean) / max(m - 1, 1)  # the mean of the other rows
    square = (values - held_out) ** 2
    value = np.sqrt(square.mean(axis=0))
    spread = square.std(axis=0) / np.sqrt(max(m - 1, 1))
    se = np.divide(spread, 2 * value, out=np.zeros_like(value), where=value > 0)
    table = np.empty((1, 0), dtype=np.int32)
    error = Estimate(value, se, m)
    return Fit(table, mean[None, :], np.zeros(len(mean)), error, held_out)


def population(n_features: int, radius: int | None) -> float:
    """Number of masks in the cube, or in the ball; infinity beyond a float's range."""
    size = 1 << n_features if radius is None else ball_size(n_features, radius)
    return float(size) if size.bit_length() <= 1000 else np.inf
