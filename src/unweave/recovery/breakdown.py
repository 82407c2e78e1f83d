"""What ends one method and not the recovery: numbers that break down, memory that is not there.

Anything else that is not an `UnweaveError` is a mistake in a program and passes.
"""

from __future__ import annotations

import numpy as np

from unweave.errors import OutOfMemory

NUMERICAL_ERRORS = (np.linalg.LinAlgError, ArithmeticError, MemoryError, ValueError)
"""Errors to look at with `is_breakdown`."""
_NOT_FINITE = "infs or NaNs"  # in the message of scipy's ValueError, which has no class of its own


def is_breakdown(error: BaseException) -> bool:
    """Return whether arithmetic, linear algebra or memory raised ``error``, not a mistake in a program."""
    if isinstance(error, np.linalg.LinAlgError | FloatingPointError | OverflowError | MemoryError):
        return True
    return isinstance(error, ValueError) and _NOT_FINITE in str(error)


def breakdown_reason(error: BaseException) -> str:
    """Say what happened, for the message of a result."""
    if isinstance(error, OutOfMemory):
        return str(error)
    if isinstance(error, MemoryError):
        return f"the memory was not enough ({error}): lower max_memory, or free some"
    return f"the numbers broke down ({error}): not a network of this class"
