"""Until when a computation may run: the one clock that every long loop looks at.

A loop that holds something worth having asks `out_of_time` and hands that back. Every other one calls
`check`. Whoever starts a computation sets the limit. A look costs a fraction of a microsecond.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

import numpy as np

from unweave.errors import OutOfTime
from unweave.numerics import interrupts

SecondsLeft = Callable[[], float | None]
"""Seconds until the time is over, 0 from then on; None for no limit."""

_seconds_left: ContextVar[SecondsLeft | None] = ContextVar("seconds_left", default=None)
_SVD_FLOPS = 6  # times rows, columns and the smaller of both
_SPEED_SIZE = 256  # rows of the matrices whose product measures the speed: a millisecond
_SPEED_TRIALS = 4  # of which the fastest counts: the first may load code, and others may be interrupted
_FACTORISATION_SHARE = 0.2  # of the speed of a product that eigenvalues, singular values and QR reach
_MOST_OVER_SECONDS = 0.5  # past the deadline that a single computation may be expected to end


@contextmanager
def time_limit(seconds_left: SecondsLeft | None) -> Iterator[None]:
    """End computations when ``seconds_left()`` is 0, while inside; None lifts the limit."""
    token = _seconds_left.set(seconds_left)
    try:
        yield
    finally:
        _seconds_left.reset(token)


def remaining_seconds() -> float:
    """Return the seconds until the time is over; infinite without a limit."""
    left = _seconds_left.get()
    seconds = None if left is None else left()
    return math.inf if seconds is None else seconds


def out_of_time() -> bool:
    """Return whether the time is over."""
    interrupts.look()
    return _seconds_left.get() is not None and remaining_seconds() <= 0


def check(flops: float = 0.0) -> None:
    """Raise `OutOfTime` if the time is over, `KeyboardInterrupt` if one was lost on its way.

    ``flops`` are those of a factorisation that cannot be interrupted: raise, too, if it would end too late.
    """
    interrupts.look()
    if _seconds_left.get() is None:
        return
    left = remaining_seconds()
    if left <= 0 or (flops and flops > _FACTORISATION_SHARE * _speed() * (left + _MOST_OVER_SECONDS)):
        raise OutOfTime


def svd_flops(rows: int, columns: int) -> float:
    """Return the flops of singular values and vectors of a matrix of that shape."""
    return float(_SVD_FLOPS * rows * columns * min(rows, columns))


@lru_cache(maxsize=1)
def _speed() -> float:
    """Return the flops per second of matrix products on this machine."""
    matrix, seconds = np.ones((_SPEED_SIZE, _SPEED_SIZE)), []
    for _ in range(_SPEED_TRIALS):
        began = time.perf_counter()
        matrix @ matrix
        seconds.append(time.perf_counter() - began)
    return float(2 * _SPEED_SIZE**3 / max(min(seconds), 1e-6))
