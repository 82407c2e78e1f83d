"""What a recovery writes down while it runs: stages with their seconds, queries and figures, and progress."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from unweave.numerics import interrupts

_log = logging.getLogger("unweave")

Figure = float | int | str | bool | list[float]


class Ledger(Protocol):
    """Anything that counts the rows it sent."""

    @property
    def sent(self) -> int:
        """Rows sent so far."""


@dataclass(frozen=True)
class Stage:
    """One stage of a recovery: what ran, how long, at what price, and what it saw."""

    name: str
    seconds: float
    queries: int
    figures: dict[str, Figure]


@dataclass(frozen=True)
class Progress:
    """A sign of life: ``done`` of ``total`` (None if unknown) in ``stage``."""

    stage: str
    done: int
    total: int | None
    unit: str
    queries: int
    seconds: float


@dataclass
class OpenStage:
    """A stage that is running; ``figures`` may be filled as they become known."""

    name: str
    figures: dict[str, Figure] = field(default_factory=dict)


class Journal:
    """Collects stages and passes progress on. The ledger's count gives every stage its queries."""

    def __init__(self, ledger: Ledger, on_progress: Callable[[Progress], None] | None = None) -> None:
        self._ledger = ledger
        self._on_progress = on_progress
        self._began = time.perf_counter()
        self._open: list[str] = []
        self.stages: list[Stage] = []
        self.notes: tuple[str, ...] = ()
        """What the user should know about the progress."""

    @contextmanager
    def stage(self, name: str) -> Iterator[OpenStage]:
        """Run a stage; it is written down however it ends."""
        stage = OpenStage(name)
        began, sent, taken = time.perf_counter(), self._ledger.sent, self._derivative_queries()
        interrupts.look()
        self._open.append(name)
        try:
            self.tell(0, None, "")
            yield stage
        finally:
            self._open.pop()
            passes = self._derivative_queries() - taken
            if passes:
                stage.figures["autodiff queries"] = passes
            finished = Stage(name, time.perf_counter() - began, self._ledger.sent - sent, stage.figures)
            self.stages.append(finished)
            _log.info("%s: %.2f s, %d queries, %s", name, finished.seconds, finished.queries, stage.figures)

    def _derivative_queries(self) -> int:
        """Those of the ledger's queries that were passes through the target, where it tells them apart."""
        return int(getattr(self._ledger, "derivative_queries", 0))

    def tell(self, done: int, total: int | None, unit: str) -> None:
        """Report progress within the stage that is open. A callback that raises is not called any more."""
        if self._on_progress is None or not self._open:
            return
        elapsed = time.perf_counter() - self._began
        try:
            self._on_progress(Progress(self._open[-1], done, total, unit, self._ledger.sent, elapsed))
        except Exception as error:  # the callback is the user's: what it raises must not cost the run
            self._on_progress = None
            told = f"progress was not told any further, because it raised {type(error).__name__}: {error}"
            self.notes = (told,)
            _log.warning("%s", told, exc_info=True)

    @property
    def seconds(self) -> float:
        """Seconds since the journal was opened."""
        return time.perf_counter() - self._began
