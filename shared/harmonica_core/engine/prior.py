"""The prior, learnt by marginal likelihood with analytic gradients.

For observations y with covariance K, a flat prior on the intercept and the scale of
each function profiled out,

    loss = N/2 sum_c log(y_c' P y_c / N) + C/2 (log det K + log 1' K^-1 1),
    P = K^-1 - K^-1 1 1' K^-1 / (1' K^-1 1).

With ``M = d loss / d K = (C P - sum_c P y_c y_c' P / scale_c) / 2``, the slope in a
feature's rate or relevance needs only ``x_i' (M * E) x_i`` for some kernels E: all
features at the price of one matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from harmonica_core._types import Floats
from harmonica_core.basis.kernel import EVEN, ODD, Prior, symmetric_sums, variances
from harmonica_core.engine.sample import Sample

# Relative to the diagonal; keeps the matrices well-conditioned.
JITTER = 1e-9
# Where rates start, in units of 1 / n: terms of mostly one feature, a few, many.
# One product instead of three costs 4% in I_2 at 250 calls, four gain nothing (13
# kinds of games with 10 to 14 features: models on tables, text, digits).
_FACTORS = (0.5, 4.0, 16.0)
_ORDERS = (1.0, 0.3, 0.1)
_PRODUCT, _WHITE = 0.3, 0.05
_LOG_RELEVANCE = (-9.0, 3.0)
_LOG_RATE = (float(np.log(1e-6)), float(np.log(2.0)))
_LOG_VARIANCE = (-14.0, 6.0)
_LOG_WHITE = (-18.0, 4.0)
# Pulls of log relevances towards 0, of a product's log rates towards their mean (both
# by log(1 + x^2), which lets single features go), and of log variances towards where
# they start. Without them a prior learnt from few calls is too sure of itself: at 4
# calls for a feature, 65% of Shapley values were within two standard deviations, with
# them 87%.
_PULL, _RATE_PULL, _SIZE_PULL = 0.6, 0.6, 0.1
# (rows, steps) from coarse to fine: most steps on few rows, a few on all of them.
_SCHEDULE = ((100, 20), (250, 10), (1000, 3))
# Functions that a shared prior is learnt from, spread over those given.
_FUNCTIONS = 32


def learn_prior(sample: Sample, degree: int | None = None) -> Prior:
    """Return the prior that makes the sample likeliest, shared by its functions.

    Parameters
    ----------
    sample : Sample
    degree : int, optional
        Terms above this size have no variance.
    """
    shape = _Shape.of(sample.n_features, degree)
    live = np.flatnonzero((sample.standard != 0).any(axis=0))
    if not len(live):
        return shape.learnt(shape.start())
    chosen = live[np.unique(np.linspace(0, len(live) - 1, _FUNCTIONS).astype(int))]
    data = _Data.of(sample, chosen)
    theta = shape.start()
    n_left = sum(steps for _, steps in _SCHEDULE)
    for rows, steps in _SCHEDULE:
        last = rows >= len(data.signs)
        theta = _minimise(shape, theta, data.some(rows), n_left if last else steps)
        n_left -= steps
        if last:
            break
    return shape.learnt(theta)


@dataclass(frozen=True)
class _Data:
    """Rows of signs, and what was observed there.

    ``parts`` are (parities, targets ``(h, C)``): the even and the odd part of pairs, or
    plain values. ``opposite[t]`` is the row of the complement, -1 if there is none.
    """

    signs: Floats
    parts: tuple[tuple[tuple[int, ...], Floats], ...]
    opposite: np.ndarray

    @classmethod
    def of(cls, sample: Sample, functions: np.ndarray) -> _Data:
        pairs = sample.pairs
        parts: tuple[tuple[tuple[int, ...], Floats], ...]
        # Few pairs say little about the odd part: then plain values of all masks.
        if len(pairs) >= max(len(sample.singles), 2):
            parts = (
                ((EVEN,), sample.even[:, functions]),
                ((ODD,), sample.odd[:, functions]),
            )
            return cls(sample.signs[pairs[:, 0]], parts, np.full(len(pairs), -1))
        opposite = np.full(len(sample.signs), -1)
        opposite[pairs[:, 0]], opposite[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
        parts = (((EVEN, ODD), sample.standard[:, functions]),)
        return cls(sample.signs, parts, opposite)

    def some(self, n_rows: int) -> _Data:
        """Return rows spread evenly over all of them."""
        if n_rows >= len(self.signs):
            return self
        rows = np.unique(np.linspace(0, len(self.signs) - 1, n_rows).astype(int))
        place = np.full(len(self.signs) + 1, -1)
        place[rows] = np.arange(len(rows))
        parts = tuple((parities, target[rows]) for parities, target in self.parts)
        return _Data(self.signs[rows], parts, place[self.opposite[rows]])


@dataclass(frozen=True)
class _Shape:
    """How many numbers of each sort a prior has; they are learnt as logarithms."""

    n: int
    n_orders: int
    n_products: int

    @classmethod
    def of(cls, n_features: int, degree: int | None) -> _Shape:
        if degree is None or degree >= n_features:
            return cls(n_features, min(len(_ORDERS), n_features), len(_FACTORS))
        return cls(n_features, degree, 0)

    @property
    def ends(self) -> list[int]:
        """Where relevance, rates, orders and products end."""
        sizes = [self.n, self.n_products * self.n, self.n_orders, 2 * self.n_products]
        return [int(end) for end in np.cumsum(sizes)]

    def start(self) -> Floats:
        """Return all features alike, mostly small terms."""
        rates = np.log(_FACTORS[: self.n_products]) - np.log(self.n)
        orders = [
            _ORDERS[min(k, 2)] * 0.3 ** max(k - 2, 0) for k in range(self.n_orders)
        ]
        return np.concatenate(
            [
                np.zeros(self.n),
                np.repeat(rates, self.n),
                np.log(orders),
                np.full(2 * self.n_products, np.log(_PRODUCT)),
                np.full(2, np.log(_WHITE)),
            ]
        )

    def bounds(self) -> list[tuple[float, float]]:
        """Return the lowest and highest logarithm of each number."""
        return (
            [_LOG_RELEVANCE] * self.n
            + [_LOG_RATE] * (self.n_products * self.n)
            + [_LOG_VARIANCE] * (self.n_orders + 2 * self.n_products)
            + [_LOG_WHITE] * 2
        )

    def split(self, theta: Floats) -> list[Floats]:
        """Return relevance, rates ``(J, n)``, orders, products ``(2, J)``, white."""
        relevance, rates, orders, products, white = np.split(theta, self.ends)
        shaped = rates.reshape(self.n_products, self.n)
        return [relevance, shaped, orders, products.reshape(2, -1), white]

    def prior(self, theta: Floats) -> Prior:
        """Return the prior of these logarithms."""
        relevance, rates, orders, products, white = self.split(np.exp(theta))
        return Prior(relevance, orders, rates, products, white)

    def learnt(self, theta: Floats) -> Prior:
        """Return the prior with the jitter as part of its white."""
        prior = self.prior(theta)
        white = prior.white + JITTER * np.array(variances(prior))
        return replace(prior, white=white)


def _minimise(shape: _Shape, theta: Floats, data: _Data, steps: int) -> Floats:
    bounds = shape.bounds()
    work = _Workspace(shape, data)
    found = minimize(
        lambda at: loss(shape, at, data, work),
        np.clip(theta, *np.transpose(bounds)),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": steps, "maxcor": 20},
    )
    return np.asarray(found.x)


def loss(
    shape: _Shape, theta: Floats, data: _Data, work: _Workspace | None = None
) -> tuple[float, Floats]:
    """Return the loss of the module's docstring with its pulls, and its slope."""
    work = work or _Workspace(shape, data)
    work.fill(shape.prior(theta))
    inverses, log_determinant, quadratic = [], 0.0, 0.0
    n_observed = 0
    for part, (parities, target) in enumerate(data.parts):
        inverse, value = work.invert(work.gram(part, parities), EVEN in parities)
        if inverse is None:
            return 1e10, np.zeros_like(theta)
        dual = inverse @ target
        inverses.append((inverse, dual))
        log_determinant += value
        quadratic = quadratic + (target * dual).sum(axis=0)
        n_observed += len(target)
    n_functions = data.parts[0][1].shape[1]
    scale = np.maximum(quadratic / (n_observed - 1), 1e-300)
    value = (n_observed - 1) / 2 * float(np.log(scale).sum())
    value += n_functions / 2 * log_determinant
    slope = np.zeros_like(theta)
    for (parities, _), (inverse, dual) in zip(data.parts, inverses, strict=True):
        inverse *= n_functions
        inverse -= np.matmul(dual / scale, dual.T, out=work.spare)
        inverse *= 0.5
        work.add_slopes(inverse, parities, shape.split(slope))
    return _add_pulls(shape, theta, value, slope)


