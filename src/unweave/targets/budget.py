"""How many rows may still be sent, and until when."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from unweave.errors import BudgetExhausted, InvalidInput, OutOfTime
from unweave.numerics.clock import time_limit
from unweave.targets.answer_table import whole_number


class Budget:
    """Counts rows that are sent, and says when there were enough of them or the time is over."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._limit: int | None = None
        self._deadline: float | None = None
        self.sent = 0
        """Rows so far."""

    def reset(self, max_queries: int | None, deadline: float | None) -> None:
        """Allow that many further rows and further seconds from now; None lifts a limit."""
        if max_queries is not None:
            max_queries = whole_number(max_queries, "max_queries", least=0)
        if deadline is not None and not deadline >= 0:
            raise InvalidInput(f"deadline must be a number of seconds >= 0. Got {deadline!r} instead.")
        self._limit = None if max_queries is None else self.sent + max_queries
        self._deadline = None if deadline is None else self._clock() + float(deadline)

    @property
    def remaining(self) -> int | None:
        """Rows that may still be sent; None when there is no limit."""
        return None if self._limit is None else max(0, self._limit - self.sent)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the deadline (0 when it has passed); None when there is none."""
        return None if self._deadline is None else max(0.0, self._deadline - self._clock())

    @property
    def is_late(self) -> bool:
        """Whether the deadline has passed."""
        return self._deadline is not None and self._clock() >= self._deadline

    def check_rows(self, needed: int) -> None:
        """Raise unless ``needed`` more rows may be sent."""
        if self._limit is not None and self.sent + needed > self._limit:
            raise BudgetExhausted(
                f"The budget of {self._limit:,} queries is too small: {self.sent:,} rows were sent, and the "
                f"next step needs {needed:,} more. Raise max_queries; the answers so far are kept.",
                reason="queries",
            )

    def check_time(self) -> None:
        """Raise when the time is over."""
        if self.is_late:
            raise OutOfTime(
                f"The deadline has passed, after {self.sent:,} rows. Raise deadline; what was answered so "
                "far is kept."
            )


@contextmanager
def within(deadline: float | None) -> Iterator[Budget]:
    """Let what is done inside end within ``deadline`` seconds, as far as it looks at the clock."""
    budget = Budget(time.monotonic)
    budget.reset(None, deadline)
    with time_limit(lambda: budget.seconds_left):
        yield budget
