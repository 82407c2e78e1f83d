"""All runs: the ones that wait, the ones that go, and those that ended. At most two go at once.

The state of every run is on disk before anybody is told of it. Only the server writes ``state.json``; a
process writes into the folder of its attempt. So whatever is killed, and when, the next server finds every
run, and knows by ``outcome.json`` whether a process that it cannot see any more had come to its end.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import subprocess
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unweave.errors import InvalidInput, UnweaveError
from unweave.recovery.result import Status
from unweave.web.child_process import start_module
from unweave.web.limits import Limits
from unweave.web.run_folder import (
    ENDED,
    LOG,
    NEW,
    OUTCOME,
    PROGRESS,
    RESUMABLE,
    RunFolder,
    RunState,
    RunStatus,
    is_run_id,
    lock,
    make_private,
    new_run_id,
    read_json,
)
from unweave.web.run_request import FieldError, RunRequest
from unweave.web.worker import CANCEL

AT_ONCE = 2
"""Runs that go at the same time; the others wait."""
TONES = ("good", "fair", "bad")
"""How a result is colored, beside the words that say it."""
_CLOSING_SECONDS = 3.0  # that runs get to end when the server stops; they can be resumed

_log = logging.getLogger("unweave.web")


class UnknownRun(UnweaveError):
    """There is no run of that name."""


class WrongState(UnweaveError):
    """The run is not in a state in which that can be done."""


@dataclass
class _Going:
    """A process that runs."""

    process: subprocess.Popen[str]
    watcher: threading.Thread
    cancelled: bool = False
    too_long: bool = False
    overtime: threading.Timer | None = None


class Runs:
    """The runs in ``folder``, which no other server may use. May be called from several threads.

    ``without`` names variables of the environment that the processes do not get, ``allowed`` those whose
    values they may send to an endpoint. ``limits`` says what a process may take. Close it after use.
    """

    def __init__(
        self,
        folder: Path,
        at_once: int = AT_ONCE,
        without: Iterable[str] = (),
        allowed: Iterable[str] = (),
        limits: Limits | None = None,
    ) -> None:
        self.folder = make_private(folder.resolve())
        self._lock_file = lock(self.folder)
        self._at_once, self._without, self._allowed = at_once, tuple(without), tuple(allowed)
        self._limits = Limits() if limits is None else limits
        self._guard = threading.RLock()
        self._states: dict[str, RunState] = {}
        self._going: dict[str, _Going] = {}
        self._closing = False

    def start(self) -> None:
        """Read what is on disk, and let waiting runs go."""
        with self._guard:
            for path in sorted(self.folder.iterdir()):
                if path.name.startswith(NEW):
                    shutil.rmtree(path, ignore_errors=True)  # an upload that the server did not survive
                elif is_run_id(path.name) and path.is_dir():
                    self._restore(RunFolder(path))
            self._let_go()

    def close(self) -> None:
        """Stop what goes; it can be resumed. Waiting runs go on waiting until the next start."""
        with self._guard:
            self._closing = True
            going = list(self._going.values())
            for entry in going:
                with contextlib.suppress(OSError):
                    entry.process.stdin.close()  # type: ignore[union-attr]  # tells it that the server is gone
        last = time.monotonic() + _CLOSING_SECONDS
        for entry in going:
            with contextlib.suppress(subprocess.TimeoutExpired):
                entry.process.wait(max(0.0, last - time.monotonic()))
            entry.process.kill()
            entry.watcher.join()
        self._lock_file.close()

    def all(self) -> list[RunState]:
        """Return every run, the newest first."""
        with self._guard:
            return sorted(self._states.values(), key=lambda state: (state.created, state.id), reverse=True)

    def get(self, run_id: str) -> RunState:
        """Return the run of that name."""
        with self._guard:
            state = self._states.get(run_id)
        if state is None:
            raise UnknownRun("There is no such run. It may have been deleted.")
        return state

    def place(self, state: RunState) -> Path:
        """Return where the newest process of a run writes, or wrote."""
        return self._folder(state.id).attempt(state.attempt)

    def progress(self, state: RunState) -> dict[str, Any] | None:
        """Return the newest sign of life; None before the first."""
        return read_json(self.place(state) / PROGRESS)

    def outcome(self, state: RunState) -> dict[str, Any] | None:
        """Return how the newest process ended; None if it has not, or was killed."""
        return read_json(self.place(state) / OUTCOME)

    def waiting_before(self, state: RunState) -> int:
        """Return the number of waiting runs before this one."""
        with self._guard:
            return sum(other.queued < state.queued for other in self._waiting())

    def is_stopping(self, state: RunState) -> bool:
        """Whether the run was told to stop and has not yet."""
        with self._guard:
            going = self._going.get(state.id)
            return going is not None and going.cancelled

    def new_folder(self) -> RunFolder:
        """Create a folder for an upload; hand it to `add`, or remove it."""
        return RunFolder(make_private(self.folder / f"{NEW}{new_run_id()}"))

    def check_variable(self, request: RunRequest) -> None:
        """Refuse a request that would send away a variable that nobody has allowed to be sent."""
        if request.token_env is not None and request.token_env not in self._allowed:
            known = ", ".join(self._allowed) or "none"
            raise FieldError(
                "token_env",
                f"The variable with the key must be one that this page may use: {known}. Got "
                f"{request.token_env} instead. Serve the page with --allow-env {request.token_env}.",
            )

    def add(self, upload: RunFolder, request: RunRequest, found: dict[str, Any]) -> RunState:
        """Make a run of a complete upload, and let it wait for its turn."""
        now = time.time()
        state = RunState(upload.path.name.removeprefix(NEW), request, RunStatus.QUEUED, now, now, found=found)
        upload.write_state(state)
        with self._guard:
            # The name changes once everything is there: a folder with the name of a run is a run.
            upload.path.rename(self.folder / state.id)
            self._states[state.id] = state
            self._let_go()
            return self._states[state.id]

    def cancel(self, run_id: str) -> RunState:
        """Stop a run: at once if it waits, else as soon as it has written what it has found."""
        with self._guard:
            state = self.get(run_id)
            if state.status is RunStatus.QUEUED:
                self._end(state, RunStatus.CANCELLED, "Cancelled before it began.")
            elif state.status is RunStatus.RUNNING and run_id in self._going:
                self._interrupt(self._going[run_id])
            else:
                raise WrongState(f"A run that is {state.status.value} cannot be cancelled.")
            return self._states[run_id]

    def resume(self, run_id: str) -> RunState:
        """Let a run that did not come to its end go on; answers that it was given are not asked again."""
        with self._guard:
            state = self.get(run_id)
            if state.status not in RESUMABLE:
                raise WrongState(f"A run that is {state.status.value} cannot be resumed.")
            cleared = replace(state, message="", verdict=None, summary="", words="", tone="", ended=None)
            self._put(cleared, status=RunStatus.QUEUED, queued=time.time())
            self._let_go()
            return self._states[run_id]

    def delete(self, run_id: str) -> None:
        """Remove a run that ended, with all of its files."""
        with self._guard:
            state = self.get(run_id)
            if state.status not in ENDED:
                raise WrongState(f"A run that is {state.status.value} cannot be deleted. Cancel it first.")
            del self._states[run_id]
            # Renamed first: if the server dies on the way, the next one removes the rest.
            doomed = self.folder / f"{NEW}{run_id}"
            self._folder(run_id).path.rename(doomed)
        shutil.rmtree(doomed, ignore_errors=True)

    def _folder(self, run_id: str) -> RunFolder:
        return RunFolder(self.folder / run_id)

    def _put(self, state: RunState, **changes: Any) -> RunState:
        """Change a state, on disk first."""
        changed = replace(state, **changes)
        self._folder(state.id).write_state(changed)
        self._states[state.id] = changed
        return changed

    def _end(self, state: RunState, status: RunStatus, message: str, **facts: Any) -> None:
        self._put(state, status=status, message=message, ended=time.time(), **facts)

    def _waiting(self) -> list[RunState]:
        waiting = [state for state in self._states.values() if state.status is RunStatus.QUEUED]
        return sorted(waiting, key=lambda state: (state.queued, state.id))

    def _restore(self, folder: RunFolder) -> None:
        """Take up a run that is on disk; one that was going has ended, with its server, or by itself."""
        try:
            state = folder.read_state()
        except InvalidInput as error:
            _log.warning("%s", error)
            return
        self._states[state.id] = state
        if state.status is RunStatus.RUNNING:
            self._conclude(state, "The server stopped while it was running.")

    def _let_go(self) -> None:
        """Start waiting runs while there is room."""
        while not self._closing and len(self._going) < self._at_once and (waiting := self._waiting()):
            self._start_process(waiting[0])

    def _start_process(self, state: RunState) -> None:
        try:
            self.check_variable(state.request)  # its folder may come from elsewhere
        except FieldError as error:
            self._end(state, RunStatus.FAILED, str(error))
            return
        number = state.attempt + 1
        place = make_private(self._folder(state.id).attempt(number))
        state = self._put(state, status=RunStatus.RUNNING, attempt=number, started=time.time())
        try:
            with (place / LOG).open("ab") as log:
                pipes = {"stdin": subprocess.PIPE, "stdout": log, "stderr": subprocess.STDOUT}
                limits = self._limits
                arguments = (
                    *(str(self._folder(state.id).path), str(number)),
                    *(str(limits.memory_bytes), str(limits.deadline(state.request.deadline))),
                )
                process = start_module("unweave.web.worker", *arguments, without=self._without, **pipes)
        except OSError as error:
            self._end(state, RunStatus.FAILED, f"It could not be started: {error}.")
            return
        watcher = threading.Thread(target=self._watch, args=(state.id, process), daemon=True)
        self._going[state.id] = going = _Going(process, watcher)
        watcher.start()
        most = self._limits.deadline(state.request.deadline) + self._limits.overtime_seconds
        going.overtime = threading.Timer(most, self._stop_overtime, args=(going,))
        going.overtime.daemon = True
        going.overtime.start()

    def _stop_overtime(self, going: _Going) -> None:
        """Stop a run that did not end by itself when its time was over."""
        with self._guard:
            going.too_long = True
            self._interrupt(going)

    def _watch(self, run_id: str, process: subprocess.Popen[str]) -> None:
        """Wait for a process to end, and let the next run go."""
        code = process.wait()
        with self._guard:
            with contextlib.suppress(OSError):
                process.stdin.close()  # type: ignore[union-attr]
            going = self._going.pop(run_id)
            if going.overtime is not None:
                going.overtime.cancel()
            state = self._states[run_id]
            why = "The server was stopped while it was running."
            if going.too_long:
                longest = self._limits.deadline(state.request.deadline)
                why = f"It was stopped because it did not end within {longest:g} s; its target may hang."
            elif not self._closing:
                memory = f"needs more than {self._limits.memory_mb:g} MB (--max-memory-mb)"
                why = (
                    f"Its process ended unexpectedly ({_ending(code)}). The log may tell why. A process that "
                    f"{memory} ends like this."
                )
            with contextlib.suppress(OSError):  # a full disk: the next start finds out the same
                self._conclude(state, why, cancelled=going.cancelled and not going.too_long)
            self._let_go()

    def _conclude(self, state: RunState, why: str, cancelled: bool = False) -> None:
        """Write down how a run ended: as its process says, or, where that could not say anything, ``why``."""
        outcome = self.outcome(state)
        if outcome is not None:
            facts = outcome.get("recovery")
            facts = facts if isinstance(facts, dict) else {}
            verdict = facts.get("status") if facts.get("status") in Status.__members__ else None
            status = RunStatus.__members__.get(str(outcome.get("status")), RunStatus.FAILED)
            found = {
                "verdict": verdict,
                "summary": str(facts.get("architecture") or outcome.get("summary") or ""),
                "words": str(outcome.get("words") or ""),
                "tone": tone if (tone := outcome.get("tone")) in TONES else "",
            }
            self._end(state, status, str(outcome.get("message", "")), **found)
        elif cancelled:
            self._end(state, RunStatus.CANCELLED, "Cancelled before anything was found.")
        else:
            self._end(state, RunStatus.INTERRUPTED, why)

    def _interrupt(self, going: _Going) -> None:
        if going.cancelled:
            return
        going.cancelled = True
        with contextlib.suppress(OSError):
            going.process.stdin.write(f"{CANCEL}\n")  # type: ignore[union-attr]
            going.process.stdin.flush()  # type: ignore[union-attr]
        killer = threading.Timer(self._limits.grace_seconds, going.process.kill)
        killer.daemon = True
        killer.start()


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
