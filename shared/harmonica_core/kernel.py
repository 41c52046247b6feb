"""Interpolation on the cube by a Gaussian process whose prior is sparse in features.

The covariance of two masks falls with the features they differ in,

    k(x, x') = sum_j m_j exp(-sum_i w_ji [x_i != x'_i]) = sum_S v_S chi_S(x) chi_S(x'),
    v_S = sum_j m_j prod_i (1 + exp(-w_ji)) / 2 * prod_{i in S} tanh(w_ji / 2),

so each prior variance ``v_S`` is a product over the features of S: a feature with
``w_i = 0`` is in no term. The ``w`` are learnt by maximum likelihood. The posterior mean
is a polynomial with ``a_S = v_S sum_t b_t chi_S(x_t)`` and ``(K + nugget) b = y``.

With complementary pairs the even and the odd part are independent under this prior;
their covariances are ``(k(x, x') +- k(x, -x')) / 2``, of half the size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, lapack
from scipy.optimize import minimize

from harmonica_core import basis
from harmonica_core._types import Floats, Table

ALL, EVEN, ODD = 0, 1, -1

# Values are exact; the nugget only keeps the matrices well-conditioned.
_NUGGET = 1e-8
_LOG_RATE = (np.log(1e-6), np.log(2.0))
_LOG_MIX = (-10.0, 10.0)
# A weak pull towards equal shares keeps an unused component from drifting off.
_MIX_PULL = 0.02
# Entries of one block of parity columns.
_BLOCK = 1 << 22


@dataclass(frozen=True)
class Prior:
    """Rates and shares of the components.

    Attributes
    ----------
    rates : float64 (J, n_features)
        ``w_ji``.
    mix : float64 (n_parts, J)
        ``m_j``, for each part.
    """

    rates: Floats
    mix: Floats


@dataclass(frozen=True)
class Interpolant:
    """Posterior mean of each part, in the units of its target.

    Attributes
    ----------
    prior : Prior
    parities : tuple of ALL, EVEN or ODD, one a part
    signs : float64 (h, n_features)
        Rows that were fitted.
    dual : float64 (n_parts, h)
        ``b_t``.
    left_out : float64 (n_parts, h)
        Prediction of each row from all the others, rates unchanged.
    """

    prior: Prior
    parities: tuple[int, ...]
    signs: Floats
    dual: Floats
    left_out: Floats

    def predict(self, signs: Floats, degree: int | None = None) -> Floats:
        """Return the parts at rows of signs: ``(n_parts, len(signs))``.

        With ``degree``, only of the terms up to that size.
        """
        out = np.zeros((len(self.parities), len(signs)))
        for j, rates in enumerate(self.prior.rates):
            near, far = _near_and_far(signs, self.signs, rates, degree)
            for part, parity in enumerate(self.parities):
                gram, _ = _gram(near, far, parity)
                out[part] += self.prior.mix[part, j] * (gram @ self.dual[part])
        return out

    def coefficients(self, table: Table) -> Floats:
        """``a_S`` of the given terms: ``(n_terms,)``, summed over the parts."""
        members = (table[:, :, None] == np.arange(self.signs.shape[1])).any(axis=1)
        odd = members.sum(axis=1) % 2 == 1
        variances = np.zeros((len(self.parities), len(table)))
        for j, rates in enumerate(self.prior.rates):
            variances += np.outer(self.prior.mix[:, j], prior_variances(rates, members))
        for row, parity in zip(variances, self.parities, strict=True):
            if parity != ALL:
                row[odd == (parity == EVEN)] = 0
        return np.asarray((variances * _moments(self.signs, self.dual, table)).sum(0))


def fit_interpolant(
    signs: Floats,
    targets: Floats,
    parities: tuple[int, ...],
    starts: Sequence[float] = (1.0,),
    *,
    first: Prior | None = None,
    max_rows: int = 256,
    n_steps: int = 60,
    n_last_steps: int = 8,
) -> Interpolant:
    """Learn the prior, then interpolate.

    Parameters
    ----------
    signs : float64 (h, n_features)
        Rows of -1 and +1; one of each complementary pair.
    targets : float64 (n_parts, h)
    parities : tuple of ALL, EVEN or ODD
        What the kernel of each part is restricted to.
    starts : sequence of float
        Sum of the rates of each component to start from.
    first : Prior, optional
        Where to start instead; only ``n_last_steps`` are made from there.
    max_rows : int
        The prior is learnt on about this many rows, then refined on all of them.
    n_steps, n_last_steps : int
        Steps on the subset and on all rows.
    """
    n_features = signs.shape[1]
    spread = np.sqrt((targets**2).mean(axis=1))
    live = spread > 0
    scaled = targets[live] / spread[live, None]
    kept = tuple(p for p, on in zip(parities, live, strict=True) if on)
    if first is None:
        even = np.asarray(starts)[:, None] / n_features * np.ones(n_features)
        prior = Prior(even, np.ones((len(kept), len(starts))))
        stride = -(-len(signs) // max_rows)
        if stride > 1:
            part = slice(None, None, stride)
            prior = _learn(signs[part], scaled[:, part], kept, prior, n_steps)
            n_steps = n_last_steps
    else:
        prior = Prior(first.rates, first.mix[live])
        n_steps = n_last_steps
    prior = _learn(signs, scaled, kept, prior, n_steps)
    dual, left_out = np.zeros(targets.shape), np.zeros(targets.shape)
    dual[live], left_out[live] = _interpolate(signs, scaled, kept, prior)
    mix = np.ones((len(parities), len(prior.rates)))
    mix[live] = prior.mix
    return Interpolant(
        Prior(prior.rates, mix),
        parities,
        signs,
        dual * spread[:, None],
        left_out * spread[:, None],
    )


def prior_variances(rates: Floats, members: Floats) -> Floats:
    """``v_S`` of one component for terms given as 0/1 rows ``(n_terms, n_features)``."""
    # Logs, because a product over hundreds of features underflows.
    tiny = np.finfo(np.float64).tiny
    constant = np.log1p(np.exp(-rates)).sum() - len(rates) * np.log(2)
    return np.asarray(np.exp(constant + members @ np.log(np.tanh(rates / 2) + tiny)))


def _moments(signs: Floats, dual: Floats, table: Table) -> Floats:
    """``sum_t b_t chi_S(x_t)``, ``(n_parts, n_terms)``, in blocks of terms."""
    rows = np.vstack([signs.T, np.ones(len(signs))])
    out = np.empty((len(dual), len(table)))
    step = max(1, _BLOCK // len(signs))
    for start in range(0, len(table), step):
        block = slice(start, start + step)
        out[:, block] = dual @ basis.columns(rows, table[block]).T
    return out


def _near_and_far(
    left: Floats, right: Floats, rates: Floats, degree: int | None = None
) -> tuple[Floats, Floats]:
    """``k(x, x')`` and ``k(x, -x')`` of one component, up to ``degree`` if given."""
    if degree is not None and degree < len(rates):
        return _truncated(left, right, rates, degree)
    half = (left * (rates / 2)) @ right.T
    total = rates.sum() / 2
    return np.exp(half - total), np.exp(-half - total)


def _truncated(
    left: Floats, right: Floats, rates: Floats, degree: int
) -> tuple[Floats, Floats]:
    """Terms up to ``degree`` only: elementary symmetric sums, by Newton's identities.

    ``k e_k = sum_{i=1..k} (-1)^(i-1) e_{k-i} p_i`` with
    ``p_i = sum_f (r_f x_f x'_f)^i``, which for even i is a constant.
    """
    ratio = np.tanh(rates / 2)
    odd_power = [(left * ratio**i) @ right.T for i in range(1, degree + 1, 2)]
    elementary = [np.ones((len(left), len(right)))]
    for k in range(1, degree + 1):
        total = np.zeros((len(left), len(right)))
        for i in range(1, k + 1):
            power = odd_power[i // 2] if i % 2 else (ratio**i).sum()
            total += (-1) ** (i - 1) * elementary[k - i] * power
        elementary.append(total / k)
    even, odd = sum(elementary[0::2]), sum(elementary[1::2])
    empty = prior_variances(rates, np.zeros((1, len(rates))))[0]
    return empty * (even + odd), empty * (even - odd)


def _gram(near: Floats, far: Floats, parity: int) -> tuple[Floats, Floats]:
    """Covariance of a part and its partner in the derivative.

    ``d gram / d w_i = (z_i z'_i partner - gram) / 2``.
    """
    if parity == ALL:
        return near, near
    both, difference = (near + far) / 2, (near - far) / 2
    return (both, difference) if parity == EVEN else (difference, both)


def _inverse(matrix: Floats) -> tuple[Floats, float]:
    """Return the inverse and the log determinant of a positive definite matrix."""
    factor, info = lapack.dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
    if info:
        raise LinAlgError("not positive definite")
    log_determinant = 2 * float(np.log(np.diag(factor)).sum())
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    lower = np.tril(inverse)
    return lower + np.tril(inverse, -1).T, log_determinant


def _covariance(grams: list[Floats], mix: Floats) -> tuple[Floats, Floats]:
    """Sum of the components with the nugget; also their mean variances ``(J,)``."""
    variance = np.array([np.diag(gram).mean() for gram in grams])
    out = sum(m * gram for m, gram in zip(mix, grams, strict=True))
    total = np.array(out, order="F")
    total[np.diag_indices(len(total))] += _NUGGET * (mix @ variance)
    return total, variance


def _interpolate(
    signs: Floats, targets: Floats, parities: tuple[int, ...], prior: Prior
) -> tuple[Floats, Floats]:
    """Return ``b`` and the leave-one-out predictions ``y_t - b_t / (K^-1)_tt``."""
    pairs = [_near_and_far(signs, signs, rates) for rates in prior.rates]
    dual, left_out = np.empty_like(targets), np.empty_like(targets)
    for part, parity in enumerate(parities):
        grams = [_gram(near, far, parity)[0] for near, far in pairs]
        inverse, _ = _inverse(_covariance(grams, prior.mix[part])[0])
        dual[part] = inverse @ targets[part]
        left_out[part] = targets[part] - dual[part] / np.diag(inverse)
    return dual, left_out


def _learn(
    signs: Floats, targets: Floats, parities: tuple[int, ...], start: Prior, n: int
) -> Prior:
    """Maximise the likelihood over log rates and log shares in ``n`` steps."""
    n_parts, shape = len(parities), start.rates.shape
    if n_parts == 0 or n == 0:
        return start
    # The scale of each part is profiled out: its first share stays one.
    shares = np.log(start.mix / start.mix[:, :1])[:, 1:]
    point = np.concatenate([np.log(start.rates).ravel(), shares.ravel()])
    bounds = [_LOG_RATE] * start.rates.size + [_LOG_MIX] * shares.size

    def unpack(theta: Floats) -> Prior:
        rates = np.exp(theta[: start.rates.size]).reshape(shape)
        logs = np.zeros(start.mix.shape)
        logs[:, 1:] = theta[start.rates.size :].reshape(shares.shape)
        return Prior(rates, np.exp(logs))

    def objective(theta: Floats) -> tuple[float, Floats]:
        try:
            value, by_rate, by_mix = _loss(signs, targets, parities, unpack(theta))
        except LinAlgError:
            return 1e10, np.zeros_like(theta)
        logs = theta[start.rates.size :]
        slope = np.concatenate([by_rate.ravel(), by_mix[:, 1:].ravel()])
        slope[start.rates.size :] += _MIX_PULL * logs
        return value + _MIX_PULL / 2 * float(logs @ logs), slope

    found = minimize(
        objective,
        np.clip(point, [b[0] for b in bounds], [b[1] for b in bounds]),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": n},
    )
    return unpack(found.x)


def _loss(
    signs: Floats, targets: Floats, parities: tuple[int, ...], prior: Prior
) -> tuple[float, Floats, Floats]:
    """Negative log likelihood and its slopes in log rates and log shares.

    ``sum over parts of h/2 log(y^T K^-1 y / h) + 1/2 log det K``, scale profiled out.
    With ``M = d loss / d K``, the slope in ``w_i`` needs only ``z_i^T (M * P) z_i``: all
    features at the price of one matrix product.
    """
    h = len(signs)
    value = 0.0
    by_rate, by_mix = np.zeros_like(prior.rates), np.zeros_like(prior.mix)
    pairs = [_near_and_far(signs, signs, rates) for rates in prior.rates]
    for part, parity in enumerate(parities):
        grams = [_gram(near, far, parity) for near, far in pairs]
        mix = prior.mix[part]
        total, variance = _covariance([gram for gram, _ in grams], mix)
        inverse, log_determinant = _inverse(total)
        dual = inverse @ targets[part]
        scale = float(targets[part] @ dual) / h
        value += h / 2 * np.log(scale) + log_determinant / 2
        slope = inverse
        slope -= np.outer(dual, dual / scale)
        slope *= 0.5
        trace = float(np.trace(slope))
        for j, (gram, partner) in enumerate(grams):
            along = float(np.vdot(slope, gram)) + _NUGGET * trace * variance[j]
            product = ((slope * partner) @ signs * signs).sum(axis=0)
            product += _NUGGET * trace * np.diag(partner).mean()
            by_rate[j] += mix[j] * prior.rates[j] * (product - along) / 2
            by_mix[part, j] = mix[j] * along
    return value, by_rate, by_mix
