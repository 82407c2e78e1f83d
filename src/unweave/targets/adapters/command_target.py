"""A command as target: a process that reads rows on its standard input and writes answers on its output.

The protocol, in UTF-8 text:

- ``format="csv"``: each row is one line of numbers with commas between. For each, in the same order, the
  process writes one line with its answers, commas or blanks between.
- ``format="json"``: each row is one line ``[1.0, 2.5]``; each answer is one line, ``0.5`` or ``[0.5, -1.0]``.
- ``format="batch"``: each batch of rows is one line ``[[1.0, 2.5], [0.0, 1.0]]``, answered by one line
  ``[0.5, 0.25]`` or ``[[0.5, -1.0], [0.25, 3.0]]``: for a model that is faster on many rows at once.

Numbers are written with as many digits as float64 has (17 at most); answer likewise. Answers must be flushed
as they come, not kept until the input ends. The standard error is free for anything else, and its end is
shown when the process fails. The process is started at the first question, stays for all of them, and should
end when its input does.
"""

from __future__ import annotations

import json
import shlex
import shutil
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn, get_args

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.errors import InterruptedAnswers, InvalidInput, PartialAnswers
from unweave.numerics.clock import remaining_seconds
from unweave.targets.adapters.answer_source import no_answer
from unweave.targets.adapters.command_process import LineProcess, LineTooLong, ProcessEnded, ProcessSilent
from unweave.targets.answer_table import whole_number

CommandFormat = Literal["csv", "json", "batch"]

_LISTEN_SECONDS = 0.2  # after the first answers, to notice output that nothing was asked for
_EXIT_SECONDS = 2.0  # that a process gets to end by itself once its input has ended
_SHOWN_LETTERS = 80  # of a line that is no answer


