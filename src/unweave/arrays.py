"""The array types that signatures speak of, and the way to one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import is_numpy_array, to_device
from numpy.typing import NDArray

from unweave.errors import InvalidInput

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
RealArray = NDArray[np.floating[Any]]  # float64 or float32
AnyArray = Any  # an array of any library that follows the array API (NumPy, torch)


def unmasked(value: Any) -> Any:
    """``value``, with NaN in place of the entries that a mask hides: a masked entry is a missing one.

    >>> unmasked(np.ma.masked_array([1, 2], mask=[False, True]))
    array([ 1., nan])
    """
    if not isinstance(value, np.ma.MaskedArray):
        return value
    return np.ma.filled(value.astype(np.float64), np.nan) if np.ma.is_masked(value) else np.asarray(value)


def in_numpy(array: AnyArray) -> Array:
    """Return an array of any library, on any device, as a float64 array."""
    return np.asarray(array if is_numpy_array(array) else to_device(array, "cpu"), dtype=np.float64)


def real_numbers(value: Any, name: str) -> Array:
    """``value`` as a float64 array, or `InvalidInput` that calls it ``name``."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(
            f"{name} must be an array of real numbers. Got {type(value).__name__} instead ({error}). "
            f"Give a rectangular float64 array."
        ) from error
