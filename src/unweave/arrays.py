"""The array types that signatures speak of, and the way to one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unweave.errors import InvalidInput

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
RealArray = NDArray[np.floating[Any]]  # float64 or float32
AnyArray = Any  # an array of any library that follows the array API (NumPy, torch)


def real_numbers(value: Any, name: str) -> Array:
    """``value`` as a float64 array, or `InvalidInput` that calls it ``name``."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(
            f"{name} must be an array of real numbers. Got {type(value).__name__} instead ({error}). "
            f"Give a rectangular float64 array."
        ) from error
