"""Rows on their way to the target, and its answers on their way back: in time, counted, timed, checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.errors import PartialAnswers, TargetError, UnweaveError
from unweave.execution.executor import Executor
from unweave.numerics import interrupts
from unweave.numerics.clock import time_limit
from unweave.targets.answer_table import read_answer, refuse_non_finite
from unweave.targets.budget import Budget, within
from unweave.targets.differentiation import Derivatives, Differentiate

if TYPE_CHECKING:
    from unweave.targets.queries import Queries


class Sender:
    """Calls the target and reads what it answers; whatever it raises carries the ledger it is given.

    It keeps no answer and no reference to a ledger: a target that is no longer asked is let go at once.
    """

    def __init__(
        self, function: Callable[[Array], Any], n_inputs: int, budget: Budget, clock: Callable[[], float]
    ) -> None:
        self.function = function
        self._n_inputs, self._budget, self._clock = n_inputs, budget, clock
        self.n_outputs: int | None = None
        """Number of outputs m; None until the first answer."""
        self.calls = 0
        """Times the target was called."""
        self.derivative_queries = 0
        """Forward and backward passes counted by `differentiate`."""
        self.seconds = 0.0
        """Seconds spent inside the target."""

    def send(self, piece: Array, ledger: Queries) -> Array:
        """Return answers (n, m) to one piece (n, D) as float64, not yet checked for NaN.

        Raises `PartialAnswers` where the target fails half way.
        """
        return self.table(self._called(self.function, piece, piece.shape[0], ledger), piece.shape[0], ledger)

    def send_to_workers(
        self, rows: Array, pieces: list[IntArray], executor: Executor, ledger: Queries
    ) -> Iterator[tuple[int, Array]]:
        """Yield (number of a piece, answers to its rows), as they arrive from the workers of ``executor``."""
        handed_out = 0

        def to_hand_out() -> Iterator[tuple[Array, float | None]]:
            """Yield pieces as workers become free; after the deadline none, but wait for those begun."""
            nonlocal handed_out
            for piece in pieces:
                if self._budget.is_late:
                    return
                handed_out += 1
                self._budget.sent += piece.size
                self.calls += 1
                yield rows[piece], self._budget.seconds_left

        try:
            arriving = executor.completed(_ask_in_worker, to_hand_out(), shared=self.function)
            for index, (seconds, answer) in arriving:
                self.seconds += seconds
                yield index, self.table(answer, pieces[index].size, ledger)
        except UnweaveError:
            self._budget.check_time()  # a transport gave up because of the deadline
            raise
        except Exception as error:
            raise TargetError(
                f"The target must answer rows of {self._n_inputs} inputs from a worker process. "
                f"Got {type(error).__name__}: {error} instead. See the chained exception; a target that "
                "cannot be sent to another process is asked here with runs_target=False.",
                ledger=ledger,
            ) from error
        if handed_out < len(pieces):
            self._budget.check_time()

    def differentiate(
        self, function: Differentiate, piece: Array, directions: Array | None, per_row: int, ledger: Queries
    ) -> Derivatives:
        """Return derivatives at one piece (n, D), counted; refuse another shape and non-finite values."""
        counted = piece.shape[0] * per_row
        try:
            found: Derivatives = self._called(
                lambda rows: function(rows, directions), piece.copy(), counted, ledger
            )
        except PartialAnswers as partial:
            raise TargetError(str(partial), ledger=ledger) from partial
        self.derivative_queries += counted
        self.table(found.values, piece.shape[0], ledger)
        refuse_non_finite(piece, found.values, ledger)
        if not found.is_finite:
            raise TargetError(
                "The target's derivatives must be finite. Got NaN or infinite values instead, where its "
                'answers are finite. Leave derivatives at "queries".',
                ledger=ledger,
            )
        return found

    def table(self, answer: Any, n_rows: int, ledger: Queries) -> Array:
        """Turn what the target returned into (n_rows, m) float64, or say what is wrong with it."""
        table = read_answer(answer, n_rows, self.n_outputs, ledger)
        self.n_outputs = int(table.shape[1])
        return table

    def _called(self, function: Callable[[Array], Any], piece: Array, counted: int, ledger: Queries) -> Any:
        """Call ``function`` on a piece (n, D): within the deadline, counted and timed."""
        interrupts.look()
        self._budget.check_time()
        self._budget.sent += counted
        self.calls += 1
        began = self._clock()
        try:
            # Probing goes far out on purpose; what overflows there is reported as a non-finite answer.
            with np.errstate(all="ignore"), time_limit(lambda: self._budget.seconds_left):
                return function(piece)
        except PartialAnswers:
            raise
        except Exception as error:
            raise TargetError(
                f"The target must answer {piece.shape[0]} rows of {self._n_inputs} inputs. "
                f"Got {type(error).__name__}: {error} instead. See the chained exception.",
                ledger=ledger,
            ) from error
        finally:
            self.seconds += self._clock() - began


def _ask_in_worker(function: Callable[[Array], Any], given: tuple[Array, float | None]) -> tuple[float, Any]:
    """Call the target on rows in a worker process, within seconds; return the seconds it took and answer."""
    piece, seconds_left = given
    began = time.perf_counter()
    with np.errstate(all="ignore"), within(seconds_left):
        answer = function(piece)
    return time.perf_counter() - began, answer
