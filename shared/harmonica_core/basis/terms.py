"""The parity basis: terms, their columns, and predictions in bounded memory.

The sign convention lives here and nowhere else: a kept feature is +1, a removed one
-1, and ``chi_S(x) = prod_{i in S} x_i``. These functions are orthonormal under the
uniform measure on masks.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from harmonica_core._types import Floats, Masks, Table, Term

# Bytes that one block of columns may take; larger ones fall out of the cache.
_BLOCK_BYTES = 1 << 23
# Rows multiplied at a time: they should stay in the processor's cache.
_CACHE_BYTES = 1 << 18


def signs(masks: Masks, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Signs ``(m, n_features + 1)``; the last column is all ones.

    That extra column is what the padding -1 of a term table points at.
    """
    out = np.ones((masks.shape[0], masks.shape[1] + 1), dtype=dtype)
    np.multiply(masks, 2, out=out[:, :-1], casting="unsafe")
    out[:, :-1] -= 1
    return out


def n_terms_up_to(n_features: int, degree: int) -> int:
    """Return the number of terms of size 0 to ``degree``."""
    return sum(math.comb(n_features, k) for k in range(min(degree, n_features) + 1))


def terms_up_to(n_features: int, degree: int) -> Table:
    """All terms of size 0 to ``degree``, by size, then in lexicographic order.

    Examples
    --------
    >>> terms_up_to(3, 2).tolist()
    [[-1, -1], [0, -1], [1, -1], [2, -1], [0, 1], [0, 2], [1, 2]]
    """
    degree = min(degree, n_features)
    table = np.full((n_terms_up_to(n_features, degree), degree), -1, dtype=np.int32)
    start = 1
    for size in range(1, degree + 1):
        count = math.comb(n_features, size)
        flat = itertools.chain.from_iterable(
            itertools.combinations(range(n_features), size)
        )
        block = np.fromiter(flat, dtype=np.int32, count=count * size)
        table[start : start + count, :size] = block.reshape(count, size)
        start += count
    return table


def check_terms(terms: Iterable[Sequence[int]], n_features: int) -> list[Term]:
    """Return distinct sorted terms, or say which one is impossible."""
    checked: dict[Term, None] = {}
    for term in terms:
        try:
            features = [operator.index(i) for i in term]
        except TypeError:
            raise ValueError(
                f"term {term!r} is not a sequence of features; needed tuples of whole "
                "numbers such as (0, 3); a single feature is (3,)"
            ) from None
        if any(i < 0 or i >= n_features for i in features):
            raise ValueError(
                f"term {tuple(features)} names a feature outside 0 to {n_features - 1};"
                f" there are {n_features} features, counted from 0"
            )
        if len(set(features)) != len(features):
            raise ValueError(
                f"term {tuple(features)} names a feature twice; x_i * x_i = 1, so list "
                "each feature once"
            )
        checked[tuple(sorted(features))] = None
    return list(checked)


def check_table(terms: Table | Iterable[Sequence[int]], n_features: int) -> Table:
    """Return a valid term table from a table or from an iterable of tuples."""
    if not isinstance(terms, np.ndarray):
        return table_of(check_terms(terms, n_features))
    if terms.ndim != 2 or terms.dtype.kind != "i" or not _is_table(terms, n_features):
        raise ValueError(
            f"term table of shape {terms.shape} and dtype {terms.dtype} is not valid; "
            f"needed distinct rows of ascending features 0 to {n_features - 1}, padded "
            "with -1"
        )
    return terms.astype(np.int32)


def _is_table(table: NDArray[Any], n_features: int) -> bool:
    """Check range, ascending features, padding at the end, distinct rows."""
    if table.size == 0:
        return len(table) <= 1
    if table.min() < -1 or table.max() >= n_features:
        return False
    columns = np.ascontiguousarray(table.T)  # long rows compare faster
    left, right = columns[:-1], columns[1:]
    ascending = (right == -1) | ((left >= 0) & (left < right))
    return bool(ascending.all()) and _are_distinct(columns, n_features + 1)


def _are_distinct(columns: NDArray[Any], base: int) -> bool:
    """Whether no two terms, ``(width, n_terms)`` with entries below base - 1, agree."""
    if base ** len(columns) < 1 << 63:  # one number for each term sorts fastest
        number = columns[0].astype(np.int64)
        for column in columns[1:]:
            number = base * number + column
        number.sort()
        return bool((number[1:] != number[:-1]).all())
    ordered = columns[:, np.lexsort(columns)]
    return not (ordered[:, 1:] == ordered[:, :-1]).all(axis=0).any()


def trim(table: Table) -> Table:
    """Drop columns that hold only padding."""
    return table[:, : largest_size(table)]


def active_rows(table: Table, coef: Floats) -> NDArray[np.int64]:
    """Rows of the empty term and of terms with a non-zero coefficient."""
    return np.flatnonzero((term_sizes(table) == 0) | (coef != 0).any(axis=1))


def table_of(terms: Sequence[Term]) -> Table:
    """Return the padded table of the given sorted terms.

    Examples
    --------
    >>> table_of([(), (2,), (0, 1, 4)]).tolist()
    [[-1, -1, -1], [2, -1, -1], [0, 1, 4]]
    """
    width = max((len(term) for term in terms), default=0)
    table = np.full((len(terms), width), -1, dtype=np.int32)
    for row, term in zip(table, terms, strict=True):
        row[: len(term)] = term
    return table


