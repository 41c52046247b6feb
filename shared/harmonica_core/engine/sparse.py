"""Polynomials of a few terms of any size, recovered to the last digit.

Orthogonal matching pursuit: the term that correlates most with what is left joins, all
coefficients are fitted anew, until nothing is left. It gives up as soon as what is left
looks like noise to every term, so functions that are not sparse cost little.
"""

from __future__ import annotations

import numpy as np

from harmonica_core import basis
from harmonica_core._types import Floats, Table
from harmonica_core.design.masks import mask_numbers
from harmonica_core.engine.sample import Sample

# Up to this many features every term is a candidate, by the fast transform.
_TRANSFORMED = 16
# Candidates beyond: all terms up to the largest size that is no more than these.
_CANDIDATES = 20_000
_LARGEST = 3
# Steps, at most a third of the masks: two thirds are left to say that f is found.
_MOST_STEPS = 128
# Correlation in standard errors that noise reaches among 2**16 terms once in 100 fits.
_NOISE = 5.2
# Residuals of standardised values below this are rounding.
_ROUNDING = 1e-9
# Functions that are looked at one by one.
_MOST_FUNCTIONS = 8


def sparse_polynomials(sample: Sample) -> tuple[Table, Floats]:
    """Return terms and coefficients ``(n_terms, C)`` of functions that are sparse.

    Coefficients of all others are 0; the table is empty where none is sparse.
    """
    n_functions = len(sample.spread)
    found = {}
    if n_functions <= _MOST_FUNCTIONS and sample.n_features:
        search = _Candidates(sample)
        for k in range(n_functions):
            one = _pursue(search, sample.standard[:, k])
            if one is not None:
                found[k] = one
    terms = sorted(
        {t for one in found.values() for t in one}, key=lambda t: (len(t), t)
    )
    coef = np.zeros((len(terms), n_functions))
    place = {term: row for row, term in enumerate(terms)}
    for k, one in found.items():
        for term, value in one.items():
            coef[place[term], k] = value * sample.spread[k]
        coef[place[()], k] += sample.centre[k]
    return basis.table_of(terms), coef


class _Candidates:
    """Terms that may join, and their correlations with values at the masks."""

    def __init__(self, sample: Sample) -> None:
        self.masks, n = sample.masks, sample.n_features
        self.weights = _uniform_weights(sample)
        self.table: Table | None = None
        if n > _TRANSFORMED:
            degree = max(
                d
                for d in range(1, _LARGEST + 1)
                if d == 1 or basis.n_terms_up_to(n, d) <= _CANDIDATES
            )
            self.table = basis.terms_up_to(n, degree)
            self.columns = basis.design(self.masks, self.table, np.float32)
        else:
            self.rows = mask_numbers(self.masks)

    def correlations(self, left: Floats) -> Floats:
        """Return ``sum_t w_t left_t chi_S(x_t)`` of every candidate."""
        weighted = self.weights * left
        if self.table is not None:
            return np.asarray(weighted @ self.columns, dtype=np.float64)
        cube = np.zeros(1 << self.masks.shape[1])
        cube[self.rows] = weighted
        return basis.spectrum_of_values(cube) * len(cube)

    def terms(self, numbers: list[int]) -> Table:
        """Return the terms with these places among the correlations."""
        if self.table is not None:
            return self.table[numbers]
        n = self.masks.shape[1]
        chosen = [tuple(i for i in range(n) if number >> i & 1) for number in numbers]
        return basis.table_of(chosen)


def _uniform_weights(sample: Sample) -> Floats:
    """Weights that make up for masks near the ends, at most 1."""
    n = sample.n_features
    removed = n - sample.masks.sum(axis=1)
    distance = np.minimum(removed, n - removed)
    drawn = np.bincount(distance, minlength=n // 2 + 1)
    # Masks about as far from both ends as uniform ones mostly are count fully.
    usual = distance >= n / 2 - np.sqrt(n)
    typical = drawn[distance[usual]].max(initial=1)
    return np.where(usual, 1.0, 1.0 / np.sqrt(1.0 + typical))


def _pursue(search: _Candidates, values: Floats) -> dict[tuple[int, ...], float] | None:
    """Return ``{term: coef}`` of one function, None if it is not sparse."""
    m = len(values)
    left, basis_rows = values.copy(), np.zeros((0, m))
    chosen: list[int] = []
    for _ in range(min(_MOST_STEPS, m // 3)):
        scores = np.abs(search.correlations(left))
        scores[chosen] = 0.0
        best = int(scores.argmax())
        if scores[best] < _NOISE * float(np.linalg.norm(search.weights * left)):
            return None
        chosen.append(best)
        column = basis.design(search.masks, search.terms([best]))[:, 0].copy()
        for _ in range(2):  # once is not enough where columns are almost dependent
            column -= basis_rows.T @ (basis_rows @ column)
        size = float(np.linalg.norm(column))
        if size < 1e-6 * np.sqrt(m):
            continue
        column /= size
        basis_rows = np.concatenate([basis_rows, column[None, :]])
        left -= column * float(column @ left)
        if np.abs(left).max() <= _ROUNDING:
            return _refit(search, values, chosen)
    return None


def _refit(
    search: _Candidates, values: Floats, chosen: list[int]
) -> dict[tuple[int, ...], float]:
    """Return least squares on the chosen terms and the intercept, rounding left out."""
    table = search.terms([0, *(number for number in chosen if number)])
    design = basis.design(search.masks, table)
    coef = np.linalg.lstsq(design, values, rcond=None)[0]
    pairs = zip(basis.terms_of(table), coef.tolist(), strict=True)
    return {t: c for t, c in pairs if abs(c) > _ROUNDING or not t}
