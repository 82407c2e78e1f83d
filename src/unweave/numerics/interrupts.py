"""Ctrl-C that is never lost.

Python raises `KeyboardInterrupt` wherever the main thread happens to be. In a callback that C code calls, in
a finalizer, or inside a library that catches everything, the exception is dropped and the program goes on.
While `remembered` lasts, an interrupt is written down as well, and `look` raises it again. Every look at
`unweave.numerics.clock` is such a look.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class _State:
    """Of the whole process, as signals are."""

    pending = False
    remembering = False


def look() -> None:
    """Raise `KeyboardInterrupt` if one came and nobody took it."""
    if _State.pending:
        raise KeyboardInterrupt


def taken() -> None:
    """Say that the interrupt has arrived where it belongs: from now on `look` raises nothing."""
    _State.pending = False


@contextmanager
def remembered() -> Iterator[None]:
    """Remember interrupts while this lasts.

    Only the main thread receives signals, so elsewhere nothing is to be done; nor where the program ignores
    interrupts, or handles them without raising `KeyboardInterrupt`.
    """
    handler = signal.getsignal(signal.SIGINT)
    in_main = threading.current_thread() is threading.main_thread()
    if _State.remembering or not in_main or not callable(handler):
        yield
        return

    def note(number: int, frame: FrameType | None) -> None:
        try:
            handler(number, frame)
        except KeyboardInterrupt:
            _State.pending = True
            raise

    _State.pending, _State.remembering = False, True
    try:
        signal.signal(signal.SIGINT, note)
        yield
    finally:
        _State.remembering = False
        if signal.getsignal(signal.SIGINT) is note:
            signal.signal(signal.SIGINT, handler)
        _State.pending = False
