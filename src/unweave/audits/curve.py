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
from typing import Literal

from unweave.audits.attack import FIRST_ROWS, Attack, Plan, StandIn, Way, attack
from unweave.audits.level import Level
from unweave.errors import BudgetExhausted
from unweave.search.journal import Progress

BEYOND = 10
"""Times the largest budget: as far as the first attack at a level goes, to see where it would end."""
ALIKE = 0.95
"""Share of fresh rows that a copy answers like the original from which the function counts as stolen."""
EXACT = 1e-6
"""Median relative error of the weights up to which they count as exact."""

Leak = Literal["weights", "function", "nothing"]
"""What an attack took: the weights, a working copy without them, or neither."""


@dataclass(frozen=True)
class Point:
    """One attack: level, budget, and what it taught. Errors are nan where it ended without a network.

    Besides the budgets that were asked for there is one point per level at its *onset*, the budget that just
    suffices for a first network, and one with `BEYOND` times the largest budget. An attack that ended within
    a smaller budget counts for a larger one too; `distinct` leaves out such repetitions.
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

    def leak(self, alarm: float) -> Leak:
        """Tell what the attack took, with ``alarm`` the error at which weights count as given away.

        A copy has the function if it errs by no more than the alarm, or answers `ALIKE` of the fresh rows
        like the original, to the digits that are published.
        """
        if self.median_weight_error <= alarm:
            return "weights"
        copied = self.has_network and (self.fresh_error <= alarm or self.share_alike >= ALIKE)
        return "function" if copied else "nothing"


def best_point(points: Sequence[Point], level: Level, budget: int, alarm: float) -> Point | None:
    """Return the attack that takes most from a client of ``level`` with ``budget`` queries; None if none ran.

    Whoever may ask more rows may ask fewer, and whoever is given more digits may throw them away: an attack
    with fewer queries, or on a coarser level, counts where it takes more.
    """
    if not any((point.level, point.budget) == (level, budget) for point in points):
        return None

    def strength(point: Point) -> tuple[int, bool, bool, float]:
        taken = _RANK[point.leak(alarm)]
        return taken, not point.has_network, point.level != level, point.median_weight_error

    own = [point for point in points if point.level == level and point.queries <= budget]
    coarser = [point for point in points if point.level.sigma > level.sigma and point.queries <= budget]
    return min([*own, *(point for point in coarser if point.leak(alarm) != "nothing")], key=strength)


def distinct(points: Sequence[Point]) -> list[Point]:
    """Return every attack once: the first of those on a level that ended with the same network, by the error.

    Attacks that ended without one differ by their budgets.
    """
    kept: dict[tuple[object, ...], Point] = {}
    for point in sorted(points, key=lambda point: point.queries):
        told = point.median_weight_error if point.has_network else point.budget
        kept.setdefault((point.level, point.way, point.has_network, told), point)
    return [point for point in points if any(point is other for other in kept.values())]


_RANK: dict[Leak, int] = {"weights": 0, "function": 1, "nothing": 2}


@dataclass(frozen=True)
class LevelSummary:
    """Where the attacks on one level get somewhere, in queries; None if they did not as far as was tried.

    Every count is the fewest rows that an attack of the level asked which got there.
    """

    level: Level
    first_network: int | None
    """Until there is a network"""
    function_after: int | None
    """Until the function is copied; see `Point.leak`"""
    exact_after: int | None
    """Until the median weight error is at most `EXACT`"""
    exact_error: float
    """The median weight error of that attack"""
    alarm_after: int | None
    """Until the median weight error comes down to the alarm"""
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
        self._done, self._where = 0, ""

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
        unlimited = _point(level, reach, first)
        if len(distinct([*points, unlimited])) > len(distinct(points)):
            points.append(unlimited)
            yield unlimited
        yield self._summary(level, plan, points, reach)

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
        result = attack(
            self._stand_in,
            level,
            max_queries,
            averaging=averaging,
            deadline=left,
            progress=None if self._progress is None else self._pass_on,
        )
        if self._ends is not None and time.monotonic() >= self._ends:
            # It may have been cut short by the clock instead of by its budget.
            raise BudgetExhausted("the time was over", reason="deadline")
        return result

    def _summary(self, level: Level, plan: Plan | None, points: list[Point], reach: int) -> LevelSummary:
        alarm = self._alarm
        measured = _fewest(points, lambda point: point.median_weight_error <= alarm)
        exact = _fewest(points, lambda point: point.median_weight_error <= EXACT)
        first = _fewest(points, lambda point: point.has_network)
        predicted = self._predicted(plan, points)
        lawful = predicted is not None and (measured is None or predicted < measured.queries)
        known = None if measured is None else measured.queries
        return LevelSummary(
            level=level,
            first_network=None if first is None else first.queries,
            function_after=_queries(_fewest(points, lambda point: point.leak(alarm) != "nothing")),
            exact_after=_queries(exact),
            exact_error=math.nan if exact is None else exact.median_weight_error,
            alarm_after=predicted if lawful else known,
            alarm_predicted=lawful,
            tried=reach,
            reason="" if first is not None else points[-1].message,
        )

    def _predicted(self, plan: Plan | None, points: list[Point]) -> int | None:
        """Predict the queries to the alarm by err ~ 1 / sqrt(rows), from the averaged fit with most rows.

        A prediction stays above every budget with which an attack did not get there.
        """
        averaged = [
            point for point in points if point.way == "averaging" and 0 < point.median_weight_error < 1
        ]
        if plan is None or not averaged:
            return None
        last = max(averaged, key=lambda point: point.queries)
        rows = plan.rows_within(last.queries) * (last.median_weight_error / self._alarm) ** 2
        held = [point.queries for point in averaged if point.median_weight_error > self._alarm]
        return max(math.ceil(plan.queries_for(rows)), max(held, default=0) + 1)

    def _tell(self, level: Level, budget: int | None = None) -> None:
        self._where = level.label if budget is None else f"{level.label}, {budget:,} queries"
        if self._progress is not None:
            self._pass_on(Progress("", 0, None, "", 0, 0.0))

    def _pass_on(self, inner: Progress) -> None:
        """Report the progress of one attack as that of all: one stage, for which the time left is known."""
        assert self._progress is not None
        total = len(self._levels) * len(self._budgets)
        elapsed = time.monotonic() - self._began
        told = Progress("attacks", self._done, total, f"({self._where})", inner.queries, elapsed)
        self._progress(told)


def _fewest(points: Sequence[Point], there: Callable[[Point], bool]) -> Point | None:
    """Return the point with the fewest queries that got ``there``."""
    return min((point for point in points if there(point)), key=lambda point: point.queries, default=None)


def _queries(point: Point | None) -> int | None:
    return None if point is None else point.queries


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