def _add_pulls(
    shape: _Shape, theta: Floats, value: float, slope: Floats
) -> tuple[float, Floats]:
    relevance, rates, *_ = shape.split(theta)
    by_relevance, by_rate, *_ = shape.split(slope)
    value += _PULL * float(np.log1p(relevance**2).sum())
    by_relevance += 2 * _PULL * relevance / (1 + relevance**2)
    if len(rates):
        apart = rates - rates.mean(axis=1, keepdims=True)
        value += _RATE_PULL * float(np.log1p(apart**2).sum())
        slopes = 2 * _RATE_PULL * apart / (1 + apart**2)
        by_rate += slopes - slopes.mean(axis=1, keepdims=True)
    # Variances and white are pulled towards where they start.
    sizes = slice(shape.ends[1], None)
    away = theta[sizes] - shape.start()[sizes]
    value += _SIZE_PULL * float(away @ away)
    slope[sizes] += 2 * _SIZE_PULL * away
    return value, slope


def mirror(matrix: Floats, step: int = 128) -> None:
    """Copy the lower triangle onto the upper one, in place."""
    above = ~np.tri(min(step, len(matrix)), dtype=bool)
    for start in range(0, len(matrix), step):
        stop = start + step
        matrix[start:stop, stop:] = matrix[stop:, start:stop].T
        block = matrix[start:stop, start:stop]
        np.copyto(block, block.T, where=above[: len(block), : len(block)])


