"""Correlations of residuals with every parity of a set, without the design matrix.

For a residual ``r (rows,)`` the LASSO needs ``X^T r`` over *all* terms of C. With the
signs ``Z (rows, n)`` the pairs and triples are matrix products,

    pairs    C_ij  = sum_t r_t Z_ti Z_tj         = ((Z * r)^T Z)_ij,
    triples  C_ijk = sum_t (r_t Z_ti) Z_tj Z_tk  = ((Z * r z_i)^T Z)_jk  for each i,

so a full gradient of degree 3 costs ``rows * n^3 / 3`` multiply-adds and a few
blocks of memory. Any other set of terms goes through blocks of explicit columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from harmonica_core import basis
from harmonica_core._types import Floats, Masks, Table

Signs = NDArray[np.float32]
Index = NDArray[np.int64]

_BLOCK_BYTES = 1 << 24


@dataclass(frozen=True)
class ParityDesign:
    """The matrix ``X[t, S] = chi_S(x_t)``, known by its signs and its table.

    Attributes
    ----------
    sign_rows : float32 (n_features + 1, rows)
        Transposed signs; the last row is all ones (the padding of the table).
    table : int32 (n_terms, width)
    groups : tuple of (size, rows of the table)
        The terms by size, in lexicographic order.
    """

    sign_rows: Signs
    table: Table
    groups: tuple[tuple[int, Index], ...]

    @classmethod
    def of(cls, masks: Masks, table: Table) -> ParityDesign:
        """Build the design of ``masks`` on the terms of ``table``."""
        rows = basis.signs(masks, np.float32).T
        return cls(np.ascontiguousarray(rows), table, _by_size(table))

    @property
    def shape(self) -> tuple[int, int]:
        """``(rows, n_terms)``."""
        return self.sign_rows.shape[1], len(self.table)

    def take_rows(self, rows: NDArray[Any]) -> ParityDesign:
        """Return the same terms on some of the rows."""
        return replace(self, sign_rows=np.ascontiguousarray(self.sign_rows[:, rows]))

    def columns(self, index: Index | slice = slice(None)) -> Signs:
        """Columns of the given terms, one term a row: ``(n_index, rows)``."""
        return basis.columns(self.sign_rows, self.table[index])

    def correlations(
        self, residual: Floats, precision: DTypeLike = np.float32
    ) -> Floats:
        """``X^T residual``: ``(n_terms,)``, in products of the given precision."""
        out = np.empty(len(self.table))
        weighted = residual.astype(precision)
        signs = self.sign_rows[:-1].astype(precision, copy=False)
        for size, rows in self.groups:
            complete = len(rows) == math.comb(len(signs), size)
            if complete and size in _PRODUCTS:
                out[rows] = _PRODUCTS[size](signs, weighted)
            else:
                out[rows] = self._blocked(rows, weighted)
        return out

    def _blocked(self, rows: Index, residual: NDArray[Any]) -> NDArray[Any]:
        """Correlations with explicit columns, one bounded block at a time."""
        step = max(1, _BLOCK_BYTES // (4 * len(residual)))
        blocks = [
            self.columns(rows[start : start + step]) @ residual
            for start in range(0, len(rows), step)
        ]
        return np.concatenate(blocks)


def _by_size(table: Table) -> tuple[tuple[int, Index], ...]:
    """Rows of the table by term size, each group in lexicographic order."""
    sizes = basis.term_sizes(table)
    groups = []
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes == size)
        groups.append((int(size), rows[_lexicographic(table[rows])]))
    return tuple(groups)


def _lexicographic(table: Table) -> Index | slice:
    """Return the order that sorts the rows; a slice where they already are sorted."""
    if len(table) < 2:
        return slice(None)
    step = np.sign(np.diff(table.astype(np.int64), axis=0))
    first = step[np.arange(len(step)), np.argmax(step != 0, axis=1)]
    return slice(None) if (first > 0).all() else np.lexsort(table.T[::-1])


def _singles(z: NDArray[Any], residual: NDArray[Any]) -> NDArray[Any]:
    out: NDArray[Any] = z @ residual
    return out


def _pairs(z: NDArray[Any], residual: NDArray[Any]) -> NDArray[Any]:
    """``sum_t r_t z_ti z_tj`` for i < j in lexicographic order."""
    weighted: NDArray[Any] = z * residual
    return _upper(weighted @ z.T)


def _triples(z: NDArray[Any], residual: NDArray[Any]) -> NDArray[Any]:
    """``sum_t r_t z_ti z_tj z_tk`` for i < j < k in lexicographic order."""
    weighted = z * residual
    blocks = [_pairs(z[i + 1 :], weighted[i]) for i in range(len(z) - 2)]
    return np.concatenate(blocks)


def _upper(square: NDArray[Any]) -> NDArray[Any]:
    """Return the entries above the diagonal, row by row."""
    return square[np.triu(np.ones(square.shape, dtype=bool), 1)]


_PRODUCTS = {1: _singles, 2: _pairs, 3: _triples}
