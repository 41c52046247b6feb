"""Covariances of values on the cube under a prior on parities, in closed form.

A function is ``f = sum_S a_S chi_S + white`` with independent ``a_S ~ N(0, v_S)``.

    v_S = s_|S| prod_{i in S} r_i / e_|S|(r)                      (orders, |S| <= D)
        + sum_j m_j prod_i (1 + exp(-w_ji)) / 2 prod_{i in S} tanh(w_ji / 2)  (products)

``e_d`` are elementary symmetric sums. A feature with ``r_i = w_i = 0`` is in no term.
The covariance of an order is ``e_d(r_i x_i x'_i) / e_d(r)``, by Newton's identities;
that of a product is ``exp(-sum_i w_i [x_i != x'_i])``. White is variance that no mask
shares with any other: terms of all sizes, each too small to be learnt.

With complementary pairs ``x, -x`` the even and the odd part of f are independent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from harmonica_core._types import Floats, Masks, Table

EVEN, ODD = 0, 1

# Nodes of Gauss-Legendre quadrature: exact for polynomials up to degree 63.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_NODES, _WEIGHTS = (_NODES + 1) / 2, _WEIGHTS / 2


@dataclass(frozen=True)
class Prior:
    """Variances of terms, up to the scale of a function.

    Attributes
    ----------
    relevance : float64 (n_features,)
        ``r_i``, for all orders.
    orders : float64 (D,)
        ``s_d``: variance of all terms of size 1, 2, ..., D together.
    rates : float64 (J, n_features)
        ``w_ji``; J = 0 where a degree limits the terms.
    products : float64 (2, J)
        ``m_j`` of the even and of the odd part.
    white : float64 (2,)
        Of the even and of the odd part.

    Examples
    --------
    >>> from harmonica_core import fit_surrogate
    >>> f = lambda masks: 1.0 * (masks.sum(axis=1) > 9)
    >>> g = fit_surrogate(f, n_features=14, budget=200)
    >>> g.prior.n_features, g.prior.degree
    (14, None)
    """

    relevance: Floats
    orders: Floats
    rates: Floats
    products: Floats
    white: Floats

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.relevance)

    @property
    def degree(self) -> int | None:
        """Size of the largest term, None without a limit."""
        return None if len(self.rates) else len(self.orders)


def symmetric_sums(relevance: Floats, degree: int) -> list[float]:
    """Return ``e_0(r), ..., e_degree(r)``."""
    powers = [float((relevance**i).sum()) for i in range(1, degree + 1)]
    out = [1.0]
    for k in range(1, degree + 1):
        terms = ((-1) ** (i - 1) * out[k - i] * powers[i - 1] for i in range(1, k + 1))
        out.append(max(sum(terms) / k, 0.0))
    return out


def order_kernels(
    relevance: Floats, degree: int, left: Floats, right: Floats
) -> list[Floats]:
    """Return ``e_1(r x x'), ..., e_degree(r x x')`` of rows of signs.

    ``k e_k = sum_{i=1..k} (-1)^(i-1) e_{k-i} p_i`` with the power sums
    ``p_i = sum_f (r_f x_f x'_f)^i``, which for even i are constants.
    """
    powers = [
        (left * relevance**i) @ right.T if i % 2 else float((relevance**i).sum())
        for i in range(1, degree + 1)
    ]
    out: list[Floats] = []
    for k in range(1, degree + 1):
        total = np.array(powers[k - 1] * np.ones((1, 1)) * (-1) ** (k - 1))
        for i in range(1, k):
            total = total + (-1) ** (i - 1) * (out[k - i - 1] * powers[i - 1])
        out.append(np.broadcast_to(total / k, (len(left), len(right))))
    return out


def covariances(prior: Prior, left: Floats, right: Floats) -> tuple[Floats, Floats]:
    """Return those of the even and of the odd part ``(len(left), len(right))``.

    White is left out.
    """
    parts = np.zeros((2, len(left), len(right)))
    degree = len(prior.orders)
    norms = symmetric_sums(prior.relevance, degree)
    for k, kernel in enumerate(order_kernels(prior.relevance, degree, left, right), 1):
        if norms[k] > 0:
            parts[k % 2] += prior.orders[k - 1] / norms[k] * kernel
    for w, even, odd in zip(prior.rates, *prior.products, strict=True):
        half, total = (left * (w / 2)) @ right.T, w.sum() / 2
        near, far = np.exp(half - total), np.exp(-half - total)
        parts[EVEN] += even / 2 * (near + far)
        parts[ODD] += odd / 2 * (near - far)
    return parts[EVEN], parts[ODD]


def variances(prior: Prior) -> tuple[float, float]:
    """Return the prior variance of the even and of the odd part, without white."""
    corner = np.ones((1, prior.n_features))
    even, odd = covariances(prior, corner, corner)
    return float(even[0, 0]), float(odd[0, 0])


def term_variances(prior: Prior, table: Table) -> Floats:
    """Return ``v_S (n_terms,)``; 0 for the empty term, which is not penalised."""
    sizes = (table >= 0).sum(axis=1)
    norms = symmetric_sums(prior.relevance, len(prior.orders))
    tiny = np.finfo(np.float64).tiny
    out = np.zeros(len(table))
    product = _log_product(np.log(prior.relevance + tiny), table)
    for k, (total, norm) in enumerate(zip(prior.orders, norms[1:], strict=True), 1):
        if norm > 0:
            out += np.where(sizes == k, total / norm * np.exp(product), 0.0)
    for w, both in zip(prior.rates, prior.products.T, strict=True):
        constant = float(np.log1p(np.exp(-w)).sum() - len(w) * np.log(2))
        product = _log_product(np.log(np.tanh(w / 2) + tiny), table)
        out += both[sizes % 2] * np.exp(constant + product)
    return np.where(sizes == 0, 0.0, out)


def _log_product(logs: Floats, table: Table) -> Floats:
    """Sum of logs over the features of each term."""
    return np.asarray(np.append(logs, 0.0)[table].sum(axis=1))


def shapley_covariances(prior: Prior, signs: Floats) -> Floats:
    """Return ``cov(phi_i(f), f(x_t))`` without white: ``(len(signs), n_features)``.

    ``phi_i`` of an order d is ``2 / d`` times its odd terms that hold i; of a product

        phi_i = int_0^1 (k_i(+) - k_i(-)) prod_{l != i} (q k_l(+) + (1-q) k_l(-)) dq.
    """
    r, degree = prior.relevance, len(prior.orders)
    norms = symmetric_sums(r, degree)
    out = np.zeros(signs.shape)
    if degree >= 1 and norms[1] > 0:
        out += 2 * prior.orders[0] / norms[1] * r * signs
    for d in range(3, degree + 1, 2):
        if norms[d] > 0:
            held = r * signs * _sums_without(r * signs, d - 1)
            out += 2 * prior.orders[d - 1] / (d * norms[d]) * held
    for w, odd in zip(prior.rates, prior.products[ODD], strict=True):
        lost = -np.expm1(-w)
        kept = (signs + 1) / 2
        factors = 1 - (1 - _NODES)[:, None] * lost, 1 - _NODES[:, None] * lost
        logs = kept @ np.log(factors[0]).T + (1 - kept) @ np.log(factors[1]).T
        weights = np.exp(logs) * _WEIGHTS
        inside = np.where(
            signs > 0, weights @ (1 / factors[0]), weights @ (1 / factors[1])
        )
        out += odd * lost * signs * inside
    return out


def _sums_without(values: Floats, degree: int) -> Floats:
    """Return ``e_degree`` of each row's values, leaving out each in turn.

    ``e_k(without i) = e_k - v_i e_{k-1}(without i)``.
    """
    powers = [(values**i).sum(axis=1) for i in range(1, degree + 1)]
    whole = [np.ones(len(values))]
    for k in range(1, degree + 1):
        terms = (
            (-1) ** (i - 1) * whole[k - i] * powers[i - 1] for i in range(1, k + 1)
        )
        whole.append(sum(terms) / k)
    out = np.ones(values.shape)
    for k in range(1, degree + 1):
        out = whole[k][:, None] - values * out
    return out


def shapley_variances(prior: Prior, white: bool = True) -> Floats:
    """Return the prior variance of each Shapley value: (n_features,).

    ``4 sum_{S holds i, |S| odd} v_S / |S|^2``, where
    ``1 / |S|^2 = int int (u v)^(|S|-1) du dv``, and for ``white`` twice
    ``sum_S w_i(S)^2 = 2 / n^2 sum_k 1 / binom(n-1, k)``.
    """
    r, n = prior.relevance, prior.n_features
    degree = len(prior.orders)
    norms = symmetric_sums(r, degree)
    out = np.zeros(n)
    for d in range(1, degree + 1, 2):
        if norms[d] > 0:
            held = r * _sums_without(r[None, :], d - 1)[0]
            out += 4 * prior.orders[d - 1] / (d**2 * norms[d]) * held
    z = np.multiply.outer(_NODES, _NODES).ravel()
    area = np.multiply.outer(_WEIGHTS, _WEIGHTS).ravel()
    for w, odd in zip(prior.rates, prior.products[ODD], strict=True):
        ratio = np.tanh(w / 2)
        constant = np.log1p(np.exp(-w)).sum() - n * np.log(2)
        total = np.zeros(n)
        for sign in (1, -1):
            factor = 1 + sign * np.multiply.outer(z, ratio)
            whole = np.exp(constant + np.log(factor).sum(axis=1)) * area
            total += whole @ (1 / factor) / 2
        out += 4 * odd * ratio * total
    if not white:
        return out
    binomial = gammaln(n) - gammaln(np.arange(1, n + 1)) - gammaln(np.arange(n, 0, -1))
    own = float(prior.white[ODD]) * 4 / n**2 * float(np.exp(-binomial).sum())
    return np.asarray(out + own)


def shapley_weights(masks: Masks) -> Floats:
    """Return the weight of each mask's value in each Shapley value: (m, n_features)."""
    n = masks.shape[1]
    k = np.arange(n + 1)
    kept = np.exp(gammaln(np.maximum(k, 1)) + gammaln(n - k + 1) - gammaln(n + 1))
    sizes = masks.sum(axis=1)
    # A removed feature's weight is that of a kept one in the complement, negated.
    return np.asarray(np.where(masks, kept[sizes][:, None], -kept[n - sizes][:, None]))
