"""How many bytes matrices may take: the one limit under which every large allocation is chosen."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from unweave.errors import OutOfMemory

SHARE = 0.5
"""Of the free memory that a recovery takes by default: the other half is for the target and for copies that
NumPy makes on the way."""

_ALWAYS_BYTES = 64e6  # NumPy, SciPy and this package take as much before anything is computed
_most_bytes: ContextVar[float] = ContextVar("most_bytes", default=math.inf)
_MEMINFO = Path("/proc/meminfo")
_CGROUPS = (
    # Most bytes, bytes in use, and which of those are files that the kernel drops when it needs room.
    tuple(Path("/sys/fs/cgroup") / name for name in ("memory.max", "memory.current", "memory.stat")),
    tuple(
        Path("/sys/fs/cgroup/memory") / f"memory.{name}"
        for name in ("limit_in_bytes", "usage_in_bytes", "stat")
    ),
)


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


def require(numbers: float, what: str, number_bytes: int = 8) -> None:
    """Raise `OutOfMemory` unless ``numbers`` for ``what`` fit into the limit, or into what any run takes."""
    needed, allowed = number_bytes * numbers, max(allowed_bytes(), _ALWAYS_BYTES)
    if needed > allowed:
        raise OutOfMemory(
            f"{what} must fit into {in_words(allowed)}. Got {in_words(needed)} instead. Raise max_memory."
        )


def in_words(count: float) -> str:
    """Return a number of bytes as people write it."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"


def default_limit() -> float:
    """Return half of the memory that is free now, for this machine and for this container."""
    return SHARE * free_bytes()


def free_bytes() -> float:
    """Return what may still be allocated; infinite where the system does not say.

    That is MemAvailable on Linux, elsewhere the installed memory, and no more than the control groups of a
    container leave.
    """
    return max(0.0, min(_free_on_machine(), *(_free_in_cgroup(*files) for files in _CGROUPS)))


def _free_on_machine() -> float:
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * float(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return math.inf


def _free_in_cgroup(limit: Path, used: Path, statistics: Path) -> float:
    try:
        most = float(limit.read_text())  # "max" is no number: no limit
        files = dict(line.split() for line in statistics.read_text().splitlines()).get("inactive_file", "0")
        return most - float(used.read_text()) + float(files)
    except (OSError, ValueError):
        return math.inf
