"""Tasks on the processes of a Dask cluster: started here, or one that is running already."""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import pickle
import signal
import time
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from unweave.errors import ExecutionError, InvalidInput, OutOfTime, install_hint
from unweave.execution.executor import Executor, Key, Numbered, Task, call
from unweave.numerics import clock, memory
from unweave.numerics.threads import single_threaded_blas

TARGET_ROWS = 4096
"""Rows per call of a target that workers ask: the same whatever the number of workers."""

_TASKS_PER_CORE = 2  # handed out: the next one is there when one finishes, and few are lost to Ctrl-C
_SHARED_PARTS_PER_WORKER = 2  # that a worker keeps: one map runs at a time
_SENT_ONCE_BYTES = 100_000  # of what tasks share: more is sent to a worker once, less with every task
_CORE_COUNT_SECONDS = 1.0  # after which the cores of the cluster are counted again
_CLOSE_SECONDS = 30  # for a local cluster to end before it is killed
_UNWATCHED = {  # Dask's own profiler and monitor take some hundredths of a core per process, all the time
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "5s",
}
_WORKER_ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    **{f"DASK_{k.replace('.', '__').replace('-', '_').upper()}": str(v) for k, v in _UNWATCHED.items()},
}
_LARGE_GRAPH = "1 GiB"  # what all tasks share is handed over once; Dask would warn from 10 MB on


class DaskExecutor(Executor):
    """Runs tasks in worker processes with one BLAS thread each; a context manager that closes what it opened.

    A worker that is killed costs nothing but time: Dask runs its tasks again elsewhere.

    Parameters
    ----------
    workers : processes to start on this machine. In a script, the call must be below
        ``if __name__ == "__main__":``, because the processes import the script.
    scheduler : address of a running scheduler instead, such as ``tcp://10.0.0.5:8786``. Its workers need the
        same versions of unweave and NumPy.
    runs_target : whether workers may ask the target, which is then sent to them (by cloudpickle). Answers are
        collected, counted and logged here as they arrive; what a killed worker was asking is asked again.
    target_rows : rows per call of the target when workers ask it.

    Example
    -------
    >>> with DaskExecutor(workers=2) as executor:  # doctest: +SKIP
    ...     result = unweave.recover(target, executor=executor)
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        scheduler: str | None = None,
        runs_target: bool = False,
        target_rows: int = TARGET_ROWS,
    ) -> None:
        if (workers is None) == (scheduler is None):
            raise InvalidInput(
                f"workers or scheduler must be given, and only one of them. "
                f"Got workers={workers!r} and scheduler={scheduler!r} instead."
            )
        if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
            raise InvalidInput(f"workers must be a whole number >= 1. Got {workers!r} instead.")
        if target_rows < 1:
            raise InvalidInput(f"target_rows must be a whole number >= 1. Got {target_rows!r} instead.")
        self._workers, self._scheduler = workers, scheduler
        self._runs_target, self._target_rows = runs_target, target_rows
        self._cluster: Any = None
        self._client: Any = None

    @property
    def runs_target(self) -> bool:
        """Whether the target itself may be asked from a worker."""
        return self._runs_target

    @property
    def target_rows(self) -> int | None:
        """Most rows per call of the target; None leaves that to the ledger."""
        return self._target_rows if self._runs_target else None

    def __enter__(self) -> DaskExecutor:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start or find the cluster; done by ``with`` and by the first task."""
        if self._client is not None:
            return
        distributed = _distributed()
        address = self._scheduler
        if self._workers is not None:
            import dask

            with dask.config.set(_UNWATCHED):
                self._cluster = distributed.LocalCluster(
                    n_workers=self._workers,
                    threads_per_worker=1,
                    processes=True,
                    memory_limit=0,  # nobody limits the serial run either
                    dashboard_address="127.0.0.1:0",  # any free port: several runs share a machine
                    env=_WORKER_ENVIRONMENT,
                    silence_logs=logging.ERROR,
                )
            address = self._cluster.scheduler_address
        try:
            self._client = distributed.Client(address, set_as_default=False)
        except OSError as error:
            self.close()
            raise InvalidInput(
                f"scheduler must be the address of a running Dask scheduler. Got {address!r} instead "
                f"({error})."
            ) from error
        if self._cluster is not None:
            self._client.register_plugin(_deaf_to_ctrl_c(distributed))

    def close(self) -> None:
        """Disconnect, and stop the processes that were started here."""
        client, cluster = self._client, self._cluster
        self._client = self._cluster = None
        if client is not None:
            client.close()
        if cluster is not None:
            # A worker that is just being restarted may keep Dask waiting; it ends with this process anyway.
            with contextlib.suppress(TimeoutError):
                cluster.close(timeout=_CLOSE_SECONDS)

    def completed(self, task: Task, items: Iterable[Any], *, shared: Any = None, key: Key = None) -> Numbered:
        """Yield (number of the item, its result), as the tasks finish.

        Items are taken one by one as workers become free. When the caller stops, or Ctrl-C arrives, whatever
        has not finished is cancelled.
        """
        self.start()
        distributed, client, queue = _distributed(), self._client, enumerate(items)
        import dask

        running: dict[Any, int] = {}
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": _LARGE_GRAPH}):
            held: Any = _packed((task, shared), "task")
            if len(held) > _SENT_ONCE_BYTES:
                # A task of its own, not scattered data: should its worker die, Dask can make it again.
                held = client.submit(_hold, held, pure=False)
            most, asked_at = 0, -math.inf
            seconds = clock.remaining_seconds()
            arriving = distributed.as_completed(
                loop=client.loop, timeout=None if math.isinf(seconds) else seconds
            )
            try:
                while True:
                    if time.monotonic() - asked_at > _CORE_COUNT_SECONDS:  # workers may come and go
                        most = _TASKS_PER_CORE * max(1, sum(client.ncores().values()))
                        asked_at = time.monotonic()
                    for index, item in itertools.islice(queue, max(0, most - len(running))):
                        limits = (clock.remaining_seconds(), memory.allowed_bytes())
                        future = client.submit(_run, held, _packed(item, "item"), limits, pure=False)
                        running[future] = index
                        arriving.add(future)
                    if not running:
                        return
                    future = _next_of(arriving)
                    yield running.pop(future), _result_of(future, distributed)
            finally:
                if running:
                    client.cancel(list(running))


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise InvalidInput(
            f"Dask must be installed to compute on several processes. {install_hint('dask')}"
        ) from error
    return distributed


