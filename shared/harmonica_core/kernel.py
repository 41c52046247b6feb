"""Covariances of values on the cube, by a prior that is sparse in features.

The covariance of two masks falls with the features they differ in,

    k(x, x') = sum_j m_j exp(-sum_i w_ji [x_i != x'_i]) = sum_S v_S chi_S(x) chi_S(x'),
    v_S = sum_j m_j prod_i (1 + exp(-w_ji)) / 2 * prod_{i in S} tanh(w_ji / 2),

so each prior variance ``v_S`` is a product over the features of S: a feature with
``w_i = 0`` is in no term.

With complementary pairs the even and the odd part are independent under this prior;
their covariances are ``(k(x, x') +- k(x, -x')) / 2``, of half the size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, lapack

from harmonica_core._types import Floats

ALL, EVEN, ODD = 0, 1, -1

# Values are exact; the nugget only keeps the matrices well-conditioned.
NUGGET = 1e-8


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


def prior_variances(rates: Floats, members: Floats) -> Floats:
    """``v_S`` of one component; terms are 0/1 rows ``(n_terms, n_features)``."""
    # Logs, because a product over hundreds of features underflows.
    tiny = np.finfo(np.float64).tiny
    constant = np.log1p(np.exp(-rates)).sum() - len(rates) * np.log(2)
    return np.asarray(np.exp(constant + members @ np.log(np.tanh(rates / 2) + tiny)))


def near_and_far(
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


def part_gram(near: Floats, far: Floats, parity: int) -> Floats:
    """Covariance of a part."""
    if parity == ALL:
        return near
    return (near + far) / 2 if parity == EVEN else (near - far) / 2


class Workspace:
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
            near -= total
            np.exp(near, out=near)
            if not self.paired:
                continue
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
        diagonal *= 1 + NUGGET
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
