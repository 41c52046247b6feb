"""A number with its standard error: what every metric and every fit reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonica_core._types import Floats


@dataclass(frozen=True)
class Estimate:
    """A value, its standard error and what it cost.

    Attributes
    ----------
    value : float or (n_outputs,)
    standard_error : float or (n_outputs,)
        0 when the value is exact.
    n_evaluations : int
        Masks that went into it.
    exact : bool
        Whether every mask was seen (nothing was sampled).

    Examples
    --------
    >>> e = Estimate(0.25, 0.01, 1000)
    >>> value, standard_error = e
    >>> float(e)
    0.25
    >>> e
    0.25 ± 0.01
    """

    value: float | Floats
    standard_error: float | Floats
    n_evaluations: int
    exact: bool = False

    def __iter__(self) -> Iterator[float | Floats]:
        return iter((self.value, self.standard_error))

    def __float__(self) -> float:
        return float(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        return np.array(self.value, dtype=dtype)

    def __repr__(self) -> str:
        if np.ndim(self.value) and self.exact:
            return (
                "[" + ", ".join(f"{v:.3g}" for v in np.ravel(self.value)) + "] (exact)"
            )
        if np.ndim(self.value):
            pairs = zip(
                np.ravel(self.value), np.ravel(self.standard_error), strict=True
            )
            return "[" + ", ".join(f"{v:.3g} ± {e:.2g}" for v, e in pairs) + "]"
        if self.exact:
            return f"{self.value:.3g} (exact)"
        return f"{self.value:.3g} ± {self.standard_error:.2g}"
