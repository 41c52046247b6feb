"""The default engine: Bayesian regression on parities with a learnt prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harmonica_core import basis
from harmonica_core._types import Floats, Masks, Table
from harmonica_core.basis.kernel import Prior
from harmonica_core.engine.posterior import Posterior, condition
from harmonica_core.engine.prior import learn_prior
from harmonica_core.engine.sample import Sample
from harmonica_core.engine.sparse import sparse_polynomials

# Residuals of standardised values below this are rounding: f is that polynomial.
_ROUNDING = 1e-9
# Terms of a polynomial that is tried by least squares: so many cost 0.1 seconds.
_MOST_TERMS = 1500


@dataclass(frozen=True)
class BayesFit:
    """Polynomial and posterior of the rest, of C functions.

    Attributes
    ----------
    posterior : Posterior
    left_out : float64 (m, C)
        Residuals at each mask, from all others.
    table, coef : int32 (n_terms, width), float64 (n_terms, C)
        Functions that are a polynomial of degree 1 or 2, or of a few terms, to the last
        digit; 0 for others.
    """

    posterior: Posterior
    left_out: Floats
    table: Table
    coef: Floats


def fit_bayes(
    masks: Masks,
    values: Floats,
    degree: int | None,
    prior: Prior | None = None,
    ends: bool = True,
) -> BayesFit:
    """Fit ``values (m, C)``: learn the prior where none is given, and condition.

    Parameters
    ----------
    masks : bool (m, n_features)
        Distinct.
    values : float64 (m, C)
    degree : int, optional
        No larger terms.
    prior : Prior, optional
        Learnt before, for instance from other rows of the same table.
    ends : bool
        Pass through both ends, also with a degree.
    """
    sample = Sample.of(masks, values)
    table, coef = _exact_polynomial(sample, degree)
    if not len(table) and prior is None and degree is None:
        table, coef = sparse_polynomials(sample)
    rest = sample
    if len(table):
        found = (coef != 0).any(axis=0)
        standard = np.where(found, 0.0, sample.standard)
        rest = Sample(
            sample.masks,
            np.where(found, 0.0, sample.centre),
            sample.spread,
            standard,
            sample.pairs,
            sample.singles,
        )
    if prior is None:
        prior = learn_prior(rest, degree)
    posterior, left_out = condition(prior, rest, ends)
    return BayesFit(posterior, left_out, table, coef)


def _exact_polynomial(sample: Sample, degree: int | None) -> tuple[Table, Floats]:
    """Terms and coefficients of functions that a small polynomial explains exactly.

    Degree 1 needs one mask more than terms, degree 2 a tenth more.
    """
    m, n = sample.masks.shape
    n_functions = len(sample.spread)
    empty = np.zeros((0, 0), dtype=np.int32)
    for size, spare in ((1, 1), (2, m // 11)):
        n_terms = basis.n_terms_up_to(n, size)
        if size > n or (degree or n) < size:
            break
        if m < n_terms + max(spare, 1) or n_terms > _MOST_TERMS:
            break
        table = basis.terms_up_to(n, size)
        design = basis.design(sample.masks, table)
        coef, _, rank, _ = np.linalg.lstsq(design, sample.standard, rcond=None)
        gap = np.abs(design @ coef - sample.standard).max(axis=0)
        exact = (gap <= _ROUNDING) & (sample.standard != 0).any(axis=0)
        if rank == n_terms and exact.any():
            coef = np.where(exact, coef, 0.0) * sample.spread
            coef[0] += np.where(exact, sample.centre, 0.0)
            coef[np.abs(coef) <= _ROUNDING * sample.spread] = 0.0
            return table, coef
    return empty, np.zeros((0, n_functions))
