"""The posterior of functions under one prior: means and variances in closed form.

Pairs of complementary masks observe the even and the odd part apart; a mask whose
complement was not evaluated observes their sum. Every answer (a prediction, a Shapley
value, a coefficient) is a linear functional of f, and

    E[L f] = c' P y,    Var[L f] = L L k - c' P c,    c_t = cov(L f, y_t).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, lapack

from harmonica_core._types import Floats, Masks
from harmonica_core.basis.kernel import (
    EVEN,
    ODD,
    Prior,
    covariances,
    shapley_covariances,
    shapley_variances,
    shapley_weights,
    variances,
)
from harmonica_core.design.masks import ball_draws, match_masks
from harmonica_core.engine.prior import mirror
from harmonica_core.engine.sample import Sample, find_pairs, signs_of

# Precisions up to this many bytes are kept for error bars, larger ones made anew.
_KEPT_BYTES = 1 << 26
# White of ends that the mean has to pass through, relative to that of other masks.
_EXACT = 1e-12
# Share of a prior variance below which a posterior one is rounding.
_ROUNDING = 1e-14
# Masks that a typical deviation is taken over.
_TYPICAL = 128
# Entries of one block of covariances with masks to predict.
_BLOCK = 1 << 22


@dataclass(frozen=True)
class Observed:
    """One column a functional or a function: even and odd part of pairs, singles."""

    even: Floats
    odd: Floats
    single: Floats

    def dot(self, other: Observed) -> Floats:
        """Return ``sum_t self_t other_t`` by column."""
        return np.asarray(
            np.einsum("tc,tc->c", self.even, other.even)
            + np.einsum("tc,tc->c", self.odd, other.odd)
            + np.einsum("tc,tc->c", self.single, other.single)
        )

    def times(self, other: Observed) -> Floats:
        """Return all products of columns: ``(own columns, other columns)``."""
        return np.asarray(
            self.even.T @ other.even
            + self.odd.T @ other.odd
            + self.single.T @ other.single
        )

    def plus(self, other: Observed, weight: Floats) -> Observed:
        """Return ``self + other * weight``; ``other`` has one column."""
        return Observed(
            self.even + other.even * weight,
            self.odd + other.odd * weight,
            self.single + other.single * weight,
        )


@dataclass(frozen=True)
class Precision:
    """Inverse covariance of what was observed; singles through a Schur complement.

    Attributes
    ----------
    even, odd : float64 (p, p)
        Inverses for the pairs alone.
    cross : tuple of float64 (p, u)
        Those times the covariances between pairs and singles.
    schur : float64 (u, u)
        Precision of the singles.
    """

    even: Floats
    odd: Floats
    cross: tuple[Floats, Floats]
    schur: Floats

    def apply(self, y: Observed) -> Observed:
        """Return ``K^-1 y``."""
        left = y.single - self.cross[0].T @ y.even - self.cross[1].T @ y.odd
        single = self.schur @ left
        return Observed(
            self.even @ y.even - self.cross[0] @ single,
            self.odd @ y.odd - self.cross[1] @ single,
            single,
        )

    def diagonal(self) -> Observed:
        """Return the diagonal of ``K^-1``, as one column."""
        parts = []
        for inverse, cross in zip((self.even, self.odd), self.cross, strict=True):
            added = np.einsum("ts,ts->t", cross @ self.schur, cross)
            parts.append(np.diagonal(inverse) + added)
        return Observed(
            parts[0][:, None], parts[1][:, None], np.diagonal(self.schur)[:, None]
        )


@dataclass(frozen=True, eq=False)
class Regression:
    """A prior and the masks that were observed: all that functions share.

    ``exact_ends`` makes the mean pass through both ends where a degree keeps white out.
    """

    prior: Prior
    masks: Masks
    pairs: NDArray[np.int64]
    singles: NDArray[np.int64]
    exact_ends: bool = False
    _kept: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, prior: Prior, masks: Masks, exact_ends: bool = False) -> Regression:
        """Find the pairs among ``masks``."""
        return cls(prior, masks, *find_pairs(masks), exact_ends)

    @cached_property
    def halves(self) -> Floats:
        """Signs of the first mask of each pair: ``(p, n_features)``."""
        return signs_of(self.masks[self.pairs[:, 0]])

    @cached_property
    def others(self) -> Floats:
        """Signs of the single masks: ``(u, n_features)``."""
        return signs_of(self.masks[self.singles])

    def precision(self) -> Precision:
        """Return the precision, kept where it is small."""
        found: Precision | None = self._kept.get("precision")
        if found is None:
            found = self._precision()
            if found.even.nbytes + found.odd.nbytes <= _KEPT_BYTES:
                self._kept["precision"] = found
        return found

    def _precision(self) -> Precision:
        white = self.prior.white
        noise = np.ones(len(self.pairs))
        if self.exact_ends and self.prior.degree is not None:
            noise[self.masks[self.pairs[:, 0]].all(axis=1)] = _EXACT
        inverses = [
            _inverse(gram, white[parity] * noise)
            for parity, gram in enumerate(
                covariances(self.prior, self.halves, self.halves)
            )
        ]
        between = covariances(self.prior, self.halves, self.others)
        cross = inverses[EVEN] @ between[EVEN], inverses[ODD] @ between[ODD]
        own = np.add(*covariances(self.prior, self.others, self.others))
        size = float(own[0, 0]) if len(own) else 0.0
        for part, product in zip(between, cross, strict=True):
            own = own - part.T @ product
        schur = _inverse((own + own.T) / 2, np.full(len(own), white.sum()), size)
        return Precision(inverses[EVEN], inverses[ODD], cross, schur)

    def observed(self, standard: Floats) -> Observed:
        """Return values ``(m, C)`` of the masks as pairs and singles."""
        first, second = standard[self.pairs.T]
        return Observed(
            (first + second) / 2, (first - second) / 2, standard[self.singles]
        )

    @cached_property
    def ones(self) -> Observed:
        """The intercept: 1 in even parts and singles."""
        p, u = len(self.pairs), len(self.singles)
        return Observed(np.ones((p, 1)), np.zeros((p, 1)), np.ones((u, 1)))

    @cached_property
    def shapley(self) -> Observed:
        """``cov(phi_i, y_t)``, one column a feature; white counts where it was seen."""
        halves = self._shapley(self.halves, self.masks[self.pairs[:, 0]])
        single = self._shapley(self.others, self.masks[self.singles])
        return Observed(np.zeros_like(halves), halves, single)

    def _shapley(self, signs: Floats, masks: Masks) -> Floats:
        out = shapley_covariances(self.prior, signs)
        if self.interpolates:
            out += 2 * self.prior.white[ODD] * shapley_weights(masks)
        return out

    @property
    def interpolates(self) -> bool:
        """Whether white is part of the answers: not where a degree limits them."""
        return self.prior.degree is None

    def covariances_with(self, masks: Masks) -> Observed:
        """``cov(f(x), y_t)``, one column a mask that was not evaluated itself."""
        signs = signs_of(masks)
        even, odd = covariances(self.prior, self.halves, signs)
        single = np.add(*covariances(self.prior, self.others, signs))
        if self.interpolates and len(self.singles):
            # White of a mask says something of its complement's.
            columns, rows = match_masks(~masks, self.masks[self.singles])
            single[rows, columns] += self.prior.white[EVEN] - self.prior.white[ODD]
        return Observed(even, odd, single)

    def std(self, c: Observed, own: Floats, constant: float) -> Floats:
        """Return ``sqrt(L L k - c' P c)`` at scale 1, the intercept's doubt included.

        ``c`` are covariances of functionals with what was observed, ``own`` their prior
        variances, ``constant`` what they say of a constant.
        """
        precision, ones = self.precision(), self.ones
        solved, flat = precision.apply(c), precision.apply(ones)
        variance = own - c.dot(solved)
        variance += (constant - ones.times(solved)[0]) ** 2 / float(ones.dot(flat)[0])
        # Differences of numbers about as large as ``own``: rounding is no certainty.
        return np.asarray(np.sqrt(np.maximum(variance, _ROUNDING * own)))

    def shapley_std(self) -> Floats:
        """Return deviations of the Shapley values at scale 1, computed once."""
        if "shapley" not in self._kept:
            own = shapley_variances(self.prior, white=self.interpolates)
            self._kept["shapley"] = self.std(self.shapley, own, 0.0)
        return np.asarray(self._kept["shapley"])

    def typical_std(self, radius: int | None = None) -> float:
        """Return the root mean square of posterior deviations over masks, at scale 1.

        Over the cube, or over masks with 1 to ``radius`` features removed.
        """
        key = f"typical {radius}"
        if key not in self._kept:
            rng, n = np.random.default_rng(0), self.masks.shape[1]
            masks = rng.random((_TYPICAL, n)) < 0.5
            if radius is not None:
                masks = ball_draws(n, radius, _TYPICAL, rng)
            one = Posterior(self, self.ones, np.zeros(1), np.ones(1))
            square = one.predict_std(masks)[:, 0] ** 2
            known, _ = match_masks(masks, self.masks)
            square[known] = 0.0
            self._kept[key] = float(np.sqrt(square.mean()))
        return float(self._kept[key])


def _inverse(gram: Floats, white: Floats, size: float | None = None) -> Floats:
    """Return ``(gram + white)^-1``.

    What rounding makes singular gets a jitter relative to ``size``, the variance.
    """
    if not len(gram):
        return gram
    size = float(gram[0, 0]) if size is None else size
    for jitter in (0.0, *10.0 ** np.arange(-12, 0, 2)):
        trial = np.array(gram)
        trial.reshape(-1)[:: len(gram) + 1] += white + jitter * size
        lower, info = lapack.dpotrf(trial.T, lower=1, clean=0, overwrite_a=1)
        if not info:
            inverse, _ = lapack.dpotri(lower, lower=1, overwrite_c=1)
            mirror(inverse)
            return np.asarray(inverse)
    raise LinAlgError("the covariance of the masks is not positive definite")


@dataclass(frozen=True, eq=False)
class Posterior:
    """Posterior means of C functions, in their units.

    Attributes
    ----------
    regression : Regression
    dual : Observed
        ``P y``, one column a function.
    intercept : float64 (C,)
    scale : float64 (C,)
        What the prior's standard deviations are multiplied by.
    """

    regression: Regression
    dual: Observed
    intercept: Floats
    scale: Floats

    def column(self, columns: slice | NDArray[np.int64]) -> Posterior:
        """Return the posterior of some of the functions."""
        dual = Observed(
            self.dual.even[:, columns],
            self.dual.odd[:, columns],
            self.dual.single[:, columns],
        )
        return Posterior(
            self.regression, dual, self.intercept[columns], self.scale[columns]
        )

    def predict(self, masks: Masks) -> Floats:
        """Return the smooth part of the mean at masks: ``(len(masks), C)``."""
        out = np.empty((len(masks), len(self.intercept)))
        step = max(1, _BLOCK // max(1, len(self.regression.masks)))
        for start in range(0, len(masks), step):
            rows = slice(start, start + step)
            c = self.regression.covariances_with(masks[rows])
            out[rows] = c.times(self.dual) + self.intercept
        return out

    def shapley(self) -> Floats:
        """Return the Shapley values of E[f]: ``(n_features, C)``."""
        return self.regression.shapley.times(self.dual)

    def shapley_std(self) -> Floats:
        """Return posterior standard deviations of them: ``(n_features, C)``."""
        return self.regression.shapley_std()[:, None] * self.scale

    def predict_std(self, masks: Masks) -> Floats:
        """Return those of f at masks that were not evaluated: ``(len(masks), C)``."""
        regression = self.regression
        own = sum(variances(regression.prior)) + regression.prior.white.sum()
        out = np.empty((len(masks), len(self.intercept)))
        step = max(1, _BLOCK // max(1, len(regression.masks)))
        for start in range(0, len(masks), step):
            rows = slice(start, start + step)
            c = regression.covariances_with(masks[rows])
            out[rows] = self._std(c, np.full(len(masks[rows]), own), 1.0)
        return out

    def _std(self, c: Observed, own: Floats, constant: float) -> Floats:
        return self.regression.std(c, own, constant)[:, None] * self.scale


def condition(
    prior: Prior,
    sample: Sample,
    exact_ends: bool = False,
    regression: Regression | None = None,
) -> tuple[Posterior, Floats]:
    """Return the posterior of a sample's functions, and left-out residuals.

    A ``regression`` of the same prior and masks saves factoring its matrices again.

    Returns
    -------
    posterior : Posterior
    left_out : float64 (m, C)
        ``f - E[f | all other observations]`` at the masks, the prior unchanged.
    """
    if regression is None:
        regression = Regression(
            prior, sample.masks, sample.pairs, sample.singles, exact_ends
        )
    precision, ones = regression.precision(), regression.ones
    y = regression.observed(sample.standard)
    solved, flat = precision.apply(y), precision.apply(ones)
    total = float(ones.dot(flat)[0])
    centre = ones.times(solved)[0] / total
    dual = solved.plus(flat, -centre)
    n_observed = len(sample.masks)
    scale = y.dot(dual) / max(n_observed - 1, 1)
    left_out = _left_out(sample, dual, precision.diagonal(), flat, total)
    spread = sample.spread
    scaled = Observed(dual.even * spread, dual.odd * spread, dual.single * spread)
    posterior = Posterior(
        regression,
        scaled,
        sample.centre + spread * centre,
        np.sqrt(np.maximum(scale, 0.0)) * spread,
    )
    return posterior, left_out * spread


def _left_out(
    sample: Sample, dual: Observed, diagonal: Observed, flat: Observed, total: float
) -> Floats:
    """``P y / diag P`` of each observation, at the masks ``(m, C)``."""
    with np.errstate(invalid="ignore", divide="ignore"):
        even = dual.even / (diagonal.even - flat.even**2 / total)
    # A single pair says nothing of its own even part.
    even = np.where(np.isfinite(even), even, 0.0)
    odd = dual.odd / (diagonal.odd - flat.odd**2 / total)
    out = np.empty(sample.standard.shape)
    out[sample.pairs[:, 0]] = even + odd
    out[sample.pairs[:, 1]] = even - odd
    out[sample.singles] = dual.single / (diagonal.single - flat.single**2 / total)
    return out
