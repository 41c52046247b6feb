"""Interpolation on the cube by a Gaussian process.

The posterior mean under the prior of `harmonica_core.kernel` is a polynomial with
``a_S = v_S sum_t b_t chi_S(x_t)`` and ``(K + nugget) b = y``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harmonica_core import basis
from harmonica_core._types import Floats, Table
from harmonica_core.kernel import (
    ALL,
    EVEN,
    NUGGET,
    Prior,
    Workspace,
    near_and_far,
    part_gram,
    prior_variances,
)
from harmonica_core.likelihood import learnt_prior
from harmonica_core.masks import mask_numbers
from harmonica_core.transform import spectrum_of_values

# Where noise is asked for, learning starts at this variance.
_NOISE = 1e-3
# A part this much smaller than the whole is none.
_ROUNDING = 1e-8
# Solutions of a nearly singular system, each from the residual of the one before.
_REFINEMENTS = 3
# Entries of one block of parity columns.
_BLOCK = 1 << 22
# Fewer features than this: all masks may be listed.
_LISTABLE = 20


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
            near, far = near_and_far(signs, self.signs, rates, degree)
            for part, parity in enumerate(self.parities):
                gram = part_gram(near, far, parity)
                out[part] += self.prior.mix[part, j] * (gram @ self.dual[part])
        return out


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
    if prior is None:
        prior = learn_prior(signs, targets, parities, noisy=noisy)
    live, spread = _live(targets)
    dual, left_out = np.zeros(targets.shape), np.zeros(targets.shape)
    dual[live], left_out[live] = _interpolate(
        signs,
        targets[live] / spread[live, None],
        _of_live(parities, live),
        Prior(prior.rates, prior.mix[live], prior.noise[live]),
    )
    return Interpolant(
        prior, parities, signs, dual * spread[:, None], left_out * spread[:, None]
    )


def learn_prior(
    signs: Floats,
    targets: Floats,
    parities: tuple[int, ...],
    *,
    noisy: bool = False,
    start: Prior | None = None,
) -> Prior:
    """Prior of all parts, from rows as in `fit_interpolant`.

    With ``start``, only the last few steps on from there.
    """
    live, spread = _live(targets)
    if start is not None:
        start = Prior(start.rates, start.mix[live], start.noise[live])
    found = learnt_prior(
        signs,
        targets[live] / spread[live, None],
        _of_live(parities, live),
        _NOISE if noisy else 0.0,
        start,
    )
    mix, noise = np.ones((len(parities), len(found.rates))), np.zeros(len(parities))
    mix[live], noise[live] = found.mix, found.noise
    return Prior(found.rates, mix, noise)


def mean_coefficients(fits: list[Interpolant], table: Table) -> Floats:
    """``a_S (n_terms,)`` of the mean of interpolants of the same rows."""
    first = fits[0]
    members = (table[:, :, None] == np.arange(first.signs.shape[1])).any(axis=1)
    odd = members.sum(axis=1) % 2 == 1
    duals = np.concatenate([fit.dual for fit in fits])
    moments = _moments(first.signs, duals, table).reshape(len(fits), -1, len(table))
    total = np.zeros(len(table))
    for fit, own in zip(fits, moments, strict=True):
        variances = np.zeros(own.shape)
        for rates, mix in zip(fit.prior.rates, fit.prior.mix.T, strict=True):
            variances += np.outer(mix, prior_variances(rates, members))
        for row, parity in zip(variances, fit.parities, strict=True):
            if parity != ALL:
                row[odd == (parity == EVEN)] = 0
        total += (variances * own).sum(axis=0)
    return total / len(fits)


def _live(targets: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Which parts are more than rounding beside the others, and the spread of each.

    Such a part would only disturb the rates that all share.
    """
    spread = np.sqrt((targets**2).mean(axis=1))
    return spread > _ROUNDING * np.sqrt((spread**2).sum()), spread


def _of_live(parities: tuple[int, ...], live: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(parity for parity, on in zip(parities, live, strict=True) if on)


def _interpolate(
    signs: Floats, targets: Floats, parities: tuple[int, ...], prior: Prior
) -> tuple[Floats, Floats]:
    """Return ``b`` and the leave-one-out predictions ``y_t - b_t / (K^-1)_tt``."""
    dual, left_out = np.empty_like(targets), np.empty_like(targets)
    work = Workspace(signs, len(prior.rates), ALL not in parities)
    work.fill(prior.rates)
    for part, parity in enumerate(parities):
        grams, mix = work.grams(parity)[0], prior.mix[part]
        work.invert(grams, mix, prior.noise[part])
        nugget = NUGGET * float(mix @ grams[:, 0, 0]) + prior.noise[part]
        left, dual[part] = targets[part], 0.0
        for _ in range(_REFINEMENTS):
            dual[part] += work.inverse @ left
            left = targets[part] - mix @ (grams @ dual[part]) - nugget * dual[part]
        left_out[part] = targets[part] - dual[part] / np.diag(work.inverse)
    return dual, left_out


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
    numbers = basis.term_numbers(table, n_features)
    return np.asarray(len(totals) * spectrum_of_values(totals)[numbers].T)
