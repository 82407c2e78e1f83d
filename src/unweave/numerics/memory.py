"""How many bytes the matrices of linear algebra may take."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_most_bytes: ContextVar[float] = ContextVar("most_bytes", default=math.inf)


@contextmanager
def memory_limit(most_bytes: float | None) -> Iterator[None]:
    """Hold matrices to ``most_bytes`` while inside; None changes nothing."""
    token = _most_bytes.set(_most_bytes.get() if most_bytes is None else float(most_bytes))
    try:
        yield
    finally:
        _most_bytes.reset(token)


def allowed_bytes() -> float:
    """Return how many bytes matrices may take now; infinite without a limit."""
    return _most_bytes.get()