class _Workspace:
    """Covariances among rows, and slopes of the loss through them.

    Its matrices are allocated once: fresh pages cost more than the arithmetic.
    """

    def __init__(self, shape: _Shape, data: _Data) -> None:
        h = len(data.signs)
        self.signs, self.opposite = data.signs, data.opposite
        self.prior: Prior
        self.norms: list[float] = []
        # e_0 is the number 1.
        self.orders: list[Any] = [1.0, *np.empty((shape.n_orders, h, h))]
        self.powers = np.empty((max(shape.n_orders - 1, 0) // 2, h, h))
        self.products = np.empty((shape.n_products, 2, h, h))
        self.grams = np.empty((len(data.parts), h, h))
        self.spare = np.empty((h, h))
        self.rows = np.empty_like(data.signs)

    def _inner(self, weights: Floats, out: Floats) -> Floats:
        """``sum_f weights_f x_f x'_f``."""
        np.multiply(self.signs, weights, out=self.rows)
        np.matmul(self.rows, self.signs.T, out=out)
        return out

    def fill(self, prior: Prior) -> None:
        """Compute the covariances of all orders and products."""
        self.prior = prior
        r, orders = prior.relevance, self.orders
        self.norms = symmetric_sums(r, len(prior.orders))
        powers: list[Any] = [self._inner(r, orders[1])]
        for i in range(2, len(prior.orders) + 1):
            odd = i % 2
            powers.append(
                self._inner(r**i, self.powers[i // 2 - 1])
                if odd
                else float((r**i).sum())
            )
        # k e_k = sum_i (-1)^(i-1) e_{k-i} p_i, and p_i is a number for even i.
        for k in range(2, len(prior.orders) + 1):
            total = np.multiply(orders[k - 1], orders[1], out=orders[k])
            for i in range(2, k + 1):
                if i < k:
                    part = np.multiply(orders[k - i], powers[i - 1], out=self.spare)
                else:
                    part = powers[i - 1]
                total += part if i % 2 else -part
            total /= k
        for w, (even, odd_part) in zip(prior.rates, self.products, strict=True):
            total, constant = self._inner(w / 2, even), w.sum() / 2
            total -= constant
            np.exp(total, out=total)
            # k(x, x') k(x, -x') is the same for all x'; dividing is faster than exp.
            total *= 0.5
            np.divide(np.exp(-2 * constant) / 4, total, out=self.spare)
            np.subtract(total, self.spare, out=odd_part)
            total += self.spare

    def gram(self, part: int, parities: tuple[int, ...]) -> Floats:
        """Return the covariance of observations of these parities, white included."""
        prior = self.prior
        out: Floats = self.grams[part]
        out[:] = 0.0
        for k, share in enumerate(prior.orders, 1):
            if k % 2 in parities and self.norms[k] > 0:
                out += np.multiply(
                    self.orders[k], share / self.norms[k], out=self.spare
                )
        for shares, kernels in zip(prior.products.T, self.products, strict=True):
            for parity in parities:
                out += np.multiply(kernels[parity], shares[parity], out=self.spare)
        diagonal = out.reshape(-1)[:: len(out) + 1]
        diagonal *= 1 + JITTER
        diagonal += sum(prior.white[parity] for parity in parities)
        if len(parities) == 2:
            rows = np.flatnonzero(self.opposite >= 0)
            out[rows, self.opposite[rows]] += prior.white[EVEN] - prior.white[ODD]
        return out

    def invert(self, gram: Floats, centred: bool) -> tuple[Floats | None, float]:
        """Return P (or ``K^-1`` where there is no intercept) and log determinants."""
        # Symmetric, so the transpose gives LAPACK its column order without a copy.
        factor, info = lapack.dpotrf(gram.T, lower=1, clean=0, overwrite_a=1)
        if info:
            return None, 0.0
        value = 2 * float(np.log(np.diagonal(factor)).sum())
        inverse: Floats = lapack.dpotri(factor, lower=1, overwrite_c=1)[0].T
        mirror(inverse.T)
        if centred:
            row = inverse.sum(axis=1)
            total = float(row.sum())
            value += float(np.log(total))
            inverse -= np.multiply.outer(row, row / total, out=self.spare)
        return inverse, value

    def add_slopes(
        self, slope: Floats, parities: tuple[int, ...], by: list[Floats]
    ) -> None:
        """Add what ``slope = d loss / d gram`` says of each logarithm to ``by``."""
        by_relevance, by_rate, by_order, by_product, by_white = by
        prior, r = self.prior, self.prior.relevance
        trace = float(np.trace(slope))
        for k, share in enumerate(prior.orders, 1):
            if k % 2 not in parities or self.norms[k] <= 0:
                continue
            along = float(np.vdot(slope, self.orders[k]))
            along += JITTER * trace * self.norms[k]
            weight = share / self.norms[k]
            by_order[k - 1] += weight * along
            by_relevance += weight * r * self._along_relevance(slope, k, along)
        for j, (kernels, w) in enumerate(zip(self.products, prior.rates, strict=True)):
            for parity in parities:
                share = prior.products[parity, j]
                along = float(np.vdot(slope, kernels[parity]))
                by_product[parity, j] += share * along
                partner = self._quadratic(slope, kernels[1 - parity])
                by_rate[j] += share * w / 2 * (partner - along)
        both = 0.0
        if len(parities) == 2:
            rows = np.flatnonzero(self.opposite >= 0)
            both = float(slope[rows, self.opposite[rows]].sum())
        for parity in parities:
            sign = 1 if parity == EVEN else -1
            by_white[parity] += prior.white[parity] * (trace + sign * both)

    def _along_relevance(self, slope: Floats, k: int, along: float) -> Floats:
        """Slope of ``e_k(r x x') / e_k(r)`` times ``e_k(r)`` in each relevance.

        ``d e_k / d r_i = u_i e_{k-1}(without i)`` with ``u_i = x_i x'_i`` and
        ``e_{k-1}(without i) = sum_l (-r_i u_i)^l e_{k-1-l}``; ``u_i^2 = 1``.
        """
        r = self.prior.relevance
        out, norm = np.zeros_like(r), np.zeros_like(r)
        for power in range(k):
            kernel = self.orders[k - 1 - power]
            if power % 2 == 0:
                out += r**power * self._quadratic(slope, kernel)
            elif power == k - 1:
                out -= r**power * float(slope.sum())
            else:
                out -= r**power * float(np.vdot(slope, kernel))
            norm += (-r) ** power * self.norms[k - 1 - power]
        return np.asarray(out - along * norm / self.norms[k])

    def _quadratic(self, slope: Floats, kernel: Any) -> Floats:
        """Return ``x_i' (slope * kernel) x_i`` of all features."""
        if not isinstance(kernel, float):
            slope = np.multiply(slope, kernel, out=self.spare)
        np.matmul(slope, self.signs, out=self.rows)
        return np.asarray(np.einsum("ti,ti->i", self.rows, self.signs))
