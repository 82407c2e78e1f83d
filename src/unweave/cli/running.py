"""Options of the command line that say who computes and what is kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from unweave.errors import InvalidInput
from unweave.execution import Checkpoint, DaskExecutor, Executor


@dataclass(frozen=True)
class RunningOptions:
    """``--workers``, ``--scheduler``, ``--checkpoint`` and ``--check-log``, as typed."""

    workers: int | None = None
    scheduler: str | None = None
    checkpoint: Path | None = None
    check_log: bool = False

    def kept(self) -> Checkpoint | None:
        """The checkpoint asked for, or None."""
        if self.checkpoint is None:
            if self.check_log:
                raise InvalidInput("--check-log must be given with --checkpoint. Got it alone instead.")
            return None
        return Checkpoint(self.checkpoint, check=self.check_log)

    @contextmanager
    def executor(self) -> Iterator[Executor | None]:
        """The executor asked for, closed in the end; None for this process."""
        if self.workers is not None and self.scheduler is not None:
            raise InvalidInput(
                "--workers or --scheduler must be given, not both. Got both instead. Leave one of them out."
            )
        if not self.workers and self.scheduler is None:
            yield None
            return
        with DaskExecutor(self.workers, scheduler=self.scheduler) as executor:
            yield executor


NOTHING_KEPT = RunningOptions()
"""In this process, and nothing is kept."""
