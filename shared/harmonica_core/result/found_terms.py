"""Terms of a posterior mean that matter, found without listing all of them."""

from __future__ import annotations

import math

import numpy as np

from harmonica_core import basis
from harmonica_core._types import Floats, Table
from harmonica_core.basis.kernel import term_variances
from harmonica_core.engine.posterior import Posterior

# Up to this many features the whole spectrum comes from one fast transform.
_TRANSFORMED = 16
# Terms of one size that are tried at a time: all of them, if they are so few.
_CANDIDATES = 1 << 18
# Strongest terms of one size from which the next size is grown, and the features tried.
_SEEDS, _PARTNERS = 400, 128
# Terms are dropped while together they stay below this share of the stated error:
# energies add up, so that raises the error by a thousandth.
_NEGLIGIBLE = 0.05
# Relative to the largest coefficient; terms below that are no longer grown from.
_ROUNDING = 1e-9


def found_terms(posterior: Posterior, error: Floats) -> tuple[Table, Floats]:
    """Return the terms of the smooth part whose sum is E[f] up to the error.

    Parameters
    ----------
    posterior : Posterior
        Of C functions.
    error : float64 (C,)
        What is small: ``I_2`` of each function.

    Returns
    -------
    table : int32 (n_terms, width)
        The empty term first.
    coef : float64 (n_terms, C)
    """
    n = posterior.regression.prior.n_features
    if n <= _TRANSFORMED:
        table, coef = _transformed(posterior)
    else:
        table, coef = _grown(posterior, error)
    kept = _worth_keeping(coef, error)
    table, coef = basis.trim(table[kept]), coef[kept]
    width = table.shape[1]
    empty = np.full((1, width), -1, dtype=np.int32)
    return np.concatenate([empty, table]), np.concatenate(
        [posterior.intercept[None, :], coef]
    )


def _worth_keeping(coef: Floats, error: Floats) -> np.ndarray:
    """Rows of which no function can do without; the rest is negligible for all."""
    needed = np.zeros(len(coef), dtype=bool)
    for column, least in zip(coef.T, error, strict=True):
        order = np.argsort(np.abs(column))
        energy = np.cumsum(column[order] ** 2)
        dropped = energy <= (_NEGLIGIBLE * least) ** 2
        needed[order[~dropped]] |= column[order[~dropped]] != 0
    return np.flatnonzero(needed)


def _transformed(posterior: Posterior) -> tuple[Table, Floats]:
    """All terms but the empty one, by the fast Walsh-Hadamard transform."""
    regression, dual = posterior.regression, posterior.dual
    n = regression.prior.n_features
    bits = 1 << np.arange(n)
    halves = regression.masks[regression.pairs[:, 0]] @ bits
    others = regression.masks[regression.singles] @ bits
    sizes = np.array([bin(number).count("1") for number in range(1 << n)])
    corr = np.empty((1 << n, len(posterior.intercept)))
    for parity, part in enumerate((dual.even, dual.odd)):
        scattered = np.zeros_like(corr)
        scattered[halves] = part
        scattered[others] = dual.single
        found = basis.spectrum_of_values(scattered) * float(1 << n)
        rows = sizes % 2 == parity
        corr[rows] = found[rows]
    order = np.argsort(sizes, kind="stable")[1:]
    table = basis.table_of_numbers(order, n)
    numbers = basis.term_numbers(table, n)
    return table, term_variances(regression.prior, table)[:, None] * corr[numbers]


def _grown(posterior: Posterior, error: Floats) -> tuple[Table, Floats]:
    """Terms size by size: all of a size while they are few, then from strong ones."""
    n = posterior.regression.prior.n_features
    degree = min(posterior.regression.prior.degree or n, n)
    table = np.arange(n, dtype=np.int32)[:, None]
    tables, coefs, largest = [], [], []
    weight, floor = np.zeros(n), float((_NEGLIGIBLE * error).min()) / math.sqrt(n)
    while len(table):
        coef = _coefficients(posterior, table)
        strength = np.abs(coef).max(axis=1)
        tables.append(table)
        coefs.append(coef)
        largest.append(float(strength.max()))
        # Nothing that matters grows from terms that are all far below the error; of
        # two sizes, as an odd function has no even terms.
        least = max(floor, _ROUNDING * max(largest))
        if table.shape[1] == degree or max(largest[-2:]) <= least:
            break
        np.add.at(weight, table, np.repeat(strength[:, None], table.shape[1], axis=1))
        strength = np.where(strength > least, strength, 0.0)
        table = _next_size(table, strength, weight)
    width = tables[-1].shape[1]
    padded = [
        np.pad(one, ((0, 0), (0, width - one.shape[1])), constant_values=-1)
        for one in tables
    ]
    return np.concatenate(padded), np.concatenate(coefs)


def _next_size(table: Table, strength: Floats, weight: Floats) -> Table:
    """Terms of the next size: all of them, or strong ones plus one feature each.

    ``weight (n,)`` says how strong the terms of each feature are; it ranks terms that
    are equally strong.
    """
    n, size = len(weight), table.shape[1] + 1
    if math.comb(n, size) <= _CANDIDATES:
        whole = basis.terms_up_to(n, size)
        return np.asarray(whole[basis.term_sizes(whole) == size])
    seeds = table[np.lexsort((-weight[table].sum(axis=1), -strength))[:_SEEDS]]
    partners = np.argsort(-weight)[: min(n, _PARTNERS if size > 2 else n)]
    joined = np.concatenate(
        [
            np.repeat(seeds, len(partners), axis=0),
            np.tile(partners, len(seeds))[:, None].astype(np.int32),
        ],
        axis=1,
    )
    joined.sort(axis=1)
    distinct = (np.diff(joined, axis=1) > 0).all(axis=1)
    return np.asarray(np.unique(joined[distinct], axis=0))


def _coefficients(posterior: Posterior, table: Table) -> Floats:
    """``a_S = v_S sum_t b_t chi_S(x_t)`` of terms of one size."""
    regression, dual = posterior.regression, posterior.dual
    part = dual.odd if table.shape[1] % 2 else dual.even
    found = basis.correlate(regression.masks[regression.pairs[:, 0]], table, part)
    found += basis.correlate(regression.masks[regression.singles], table, dual.single)
    return np.asarray(term_variances(regression.prior, table)[:, None] * found)
