"""Processes that attempt cases one after another; one that dies or hangs is replaced."""

from __future__ import annotations

import multiprocessing
import queue
import threading
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection
from typing import Any

from battery.catalogue import FAMILIES, family_of

GRACE = 60.0
"""Seconds beyond the deadline after which a process counts as hung."""
LIFETIME = 200
"""Cases after which a process is replaced, so that memory it lost does not add up."""


def outcomes(indices: Iterable[int], deadline: float, jobs: int) -> Iterator[dict[str, Any]]:
    """Attempt every case, ``jobs`` at a time, and yield each outcome as it comes."""
    left: queue.SimpleQueue[int | None] = queue.SimpleQueue()
    done: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    count = 0
    for index in indices:
        left.put(index)
        count += 1
    for _ in range(jobs):
        left.put(None)
        threading.Thread(target=_tend, args=(left, done, deadline), daemon=True).start()
    for _ in range(count):
        yield done.get()


def _tend(left: Any, done: Any, deadline: float) -> None:
    """Hand cases to one process at a time, until there are none left."""
    worker = None
    while (index := left.get()) is not None:
        if worker is None or worker.attempted >= LIFETIME:
            if worker is not None:
                worker.stop()
            worker = _Worker(deadline)
        outcome = worker.attempt(index)
        if outcome is None:
            outcome = _lost(index, worker.stop())
            worker = None
        done.put(outcome)
    if worker is not None:
        worker.stop()


class _Worker:
    """One process."""

    def __init__(self, deadline: float) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_work, args=(other, deadline), daemon=True)
        self._process.start()
        other.close()
        self._patience = deadline + GRACE
        self.attempted = 0

    def attempt(self, index: int) -> dict[str, Any] | None:
        """The outcome, or None if the process died or hung."""
        self.attempted += 1
        try:
            self._connection.send(index)
            if self._connection.poll(self._patience):
                outcome: dict[str, Any] = self._connection.recv()
                return outcome
        except (EOFError, OSError):
            pass
        return None

    def stop(self) -> str:
        """End the process, and say how it was found."""
        self._process.join(0.2)
        code = self._process.exitcode
        self._process.kill()
        self._process.join()
        self._connection.close()
        return "hung" if code is None else f"died with exit code {code}"


def _work(connection: Connection, deadline: float) -> None:
    from battery.attempt import attempt  # loads the package in this process only

    while True:
        try:
            index = connection.recv()
        except EOFError:
            return
        connection.send(attempt(index, deadline))


def _lost(index: int, how: str) -> dict[str, Any]:
    return {
        "index": index,
        "family": family_of(index),
        "seed": index // len(FAMILIES),
        "in_class": False,
        "verdict": "crash",
        "reason": f"the process {how}",
        "late": how == "hung",
        "wall": float("nan"),
        "cpu": float("nan"),
        "status": "LOST",
    }
