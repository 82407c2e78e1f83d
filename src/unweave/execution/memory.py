"""An executor that keeps what was expensive, so that a run which is resumed does not compute it again."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from unweave.errors import InvalidInput
from unweave.execution.executor import Executor, Key, Numbered, Task, call
from unweave.execution.store import ArrayStore

WORTH_KEEPING = 0.1
"""Seconds that a task must take for its result to be kept: writing and finding it takes milliseconds."""


class Remembering(Executor):
    """Passes tasks on to ``executor`` and keeps results in ``store`` under the content they came from.

    Only tasks of a map that was given a ``key`` are kept: the key holds everything besides the item that the
    result depends on, and the task returns a tuple of arrays. Results are stored as they complete.
    """

    def __init__(
        self, executor: Executor, store: ArrayStore, version: str, least: float = WORTH_KEEPING
    ) -> None:
        self._executor, self._store, self._version, self._least = executor, store, version, least
        self.reused = 0
        """Tasks that did not have to run."""

    @property
    def runs_target(self) -> bool:
        """Whether the target itself may be asked from a worker."""
        return self._executor.runs_target

    @property
    def target_rows(self) -> int | None:
        """Most rows per call of the target."""
        return self._executor.target_rows

    def completed(self, task: Task, items: Iterable[Any], *, shared: Any = None, key: Key = None) -> Numbered:
        """Yield (number of the item, its result): those known first, the others as they finish."""
        if key is None:
            yield from self._executor.completed(task, items, shared=shared)
            return
        held = list(items)
        computation = fingerprint(self._version, *key)
        names = [fingerprint(computation, item) for item in held]
        missing = []
        for index, name in enumerate(names):
            result = self._store.get(name)
            if result is None:
                missing.append(index)
            else:
                self.reused += 1
                yield index, result
        new = [held[index] for index in missing]
        for which, (seconds, result) in self._executor.completed(_timed, new, shared=(task, shared)):
            index = missing[which]
            if seconds >= self._least:
                self._store.put(names[index], result)
            yield index, result


def _timed(task_and_shared: tuple[Task, Any], item: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    result = call(*task_and_shared, item)
    return time.perf_counter() - began, result


def fingerprint(*parts: Any) -> str:
    """Return 32 hexadecimal digits that are equal exactly when the parts are equal, bit for bit (BLAKE2b).

    Parts are None, numbers, strings, arrays (of NumPy, or of a library that NumPy reads), and tuples, lists
    and dataclasses of them. 0.0 and -0.0 differ, as do 1 and 1.0: inputs are named, not compared.

    Example
    -------
    >>> fingerprint("ascent", np.zeros(3)) == fingerprint("ascent", np.zeros(3))
    True
    >>> fingerprint(1, 2) == fingerprint((1, 2))
    False
    """
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        _add(digest, part)
    return digest.hexdigest()


def _add(digest: Any, part: Any) -> None:
    """Add a part after its kind and size, so that no two sequences of parts read alike."""
    if part is None or isinstance(part, bool | int | float | str):
        text = repr(part).encode()
        digest.update(f"{type(part).__name__} {len(text)} ".encode() + text)
    elif isinstance(part, tuple | list):
        digest.update(f"sequence {len(part)} ".encode())
        for entry in part:
            _add(digest, entry)
    elif dataclasses.is_dataclass(part) and not isinstance(part, type):
        entries = dataclasses.fields(part)
        digest.update(f"dataclass {type(part).__qualname__} {len(entries)} ".encode())
        for entry in entries:
            _add(digest, getattr(part, entry.name))
    elif hasattr(part, "__array__"):
        array = np.ascontiguousarray(part)
        if array.dtype.kind not in "biufc":
            raise InvalidInput(f"An array to name must hold numbers. Got {array.dtype} instead.")
        digest.update(f"array {array.dtype.str} {array.shape} ".encode())
        digest.update(array.data)
    else:
        raise InvalidInput(
            f"What names a computation must be numbers, strings and arrays. "
            f"Got {type(part).__name__} instead."
        )
