"""What a process that the page starts may take of this machine."""

from __future__ import annotations

import math
from dataclasses import dataclass

from unweave.errors import InvalidInput


@dataclass(frozen=True)
class Limits:
    """Memory and time of one process."""

    memory_mb: float = 4096.0
    """Most memory of its own, in MB of 2^20 bytes."""
    run_seconds: float = 12 * 3600.0
    """Longest run. It is told to end by itself then, and what it found is kept."""
    overtime_seconds: float = 30.0
    """After that, or after the run's own deadline, before the process is interrupted: a target may hang."""
    grace_seconds: float = 10.0
    """After an interrupt, before it is killed: it may write what it has found."""

    def __post_init__(self) -> None:
        if not 64 <= self.memory_mb < math.inf:
            raise InvalidInput(f"--max-memory-mb must be 64 or more. Got {self.memory_mb} instead.")
        if not 0 < self.run_seconds < math.inf:
            raise InvalidInput(
                f"--max-run-hours must be a positive number. Got {self.run_seconds / 3600} instead."
            )

    @property
    def memory_bytes(self) -> int:
        """Most memory in bytes."""
        return int(self.memory_mb * 2**20)

    def deadline(self, asked: float | None) -> float:
        """Return the seconds of a run that asked for ``asked``."""
        return self.run_seconds if asked is None else min(asked, self.run_seconds)


def limit_memory(most_bytes: int) -> None:
    """Let this process take no more than ``most_bytes``, where the system can see to that (Linux can)."""
    try:
        import resource
    except ImportError:  # Windows
        return
    # RLIMIT_DATA, not RLIMIT_AS: libraries reserve address space by gigabytes and never touch it.
    _, hardest = resource.getrlimit(resource.RLIMIT_DATA)
    if hardest == resource.RLIM_INFINITY or most_bytes < hardest:
        resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))