class CommandTarget:
    """f(x) = what a separate process answers; see the protocol above.

    A process that dies is started again, once in a batch, and asked for the answers that are missing; if it
    dies again, that is reported with the end of its stderr. `close` (or leaving a ``with``) ends the process;
    a later question would start another one. It also ends when nothing refers to the target any more.

    Parameters
    ----------
    command : program and arguments, ``["python", "model.py"]``; a string is split like in a shell, but no
        shell is involved.
    input_dim : D, the numbers in a row.
    format : ``"csv"``, ``"json"`` or ``"batch"``.
    timeout : seconds without an answer after which the process is ended; the first one includes its start.

    Example
    -------
    >>> import sys
    >>> model = "import sys\\nfor line in sys.stdin: print(sum(map(float, line.split(','))))"
    >>> with CommandTarget([sys.executable, "-c", model], input_dim=2) as target:
    ...     target(np.array([[1.0, 2.0], [3.0, 4.5]]))
    array([[3. ],
           [7.5]])
    """

    def __init__(
        self,
        command: Sequence[str] | str,
        input_dim: int,
        *,
        format: CommandFormat | str = "csv",
        timeout: float = 60.0,
    ) -> None:
        self._command = _checked_command(command)
        self.n_inputs = whole_number(input_dim, "input_dim", least=1)
        """D."""
        if format not in get_args(CommandFormat):
            raise InvalidInput(
                f"format must be one of {', '.join(get_args(CommandFormat))}. Got {format!r} instead."
            )
        if not timeout > 0:
            raise InvalidInput(f"timeout must be a number of seconds > 0. Got {timeout!r} instead.")
        self._format, self._timeout = format, float(timeout)
        self._lock = threading.Lock()  # a process has one conversation at a time
        self._process: LineProcess | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self.restarts = 0
        """How often the process died and was started again."""
        self._listened = False  # whether the process was heard out after its first answers

    def __call__(self, x: Array) -> Array:
        """Answer the rows of ``x`` (n, D): (n, K) float64."""
        rows = np.asarray(x, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_inputs:
            raise InvalidInput(
                f"x must be an array of shape (n, {self.n_inputs}). Got shape {rows.shape} instead."
            )
        if not len(rows):
            return np.empty((0, 0))
        answers: list[list[float]] = []
        with self._lock:
            try:
                self._converse(rows, answers)
            except BaseException as error:
                # What is still under way would be taken for answers to the next question.
                self._end(grace=0.0)
                if isinstance(error, KeyboardInterrupt):
                    raise InterruptedAnswers("interrupted", *_arrived(answers)) from error
                raise
        return np.array(answers)

    def close(self) -> None:
        """End the process, if it runs: its input is closed, and it has two seconds to leave by itself."""
        with self._lock:
            self._end(_EXIT_SECONDS)

    def __enter__(self) -> CommandTarget:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy in another process starts a process of its own.
        return _again, (self._command, self.n_inputs, self._format, self._timeout)

    def __repr__(self) -> str:
        state = "running" if self._process is not None else "not running"
        return f"CommandTarget({shlex.join(self._command)!r}, {self.n_inputs} inputs, {state})"

    def _converse(self, rows: Array, answers: list[list[float]]) -> None:
        """Append one answer per row to ``answers``, with one restart."""
        for last_attempt in (False, True):
            process = self._process or self._start()
            try:
                self._exchange(process, rows[len(answers) :], answers)
                return
            except ProcessEnded:
                if last_attempt:
                    raise PartialAnswers(
                        f"The command {shlex.join(self._command)!r} must stay and answer every row. Got "
                        f"{process.ending()} after {len(answers)} of {len(rows)} answers instead, although "
                        f"it was started once more.{_last_words(process)}",
                        *_arrived(answers),
                    ) from None
                self._end(grace=0.0)
                self.restarts += 1

    def _exchange(self, process: LineProcess, rows: Array, answers: list[list[float]]) -> None:
        """Send ``rows`` and append their answers as they come."""
        self._refuse_chatter(process)
        expected = len(answers) + len(rows)
        process.send(_ENCODERS[self._format](rows).encode())
        while len(answers) < expected:
            try:
                line = process.line(min(self._timeout, remaining_seconds()))
            except LineTooLong as error:
                self._refuse(f"one line per row, of at most {error} bytes", b"a longer one")
            except ProcessSilent:
                raise PartialAnswers(
                    f"The command {shlex.join(self._command)!r} must answer within {self._timeout:g} s. "
                    f"Got {len(answers)} of {expected} answers instead. Answer every line as it comes and "
                    f"flush the output, or raise timeout.{_last_words(process)}",
                    *_arrived(answers),
                ) from None
            answers.extend(self._parsed(line, expected - len(answers)))
            if len(answers[-1]) != len(answers[0]):
                self._refuse(f"{len(answers[0])} numbers as before", line)
        # A process that says too much does so from the start, though perhaps a moment later.
        self._refuse_chatter(process, 0.0 if self._listened else _LISTEN_SECONDS)
        self._listened = True

    def _parsed(self, line: bytes, missing: int) -> list[list[float]]:
        """Return the answers in one line: one, or all that are ``missing`` of a batch."""
        text = line.decode("utf-8", errors="replace").strip()
        try:
            if self._format == "csv":
                answers = [[float(word) for word in text.replace(",", " ").split()]]
            else:
                content = json.loads(text)
                answers = [_numbers(entry) for entry in (content if self._format == "batch" else [content])]
        except (ValueError, TypeError, RecursionError):
            self._refuse("a line of numbers" if self._format == "csv" else "numbers in JSON", line)
        if not all(answers):
            self._refuse("at least one number per row", line)
        if self._format == "batch" and len(answers) != missing:
            self._refuse(f"a list of {missing} answers, one per row", line)
        return answers

    def _refuse_chatter(self, process: LineProcess, patience: float = 0.0) -> None:
        """Raise if there is output that nothing was asked for: answers would be taken for others."""
        line = process.unread(patience)
        if line is not None:
            self._refuse("one line per row and nothing else", line)

    def _refuse(self, required: str, line: bytes) -> NoReturn:
        shown = line.decode("utf-8", errors="replace").strip()
        shown = shown if len(shown) <= _SHOWN_LETTERS else f"{shown[:_SHOWN_LETTERS]}..."
        raise no_answer(
            f"The command {shlex.join(self._command)!r} must answer {required}. Got {shown!r} instead. "
            "Write anything that is not an answer to the standard error."
        )

    def _start(self) -> LineProcess:
        try:
            process = LineProcess(self._command)
        except OSError as error:
            raise no_answer(
                f"command must be a program that can be started. Got {shlex.join(self._command)!r} instead "
                f"({error.strerror}). Check that it may be executed."
            ) from error
        self._process, self._listened = process, False
        self._finalizer = weakref.finalize(self, process.stop, _EXIT_SECONDS)
        return process

    def _end(self, grace: float) -> None:
        process, self._process = self._process, None
        if self._finalizer is not None:
            self._finalizer.detach()
            self._finalizer = None
        if process is not None:
            process.stop(grace)


def _again(command: list[str], input_dim: int, format: str, timeout: float) -> CommandTarget:
    return CommandTarget(command, input_dim, format=format, timeout=timeout)


def _checked_command(command: Sequence[str] | str) -> list[str]:
    """Return the program and its arguments, if there is such a program."""
    try:
        words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"command must be a program and its arguments. Got {command!r} instead ({error}). "
            "For example ['python', 'model.py']."
        ) from error
    if not words:
        raise InvalidInput("command must be a program and its arguments. It is empty.")
    if shutil.which(words[0]) is None:
        raise InvalidInput(
            f"command must start with a program that exists and may be executed. Got {words[0]!r} instead. "
            "Check the spelling, or give its whole path."
        )
    return words


_ENCODERS: dict[str, Callable[[Array], str]] = {
    "csv": lambda rows: "".join(",".join(map(repr, row)) + "\n" for row in rows.tolist()),
    "json": lambda rows: "".join(f"{json.dumps(row)}\n" for row in rows.tolist()),
    "batch": lambda rows: f"{json.dumps(rows.tolist())}\n",
}


def _numbers(entry: Any) -> list[float]:
    """Return an answer in JSON, a number or a list of numbers, as a list."""
    values = entry if isinstance(entry, list) else [entry]
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in values):
        raise ValueError("not a number")
    return [float(value) for value in values]


def _arrived(answers: list[list[float]]) -> tuple[IntArray, Array]:
    """Return the rows that were answered, the first ones, and their answers."""
    return np.arange(len(answers)), np.array(answers).reshape(len(answers), -1 if answers else 0)


def _last_words(process: LineProcess) -> str:
    words = process.complaints()
    return f" Its last words on stderr: {words}" if words else ""
