"""All breakpoints of a piecewise linear function g: [low, high] -> R^K, from few values.

An interval keeps the value and the one-sided slope at both ends; the slope comes from a *window*, a short
step into the interval. With t* the point where the two end lines meet, it is

- straight, if the slopes agree and one end line runs through the other end;
- one kink, at t*, if g(t* - e) lies on the left end line and g(t* + e) on the right one. (g(t*) alone proves
  nothing: with several kinks, t* may lie beyond all of them and still be on both lines.);
- otherwise split beside t*. (At t* itself both halves would look straight in the long run.)

All intervals of one generation are asked in one call. A window that contains t* may contain a kink and is
shortened. Cost: 7 to 9 values per kink, and about 20 more for every factor 1e5 by which the interval is
longer than the part where the kinks are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array

_WINDOW = 0.005  # of the interval's length
_LARGEST_WINDOW = 0.1  # of the interval's length: longer ones are measured again
_SHORTER = 0.03  # factor for a window that may contain a kink
_SHORTEST_WINDOW = 1e-5  # of the interval's length
_IN_WINDOW = 1.1
_CLEAR = 8.0  # errors of a value that a deviation must exceed to count
_LEAST_OFFSET, _OFFSET_ERRORS = 1e-6, 30.0  # of e: in interval lengths, and in errors of t*
_OFFSET_SHARE = 0.4  # of the way from t* to the nearer end that e may take
_INNER = 0.02  # share of the interval at either end where t* is no good place to split
_BESIDE, _BESIDE_SPREAD = 0.04, 0.05  # share of the longer side by which a split misses t*
_MIDDLE, _MIDDLE_SPREAD = 0.35, 0.3  # where an interval without t* is split
_GOLDEN = 0.618  # fractions of depth * this spread evenly
_SHORTEST = 1e-8  # interval, relative to 1 + |t|, that is given up
_LONGEST = 10.0  # interval, relative to 1 + |t|, in which one kink is told from two close together
_FREE_ROWS, _ROWS_PER_KINK, _MOST_KINKS = 3000, 60, 20_000  # beyond, the function is not piecewise linear

Values = Callable[[Array], Array]
"""t (n,) -> g(t) (n, K)"""
Precision = Callable[[Array], Array]
"""t (n,) -> error (n,) of a value at t, largest over the outputs"""


@dataclass(frozen=True, eq=False)
class LineKinks:
    """What was found on a line."""

    positions: Array
    """(n,) ascending."""
    unresolved: int
    """Intervals that were given up as too short: two kinks or more too close together."""
    piecewise_linear: bool
    """False if the search was stopped because there was no end to the kinks."""
    rows: int
    """Values asked."""


@dataclass
class _End:
    """One end of an interval; the window reaches into it."""

    t: float
    value: Array
    neighbour: Array
    """The value at the other end of the window."""
    window: float
    inwards: float
    """1 for a left end, -1 for a right one."""

    @property
    def slope(self) -> Array:
        return self.inwards * (self.neighbour - self.value) / self.window


@dataclass
class _Interval:
    left: _End
    right: _End
    depth: int
    error: float
    """Of a value inside."""

    @property
    def length(self) -> float:
        return self.right.t - self.left.t

    @property
    def tolerance(self) -> float:
        """Error of an end line at the other end."""
        return _CLEAR * self.error * (1 + self.length / min(self.left.window, self.right.window))

    @property
    def bend(self) -> Array:
        return self.left.slope - self.right.slope

    def is_straight(self) -> bool:
        """Whether slopes and values agree."""
        left, right = self.left, self.right
        misses = np.abs(right.value - left.value - left.slope * self.length).max()
        return not self.bends() and bool(misses < self.tolerance)

    def bends(self) -> bool:
        """Whether the slopes at the ends differ."""
        return bool(np.abs(self.bend).max() * self.length >= self.tolerance)

    def meeting_point(self) -> float | None:
        """t*, if it lies inside."""
        if not self.bends():
            return None
        apart = self.right.value - self.right.slope * self.length - self.left.value
        step = float(apart @ self.bend / (self.bend @ self.bend))
        return self.left.t + step if 0 < step < self.length else None

    def window_at(self, t: float) -> _End | None:
        """The end whose window reaches t, if it can be shortened."""
        for end in (self.left, self.right):
            if abs(t - end.t) <= _IN_WINDOW * end.window and end.window > _SHORTEST_WINDOW * self.length:
                return end
        return None

    def offset(self, t: float) -> float:
        """e for the test of one kink at t."""
        wanted = max(_OFFSET_ERRORS * self.tolerance / np.abs(self.bend).max(), _LEAST_OFFSET * self.length)
        return float(min(wanted, _OFFSET_SHARE * min(t - self.left.t, self.right.t - t)))

    def place_to_split(self, t: float | None) -> float:
        """Beside t*, or near the middle."""
        spread = (_GOLDEN * self.depth + 0.3) % 1
        if t is not None and _INNER < (t - self.left.t) / self.length < 1 - _INNER:
            after, before = self.right.t - t, t - self.left.t
            side = after if after > before else -before
            return t + side * (_BESIDE + _BESIDE_SPREAD * spread)
        return self.left.t + self.length * (_MIDDLE + _MIDDLE_SPREAD * spread)


def find_kinks(
    values: Values, low: float, high: float, precision: Precision, cuts: tuple[float, ...] = ()
) -> LineKinks:
    """All kinks of g = ``values`` on [low, high].

    ``precision`` gives the error of a value; whatever is smaller than a few of them counts as straight.
    ``cuts``, ascending, are places inside where the interval is split before anything else: kinks that
    cancel each other outside of a short stretch are only seen from within it.

    Example
    -------
    >>> hats = lambda t: np.abs(t[:, None] - np.array([[0.3, 2.0]])) @ np.ones((2, 1))
    >>> find_kinks(hats, -1e3, 1e3, lambda t: 1e-14 * (1 + np.abs(t))).positions.round(9)
    array([0.3, 2. ])
    """
    return _Search(values, precision).run(low, high, cuts)


class _Search:
    def __init__(self, values: Values, precision: Precision) -> None:
        self._values = values
        self._precision = precision
        self._rows = 0
        self._kinks: list[float] = []
        self._unresolved = 0

    def run(self, low: float, high: float, cuts: tuple[float, ...]) -> LineKinks:
        window = _WINDOW * (high - low)
        first = self._ask([low, low + window, high - window, high])
        left = _End(low, first[0], first[1], window, 1.0)
        right = _End(high, first[3], first[2], window, -1.0)
        pending = [self._interval(left, right, 0)]
        for cut in cuts:
            pending += self._split([(pending.pop(), cut)])
        while pending and self._rows <= _FREE_ROWS + _ROWS_PER_KINK * min(len(self._kinks), _MOST_KINKS):
            pending = self._generation(pending)
        return LineKinks(np.sort(np.array(self._kinks)), self._unresolved, not pending, self._rows)

    def _generation(self, pending: list[_Interval]) -> list[_Interval]:
        """Settle what can be settled; return what remains."""
        ends = [(end, piece.length) for piece in pending for end in (piece.left, piece.right)]
        long = [(end, _WINDOW * length) for end, length in ends if end.window > _LARGEST_WINDOW * length]
        self._measure(long)
        again: list[tuple[_Interval, _End]] = []
        tests: list[tuple[_Interval, float]] = []
        splits: list[tuple[_Interval, float]] = []
        for interval in pending:
            if interval.is_straight():
                continue
            if interval.length < _SHORTEST * (1 + abs(interval.left.t)):
                self._unresolved += 1
                continue
            t = interval.meeting_point()
            end = None if t is None else interval.window_at(t)
            if t is None:
                splits.append((interval, interval.place_to_split(None)))
            elif end is not None:
                again.append((interval, end))
            elif interval.length > _LONGEST * (1 + abs(t)):
                splits.append((interval, interval.place_to_split(t)))
            else:
                tests.append((interval, t))
        splits += self._test(tests)
        self._measure([(end, _SHORTER * end.window) for _, end in again])
        return [interval for interval, _ in again] + self._split(splits)

    def _measure(self, ends: list[tuple[_End, float]]) -> None:
        """Measure slopes over the given windows."""
        answers = self._ask([end.t + end.inwards * window for end, window in ends])
        for (end, window), value in zip(ends, answers, strict=True):
            end.neighbour, end.window = value, window

    def _test(self, tests: list[tuple[_Interval, float]]) -> list[tuple[_Interval, float]]:
        """Settle intervals with one kink at t; return the others with the place to split them."""
        offsets = [interval.offset(t) for interval, t in tests]
        around = [side for (_, t), e in zip(tests, offsets, strict=True) for side in (t - e, t + e)]
        answers = self._ask(around)
        splits = []
        for number, (interval, t) in enumerate(tests):
            before, after = around[2 * number : 2 * number + 2]
            value_before, value_after = answers[2 * number], answers[2 * number + 1]
            left, right = interval.left, interval.right
            off_left = np.abs(value_before - left.value - left.slope * (before - left.t)).max()
            off_right = np.abs(value_after - right.value - right.slope * (after - right.t)).max()
            if max(off_left, off_right) >= interval.tolerance:
                splits.append((interval, interval.place_to_split(t)))
                continue
            # The long chords on both sides give the position with the smallest error, at no cost.
            slope = (value_before - left.value) / (before - left.t)
            next_slope = (right.value - value_after) / (right.t - after)
            bend = slope - next_slope
            apart = (value_after + next_slope * (t - after)) - (value_before + slope * (t - before))
            self._kinks.append(t + float(apart @ bend / (bend @ bend)))
        return splits

    def _split(self, splits: list[tuple[_Interval, float]]) -> list[_Interval]:
        """Both halves of each interval."""
        points: list[float] = []
        for interval, t in splits:
            before, after = _WINDOW * (t - interval.left.t), _WINDOW * (interval.right.t - t)
            points += [t - before, t, t + after]
        answers = self._ask(points).reshape(len(splits), 3, -1 if splits else 1)
        halves = []
        for (interval, t), (value_before, value, value_after) in zip(splits, answers, strict=True):
            before, after = _WINDOW * (t - interval.left.t), _WINDOW * (interval.right.t - t)
            end, start = _End(t, value, value_before, before, -1.0), _End(t, value, value_after, after, 1.0)
            halves.append(self._interval(interval.left, end, interval.depth + 1))
            halves.append(self._interval(start, interval.right, interval.depth + 1))
        return halves

    def _interval(self, left: _End, right: _End, depth: int) -> _Interval:
        errors = self._precision(np.array([left.t, right.t]))
        return _Interval(left, right, depth, float(errors.max()))

    def _ask(self, t: list[float]) -> Array:
        if not t:
            return np.zeros((0, 1))
        self._rows += len(t)
        return self._values(np.array(t))
