"""Efficiency where it is asked for: pass exactly through both ends.

With ``u = f(all kept) - g(all kept)`` and ``v = f(all removed) - g(all removed)``, the
odd part of g must change by ``(u - v) / 2`` at the full mask and the even part by
``(u + v) / 2``. Every active term counts +1 there, so the least-norm change spreads
each residual evenly over the active terms of its parity. In an orthonormal basis the
least norm is also the least rise of ``I_2``: it grows by at most
``residual / sqrt(number of active terms)``.
"""

from __future__ import annotations

import numpy as np

from harmonica_core import basis
from harmonica_core._types import Floats, Masks, Table


def rows_of_ends(masks: Masks) -> tuple[int, int]:
    """Rows of the masks with all kept and all removed, which must be there."""
    full = np.flatnonzero(masks.all(axis=1))
    empty = np.flatnonzero(~masks.any(axis=1))
    if not len(full) or not len(empty):
        raise ValueError(
            "ends=True needs the values of the masks with all kept and all removed; "
            "add both to the masks, or draw them with draw_design"
        )
    return int(full[0]), int(empty[0])


def through_ends(
    table: Table, coef: Floats, n_features: int, full: Floats, empty: Floats
) -> tuple[Table, Floats]:
    """Correct ``coef`` so that g(all kept) = ``full`` and g(all removed) = ``empty``.

    Parameters
    ----------
    table : int32 (n_terms, width)
        Must hold the empty term.
    coef : float64 (n_terms, n_outputs)
        A zero entry is an inactive term of that output and stays zero, unless an
        output has no active odd term: then its residual goes to all single features.
    full, empty : float64 (n_outputs,)

    Returns
    -------
    table, coef
        The table may have gained the single features.
    """
    table, coef = _with_single_features(table, coef, n_features)
    sizes = basis.term_sizes(table)
    odd = sizes % 2 == 1
    signs = np.where(odd, -1.0, 1.0)
    above = full - coef.sum(axis=0)
    below = empty - signs @ coef
    active = (coef != 0) | (sizes == 0)[:, None]
    lonely = ~(active & odd[:, None]).any(axis=0)
    active |= (sizes == 1)[:, None] & lonely[None, :]
    shift_odd = _even_share(active & odd[:, None], (above - below) / 2)
    shift_even = _even_share(active & ~odd[:, None], (above + below) / 2)
    return table, coef + shift_odd + shift_even


def _even_share(members: np.ndarray, residual: Floats) -> Floats:
    """Spread each output's residual evenly over its member terms."""
    return np.asarray(members * (residual / np.maximum(members.sum(axis=0), 1)))


def _with_single_features(
    table: Table, coef: Floats, n_features: int
) -> tuple[Table, Floats]:
    """Append the single features that are missing, with coefficient zero."""
    sizes = basis.term_sizes(table)
    present = set(table[sizes == 1, 0].tolist()) if table.shape[1] else set()
    missing = [(i,) for i in range(n_features) if i not in present]
    if not missing:
        return table, coef
    terms = [*basis.terms_of(table), *missing]
    zeros = np.zeros((len(missing), coef.shape[1]))
    return basis.table_of(terms), np.concatenate([coef, zeros])
