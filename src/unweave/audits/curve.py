"""The leakage curve: what an attacker knows of the weights, by queries and decimals.

Every point is a recovery of the stand-in. Same seed, same answers, same recovery: so a run that ended within
a smaller budget is that budget's run as well, and is not repeated; and what a recovery spends before it
averages is known from the first one, which tells how many rows a budget leaves for averaging.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from unweave.audits.attack import FIRST_ROWS, Attack, Plan, StandIn, Way, attack
from unweave.audits.level import Level
from unweave.errors import BudgetExhausted
from unweave.search.journal import Progress

BEYOND = 10
"""Times the largest budget: as far as the first attack at a level goes, to see where it would end."""


@dataclass(frozen=True)
class Point:
    """One attack: level, budget, and what it taught. Errors are nan where it ended without a network.

    Besides the budgets that were asked for there is one point per level at its *onset*: the budget that just
    suffices for a first network.
    """

    level: Level
    budget: int
    way: Way
    status: str
    queries: int
    """Rows asked of the stand-in"""
    parameter_error: float
    median_weight_error: float
    worst_weight_error: float
    fresh_error: float
    share_alike: float
    rows_per_parameter: float | None
    """Of the final fit, where answers were averaged"""
    message: str

    @property
    def has_network(self) -> bool:
        """Whether the attack ended with a network."""
        return not math.isnan(self.median_weight_error)


@dataclass(frozen=True)
class LevelSummary:
    """Where the attacks on one level get somewhere, in queries; None if they did not as far as was tried."""

    level: Level
    first_network: int | None
    """Spent when there is a first network"""
    exact_after: int | None
    """Spent when all parameters are exact: by bisection, or directly where answers are not coarse"""
    exact_error: float
    """Median weight error that is left then: rounding, or the target's own single precision"""
    alarm_after: int | None
    """Spent when the median weight error comes down to the alarm"""
    alarm_predicted: bool
    """Whether that figure is the square-root law's rather than a run's"""
    tried: int
    """The most that was allowed"""
    reason: str
    """Why there is no network, where there is none"""


class LeakageCurve:
    """Runs the attacks; iterating gives a `Point` or `LevelSummary` as each is done."""

    def __init__(
        self,
        stand_in: StandIn,
        levels: Sequence[Level],
        budgets: Sequence[int],
        alarm: float,
        deadline: float | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self._stand_in, self._levels, self._budgets = stand_in, levels, sorted(budgets)
        self._alarm = alarm
        self._ends = None if deadline is None else time.monotonic() + deadline
        self._progress = progress
        self._began = time.monotonic()
        self._done = 0

    def __iter__(self) -> Iterator[Point | LevelSummary]:
        for level in self._levels:
            yield from self._level(level)

    def _level(self, level: Level) -> Iterator[Point | LevelSummary]:
        reach = BEYOND * self._budgets[-1]
        averaging = None if self._stand_in.repeats(level) else FIRST_ROWS
        self._tell(level)
        first = self._attack(level, reach, averaging)
        plan = Plan.of(first.recovery, FIRST_ROWS)
        if plan is not None and averaging is None:  # who averages may go another way from the start
            plan = Plan.of(self._attack(level, reach, FIRST_ROWS).recovery, FIRST_ROWS)
        points: list[Point] = []
        onset = [] if plan is None else [plan.onset]
        for budget in sorted({*self._budgets, *onset}):
            self._tell(level, budget)
            for point in self._points(level, budget, first, plan):
                points.append(point)
                yield point
            self._done += budget in self._budgets
        yield self._summary(level, first, plan, points, reach)

    def _points(self, level: Level, budget: int, first: Attack, plan: Plan | None) -> Iterator[Point]:
        fits = first.recovery.queries <= budget
        if fits and (plan is None or first.way == "bisection"):
            yield _point(level, budget, first)
        if plan is None:
            if not fits:
                averaging = None if self._stand_in.repeats(level) else FIRST_ROWS
                yield _point(level, budget, self._attack(level, budget, averaging))
            return
        # Where the start alone exceeds the budget it will not come to averaging, whatever is asked for.
        rows = plan.averaging_within(budget) or FIRST_ROWS
        averaged = self._attack(level, budget, rows)
        network, came_so_far = averaged.recovery.network, Plan.of(averaged.recovery, rows)
        per_parameter = None
        if network is not None and came_so_far is not None:
            per_parameter = came_so_far.rows_per_unit * rows / network.n_parameters
        yield _point(level, budget, averaged, per_parameter)

    def _attack(self, level: Level, max_queries: int, averaging: float | None) -> Attack:
        left = None if self._ends is None else self._ends - time.monotonic()
        if left is not None and left <= 0:
            raise BudgetExhausted("the time was over", reason="deadline")
        result = attack(self._stand_in, level, max_queries, averaging=averaging, deadline=left)
        if self._ends is not None and time.monotonic() >= self._ends:
            # It may have been cut short by the clock instead of by its budget.
            raise BudgetExhausted("the time was over", reason="deadline")
        return result

    def _summary(
        self, level: Level, first: Attack, plan: Plan | None, points: list[Point], reach: int
    ) -> LevelSummary:
        known = first.knowledge.median_weight_error <= self._alarm
        exact = known and first.way in ("bisection", "direct")
        reached = [point.queries for point in points if point.median_weight_error <= self._alarm]
        reached += [first.recovery.queries] if known else []
        measured = min(reached, default=None)
        predicted = self._predicted(plan, points, first)
        lawful = predicted is not None and (measured is None or predicted < measured)
        has_network = first.recovery.network is not None
        return LevelSummary(
            level=level,
            first_network=(first.recovery.queries if plan is None else plan.onset) if has_network else None,
            exact_after=first.recovery.queries if exact else None,
            exact_error=first.knowledge.median_weight_error if exact else math.nan,
            alarm_after=predicted if lawful else measured,
            alarm_predicted=lawful,
            tried=reach,
            reason="" if has_network else first.recovery.message,
        )

    def _predicted(self, plan: Plan | None, points: list[Point], first: Attack) -> int | None:
        """Predict the queries to the alarm by err ~ 1 / sqrt(rows), from the averaged fit with most rows."""
        if plan is None:
            return None
        averaged = [
            (point.queries, point.median_weight_error) for point in points if point.way == "averaging"
        ]
        if first.way == "averaging":
            averaged.append((first.recovery.queries, first.knowledge.median_weight_error))
        averaged = [(queries, error) for queries, error in averaged if 0 < error < 1]
        if not averaged:
            return None
        queries, error = max(averaged)
        rows = plan.rows_within(queries) * (error / self._alarm) ** 2
        return math.ceil(plan.queries_for(rows))

    def _tell(self, level: Level, budget: int | None = None) -> None:
        if self._progress is not None:
            total = len(self._levels) * len(self._budgets)
            where = level.label if budget is None else f"{level.label}, {budget:,} queries"
            elapsed = time.monotonic() - self._began
            self._progress(Progress(where, self._done, total, "points", 0, elapsed))


def _point(level: Level, budget: int, made: Attack, rows_per_parameter: float | None = None) -> Point:
    return Point(
        level=level,
        budget=budget,
        way=made.way,
        status=made.recovery.status.name,
        queries=made.recovery.queries,
        rows_per_parameter=rows_per_parameter,
        message=made.recovery.message,
        **asdict(made.knowledge),
    )
