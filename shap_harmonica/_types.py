"""Arrays by what they hold."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Masks: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Values: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = NDArray[np.int64]
Key: TypeAlias = tuple[int, ...]
Ragged: TypeAlias = NDArray[Any]
