"""Progress of a run in a file: the newest sign of life, and the stages there were so far."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from unweave.journal import Progress

LEAST_SECONDS = 0.2
"""Between two writes, unless a stage begins: nobody looks more often."""
_MOST_STAGES = 500  # restarts may begin a stage thousands of times; the newest are kept


class ProgressFile:
    """A progress callback that keeps the file at ``path`` up to date; whoever reads it finds a whole text."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = path, clock
        self._written = -LEAST_SECONDS
        self._stages: list[dict[str, Any]] = []

    def __call__(self, progress: Progress) -> None:
        """Write ``progress`` if it is news."""
        began = not self._stages or self._stages[-1]["name"] != progress.stage
        if began:
            self._stages.append({"name": progress.stage, "from": progress.seconds})
            del self._stages[:-_MOST_STAGES]
        if not began and self._clock() - self._written < LEAST_SECONDS:
            return
        self._written = self._clock()
        in_stage = progress.seconds - self._stages[-1]["from"]
        content = {**asdict(progress), "stage_seconds": in_stage, "stages": self._stages}
        unfinished = self._path.with_suffix(".tmp")
        # Without waiting for the disk: after a power cut nobody asks how far a dead process was.
        unfinished.write_text(json.dumps(content), encoding="utf-8")
        os.replace(unfinished, self._path)
