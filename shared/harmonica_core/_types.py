"""Array types, named once.

``Masks``
    bool ``(n_masks, n_features)``, True = the feature is kept.
``Values``
    float64 ``(n_masks,)`` or ``(n_masks, n_outputs)``.
``Table``
    int32 ``(n_terms, width)``: one term a row, features ascending, padded with -1.
``Term``
    a sorted tuple of feature numbers; ``()`` is the intercept.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Masks: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Values: TypeAlias = NDArray[np.float64]
Table: TypeAlias = NDArray[np.int32]
Term: TypeAlias = tuple[int, ...]
ValueFunction: TypeAlias = Callable[[Masks], Any]
