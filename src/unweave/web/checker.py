"""The server's side of `unweave.web.upload_check`: one process, replaced when it breaks."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from pathlib import Path
from typing import Any

from unweave.errors import InvalidInput
from unweave.web.child_process import start_module
from unweave.web.limits import Limits
from unweave.web.run_request import FieldError, RunRequest

LONGEST_SECONDS = 60.0
"""Longest look at a file."""


class Checker:
    """Looks at one upload at a time. Close it after use."""

    def __init__(
        self, most_unpacked: int, longest_seconds: float = LONGEST_SECONDS, most_memory: int | None = None
    ) -> None:
        self._most_unpacked, self._longest = most_unpacked, longest_seconds
        self._most_memory = Limits().memory_bytes if most_memory is None else most_memory
        self._turn = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._closed = False

    def start(self) -> None:
        """Have the process ready, so that the first upload does not wait for it."""
        with self._turn:
            self._running()

    def check(self, folder: Path, request: RunRequest) -> dict[str, Any]:
        """Return what the upload in ``folder`` holds; `FieldError` if it cannot be used."""
        question = {"folder": str(folder), "request": request.to_dict(), "most_unpacked": self._most_unpacked}
        with self._turn:
            answer = self._ask(json.dumps(question))
        if answer is None:
            raise FieldError(
                "file",
                "The file must be readable. It could not be read within the time and memory of the page. "
                "Try it on the command line.",
            )
        if "error" in answer:
            raise FieldError(answer["field"], answer["error"])
        found: dict[str, Any] = answer["found"]
        return found

    def close(self) -> None:
        """End the process."""
        self._closed = True
        self._end()

    def _ask(self, question: str) -> dict[str, Any] | None:
        """Return the answer, or None if there was none; then the process is replaced next time."""
        process = self._running()
        stop = threading.Timer(self._longest, process.kill)
        stop.start()
        try:
            assert process.stdin is not None and process.stdout is not None  # noqa: PT018
            process.stdin.write(question + "\n")
            process.stdin.flush()
            content = json.loads(process.stdout.readline())
            return content if isinstance(content, dict) else None
        except (OSError, ValueError):  # it ended: killed by the timer, by the system, or by the file
            self._end()
            return None
        finally:
            stop.cancel()

    def _running(self) -> subprocess.Popen[str]:
        if self._closed:
            raise InvalidInput("The server is stopping. Start it again, and send the run again.")
        if self._process is None or self._process.poll() is not None:
            self._end()
            pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
            self._process = start_module(
                "unweave.web.upload_check", str(self._most_memory), stdin=pipe, stdout=pipe, stderr=nowhere
            )
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
