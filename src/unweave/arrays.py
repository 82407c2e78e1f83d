"""The array types that signatures speak of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
RealArray = NDArray[np.floating[Any]]  # float64 or float32
AnyArray = Any  # an array of any library that follows the array API (NumPy, torch)
