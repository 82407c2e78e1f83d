"""Progress of a run in a file: the newest sign of life, the rows asked, and the stages there were so far."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from unweave.arrays import Array
from unweave.search.journal import Progress
from unweave.targets.adapters.answer_source import AnswerSource

LEAST_SECONDS = 0.2
"""Between two writes, unless a stage begins: nobody looks more often."""
_MOST_STAGES = 500  # restarts may begin a stage thousands of times; the newest are kept


class ProgressFile:
    """A progress callback that keeps the file at ``path`` up to date; a reader always finds a whole text."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = path, clock
        self._written = -LEAST_SECONDS
        self._told, self._newest = 0.0, Progress("starting", 0, None, "", 0, 0.0)
        self._asked = 0
        self._stages: list[dict[str, Any]] = []

    def __call__(self, progress: Progress) -> None:
        """Write ``progress`` if it is news."""
        self._told, self._newest = self._clock(), progress
        began = not self._stages or self._stages[-1]["name"] != progress.stage
        if began:
            self._stages.append({"name": progress.stage, "from": progress.seconds})
            del self._stages[:-_MOST_STAGES]
        self._write(always=began)

    def asked(self, rows: int) -> None:
        """Count rows that were answered; a slow target may not let a stage get any further for minutes."""
        self._asked += rows
        if self._stages:
            since = self._clock() - self._told
            newest = replace(self._newest, queries=max(self._newest.queries, self._asked))
            self._newest = replace(newest, seconds=newest.seconds + since)
            self._told += since
            self._write(always=False)

    def _write(self, always: bool) -> None:
        if not always and self._clock() - self._written < LEAST_SECONDS:
            return
        self._written = self._clock()
        in_stage = self._newest.seconds - self._stages[-1]["from"]
        content = {**asdict(self._newest), "stage_seconds": in_stage, "stages": self._stages}
        unfinished = self._path.with_suffix(".tmp")
        # Without waiting for the disk: after a power cut nobody asks how far a dead process was.
        unfinished.write_text(json.dumps(content), encoding="utf-8")
        os.replace(unfinished, self._path)


class Watched:
    """A target whose answers are counted as they arrive; it answers, and declares, what ``source`` does."""

    def __init__(self, source: AnswerSource, progress: ProgressFile) -> None:
        self._source, self._progress = source, progress
        self.n_inputs = source.n_inputs
        for name in ("assumed_inputs", "rows_per_call"):
            if getattr(source, name, None) is not None:
                setattr(self, name, getattr(source, name))

    def __call__(self, x: Array) -> Any:
        """Ask ``source``."""
        answers = self._source(x)
        self._progress.asked(len(x))
        return answers
