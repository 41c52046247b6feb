"""The fast Walsh-Hadamard transform: values of all masks to the whole spectrum."""

from __future__ import annotations

import numpy as np

from harmonica_core._types import Floats


def spectrum_of_values(values: Floats) -> Floats:
    """Coefficients of every parity from the values of every mask.

    ``a_S = 2**-n * sum_x f(x) chi_S(x)``, in ``n * 2**n`` operations.

    Parameters
    ----------
    values : float64 (2**n,) or (2**n, n_outputs)
        In the order of `harmonica_core.design.masks.all_masks`.

    Returns
    -------
    float64, same shape
        Bit i of the row number says whether feature i is in S.

    Examples
    --------
    >>> spectrum_of_values(np.array([0.0, 1.0])).tolist()
    [0.5, 0.5]
    """
    out = np.array(values, dtype=np.float64)
    n = int(len(out)).bit_length() - 1
    if len(out) != 1 << n:
        raise ValueError(
            f"got {len(out)} values; needed a power of two, one value per mask"
        )
    tail = out.shape[1:]
    for feature in range(n):  # f(removed), f(kept) -> a_without, a_with
        pairs = out.reshape(-1, 2, 1 << feature, *tail)
        removed, kept = pairs[:, 0].copy(), pairs[:, 1].copy()
        pairs[:, 0], pairs[:, 1] = kept + removed, kept - removed
        pairs *= 0.5
    return out
