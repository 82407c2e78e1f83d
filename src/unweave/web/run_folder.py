"""A run's folder: everything that is known about the run, so that a server may stop at any moment.

RUNS/20260131-120000-1a2b3c4d/
    state.json        what was asked, and how far it is; written by the server, whole or not at all
    target.npz        the uploaded file, under a name of ours
    checkpoint.sqlite every answer that was paid for, of all attempts
    attempt-1/        what one process wrote: progress.json, log.txt, the results, and last outcome.json
RUNS/.new-...         an upload that is not complete
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
import time
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO

from unweave.errors import InvalidInput
from unweave.files import write_atomically
from unweave.files.typed_values import built
from unweave.recovery.result import Status
from unweave.web.run_request import RunRequest

FORMAT, VERSION = "unweave-run", 1
STATE, PROGRESS, OUTCOME, LOG = "state.json", "progress.json", "outcome.json", "log.txt"
CHECKPOINT = "checkpoint.sqlite"
NEW = ".new-"
"""How the name of a folder begins whose upload is not complete."""

_RUN_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{8}")
_LOCK = ".lock"
_OWNER_ONLY = 0o700  # targets and answers are nobody else's business


class RunStatus(Enum):
    """How far a run is; the value says it to the user."""

    QUEUED = "waiting for its turn"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "ended with an error"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


ENDED = (RunStatus.FINISHED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.INTERRUPTED)
RESUMABLE = (RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.INTERRUPTED)


@dataclass(frozen=True)
class RunState:
    """What ``state.json`` says."""

    id: str
    request: RunRequest
    status: RunStatus
    created: float
    """Seconds since 1970, as all times here."""
    queued: float
    started: float | None = None
    ended: float | None = None
    attempt: int = 0
    """Number of the process that ran last; 0 before the first."""
    message: str = ""
    verdict: str | None = None
    """Name of the `Status` of the result, if there is one."""
    summary: str = ""
    words: str = ""
    """How it went, of a task that has no verdict; empty otherwise"""
    tone: str = ""
    """good, fair or bad, beside ``words``"""
    found: dict[str, Any] = field(default_factory=dict)
    """What the check of the target saw: inputs, outputs, rows."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "format": FORMAT,
            "version": VERSION,
            **{name: getattr(self, name) for name in self.__dataclass_fields__},
            "request": self.request.to_dict(),
            "status": self.status.name,
        }

    @staticmethod
    def from_dict(content: dict[str, Any]) -> RunState:
        """Return what `to_dict` wrote; ValueError, KeyError or TypeError if it is something else."""
        if content["format"] != FORMAT or content["version"] != VERSION:
            raise ValueError(f"a state of {content['format']} {content['version']}")
        known = {name: content[name] for name in RunState.__dataclass_fields__ if name in content}
        request, status = RunRequest.from_dict(content["request"]), RunStatus[content["status"]]
        if content.get("verdict") is not None:
            Status[content["verdict"]]
        return built(RunState, {**known, "request": request, "status": status})


class RunFolder:
    """The paths of one run, and its state."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def attempt(self, number: int) -> Path:
        """Return where process ``number`` writes."""
        return self.path / f"attempt-{number}"

    def target(self, request: RunRequest) -> Path:
        """Return the uploaded file."""
        return self.path / f"target{request.ending}"

    def other(self, request: RunRequest) -> Path:
        """Return the second uploaded file, of a comparison."""
        return self.path / f"other{request.other_ending}"

    @property
    def checkpoint(self) -> Path:
        """Where the answers are kept."""
        return self.path / CHECKPOINT

    def read_state(self) -> RunState:
        """Return the state on disk; `InvalidInput` if it cannot be read.

        A run is called like its folder, whatever the file says: a folder may be a copy.
        """
        try:
            content = json.loads((self.path / STATE).read_text(encoding="utf-8"))
            return RunState.from_dict({**content, "id": self.path.name})
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InvalidInput(f"{self.path} must hold the state of a run. Got {error!r} instead.") from error

    def write_state(self, state: RunState) -> None:
        """Put the state on disk, whole or not at all."""
        write_json(self.path / STATE, state.to_dict())


def is_run_id(text: str) -> bool:
    """Whether ``text`` can be the name of a run, and so of a folder: digits, hyphens and a to f only."""
    return _RUN_ID.fullmatch(text) is not None


def new_run_id() -> str:
    """Return a name that sorts by time and cannot be guessed."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"


def make_private(path: Path) -> Path:
    """Make a folder that only its owner can look into; one that is there already becomes such a folder."""
    path.mkdir(mode=_OWNER_ONLY, parents=True, exist_ok=True)
    path.chmod(_OWNER_ONLY)
    return path


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write ``content``, whole or not at all, and on the disk when this returns."""
    encoded = json.dumps(content, indent=1).encode("utf-8")
    write_atomically(path, lambda file: file.write(encoded))


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the JSON object in a file; None if it is missing or not readable."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def lock(folder: Path) -> BinaryIO:
    """Take the folder for this process; the system gives it back when the process ends, however it ends."""
    file = (folder / _LOCK).open("ab")
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise InvalidInput(
            f"--folder must be a folder that no other server uses. Got {os.fspath(folder)!r} instead. Stop "
            "the other one, or give another folder."
        ) from error
    return file
