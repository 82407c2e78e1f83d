"""How many threads matrix products may use, and how to hold them to one."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    # Searching the loaded libraries takes milliseconds: do it once per process.
    return ThreadpoolController().select(user_api="blas")


def allowed_threads() -> int:
    """Return how many threads BLAS may use now.

    OMP_NUM_THREADS, threadpoolctl limits and a surrounding `single_threaded_blas` all count. Without a BLAS
    that reports its limit, the answer is the number of cores.
    """
    return max((library.num_threads or 1 for library in _blas().lib_controllers), default=os.cpu_count() or 1)


_turn = threading.RLock()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit NumPy's matrix products to one thread while inside.

    The limit belongs to the whole process: two threads whose limits overlap in time would undo each other's.
    Threads therefore take turns. Where BLAS has one thread already, nothing is limited and nobody waits.
    """
    with ExitStack() as stack:
        stack.enter_context(_turn)
        if allowed_threads() == 1:
            stack.close()
        else:
            stack.enter_context(_blas().limit(limits=1))
        yield
