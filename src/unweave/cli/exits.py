"""How a command ends: its exit code, and one line on stderr when something is wrong."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from unweave.cli.output.document import print_json
from unweave.errors import BudgetExhausted, InvalidInput, TargetError, UnweaveError
from unweave.recovery.result import Status

DONE, NOT_EXACT, USAGE, FAILED, TARGET_FAILED, DEFECT, INTERRUPTED = 0, 1, 2, 3, 4, 70, 130

EXIT_CODES: dict[int, str] = {
    DONE: "recovered (or up to a named ambiguity); same network; all figures agree",
    NOT_EXACT: "approximate; different networks; a figure that does not agree",
    USAGE: "the command or one of its inputs cannot be used",
    FAILED: "failed: no usable network, or the budget ran out too early",
    TARGET_FAILED: "the target failed or did not answer with numbers",
    DEFECT: "a defect in unweave: please report the traceback",
    INTERRUPTED: "interrupted with Ctrl-C; what was found so far is shown",
}
"""Exit code -> what it means."""

EXIT_OF_STATUS: dict[Status, int] = {
    Status.RECOVERED: DONE,
    Status.RECOVERED_UP_TO_AMBIGUITY: DONE,
    Status.APPROXIMATE: NOT_EXACT,
    Status.FAILED: FAILED,
}
"""Verdict on a recovery -> exit code."""

_EXIT_OF_ERROR: tuple[tuple[type[BaseException], int], ...] = (
    (KeyboardInterrupt, INTERRUPTED),
    (TargetError, TARGET_FAILED),
    (BudgetExhausted, FAILED),
    (InvalidInput, USAGE),
    (OSError, USAGE),  # a file that cannot be read or written
    (UnweaveError, FAILED),
)


interrupt_told = False
"""Whether this process has told its user of an interrupt."""


def exit_code_of(command: Callable[[], int], as_json: bool) -> int:
    """Run ``command`` and return its exit code; what it raises is told in one line, with a code of its own.

    With ``as_json``, ``{"error": ..., "exit_code": ...}`` goes to stdout as well. Only a defect shows a
    traceback.
    """
    global interrupt_told
    try:
        code = command()
        interrupt_told |= code == INTERRUPTED  # the command shows what was found
        return code
    except (Exception, KeyboardInterrupt) as error:
        code = next((code for kind, code in _EXIT_OF_ERROR if isinstance(error, kind)), DEFECT)
        if code == DEFECT:
            traceback.print_exc()
        tell_error(error, code, as_json)
        return code


def tell_error(error: BaseException, code: int, as_json: bool) -> None:
    """Print ``error`` on one line of stderr, and as JSON on stdout if asked."""
    global interrupt_told
    interrupt_told |= code == INTERRUPTED
    text = " ".join(str(error).split()) or type(error).__name__
    if code == INTERRUPTED:
        text = "interrupted"
    elif code == DEFECT:
        text = f"{type(error).__name__}: {text}"
    print(text if code == INTERRUPTED else f"error: {text}", file=sys.stderr)
    if as_json:
        print_json({"error": text, "exit_code": code})


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call ``stop`` on Ctrl-C and SIGTERM while this lasts; the handlers there were before come back."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda _signal, _frame: stop()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
