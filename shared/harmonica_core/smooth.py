"""The smooth candidate: interpolants under several priors, averaged.

Each fold of the cross-validation learns a prior of its own, from rows that were not
drawn near the input on purpose. Every one of these priors interpolates all rows as
well, and so does the best of them after a few more steps without folds. The mean over
the best few, as many as predict left-out rows best, is the fit: what one prior has
missed, another may have found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harmonica_core._types import Floats, Table
from harmonica_core.folds import N_FOLDS
from harmonica_core.interpolant import (
    Interpolant,
    fit_interpolant,
    learn_prior,
    mean_coefficients,
)
from harmonica_core.shares import PartRows

# Where more than this share of the variance is left, a prior with noise is tried.
_ROUGH = 0.04


@dataclass(frozen=True)
class SmoothFit:
    """A polynomial of one output, in even and odd parts.

    Attributes
    ----------
    coef : float64 (n_terms,)
    residual : float64 (n_parts, h)
        From folds.
    gain : float64 (n_parts,)
        Expected ratio of the error of the fit to that of a fold, which lacks a fifth of
        the rows: the ratio of their leave-one-out errors.
    """

    coef: Floats
    residual: Floats
    gain: Floats


def fit_smooth(rows: PartRows, target: Floats, table: Table) -> SmoothFit:
    """Interpolate ``target (n_parts, h)`` by a polynomial of the given terms."""
    residual = np.empty_like(target)
    noisy, fits, inner = False, [], []
    for fold in range(N_FOLDS):
        out = rows.fold == fold
        rest, known = rows.take(~out), target[:, ~out]
        part = _learnt(rest, known, noisy)
        left = _left(rest, known, [part])
        if fold == 0 and left.sum() > _ROUGH * rest.mean_square(known).sum():
            other = _learnt(rest, known, noisy=True)
            less = _left(rest, known, [other])
            if less.sum() < left.sum():
                part, left, noisy = other, less, True
        residual[:, out] = target[:, out] - part.predict(
            rows.signs[out], table.shape[1]
        )
        inner.append(left)
        fits.append(fit_interpolant(rows.signs, target, rows.parities, part.prior))
    usual = rows.usual()
    best = min(fits, key=lambda fit: float(_left(rows, target, [fit]).sum()))
    prior = learn_prior(
        rows.signs[usual], target[:, usual], rows.parities, start=best.prior
    )
    fits.append(fit_interpolant(rows.signs, target, rows.parities, prior))
    fits, alone = _best_few(rows, target, fits)
    mean = np.mean(inner, axis=0)
    gain = np.sqrt(np.minimum(alone / np.where(mean > 0, mean, 1.0), 1.0))
    return SmoothFit(mean_coefficients(fits, table), residual, gain)


def _learnt(rows: PartRows, target: Floats, noisy: bool) -> Interpolant:
    """Interpolate all rows under what the usual ones tell of the prior."""
    usual = rows.usual()
    prior = learn_prior(rows.signs[usual], target[:, usual], rows.parities, noisy=noisy)
    return fit_interpolant(rows.signs, target, rows.parities, prior)


def _left(rows: PartRows, target: Floats, fits: list[Interpolant]) -> Floats:
    """Mean square ``(n_parts,)`` of what the mean of the fits leaves of each row."""
    expected = np.mean([fit.left_out for fit in fits], axis=0)
    return rows.mean_square(target - expected)


def _best_few(
    rows: PartRows, target: Floats, fits: list[Interpolant]
) -> tuple[list[Interpolant], Floats]:
    """Return as many of the best fits as together leave least, and what they leave."""
    order = sorted(fits, key=lambda fit: float(_left(rows, target, [fit]).sum()))
    few = [order[: k + 1] for k in range(len(order))]
    left = [_left(rows, target, some) for some in few]
    best = int(np.argmin([one.sum() for one in left]))
    return few[best], left[best]
