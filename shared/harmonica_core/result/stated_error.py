"""The one place that states errors: ``I_2`` over all masks from left-out residuals.

Masks of a sample are not uniform: their number of removed features is. So the mean
square is taken within bins of that number and weighted by what the bins weigh in the
cube (or in the ball); masks that were evaluated are known and count as zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from harmonica_core._types import Floats, Masks
from harmonica_core.result.estimate import Estimate

# Masks that a bin should have.
_FULL_BIN = 16
# The prior was learnt on the rows that are left out, so both residuals and posterior
# variances are too small, the more the fewer calls there are for a feature. Chosen on
# 17 kinds of models' games and 8 kinds of synthetic functions with 6 to 14 features.
_OPTIMISM, _DOUBT, _NARROW = 1.2, 0.9, 0.8
# Left-out residuals below this share of the spread are no sample of anything.
_NO_MISS = 1e-7


@dataclass(frozen=True)
class Stated:
    """What a fit says of its own error.

    Attributes
    ----------
    error : Estimate
        ``I_2`` with its standard error, arrays ``(C,)``.
    calibration : float64 (C,)
        What posterior standard deviations are multiplied by.
    """

    error: Estimate
    calibration: Floats


def stated_error(
    masks: Masks,
    left_out: Floats,
    model: Floats,
    spread: Floats,
    radius: int | None = None,
) -> Stated:
    """Return ``I_2`` and its standard error, one for each column of residuals.

    The larger of two estimates: from residuals of left-out masks, and from posterior
    variances. Without a miss among N masks that are like uniform ones, the statement is
    what a miss in 3 of N would amount to, at most.

    Parameters
    ----------
    masks : bool (m, n_features)
        Distinct masks that were evaluated.
    left_out : float64 (m, C)
        f minus its prediction from the other masks.
    model : float64 (C,)
        Root mean square of posterior standard deviations over uniform masks.
    spread : float64 (C,)
        Standard deviation of the values.
    radius : int, optional
        Over masks with 1 to so many features removed.
    """
    m, n = masks.shape
    root, sampling = _by_bins(masks, left_out, radius)
    calls = max(m / max(n, 1), 0.5)
    value = np.maximum(root, model) * (1 + _OPTIMISM * calls**-0.75)
    se = np.hypot(sampling, _DOUBT * calls**-0.5 * value)
    # A fit can hardly be worse than the mean of what was seen.
    value = np.minimum(value, 1.5 * spread)
    removed = n - masks.sum(axis=1)
    inside = np.minimum(removed, n - removed) >= n / 2 - np.sqrt(n)
    seen = m if radius is not None else max(int(inside.sum()), 1)
    bound = np.sqrt(3 / max(seen, 3)) * spread
    clean = np.maximum(root, model) <= _NO_MISS * spread
    value, se = np.where(clean, bound / 2, value), np.where(clean, bound / 4, se)
    ratio = np.divide(root, model, out=np.ones_like(root), where=model > 0)
    calibration = np.clip(ratio, 1.0, 3.0) * (1 + _NARROW * calls**-0.5)
    return Stated(Estimate(value, se, m), calibration)


def _by_bins(
    masks: Masks, left_out: Floats, radius: int | None
) -> tuple[Floats, Floats]:
    """Root mean square of left-out residuals over uniform masks; its standard error."""
    n = masks.shape[1]
    removed = n - masks.sum(axis=1)
    distance = np.minimum(removed, n - removed) if radius is None else removed
    shares, counts = _population(n, radius)
    unit = np.maximum(np.abs(left_out).max(axis=0, initial=0.0), 1e-300)
    square = (left_out / unit) ** 2
    value, variance = np.zeros(left_out.shape[1]), np.zeros(left_out.shape[1])
    for members, share, count in _bins(distance, shares, counts):
        m = len(members)
        unseen = max(0.0, 1.0 - m / count)
        some = square[members] if m else square
        mean, worst = some.mean(axis=0), some.max(axis=0)
        deviation = some.std(axis=0, ddof=1) if m > 1 else mean
        # One more as large as the largest may have been missed.
        doubt = np.hypot(deviation / np.sqrt(max(m, 1)), worst / max(m, 1))
        value += share * unseen * mean
        variance += (share * unseen * doubt) ** 2
    root = np.sqrt(value)
    slope = np.divide(0.5, root, out=np.zeros_like(root), where=root > 0)
    return root * unit, slope * np.sqrt(variance) * unit


def _population(n: int, radius: int | None) -> tuple[Floats, Floats]:
    """Share and number of masks at each distance from the nearer end, or the input."""
    k = np.arange(n + 1)
    logs = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    if radius is None:
        half = n // 2
        logs = logs[: half + 1] + np.where(2 * k[: half + 1] == n, 0.0, np.log(2))
    else:
        logs = np.where((k >= 1) & (k <= radius), logs, -np.inf)
    shares = np.exp(logs - np.logaddexp.reduce(logs))
    return shares, np.exp(np.minimum(logs, 700.0))


def _bins(
    distance: np.ndarray, shares: Floats, counts: Floats
) -> list[tuple[np.ndarray, float, float]]:
    """Rows, share and number of masks of bins of neighbouring distances."""
    out, rows, share, count = [], np.zeros(0, dtype=np.int64), 0.0, 0.0
    for d in range(len(shares)):
        rows = np.concatenate([rows, np.flatnonzero(distance == d)])
        share, count = share + shares[d], count + counts[d]
        if len(rows) >= _FULL_BIN or len(rows) >= count > 0:
            out.append((rows, float(share), float(count)))
            rows, share, count = np.zeros(0, dtype=np.int64), 0.0, 0.0
    if share > 0:
        if out:
            last = out.pop()
            rows, share = np.concatenate([last[0], rows]), share + last[1]
            count += last[2]
        out.append((rows, float(share), float(count)))
    return out
