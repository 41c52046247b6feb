"""The default engine: Bayesian regression on parities with a learnt prior."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from harmonica_core import basis
from harmonica_core._types import Floats, Masks, Table
from harmonica_core.basis.kernel import Prior
from harmonica_core.engine.posterior import Observed, Posterior, Regression, condition
from harmonica_core.engine.prior import learn_prior
from harmonica_core.engine.sample import Sample
from harmonica_core.engine.sparse import sparse_polynomials

# Residuals of standardised values below this are rounding: f is that polynomial.
_ROUNDING = 1e-9
# Terms of a polynomial that is tried by least squares: so many cost 0.1 seconds.
_MOST_TERMS = 1500
# Functions that are conditioned together. The last bit of a matrix product depends on
# how many columns are multiplied, so all blocks have this width: a row's result is the
# same in any batch. 64 columns cost no more time than 8.
_TOGETHER = 64


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
    blocks = [Sample.of(masks, block) for block in _blocks(values)]
    table, coefs = _exact_polynomials(blocks, degree)
    n_functions = values.shape[1]
    whole = Sample.of(masks, values)
    if not len(table) and prior is None and degree is None:
        table, found = sparse_polynomials(whole)
        coefs = _blocks(found)
    coef = np.concatenate(coefs, axis=1)[:, :n_functions]
    if prior is None:
        prior = learn_prior(_rest(whole, coef), degree)
    regression = Regression(prior, masks, whole.pairs, whole.singles, ends)
    parts = [
        condition(prior, _rest(block, known), ends, regression)
        for block, known in zip(blocks, coefs, strict=True)
    ]
    left_out = np.concatenate([residuals for _, residuals in parts], axis=1)
    posterior = _joined([part for part, _ in parts], n_functions)
    return BayesFit(posterior, left_out[:, :n_functions], table, coef)


def _blocks(values: Floats) -> list[Floats]:
    """Split columns into blocks of the same width, zeros at the end."""
    blocks = []
    for start in range(0, values.shape[1], _TOGETHER):
        block = np.zeros((len(values), _TOGETHER))
        part = values[:, start : start + _TOGETHER]
        block[:, : part.shape[1]] = part
        blocks.append(block)
    return blocks


def _joined(parts: list[Posterior], n_functions: int) -> Posterior:
    """Return one posterior of the blocks' functions; they share masks and prior."""
    even, odd, single = (
        np.concatenate([getattr(part.dual, name) for part in parts], axis=1)
        for name in ("even", "odd", "single")
    )
    # By columns, so that one function's numbers lie the same way in any batch.
    dual = Observed(*(np.asfortranarray(part) for part in (even, odd, single)))
    intercept = np.concatenate([part.intercept for part in parts])
    scale = np.concatenate([part.scale for part in parts])
    whole = Posterior(parts[0].regression, dual, intercept, scale)
    return whole.column(slice(0, n_functions))


def _rest(sample: Sample, coef: Floats) -> Sample:
    """Return the sample with functions set to 0 that a polynomial explains."""
    known = (coef != 0).any(axis=0)
    if not known.any():
        return sample
    return replace(
        sample,
        centre=np.where(known, 0.0, sample.centre),
        standard=np.where(known, 0.0, sample.standard),
    )


def _exact_polynomials(
    blocks: list[Sample], degree: int | None
) -> tuple[Table, list[Floats]]:
    """Terms and coefficients of functions that a small polynomial explains exactly.

    Degree 1 needs one mask more than terms, degree 2 a tenth more. What is found of a
    function does not depend on the functions beside it.
    """
    m, n = blocks[0].masks.shape
    table = np.zeros((0, 0), dtype=np.int32)
    coefs = [np.zeros((0, _TOGETHER)) for _ in blocks]
    for size, spare in ((1, 1), (2, m // 11)):
        n_terms = basis.n_terms_up_to(n, size)
        if size > n or (degree or n) < size:
            break
        if m < n_terms + max(spare, 1) or n_terms > _MOST_TERMS:
            break
        larger = basis.terms_up_to(n, size)
        design = basis.design(blocks[0].masks, larger)
        q, r = np.linalg.qr(design)
        diagonal = np.abs(np.diagonal(r))
        if diagonal.min() <= _ROUNDING * diagonal.max():
            break
        found = [_explained(block, design, q, r) for block in blocks]
        if any(coef.any() for coef in found):
            table = larger
            # Terms are listed by size: those of the smaller table come first.
            coefs = [
                np.where(old.any(axis=0), _longer(old, n_terms), new)
                for old, new in zip(coefs, found, strict=True)
            ]
        if not any(
            (_alive(block) & ~coef.any(axis=0)).any()
            for block, coef in zip(blocks, coefs, strict=True)
        ):
            break
    return table, coefs


def _explained(sample: Sample, design: Floats, q: Floats, r: Floats) -> Floats:
    """Coefficients of functions that the design's terms explain to the last digit."""
    coef = solve_triangular(r, q.T @ sample.standard)
    gap = np.abs(design @ coef - sample.standard).max(axis=0)
    exact = (gap <= _ROUNDING) & _alive(sample)
    coef = np.where(exact, coef, 0.0) * sample.spread
    coef[0] += np.where(exact, sample.centre, 0.0)
    coef[np.abs(coef) <= _ROUNDING * sample.spread] = 0.0
    return np.asarray(coef)


def _alive(sample: Sample) -> np.ndarray:
    return np.asarray((sample.standard != 0).any(axis=0))


def _longer(coef: Floats, n_terms: int) -> Floats:
    return np.pad(coef, ((0, n_terms - len(coef)), (0, 0)))
