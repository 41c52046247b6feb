"""Every interaction index of a polynomial, exactly, from its spectrum.

All of them are sums over the terms that contain the interaction, weighted by sizes
alone: ``I_S = sum_{T superset of S} w(|S|, |T|) a_T``. So an index is a small matrix
of weights, computed in exact fractions, and one pass over the subsets of the terms.
There is no ``2**n_features`` anywhere.

With ``u = |T| - |S|`` (kept = +1):

=========  ==========================================================================
Moebius    ``2^|S| (-1)^u``
BII        ``2^|S|`` for u = 0 (Banzhaf interaction)
SII        ``2^|S| / (u + 1)`` for even u (Shapley interaction)
k-SII      SII aggregated with Bernoulli numbers, sums to g(all kept) - base value
STII       Moebius for ``|S| < order``; at the top ``sum_R m_R / binom(|R|, order)``
FSII       Faith-Shap: best fit of that order under the Shapley kernel
FBII       Faith-Banzhaf: Moebius of the spectrum truncated at that order
=========  ==========================================================================

``SV`` and ``BV`` are the Shapley and Banzhaf values: SII and BII of order 1.

Examples
--------
>>> from harmonica_core import fit_surrogate, indices
>>> f = lambda masks: masks[:, 0] + 2.0 * (masks[:, 0] & masks[:, 1])
>>> g = fit_surrogate(f, n_features=2)
>>> for name in ("SII", "STII", "Moebius"):
...     print(name, indices.interactions(g, order=2, index=name))
SII {(0,): 2.0, (1,): 1.0, (0, 1): 2.0}
STII {(0,): 1.0, (0, 1): 2.0}
Moebius {(0,): 1.0, (0, 1): 2.0}
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from harmonica_core import basis
from harmonica_core._types import Floats, Table, Term, Values
from harmonica_core.checks import is_whole
from harmonica_core.result.index_weights import size_weights

if TYPE_CHECKING:
    from harmonica_core.result.surrogate import Surrogate

__all__ = [
    "INDICES",
    "Interactions",
    "feature_values",
    "index_base",
    "interaction_matrix",
    "interaction_table",
    "interactions",
]

INDICES = ("Moebius", "BII", "SII", "k-SII", "STII", "FSII", "FBII", "SV", "BV")

_ALIASES = {
    **{name.lower(): name for name in INDICES},
    "möbius": "Moebius",
    "mobius": "Moebius",
    "ksii": "k-SII",
    "shapley": "SV",
    "banzhaf": "BV",
    "shapley-taylor": "STII",
    "faith-shap": "FSII",
    "faith-banzhaf": "FBII",
}


class Interactions(dict[Term, Any]):
    """``{term: value}`` of the non-zero interactions; any other term reads as zero.

    Attributes
    ----------
    index : str
    order : int
        Largest size it holds; sizes run from 1 to ``order``.

    Examples
    --------
    >>> from harmonica_core import fit_surrogate
    >>> f = lambda masks: 1.0 * (masks[:, 0] & masks[:, 1])
    >>> found = fit_surrogate(f, n_features=3).interactions(order=2, index="Moebius")
    >>> found, found[(0, 2)], found.index
    ({(0, 1): 1.0}, 0.0, 'Moebius')
    """

    def __init__(
        self, items: Any, *, index: str, order: int, n_features: int, zero: Any
    ) -> None:
        super().__init__(items)
        self.index, self.order = index, order
        self._n_features, self._zero = n_features, zero

    def __missing__(self, term: Term) -> Any:
        in_range = isinstance(term, tuple) and 1 <= len(term) <= self.order
        ascending = in_range and all(
            a < b for a, b in zip(term, term[1:], strict=False)
        )
        if not ascending or term[0] < 0 or term[-1] >= self._n_features:
            raise KeyError(
                f"{term!r}; needed a sorted tuple of 1 to {self.order} features, each "
                f"0 to {self._n_features - 1}"
            )
        return self._zero


def check_index(index: object) -> str:
    """Return the index's own spelling; upper or lower case and full names pass."""
    name = _ALIASES.get(index.lower()) if isinstance(index, str) else None
    if name is None:
        raise ValueError(f"index={index!r} is unknown; needed one of {list(INDICES)}")
    return name


def check_order(order: object, degree: int) -> int:
    """Return a valid order: 1 to ``degree`` (order 1 is always answered)."""
    if not is_whole(order):
        raise ValueError(f"order={order!r}; needed a whole number >= 1")
    if not 1 <= order <= max(1, degree):
        raise ValueError(
            f"order={order} of a surrogate of degree {degree}; needed 1 <= order <= "
            f"{max(1, degree)}: it holds nothing about larger interactions; lower "
            "order or fit with a higher degree"
        )
    return int(order)


