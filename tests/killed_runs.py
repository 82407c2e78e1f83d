"""A recovery that is killed again and again, in processes of its own.

    python killed_runs.py FOLDER CHECKPOINT KILLS

Every attempt is a fork that recovers the same network from a target which writes down each row it is asked,
before it answers, in FOLDER/asked. KILLS is a list "event:number,..." with one entry per attempt: the attempt
kills itself (SIGKILL) at that call of the progress callback (``progress``), at the first one of that stage
(``stage``), or inside that call of the target (``target``), when the rows are sent and the answers are not.
An empty entry runs to the end and writes FOLDER/result.npz and FOLDER/stages.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np

import unweave

TRUTH = unweave.random_network([12, 20, 1], seed=1000, outer="normal")
SEED = 1001


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Target:
    """Answers like the truth; writes down the rows first."""

    def __init__(self, folder: Path, dies_in_call: int | None) -> None:
        self.file = os.open(folder / "asked", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        self.calls, self.dies_in_call = 0, dies_in_call

    def __call__(self, x: np.ndarray) -> np.ndarray:
        os.write(self.file, x.tobytes())
        self.calls += 1
        if self.calls == self.dies_in_call:
            die()
        return TRUTH(x)


def attempt(folder: Path, checkpoint: str, event: str, number: int) -> None:
    stages: list[str] = []
    calls = 0

    def on_progress(progress: unweave.Progress) -> None:
        nonlocal calls
        calls += 1
        if progress.done == 0 and progress.unit == "":
            stages.append(progress.stage)
        if (event, number) in (("progress", calls), ("stage", len(stages))):
            die()

    target = Target(folder, number if event == "target" else None)
    result = unweave.recover(
        target, input_dim=12, seed=SEED, checkpoint=checkpoint or None, progress=on_progress
    )
    result.save(folder / "result.npz")
    (folder / "stages").write_text(f"{len(stages)} {calls} {target.calls} {' '.join(stages)}")


def main(folder: Path, checkpoint: str, kills: str) -> None:
    for kill in kills.split(","):
        event, _, number = kill.partition(":")
        child = os.fork()  # one import of everything for all attempts
        if child == 0:
            try:
                attempt(folder, checkpoint, event, int(number or 0))
                os._exit(0)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        if bool(event) != killed:
            raise SystemExit(f"attempt {kill!r} ended with status {status}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
