"""The prior of a Gaussian process on the cube, learnt by maximum likelihood."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError
from scipy.optimize import minimize

from harmonica_core._types import Floats
from harmonica_core.kernel import ALL, NUGGET, Prior, Workspace

_LOG_RATE = (np.log(1e-6), np.log(2.0))
_LOG_MIX = (-10.0, 10.0)
_LOG_NOISE = (np.log(1e-9), np.log(10.0))
# A weak pull towards equal shares keeps an unused component from drifting off.
_MIX_PULL = 0.02
_FACTORS = (0.5, 4.0)
# Steps on at most this many rows, then a few on all of them.
_LEARNING_ROWS, _FIRST_STEPS, _STEPS, _LAST_STEPS = 256, 12, 15, 3


def learnt_prior(
    signs: Floats,
    targets: Floats,
    parities: tuple[int, ...],
    noise: float,
    start: Prior | None = None,
) -> Prior:
    """First one component, then two; where rows are many, mostly on some of them.

    With ``start``, only the last steps on all rows, with the noise it has.
    """
    if start is not None:
        return _learn(signs, targets, parities, start, _LAST_STEPS)
    stride = -(-len(signs) // _LEARNING_ROWS)
    some = slice(None, None, stride)
    prior = flat_prior(signs.shape[1], len(parities), noise)
    prior = _learn(signs[some], targets[:, some], parities, prior, _FIRST_STEPS)
    prior = _learn(signs[some], targets[:, some], parities, split_prior(prior), _STEPS)
    if stride > 1:
        steps = _LAST_STEPS if stride == 2 else _LAST_STEPS - 1
        prior = _learn(signs, targets, parities, prior, steps)
    return prior


def flat_prior(n_features: int, n_parts: int, noise: float = 0.0) -> Prior:
    """One component, all features alike: mostly terms of size one and two."""
    rates = np.full((1, n_features), 1 / n_features)
    return Prior(rates, np.ones((n_parts, 1)), np.full(n_parts, noise))


def split_prior(prior: Prior) -> Prior:
    """Two components instead of one: a smoother and a rougher one to start from."""
    rates = np.concatenate([prior.rates * factor for factor in _FACTORS])
    mix = np.tile(prior.mix, (1, len(_FACTORS)))
    return Prior(rates, mix, prior.noise)


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

    work = Workspace(signs, len(start.rates), ALL not in parities)

    def unpack(theta: Floats) -> Prior:
        rates, mix, noise = np.split(np.exp(theta), ends[:2])
        whole = np.ones(start.mix.shape)
        whole[:, 1:] = mix.reshape(n_parts, -1)
        return Prior(rates.reshape(shape), whole, noise if noisy else start.noise)

    def objective(theta: Floats) -> tuple[float, Floats]:
        try:
            value, *slopes = loss(work, targets, parities, unpack(theta))
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


def loss(
    work: Workspace, targets: Floats, parities: tuple[int, ...], prior: Prior
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
        nugget = NUGGET * trace
        for j in range(len(mix)):
            along = float(np.vdot(slope, grams[j])) + nugget * grams[j, 0, 0]
            np.multiply(slope, partners[j], out=work.other)
            product = (work.other @ signs * signs).sum(axis=0)
            product += nugget * partners[j, 0, 0]
            by_rate[j] += mix[j] * prior.rates[j] * (product - along) / 2
            by_mix[part, j] = mix[j] * along
    return value, by_rate, by_mix[:, 1:], by_noise