def _deaf_to_ctrl_c(distributed: Any) -> Any:
    """Workers ignore Ctrl-C, which a terminal sends to all processes: this one tells them what to do."""

    class DeafToCtrlC(distributed.WorkerPlugin):  # type: ignore[misc]
        def setup(self, worker: Any) -> None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    return DeafToCtrlC()


def _packed(value: Any, what: str) -> bytes:
    """Return ``value`` as bytes for another process.

    Dask would send arrays as they are and hand them out wherever they land in its buffers, at odd addresses
    too, where matrix products are rounded otherwise. Arrays read from bytes are aligned like any other.
    """
    import cloudpickle

    try:
        packed: bytes = cloudpickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise InvalidInput(
            f"A {what} must be something that can be sent to another process. This one cannot be pickled "
            f"({type(error).__name__}: {error})."
        ) from error
    return packed


def _hold(packed: bytes) -> bytes:
    return packed


@lru_cache(maxsize=_SHARED_PARTS_PER_WORKER)
def _unpacked(packed: bytes) -> Any:
    return pickle.loads(packed)


def _run(held: bytes, item: bytes, limits: tuple[float, float]) -> bytes:
    """Run one task in the worker, for as many seconds and within as many bytes as its sender had left."""
    task, shared = _unpacked(held)
    seconds, most_bytes = limits
    end = time.monotonic() + seconds
    with (
        clock.time_limit(lambda: max(0.0, end - time.monotonic())),
        memory.memory_limit(most_bytes),
        single_threaded_blas(),
    ):
        result = call(task, shared, pickle.loads(item))
    return _packed(result, "result")


def _next_of(arriving: Any) -> Any:
    try:
        return next(arriving)
    except TimeoutError:
        raise OutOfTime from None


def _result_of(future: Any, distributed: Any) -> Any:
    try:
        return pickle.loads(future.result())
    except distributed.KilledWorker as error:
        raise ExecutionError(
            "A task must finish on a worker. Got several workers in a row killed by it instead, most likely "
            "for want of memory. Take fewer workers, or none."
        ) from error