def interactions(
    surrogate: Surrogate,
    order: int = 2,
    index: str = "SII",
    return_std: bool = False,
) -> Any:
    """Interactions of sizes 1 to ``order`` of a surrogate, for any index.

    Parameters
    ----------
    surrogate : Surrogate
    order : int
        At most the surrogate's ``max_degree``; "SV" and "BV" are always of order 1.
    index : str
        One of `INDICES`, in upper or lower case.
    return_std : bool
        Return a pair: the values, and their standard deviations.

    Returns
    -------
    Interactions, or two of them
        ``{term: value}`` for terms of size 1 to ``order``, smallest first, without the
        zeros (reading one that is not there gives zero). A value is a float, or a row
        ``(n_outputs,)``. The base value is not in it: that is
        ``surrogate.base_value`` (see `index_base` for Faith-Banzhaf's own).

    Examples
    --------
    >>> from harmonica_core import fit_surrogate
    >>> g = fit_surrogate(lambda masks: masks.all(axis=1), n_features=3)
    >>> interactions(g, order=2, index="BII")
    {(0,): 0.25, (1,): 0.25, (2,): 0.25, (0, 1): 0.5, (0, 2): 0.5, (1, 2): 0.5}
    >>> interactions(g, order=3, index="Moebius")
    {(0, 1, 2): 1.0}
    """
    name = check_index(index)
    one = name in ("SV", "BV")
    order = 1 if one else check_order(order, surrogate.max_degree)
    table, values = interaction_table(
        surrogate.table, surrogate.coef_columns, name, order
    )
    found = _as_interactions(surrogate, table, values, name, order)
    if not return_std:
        return found
    std = deviations(surrogate, table, name, order)
    return found, _as_interactions(surrogate, table, std, name, order)


def _as_interactions(
    surrogate: Surrogate, table: Table, values: Floats, name: str, order: int
) -> Interactions:
    single = surrogate.one_output
    return Interactions(
        zip(
            basis.terms_of(table),
            values[:, 0].tolist() if single else list(values),
            strict=True,
        ),
        index=name,
        order=order,
        n_features=surrogate.n_features,
        zero=0.0 if single else np.zeros(surrogate.n_outputs),
    )


def deviations(surrogate: Surrogate, table: Table, index: str, order: int) -> Floats:
    """Return standard deviations ``(n_interactions, n_outputs)`` of interactions.

    Of polynomials without a posterior a rough one: as if ``error`` were noise.
    """
    if surrogate.mean is not None:
        return surrogate.mean.interaction_std(table, check_index(index), order)
    out = np.zeros((len(table), surrogate.n_outputs))
    if surrogate.error is not None and not surrogate.error.exact:
        size = 2.0 ** basis.term_sizes(table)[:, None]
        n_evaluations = max(1, surrogate.n_evaluations)
        out += size * np.asarray(surrogate.error.value) / np.sqrt(n_evaluations)
    return out


def feature_values(surrogate: Surrogate, index: str = "SV", order: int = 1) -> Values:
    """Size-1 entries of an index: dense ``(n_features,)`` or ``(.., n_outputs)``.

    Examples
    --------
    >>> from harmonica_core import fit_surrogate
    >>> g = fit_surrogate(lambda masks: masks.all(axis=1), n_features=3)
    >>> feature_values(g, "BV").round(6).tolist()
    [0.25, 0.25, 0.25]
    """
    name = check_index(index)
    if name in ("SV", "SII"):  # of all that was seen, not of the listed terms alone
        return np.asarray(surrogate.shapley_values())
    order = check_order(order, surrogate.max_degree)
    table, values = interaction_table(
        surrogate.table, surrogate.coef_columns, name, order
    )
    ones = basis.term_sizes(table) == 1
    out = np.zeros((surrogate.n_features, surrogate.n_outputs))
    out[table[ones].max(axis=1, initial=-1)] = values[ones]
    return out[:, 0] if surrogate.one_output else out


def interaction_matrix(
    surrogate: Surrogate, index: str = "SII", return_std: bool = False
) -> Any:
    """Pairs in SHAP's layout: ``(n, n)`` or ``(n, n, n_outputs)``, symmetric.

    Off the diagonal (i, j) is half of the pair's index of order 2, so that both halves
    together count it once; ``(i, i) = phi_i`` minus its row's off-diagonals. Rows sum
    to the Shapley values and everything to g(all kept) - g(all removed).

    Parameters
    ----------
    index : {"SII", "STII", "FSII", "FBII", "BII", "k-SII", "Moebius"}
        SHAP's own convention is "SII".
    return_std : bool
        Return a pair: the matrix and its standard deviations; on the diagonal those of
        the Shapley values.

    Examples
    --------
    >>> from harmonica_core import fit_surrogate
    >>> f = lambda masks: masks[:, 0] + 2.0 * (masks[:, 0] & masks[:, 1])
    >>> interaction_matrix(fit_surrogate(f, n_features=2)).round(6).tolist()
    [[1.0, 1.0], [1.0, 0.0]]
    """
    name = check_index(index)
    if name in ("SV", "BV"):
        raise ValueError(
            f"index={index!r} has no pairs; needed an interaction index such as 'SII'"
        )
    table, values = interaction_table(surrogate.table, surrogate.coef_columns, name, 2)
    pairs = basis.term_sizes(table) == 2
    n = surrogate.n_features
    out = np.zeros((n, n, surrogate.n_outputs))
    if pairs.any():
        i, j = table[pairs].T
        out[i, j] = out[j, i] = values[pairs] / 2
    phi = surrogate.shapley_values().reshape(n, -1)
    out[np.arange(n), np.arange(n)] = phi - out.sum(axis=1)
    matrix = out[:, :, 0] if surrogate.one_output else out
    if not return_std:
        return matrix
    first, second = np.triu_indices(n, k=1)
    members = np.stack([first, second], axis=1).astype(np.int32)
    std = np.zeros_like(out)
    if len(members):
        half = deviations(surrogate, members, name, 2) / 2
        std[first, second] = std[second, first] = half
    own = surrogate.shapley_values(return_std=True)[1].reshape(n, -1)
    std[np.arange(n), np.arange(n)] = own
    return matrix, std[:, :, 0] if surrogate.one_output else std


