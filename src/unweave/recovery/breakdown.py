"""What ends one method and not the recovery: numbers that break down, memory that is not there.

Anything else that is not an `UnweaveError` is a mistake in a program and passes.
"""

from __future__ import annotations

import numpy as np

from unweave.errors import OutOfMemory

NUMERICAL_ERRORS = (np.linalg.LinAlgError, ArithmeticError, MemoryError, ValueError)
"""Errors to look at with `is_breakdown`."""
_NOT_FINITE = ("infs or NaNs", "must be finite")  # said by scipy, and by checks of what a search has computed


def is_breakdown(error: BaseException) -> bool:
    """Return whether arithmetic, linear algebra or memory raised ``error``, not a mistake in a program.

    What users hand over is checked before a search begins: in there, numbers that are not finite are its own.
    """
    if isinstance(error, np.linalg.LinAlgError | ArithmeticError | MemoryError):
        return True
    return isinstance(error, ValueError) and any(words in str(error) for words in _NOT_FINITE)


def breakdown_reason(error: BaseException) -> str:
    """Say what happened, for the message of a result."""
    if isinstance(error, OutOfMemory):
        return str(error)
    if isinstance(error, MemoryError):
        return f"the memory was not enough ({error}): lower max_memory, or free some"
    return f"the numbers broke down ({error}): not a network of this class"
