"""A child process that is written to and read from in lines, without ever waiting for it for ever.

One thread writes, one reads the answers and one the complaints, so that no pipe can fill up and stop both
sides. The threads hold the pipes only: when nobody refers to the process any more, it can be stopped.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

_READ_BYTES = 1 << 16  # read from a pipe at once: what a pipe holds on Linux
_MOST_UNREAD_PIECES = 1024  # of an output that nobody asked for; then the process has to wait
_MOST_LINE_BYTES = 64 * 2**20  # of a line: a million answers in one
_TAIL_LINES = 20  # of stderr that are kept for a message
_TAIL_LETTERS = 600  # of stderr that a message shows at most
_POLL_SECONDS = 0.05  # between two looks at whether to go on
_JOIN_SECONDS = 1.0  # for a process or thread that is about to end


class ProcessEnded(Exception):
    """The process closed its output before it had answered everything."""


class ProcessSilent(Exception):
    """The process did not answer in time."""


class LineTooLong(Exception):
    """The process wrote more than so many bytes without ending the line."""


class LineProcess:
    """``command`` as a running process: `send` bytes, take `lines`, `stop` it."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A group of its own: Ctrl-C is for us to handle, and the process can be ended with its children.
            start_new_session=os.name == "posix",
            # Python would else keep its answers back until it has some kilobytes of them.
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None and stdout is not None and stderr is not None  # noqa: PT018
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        # Not `queue.Queue`: a Ctrl-C at the wrong moment leaves its lock taken, or breaks it.
        self._incoming: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._complaints: deque[bytes] = deque(maxlen=_TAIL_LINES)
        self._unfinished = bytearray()
        self._lines: deque[bytes] = deque()
        self._ended = False
        self._threads = [
            threading.Thread(target=function, args=arguments, daemon=True)
            for function, arguments in (
                (_write, (stdin, self._outgoing)),
                (_read, (stdout, self._incoming, self._stopping)),
                (_listen, (stderr, self._complaints)),
            )
        ]
        for thread in self._threads:
            thread.start()

    def send(self, text: bytes) -> None:
        """Write ``text``, without waiting until it is read."""
        self._outgoing.put(text)

    def line(self, timeout: float) -> bytes:
        """Return the next line; `ProcessEnded` if none will come, `ProcessSilent` after ``timeout``.

        `LineTooLong` if it does not end.
        """
        deadline = time.monotonic() + timeout
        while not self._lines:
            left = deadline - time.monotonic()
            # In short sleeps: a signal that another thread received is seen between two of them.
            if not self._took(max(0.0, min(left, _POLL_SECONDS))) and left <= 0:
                raise ProcessSilent
        return self._lines.popleft()

    def unread(self, patience: float = 0.0) -> bytes | None:
        """Return a line that is there already, or within ``patience`` seconds; None if there is none."""
        with suppress(ProcessEnded, ProcessSilent, LineTooLong):
            return self.line(timeout=patience)
        return None

    def ending(self) -> str:
        """Return how it ended: ``exit code 1``, ``signal SIGKILL``."""
        try:
            code = self._process.wait(timeout=_JOIN_SECONDS)
        except subprocess.TimeoutExpired:
            return "a closed output, while the process still runs"
        if code >= 0:
            return f"exit code {code}"
        try:
            return f"signal {signal.Signals(-code).name}"
        except ValueError:
            return f"signal {-code}"

    def complaints(self) -> str:
        """Return the end of what the process wrote to stderr, in one line."""
        self._threads[2].join(_POLL_SECONDS)  # what it said last may still be on its way
        text = b" ".join(list(self._complaints)).decode("utf-8", errors="replace")
        return " ".join(text.split())[-_TAIL_LETTERS:]

    def stop(self, grace: float = 0.0) -> None:
        """End the process: it may go by itself within ``grace`` seconds of the end of its input."""
        self._stopping.set()
        self._outgoing.put(None)
        if not self._gone_within(grace):
            for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
                self._signal(number)
                if self._gone_within(_JOIN_SECONDS):
                    break
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)
        if not any(thread.is_alive() for thread in self._threads):
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()

    def _took(self, timeout: float) -> bool:
        """Wait for a piece of output and cut it into lines; False if none came."""
        if self._ended:
            raise ProcessEnded
        try:
            piece = self._incoming.get(timeout=timeout) if timeout else self._incoming.get_nowait()
        except queue.Empty:
            return False
        if piece is None:
            self._ended = True
            if self._unfinished.strip():  # the last line of a file may end without a newline
                self._lines.append(bytes(self._unfinished))
            return True
        first, *others = piece.split(b"\n")
        self._unfinished += first
        if others:
            self._lines.extend((bytes(self._unfinished), *others[:-1]))
            self._unfinished = bytearray(others[-1])
        elif len(self._unfinished) > _MOST_LINE_BYTES:
            raise LineTooLong(_MOST_LINE_BYTES)
        return True

    def _gone_within(self, seconds: float) -> bool:
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _signal(self, number: int) -> None:
        """Send a signal to the process, not yet waited for, and on POSIX to its group."""
        with suppress(OSError):
            if os.name == "posix":
                os.killpg(self._process.pid, number)
            else:
                self._process.send_signal(number)


def _write(pipe: IO[bytes], outgoing: queue.SimpleQueue[bytes | None]) -> None:
    """Write what is in the queue; None closes the pipe."""
    with suppress(OSError, ValueError):  # a process that is gone shows itself by the end of its output
        while (text := outgoing.get()) is not None:
            pipe.write(text)
            pipe.flush()
    with suppress(OSError, ValueError):
        pipe.close()


def _read(pipe: IO[bytes], incoming: queue.SimpleQueue[bytes | None], stopping: threading.Event) -> None:
    """Put what is written into the queue as it comes, if it is not overfull; None at its end."""
    piece: bytes | None = b""
    while piece is not None:
        try:
            piece = os.read(pipe.fileno(), _READ_BYTES) or None
        except (OSError, ValueError):
            piece = None
        while incoming.qsize() >= _MOST_UNREAD_PIECES and not stopping.wait(_POLL_SECONDS):
            pass
        incoming.put(piece)


def _listen(pipe: IO[bytes], complaints: deque[bytes]) -> None:
    """Keep the last lines."""
    with suppress(OSError, ValueError):
        for line in pipe:
            complaints.append(line)
