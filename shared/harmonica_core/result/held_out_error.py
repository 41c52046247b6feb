"""The stated error: ``I_2`` over all masks from honest residuals.

Masks that were evaluated are a known part of the cube; only the rest has to be
estimated. With a share ``s = m / 2**n`` of the cube seen,

    I_2^2 = s * mean square of (f - g) on the seen masks
          + (1 - s) * mean square of (f - g) expected on a mask not seen.

The second part comes from cross-validation, whose fits lack a fifth of the rows. At the
rate ``m**-0.5`` those rows are worth a factor ``0.8**0.5``; at an error that no longer
falls, nothing. Half of that difference goes into the standard error.
"""

from __future__ import annotations

import numpy as np

from harmonica_core._types import Floats, Masks
from harmonica_core.design.masks import are_paired

_LEAST_DOUBT = (1 - 0.8**0.5) / 2
# For fits that were chosen by the very residuals that state their error. These are
# skewed, too: on enumerated functions the true error was within two textbook standard
# errors in 87% of 192 fits only, so such fits state half as much again.
CAUTION = 1.5


def stated_error(
    masks: Masks,
    values: Floats,
    fitted: Floats,
    held_out: Floats,
    weights: Floats | None = None,
    seen: float | None = None,
    doubt: Floats | None = None,
) -> tuple[Floats, Floats]:
    """Return ``I_2`` over the uniform cube, and its standard error.

    Parameters
    ----------
    masks : bool (m, n_features)
        Distinct masks; complementary pairs (rows 2k and 2k + 1) count as one draw.
    values, fitted, held_out : float64 (m, K)
        f, g, and predictions by fits that did not see the row.
    weights : float64 (m,), optional
        Weight of each mask that turns its draw into the uniform one.
    seen : float, optional
        Share of all masks that were evaluated; by default ``m / 2**n_features``.
    doubt : float64 (K,), optional
        Standard error of the root mean square of ``values - held_out`` beside that of
        sampling, where it is known to be larger than said above.

    Returns
    -------
    value, standard_error : float64 (K,)
    """
    square = (values - held_out) ** 2
    if weights is not None:
        square *= (weights / weights.mean())[:, None]
    if seen is None:
        seen = len(masks) * 2.0 ** -masks.shape[1]
    seen = min(1.0, seen)
    inside = ((values - fitted) ** 2).mean(axis=0)
    if are_paired(masks):
        square = (square[0::2] + square[1::2]) / 2
    outside = square.mean(axis=0)
    # Rare large residuals: one more as large as the largest may have been missed.
    spread = square.max(axis=0) / len(square)
    if len(square) > 1:
        usual = square.std(axis=0, ddof=1) / np.sqrt(len(square))
        spread = np.hypot(usual, spread)
    least = _LEAST_DOUBT * np.sqrt(outside)
    doubt = least if doubt is None else np.maximum(doubt, least)
    spread = np.hypot(spread, 2 * np.sqrt(outside) * doubt)
    value = np.sqrt(seen * inside + (1 - seen) * outside)
    slope = np.divide((1 - seen) / 2, value, out=np.zeros_like(value), where=value > 0)
    # What rounding leaves is no sample of anything.
    rounding = 64 * np.finfo(np.float64).eps * np.abs(values).max(axis=0)
    return value, np.where(value > rounding, slope * spread, value)
