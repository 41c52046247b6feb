"""The one place that states errors: ``I_2`` over all masks from left-out residuals.

Masks of a sample are not uniform: their number of removed features is. So the mean
square is taken within bins of that number and weighted by what the bins weigh in the
cube (or in the ball); masks that were evaluated are known and count as zero.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from harmonica_core._types import Floats, Masks
from harmonica_core.result.estimate import Estimate

# Masks that a bin should have.
_FULL_BIN = 16
# The prior was learnt on the rows that are left out: residuals are too small by so
# much, and their root mean square is as uncertain.
_OPTIMISM = 0.1


def stated_error(masks: Masks, left_out: Floats, radius: int | None = None) -> Estimate:
    """Return ``I_2`` and its standard error, one for each column of residuals.

    Parameters
    ----------
    masks : bool (m, n_features)
        Distinct masks that were evaluated.
    left_out : float64 (m, C)
        f minus its prediction from the other masks.
    radius : int, optional
        Over masks with 1 to so many features removed.
    """
    n = masks.shape[1]
    removed = n - masks.sum(axis=1)
    if radius is None:
        distance = np.minimum(removed, n - removed)
    else:
        distance = removed
    shares, counts = _population(n, radius)
    unit = np.maximum(np.abs(left_out).max(axis=0, initial=0.0), 1e-300)
    square = (left_out / unit) ** 2
    value, variance = np.zeros(left_out.shape[1]), np.zeros(left_out.shape[1])
    for members, share, count in _bins(distance, shares, counts):
        m = len(members)
        unseen = max(0.0, 1.0 - m / count)
        mean = square[members].mean(axis=0) if m else square.mean(axis=0)
        worst = square[members].max(axis=0) if m else square.max(axis=0)
        deviation = square[members].std(axis=0, ddof=1) if m > 1 else mean
        doubt = np.hypot(deviation / np.sqrt(max(m, 1)), worst / max(m, 1))
        value += share * unseen * mean
        variance += (share * unseen * doubt) ** 2
    root = np.sqrt(value)
    slope = np.divide(0.5, root, out=np.zeros_like(root), where=root > 0)
    se = np.hypot(slope * np.sqrt(variance), _OPTIMISM * root)
    return Estimate((1 + _OPTIMISM) * root * unit, se * unit, len(masks))


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
