"""Many batches, several at a time; whatever was answered is kept when one of them fails.

Workers take the next batch until none is left. The first failure stops them from taking more; requests
already under way are waited for, since their answers are as good as paid for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.errors import InterruptedAnswers, PartialAnswers

Ask = Callable[[Array, threading.Event], Array]
"""Maps rows (k, D) and an event (stop soon, nobody waits) to answers (k, m)."""


class BatchJob:
    """The rows of one call, cut into batches of ``batch_rows``.

    After Ctrl-C, requests under way get ``interrupt_seconds`` to finish.
    """

    def __init__(self, rows: Array, batch_rows: int, ask: Ask, interrupt_seconds: float) -> None:
        self._rows, self._interrupt_seconds = rows, interrupt_seconds
        self._starts = iter(range(0, rows.shape[0], batch_rows))
        self._batch_rows, self._ask = batch_rows, ask
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._answers: dict[int, Array] = {}
        self._failure: BaseException | None = None

    def run(self, workers: int, most: int | None = None) -> None:
        """Ask ``most`` batches (None: all that are left), ``workers`` at a time.

        Failures wait for `result`; Ctrl-C raises `InterruptedAnswers` with what arrived.
        """
        if self._stop.is_set():
            return
        left = -(-self._rows.shape[0] // self._batch_rows) - len(self._answers)
        count = min(workers, left if most is None else min(left, most))
        threads: list[threading.Thread] = []
        try:
            if count == 1:
                self._work(most)
                return
            # Daemons: a request that hangs must not keep the program from ending.
            threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        except KeyboardInterrupt as interrupt:
            self._stop.set()
            last = time.monotonic() + self._interrupt_seconds
            for thread in threads:
                thread.join(max(0.0, last - time.monotonic()))
            raise InterruptedAnswers("Interrupted.", *self._arrived()) from interrupt

    def result(self, explain: Callable[[BaseException], str]) -> Array:
        """Return all answers (n, m), or raise `PartialAnswers` with those that arrived."""
        if self._failure is not None:
            raise PartialAnswers(explain(self._failure), *self._arrived()) from self._failure
        return np.concatenate([self._answers[start] for start in sorted(self._answers)])

    def _work(self, most: int | None = None) -> None:
        """Take batches and ask them until there are none, one failed, or ``most`` are done."""
        done = 0
        while not self._stop.is_set() and (most is None or done < most):
            with self._lock:
                start = next(self._starts, None)
            if start is None:
                return
            try:
                answers = self._ask(self._rows[start : start + self._batch_rows], self._stop)
            except Exception as error:  # whatever it is, it must reach the caller, not end a thread
                with self._lock:
                    self._failure = self._failure or error
                self._stop.set()
                return
            with self._lock:
                self._answers[start] = answers
            done += 1

    def _arrived(self) -> tuple[IntArray, Array]:
        """Return the indices (k,) of the answered rows and their answers (k, m)."""
        with self._lock:
            kept = sorted(self._answers.items())
        if not kept:
            return np.empty(0, dtype=np.int64), np.empty((0, 0))
        index = np.concatenate([np.arange(start, start + answers.shape[0]) for start, answers in kept])
        return index, np.concatenate([answers for _, answers in kept])
