"""Posterior standard deviations of interactions: every index is linear in the spectrum.

``I_S = sum_{T superset of S} w(|S|, |T|) a_T`` has covariance
``sum_T w v_T chi_T(x_t)`` with what was observed at a mask. All terms count up to 12
features; beyond, all terms up to the largest size of which there are not too many, so
what larger terms add to a deviation is left out.
"""

from __future__ import annotations

import numpy as np

from harmonica_core import basis
from harmonica_core._types import Floats, Table
from harmonica_core.basis.kernel import EVEN, ODD, term_variances
from harmonica_core.engine.posterior import Observed, Posterior
from harmonica_core.result.index_weights import size_weights

_COMPLETE = 12
_MOST_TERMS = 6000


def interaction_std(
    posterior: Posterior, members: Table, index: str, order: int
) -> Floats:
    """Return deviations ``(n_interactions, C)`` of interactions of a posterior's f.

    Parameters
    ----------
    posterior : Posterior
    members : int32 (n_interactions, <= order)
        Terms that the interactions are of.
    index : str
    order : int
    """
    regression = posterior.regression
    prior = regression.prior
    n = prior.n_features
    degree = min(n, prior.degree or n)
    while n > _COMPLETE and basis.n_terms_up_to(n, degree) > _MOST_TERMS and degree > 2:
        degree -= 1
    terms = basis.terms_up_to(n, degree)
    sizes = basis.term_sizes(terms)
    variance = term_variances(prior, terms)
    if regression.interpolates and degree == n:
        # White is all terms alike: half of the cube's are even, half odd.
        variance += prior.white[sizes % 2] / 2.0 ** (n - 1)
    weights = size_weights(index, order, degree)
    held = _members(members, n) @ _members(terms, n).T
    own_sizes = basis.term_sizes(members)
    inside = held == own_sizes[:, None]
    w = np.where(inside, weights[own_sizes[:, None], sizes[None, :]], 0.0)
    shares = (w * variance).T
    own = np.asarray((w**2) @ variance)
    pairs = regression.masks[regression.pairs[:, 0]]
    parts = []
    for parity in (EVEN, ODD):
        rows = np.flatnonzero(sizes % 2 == parity)
        parts.append(basis.predict(pairs, terms[rows], shares[rows]))
    single = basis.predict(regression.masks[regression.singles], terms, shares)
    std = regression.std(Observed(parts[0], parts[1], single), own, 0.0)
    return std[:, None] * posterior.scale


def _members(table: Table, n: int) -> Floats:
    """0/1 rows ``(n_terms, n)``: which features a term holds."""
    out = np.zeros((len(table), n + 1))
    np.put_along_axis(out, np.where(table < 0, n, table), 1.0, axis=1)
    return out[:, :n]