def index_base(surrogate: Surrogate, index: str, order: int) -> Floats:
    """Value of the empty interaction ``(n_outputs,)`` that belongs to an index.

    The base value g(all removed), except for Faith-Banzhaf, whose best fit of that
    order has an intercept of its own.

    Examples
    --------
    >>> from harmonica_core import fit_surrogate
    >>> g = fit_surrogate(lambda masks: masks.all(axis=1), n_features=2)
    >>> index_base(g, "SII", order=1), index_base(g, "FBII", order=1)
    (array([0.]), array([-0.25]))
    """
    sizes = basis.term_sizes(surrogate.table)
    held = sizes <= (order if check_index(index) == "FBII" else sizes.max(initial=0))
    return np.asarray(((-1.0) ** sizes * held) @ surrogate.coef_columns)


def interaction_table(
    table: Table, coef: Floats, index: str, order: int
) -> tuple[Table, Floats]:
    """``I_S = sum_{T superset of S} w(|S|, |T|) coef_T`` for sizes 1 to ``order``.

    Parameters
    ----------
    table : int32 (n_terms, width)
    coef : float64 (n_terms, n_outputs)
    index : str
    order : int

    Returns
    -------
    table : int32 (n_interactions, <= order)
        By size, then in lexicographic order; zeros are left out.
    values : float64 (n_interactions, n_outputs)

    Examples
    --------
    >>> table, coef = np.array([[0, -1], [0, 1]], dtype=np.int32), np.ones((2, 1))
    >>> members, values = interaction_table(table, coef, "BII", order=2)
    >>> members.tolist(), values.tolist()
    ([[0, -1], [0, 1]], [[2.0], [4.0]])
    """
    degree = basis.largest_size(table)
    return superset_sums(table, coef, size_weights(check_index(index), order, degree))


def superset_sums(table: Table, coef: Floats, weights: Floats) -> tuple[Table, Floats]:
    """Sums over the terms that contain S, for every S of size 1 to ``order``.

    Parameters
    ----------
    table : int32 (n_terms, width)
    coef : float64 (n_terms, n_outputs)
    weights : float64 (order + 1, degree + 1)
        Weight of a term of size t in the sum for S of size s; row 0 is not used.
    """
    sizes = basis.term_sizes(table)
    order = len(weights) - 1
    found: list[tuple[Table, Floats]] = []
    for size in range(1, min(order, weights.shape[1] - 1) + 1):
        members, values = _sums_of_size(table, coef, sizes, weights[size], size)
        padding = ((0, 0), (0, order - size))
        found.append((np.pad(members, padding, constant_values=-1), values))
    if not found:
        return np.zeros((0, 0), dtype=np.int32), np.zeros((0, coef.shape[1]))
    members = np.concatenate([members for members, _ in found])
    values = np.concatenate([values for _, values in found])
    nonzero = (values != 0).any(axis=1)
    return basis.trim(members[nonzero]), values[nonzero]


def _sums_of_size(
    table: Table, coef: Floats, sizes: np.ndarray, weights: Floats, size: int
) -> tuple[Table, Floats]:
    """Subsets of one size of all terms, and the weighted sums over their supersets."""
    subsets, shares = [], []
    for t in range(size, len(weights)):
        rows = np.flatnonzero(sizes == t)
        if weights[t] == 0 or not len(rows):
            continue
        chosen = np.array(list(combinations(range(t), size)))
        subsets.append(table[rows][:, chosen].reshape(-1, size))
        shares.append(np.repeat(weights[t] * coef[rows], len(chosen), axis=0))
    if not subsets:
        return np.zeros((0, size), dtype=np.int32), np.zeros((0, coef.shape[1]))
    members, where = np.unique(np.concatenate(subsets), axis=0, return_inverse=True)
    sums = np.zeros((len(members), coef.shape[1]))
    np.add.at(sums, where.ravel(), np.concatenate(shares))
    return members, sums
