"""Interpolation on the cube by a Gaussian process whose prior is sparse in features.

The covariance of two masks falls with the features they differ in,

    k(x, x') = sum_j m_j exp(-sum_i w_ji [x_i != x'_i]) = sum_S v_S chi_S(x) chi_S(x'),
    v_S = sum_j m_j prod_i (1 + exp(-w_ji)) / 2 * prod_{i in S} tanh(w_ji / 2),

so each prior variance ``v_S`` is a product over the features of S: a feature with
``w_i = 0`` is in no term. The ``w`` are learnt by maximum likelihood. The posterior
mean is a polynomial with ``a_S = v_S sum_t b_t chi_S(x_t)`` and ``(K + nugget) b = y``.

With complementary pairs the even and the odd part are independent under this prior;
their covariances are ``(k(x, x') +- k(x, -x')) / 2``, of half the size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, lapack
from scipy.optimize import minimize

from harmonica_core import basis
from harmonica_core._types import Floats, Table
from harmonica_core.masks import mask_numbers
from harmonica_core.transform import spectrum_of_values

ALL, EVEN, ODD = 0, 1, -1

# Values are exact; the nugget only keeps the matrices well-conditioned.
_NUGGET = 1e-8
_LOG_RATE = (np.log(1e-6), np.log(2.0))
_LOG_MIX = (-10.0, 10.0)
_NOISE, _LOG_NOISE = 1e-3, (np.log(1e-9), np.log(10.0))
# A weak pull towards equal shares keeps an unused component from drifting off.
_MIX_PULL = 0.02
_FACTORS = (0.5, 4.0)
# Steps on at most this many rows, then a few on all of them.
_LEARNING_ROWS, _FIRST_STEPS, _STEPS, _LAST_STEPS = 256, 12, 15, 3
# A part this much smaller than the whole is none.
_ROUNDING = 1e-8
# Solutions of a nearly singular system, each from the residual of the one before.
_REFINEMENTS = 3
# Entries of one block of parity columns.
_BLOCK = 1 << 22
# Fewer features than this: all masks may be listed.
_LISTABLE = 20


@dataclass(frozen=True)
class Prior:
    """Rates and shares of the components.

    Attributes
    ----------
    rates : float64 (J, n_features)
        ``w_ji``.
    mix : float64 (n_parts, J)
        ``m_j``, for each part.
    noise : float64 (n_parts,)
        Variance that no mask shares with any other: terms of all sizes, each too small
        to be learnt.
    """

    rates: Floats
    mix: Floats
    noise: Floats


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
                gram = _gram(near, far, parity)
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


def flat_prior(n_features: int, n_parts: int, noise: float = 0.0) -> Prior:
    """One component, all features alike: mostly terms of size one and two."""
    rates = np.full((1, n_features), 1 / n_features)
    return Prior(rates, np.ones((n_parts, 1)), np.full(n_parts, noise))


def split_prior(prior: Prior) -> Prior:
    """Two components instead of one: a smoother and a rougher one to start from."""
    rates = np.concatenate([prior.rates * factor for factor in _FACTORS])
    mix = np.tile(prior.mix, (1, len(_FACTORS)))
    return Prior(rates, mix, prior.noise)


def fit_interpolant(
    signs: Floats,
    targets: Floats,
    parities: tuple[int, ...],
    prior: Prior | None = None,
    noisy: bool = False,
) -> Interpolant:
    """Learn the prior where none is given, and interpolate.

    Parameters
    ----------
    signs : float64 (h, n_features)
        Rows of -1 and +1; one of each complementary pair.
    targets : float64 (n_parts, h)
    parities : tuple of ALL, EVEN or ODD
        What the kernel of each part is restricted to.
    prior : Prior, optional
        With one row of ``mix`` for each part.
    noisy : bool
        Whether a prior that is learnt has noise.
    """
    spread = np.sqrt((targets**2).mean(axis=1))
    # A part that is rounding beside the others would only disturb their rates.
    live = spread > _ROUNDING * np.sqrt((spread**2).sum())
    scaled = targets[live] / spread[live, None]
    kept = tuple(p for p, on in zip(parities, live, strict=True) if on)
    if prior is None:
        prior = _learnt_prior(signs, scaled, kept, _NOISE if noisy else 0.0)
    else:
        prior = Prior(prior.rates, prior.mix[live], prior.noise[live])
    dual, left_out = np.zeros(targets.shape), np.zeros(targets.shape)
    dual[live], left_out[live] = _interpolate(signs, scaled, kept, prior)
    mix, noise = np.ones((len(parities), len(prior.rates))), np.zeros(len(parities))
    mix[live], noise[live] = prior.mix, prior.noise
    return Interpolant(
        Prior(prior.rates, mix, noise),
        parities,
        signs,
        dual * spread[:, None],
        left_out * spread[:, None],
    )


def _learnt_prior(
    signs: Floats, targets: Floats, parities: tuple[int, ...], noise: float
) -> Prior:
    """First one component, then two; where rows are many, mostly on some of them."""
    stride = -(-len(signs) // _LEARNING_ROWS)
    some = slice(None, None, stride)
    prior = flat_prior(signs.shape[1], len(parities), noise)
    prior = _learn(signs[some], targets[:, some], parities, prior, _FIRST_STEPS)
    prior = _learn(signs[some], targets[:, some], parities, split_prior(prior), _STEPS)
    if stride > 1:
        steps = _LAST_STEPS if stride == 2 else _LAST_STEPS - 1
        prior = _learn(signs, targets, parities, prior, steps)
    return prior


def prior_variances(rates: Floats, members: Floats) -> Floats:
    """``v_S`` of one component; terms are 0/1 rows ``(n_terms, n_features)``."""
    # Logs, because a product over hundreds of features underflows.
    tiny = np.finfo(np.float64).tiny
    constant = np.log1p(np.exp(-rates)).sum() - len(rates) * np.log(2)
    return np.asarray(np.exp(constant + members @ np.log(np.tanh(rates / 2) + tiny)))


def _moments(signs: Floats, dual: Floats, table: Table) -> Floats:
    """``sum_t b_t chi_S(x_t)``, ``(n_parts, n_terms)``."""
    n_features = signs.shape[1]
    if n_features < _LISTABLE and len(table) == 1 << n_features:
        return _all_moments(signs, dual, table)
    rows = np.vstack([signs.T, np.ones(len(signs))])
    out = np.empty((len(dual), len(table)))
    step = max(1, _BLOCK // len(signs))
    for start in range(0, len(table), step):
        block = slice(start, start + step)
        out[:, block] = dual @ basis.columns(rows, table[block]).T
    return out


def _all_moments(signs: Floats, dual: Floats, table: Table) -> Floats:
    """Return the moments of all terms at once, by the fast transform."""
    n_features = signs.shape[1]
    totals = np.zeros((1 << n_features, len(dual)))
    np.add.at(totals, mask_numbers(signs > 0), dual.T)
    bits = np.append(np.int64(1) << np.arange(n_features), 0)
    numbers = bits[table].sum(axis=1)
    return np.asarray(len(totals) * spectrum_of_values(totals)[numbers].T)


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


def _gram(near: Floats, far: Floats, parity: int) -> Floats:
    """Covariance of a part."""
    if parity == ALL:
        return near
    return (near + far) / 2 if parity == EVEN else (near - far) / 2


class _Workspace:
    """Matrices of one size, allocated once: fresh pages cost more than arithmetic."""

    def __init__(self, signs: Floats, n_components: int, paired: bool) -> None:
        h = len(signs)
        self.signs = signs
        self.paired = paired
        self.even = np.empty((n_components, h, h))
        self.odd = np.empty((n_components, h, h)) if paired else self.even
        self.inverse = np.empty((h, h))
        self.other = np.empty((h, h))

    def fill(self, rates: Floats) -> None:
        """Compute the covariances of all components."""
        for j, w in enumerate(rates):
            near, far, total = self.even[j], self.other, w.sum() / 2
            np.matmul(self.signs * (w / 2), self.signs.T, out=near)
            if not self.paired:
                near -= total
                np.exp(near, out=near)
                continue
            near -= total
            np.exp(near, out=near)
            # k(x, x') k(x, -x') is the same for all x'; dividing is faster than exp.
            np.divide(np.exp(-2 * total), near, out=far)
            near *= 0.5
            far *= 0.5
            np.subtract(near, far, out=self.odd[j])
            near += far

    def grams(self, parity: int) -> tuple[Floats, Floats]:
        """Covariances ``(J, h, h)`` of a part and their partners in the derivative.

        ``d gram / d w_i = (z_i z'_i partner - gram) / 2``.
        """
        return (self.odd, self.even) if parity == ODD else (self.even, self.odd)

    def invert(self, grams: Floats, mix: Floats, noise: float) -> float:
        """Put ``(sum_j m_j gram_j + noise)^-1`` into ``inverse``; return log det."""
        total = self.inverse
        np.multiply(grams[0], mix[0], out=total)
        for gram, share in zip(grams[1:], mix[1:], strict=True):
            np.multiply(gram, share, out=self.other)
            total += self.other
        # A view of the diagonal; the kernel has the same variance everywhere.
        diagonal = total.ravel()[:: len(total) + 1]
        diagonal *= 1 + _NUGGET
        diagonal += noise
        # Symmetric, so the transpose gives LAPACK its column order without a copy.
        factor, info = lapack.dpotrf(total.T, lower=1, clean=0, overwrite_a=1)
        if info:
            raise LinAlgError("not positive definite")
        log_determinant = 2 * float(np.log(diagonal).sum())
        lapack.dpotri(factor, lower=1, overwrite_c=1)
        _mirror(total)
        return log_determinant


def _mirror(matrix: Floats, step: int = 128) -> None:
    """Copy the upper triangle onto the lower one, in place."""
    below = np.tri(min(step, len(matrix)), k=-1, dtype=bool)
    for start in range(0, len(matrix), step):
        stop = start + step
        matrix[stop:, start:stop] = matrix[start:stop, stop:].T
        block = matrix[start:stop, start:stop]
        np.copyto(block, block.T, where=below[: len(block), : len(block)])


def _interpolate(
    signs: Floats, targets: Floats, parities: tuple[int, ...], prior: Prior
) -> tuple[Floats, Floats]:
    """Return ``b`` and the leave-one-out predictions ``y_t - b_t / (K^-1)_tt``."""
    dual, left_out = np.empty_like(targets), np.empty_like(targets)
    work = _Workspace(signs, len(prior.rates), ALL not in parities)
    work.fill(prior.rates)
    for part, parity in enumerate(parities):
        grams, mix = work.grams(parity)[0], prior.mix[part]
        work.invert(grams, mix, prior.noise[part])
        nugget = _NUGGET * float(mix @ grams[:, 0, 0]) + prior.noise[part]
        left, dual[part] = targets[part], 0.0
        for _ in range(_REFINEMENTS):
            dual[part] += work.inverse @ left
            left = targets[part] - mix @ (grams @ dual[part]) - nugget * dual[part]
        left_out[part] = targets[part] - dual[part] / np.diag(work.inverse)
    return dual, left_out


def _learn(
    signs: Floats, targets: Floats, parities: tuple[int, ...], start: Prior, n: int
) -> Prior:
    """Maximise the likelihood over log rates and log shares in ``n`` steps."""
    n_parts, shape = len(parities), start.rates.shape
    if n_parts == 0:
        return start
    # The scale of each part is profiled out: its first share stays one.
    noisy = bool((start.noise > 0).all())
    logs = [
        np.log(start.rates).ravel(),
        np.log(start.mix / start.mix[:, :1])[:, 1:].ravel(),
        np.log(start.noise / start.mix[:, 0]) if noisy else np.zeros(0),
    ]
    ends = np.cumsum([len(one) for one in logs])
    limits = zip((_LOG_RATE, _LOG_MIX, _LOG_NOISE), logs, strict=True)
    bounds = [limit for limit, one in limits for _ in one]
    shares = slice(ends[0], ends[1])

    work = _Workspace(signs, len(start.rates), ALL not in parities)

    def unpack(theta: Floats) -> Prior:
        rates, mix, noise = np.split(np.exp(theta), ends[:2])
        whole = np.ones(start.mix.shape)
        whole[:, 1:] = mix.reshape(n_parts, -1)
        return Prior(rates.reshape(shape), whole, noise if noisy else start.noise)

    def objective(theta: Floats) -> tuple[float, Floats]:
        try:
            value, *slopes = _loss(work, targets, parities, unpack(theta))
        except LinAlgError:
            return 1e10, np.zeros_like(theta)
        slope = np.concatenate([one.ravel() for one in slopes])[: ends[2]]
        slope[shares] += _MIX_PULL * theta[shares]
        return value + _MIX_PULL / 2 * float(theta[shares] @ theta[shares]), slope

    found = minimize(
        objective,
        np.clip(np.concatenate(logs), *np.transpose(bounds)),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": n},
    )
    return unpack(found.x)


def _loss(
    work: _Workspace, targets: Floats, parities: tuple[int, ...], prior: Prior
) -> tuple[float, Floats, Floats, Floats]:
    """Negative log likelihood, its slopes in log rates, log shares and log noise.

    There is no slope in the first share, which stays one.

    ``sum over parts of h/2 log(y^T K^-1 y / h) + 1/2 log det K``, scale profiled out.
    With ``M = d loss / d K``, the slope in ``w_i`` needs only ``z_i^T (M * P) z_i``:
    all features at the price of one matrix product.
    """
    signs, h = work.signs, len(work.signs)
    value = 0.0
    by_rate, by_mix = np.zeros_like(prior.rates), np.zeros_like(prior.mix)
    by_noise = np.zeros_like(prior.noise)
    work.fill(prior.rates)
    for part, parity in enumerate(parities):
        grams, partners = work.grams(parity)
        mix = prior.mix[part]
        log_determinant = work.invert(grams, mix, prior.noise[part])
        slope = work.inverse
        dual = slope @ targets[part]
        scale = float(targets[part] @ dual) / h
        value += h / 2 * np.log(scale) + log_determinant / 2
        slope -= np.multiply.outer(dual, dual / scale, out=work.other)
        slope *= 0.5
        trace = float(np.trace(slope))
        by_noise[part] = prior.noise[part] * trace
        nugget = _NUGGET * trace
        for j in range(len(mix)):
            along = float(np.vdot(slope, grams[j])) + nugget * grams[j, 0, 0]
            np.multiply(slope, partners[j], out=work.other)
            product = (work.other @ signs * signs).sum(axis=0)
            product += nugget * partners[j, 0, 0]
            by_rate[j] += mix[j] * prior.rates[j] * (product - along) / 2
            by_mix[part, j] = mix[j] * along
    return value, by_rate, by_mix[:, 1:], by_noise
