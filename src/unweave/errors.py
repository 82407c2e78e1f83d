"""Errors that unweave raises on purpose. All of them derive from `UnweaveError`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unweave.arrays import Array, IntArray
    from unweave.recovery.result import Recovery
    from unweave.targets.queries import Queries


def install_hint(extra: str) -> str:
    """Return the commands that install what ``extra`` brings, from a clone and where unweave is installed."""
    return f"Install it: pip install -e '.[{extra}]' in a clone, or pip install 'unweave[{extra}]' elsewhere."


class UnweaveError(Exception):
    """Base class of every error that the library raises on purpose."""


class InvalidInput(UnweaveError, ValueError):
    """An argument cannot be used: the message says what was required, what came, and what to do."""


class TargetError(UnweaveError):
    """The target answered something that is not an answer (wrong shape, NaN, an exception of its own).

    ``ledger`` holds every answer already paid for; hand it to `unweave.recover` in place of the
    target to go on without asking those rows again.
    """

    def __init__(self, message: str, ledger: Queries | None = None) -> None:
        super().__init__(message)
        self.ledger = ledger


class NonFiniteAnswers(TargetError):
    """Some answers were NaN or infinite."""


class PartialAnswers(TargetError):
    """A call of the target failed after some of its rows were answered; the ledger keeps those answers.

    ``indices`` (k,) are the rows of the call that were answered, ``answers`` (k, m) what they were. A target
    that may fail half way raises this from what went wrong, so that no row is ever paid for twice.
    """

    def __init__(
        self, message: str, indices: IntArray, answers: Array, ledger: Queries | None = None
    ) -> None:
        super().__init__(message, ledger)
        self.indices = indices
        self.answers = answers


class InterruptedAnswers(PartialAnswers, KeyboardInterrupt):
    """Ctrl-C came while the target was being asked: the interrupt, with the answers that had arrived."""


class CheckpointError(UnweaveError):
    """A checkpoint could not be written any more, on a full disk for instance.

    ``ledger`` holds every answer already paid for, those included that did not reach the disk: hand it to
    `unweave.recover` in place of the target, with the same checkpoint once there is room or without any.
    """

    def __init__(self, message: str, ledger: Queries | None = None) -> None:
        super().__init__(message)
        self.ledger = ledger


class ExecutionError(UnweaveError):
    """The workers that were to compute something could not."""


class BudgetExhausted(UnweaveError):
    """The ledger may not send more rows: ``reason`` is ``"queries"`` or ``"deadline"``."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class OutOfTime(BudgetExhausted):
    """The deadline has passed: whoever holds a result hands it back."""

    def __init__(
        self,
        message: str = "The deadline passed before the search was done. Raise deadline; what was found so "
        "far is kept.",
    ) -> None:
        super().__init__(message, reason="deadline")


class OutOfMemory(UnweaveError, MemoryError):
    """A computation needs more memory than it may take; nothing was allocated."""


class Interrupted(UnweaveError, KeyboardInterrupt):
    """A recovery was interrupted: ``recovery`` holds what was found, ``ledger`` what was paid for.

    ``ledger`` is None for samples, where nothing is asked.
    """

    def __init__(self, recovery: Recovery, ledger: Queries | None) -> None:
        super().__init__(str(recovery))
        self.recovery = recovery
        self.ledger = ledger
