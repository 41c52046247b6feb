"""How much each term counts in an interaction, by their sizes alone.

Weights are exact fractions, because alternating sums in floats lose all digits for
large terms. Indices known by their Moebius weights go through
``m_R = sum_{T superset of R} 2^|R| (-1)^(|T|-|R|) a_T``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from harmonica_core._types import Floats

Weight = Callable[[int, int], Fraction]


@lru_cache(maxsize=256)
def size_weights(index: str, order: int, degree: int) -> Floats:
    """Weights ``(order + 1, degree + 1)`` of a term of size t in I_S of size s."""
    weight = _spectral_weight(index, order)
    out = np.zeros((order + 1, degree + 1))
    for s in range(1, order + 1):
        for t in range(s, degree + 1):
            out[s, t] = float(weight(s, t))
    out.flags.writeable = False
    return out


def _spectral_weight(index: str, order: int) -> Weight:
    if index == "STII":
        return lambda s, t: _through_moebius(_stii_weight(order), s, t)
    if index == "FSII":
        return lambda s, t: _through_moebius(_fsii_weight(order), s, t)
    return {
        "Moebius": _moebius_weight,
        "BII": _bii_weight,
        "BV": _bii_weight,
        "SII": _sii_weight,
        "SV": _sii_weight,
        "k-SII": lambda s, t: _k_sii_weight(order, s, t),
        "FBII": lambda s, t: _moebius_weight(s, t) if t <= order else Fraction(0),
    }[index]


def _moebius_weight(s: int, t: int) -> Fraction:
    return Fraction(2**s * (-1) ** (t - s))


def _bii_weight(s: int, t: int) -> Fraction:
    return Fraction(2**s if s == t else 0)


def _sii_weight(s: int, t: int) -> Fraction:
    return Fraction(2**s, t - s + 1) if (t - s) % 2 == 0 else Fraction(0)


def _k_sii_weight(order: int, s: int, t: int) -> Fraction:
    """``sum_R B_{|R|-|S|} SII_R`` over ``S <= R``, ``|R| <= order``."""
    return sum(
        (
            math.comb(t - s, r - s) * bernoulli(r - s) * _sii_weight(r, t)
            for r in range(s, min(order, t) + 1)
        ),
        Fraction(0),
    )


def _through_moebius(weight: Weight, s: int, t: int) -> Fraction:
    """Weight of ``a_T`` in an index given by its weights of Moebius coefficients."""
    return sum(
        (
            math.comb(t - s, r - s) * weight(s, r) * _moebius_weight(r, t)
            for r in range(s, t + 1)
        ),
        Fraction(0),
    )


def _stii_weight(order: int) -> Weight:
    def weight(s: int, r: int) -> Fraction:
        return Fraction(1, math.comb(r, s)) if s == order else Fraction(int(r == s))

    return weight


def _fsii_weight(order: int) -> Weight:
    """Faith-Shap (Tsai, Yeh, Ravikumar 2023): larger sets spread over smaller ones."""

    def weight(s: int, r: int) -> Fraction:
        if r <= order:
            return Fraction(int(r == s))
        spread = Fraction(math.comb(r - 1, order), math.comb(r + order - 1, order + s))
        share = Fraction(s * math.comb(order, s), order + s)
        return Fraction(-1) ** (order - s) * share * spread

    return weight


@lru_cache(maxsize=256)
def bernoulli(m: int) -> Fraction:
    """Bernoulli number ``B_m`` with ``B_1 = -1/2``."""
    if m == 0:
        return Fraction(1)
    total = sum((math.comb(m + 1, j) * bernoulli(j) for j in range(m)), Fraction(0))
    return -total / (m + 1)