def terms_of(table: Table) -> tuple[Term, ...]:
    """Return the terms of a table as sorted tuples."""
    sizes = (table >= 0).sum(axis=1)
    rows = table.tolist()
    return tuple(tuple(row[:k]) for row, k in zip(rows, sizes, strict=True))


def term_sizes(table: Table) -> NDArray[np.int64]:
    """Number of features ``(n_terms,)`` of each term."""
    return np.asarray((table >= 0).sum(axis=1))


def largest_size(table: Table) -> int:
    """Number of features of the largest term; 0 where there is none."""
    widths = range(table.shape[1], 0, -1)  # padding is on the right
    return next((k for k in widths if (table[:, k - 1] >= 0).any()), 0)


def columns(sign_rows: NDArray[Any], table: Table) -> NDArray[Any]:
    """Return ``chi_S`` of every term, one row a term: ``(n_terms, m)``.

    ``sign_rows`` is the transposed result of `signs`: ``(n_features + 1, m)``. Terms
    lie along rows because contiguous products are several times faster.
    """
    if table.shape[1] == 0:
        return np.ones((len(table), sign_rows.shape[1]), dtype=sign_rows.dtype)
    out = sign_rows[table[:, 0]]
    step = max(1, _CACHE_BYTES // (out.itemsize * max(1, out.shape[1])))
    for position in range(1, table.shape[1]):
        longer = np.flatnonzero(table[:, position] >= 0)
        if 2 * len(longer) < len(table):
            out[longer] *= sign_rows[table[longer, position]]
            continue
        for start in range(0, len(table), step):  # the padding is a row of ones
            block = slice(start, start + step)
            out[block] *= sign_rows[table[block, position]]
    return out


def design(masks: Masks, table: Table, dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Return the design matrix ``(m, n_terms)`` of parities."""
    rows = np.ascontiguousarray(signs(masks, dtype).T)
    return columns(rows, table).T


def predict(masks: Masks, table: Table, coef: Floats) -> Floats:
    """Evaluate ``g(x) = sum_S coef_S chi_S(x)``: ``(m, n_outputs)``, bounded memory.

    Parameters
    ----------
    masks : bool (m, n_features)
    table : int32 (n_terms, width)
    coef : float64 (n_terms, n_outputs)
    """
    out = np.zeros((len(masks), coef.shape[1]))
    for rows, chi in _column_blocks(masks, table):
        out[rows] = chi.T @ coef
    return out


def correlate(masks: Masks, table: Table, weighted: Floats) -> Floats:
    """Return ``sum_t chi_S(x_t) weighted_t``: ``(n_terms, k)``, bounded memory.

    The adjoint of `predict`.

    Parameters
    ----------
    masks : bool (m, n_features)
    table : int32 (n_terms, width)
    weighted : float64 (m, k)
    """
    out = np.zeros((len(table), weighted.shape[1]))
    for rows, chi in _column_blocks(masks, table):
        out += chi @ weighted[rows]
    return out


def _column_blocks(masks: Masks, table: Table) -> Iterator[tuple[slice, Floats]]:
    """All columns of a few masks at a time: (rows, ``chi (n_terms, rows)``).

    The products run on one-byte signs, which is several times faster than on floats.
    """
    step = max(1, _BLOCK_BYTES // (8 * max(1, len(table))))
    for start in range(0, len(masks), step):
        rows = slice(start, min(start + step, len(masks)))
        sign_rows = np.ascontiguousarray(signs(masks[rows], np.int8).T)
        yield rows, columns(sign_rows, table).astype(np.float64)


def with_empty_term(table: Table) -> Table:
    """Return the table with the empty term put in front."""
    return np.pad(table, ((1, 0), (0, 0)), constant_values=-1)


def term_numbers(table: Table, n_features: int) -> np.ndarray:
    """Row numbers of terms in a spectrum of all parities: bit i = feature i in S."""
    bits = np.append(np.int64(1) << np.arange(n_features), 0)
    return np.asarray(bits[table].sum(axis=1, dtype=np.int64))


def table_of_numbers(numbers: np.ndarray, n_features: int) -> Table:
    """Return the terms with the given numbers, smallest first."""
    bits = (numbers[:, None] >> np.arange(n_features)) & 1
    terms = sorted(
        (tuple(np.flatnonzero(row).tolist()) for row in bits), key=lambda t: (len(t), t)
    )
    return table_of(terms)


def shapley_of_terms(table: Table, coef: Floats, n_features: int) -> Floats:
    """``phi_i = 2 sum_{S contains i, |S| odd} a_S / |S|``: (n_features, n_outputs)."""
    sizes = term_sizes(table)
    odd = np.flatnonzero(sizes % 2)
    share = 2 * coef[odd] / sizes[odd, None]
    phi = np.zeros((n_features + 1, coef.shape[1]))
    for position in range(table.shape[1]):
        np.add.at(phi, table[odd, position], share)
    return phi[:-1]  # the last row collected the padding
