"""Executors: one small protocol for tasks that do not depend on each other.

    completed(task, [x_1, ..., x_n])    gives (i, task(x_i)) as they finish,
    map(task, [x_1, ..., x_n])          gives task(x_1), ..., task(x_n) in order.

The same network comes back from every executor, bit for bit. That is a rule for callers: work is split into
tasks in the same way for every executor, random numbers are drawn before it is, and results are put
together in the order of the items. Every task runs with one BLAS thread, here and in a worker, because
sums of several threads may be rounded otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Protocol

from unweave.numerics.threads import allowed_threads, single_threaded_blas

Task = Callable[..., Any]
"""``task(item)``, or ``task(shared, item)`` where something is shared by all items."""
Key = Sequence[Any] | None
Numbered = Iterator[tuple[int, Any]]


class Executor(Protocol):
    """Runs tasks. ``shared`` is sent to a worker once; ``key`` names the computation, see `Remembering`."""

    @property
    def runs_target(self) -> bool:
        """Whether the target itself may be asked from a worker."""
        return False

    @property
    def target_rows(self) -> int | None:
        """Most rows per call of the target; None leaves that to the ledger."""

    def completed(self, task: Task, items: Iterable[Any], *, shared: Any = None, key: Key = None) -> Numbered:
        """Return (number of the item, its result), in whatever order the tasks finish."""

    def map(self, task: Task, items: Iterable[Any], *, shared: Any = None, key: Key = None) -> Iterator[Any]:
        """Yield the results in the order of the items, each as soon as those before it are there."""
        waiting: dict[int, Any] = {}
        wanted = 0
        for index, result in self.completed(task, items, shared=shared, key=key):
            waiting[index] = result
            while wanted in waiting:
                yield waiting.pop(wanted)
                wanted += 1


def call(task: Task, shared: Any, item: Any) -> Any:
    """Run ``task`` on one item."""
    return task(item) if shared is None else task(shared, item)


@dataclass(frozen=True)
class SerialExecutor(Executor):
    """In this process: the default.

    Tasks run one after the other, or on as many threads as BLAS was allowed (OMP_NUM_THREADS and the like),
    each of them with a BLAS of one thread. The target is asked by the ledger, in the calling thread.

    Example
    -------
    >>> list(SerialExecutor().map(abs, [-1, 2, -3]))
    [1, 2, 3]
    """

    target_rows: int | None = None
    """Most rows per call of the target; give what a `DaskExecutor` was given to get the same calls."""

    def completed(self, task: Task, items: Iterable[Any], *, shared: Any = None, key: Key = None) -> Numbered:
        """Yield (number of the item, its result), as the tasks finish."""
        held = list(items)
        threads = min(allowed_threads(), len(held))
        if threads > 1:
            yield from _on_threads(task, held, shared, threads)
            return
        for index, item in enumerate(held):
            with single_threaded_blas():
                result = call(task, shared, item)
            yield index, result


def _on_threads(task: Task, items: list[Any], shared: Any, threads: int) -> Numbered:
    with single_threaded_blas(), ThreadPoolExecutor(threads) as pool:
        # A thread starts without the clock and the memory limit of its caller: hand them over with each task.
        running = {
            pool.submit(copy_context().run, call, task, shared, item): index
            for index, item in enumerate(items)
        }
        try:
            while running:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield running.pop(future), future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)  # after Ctrl-C nothing new is begun
