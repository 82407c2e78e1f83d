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
from unweave.numerics.clock import check

Values = Callable[[Array], Array]
"""t (n,) -> g(t) (n, K)"""
Precision = Callable[[Array], Array]
"""t (n,) -> error (n,) of a value at t, largest over the outputs"""


@dataclass(frozen=True, kw_only=True)
class KinkOptions:
    """How kinks are told from straight pieces; shares are of an interval's length."""

    window: float = 0.005
    """Share over which a slope is measured."""
    largest_window: float = 0.1
    """Share above which a window, left from a longer interval, is measured again."""
    shorter: float = 0.03
    """Factor on a window that may contain a kink."""
    shortest_window: float = 1e-5
    """Share below which a window is not shortened any more."""
    clear: float = 8.0
    """Errors of a value that a deviation must exceed to count."""
    least_offset: float = 1e-6
    """Share that e takes at least: t* is never known better."""
    offset_errors: float = 30.0
    """Errors of t* that e takes at least."""
    shortest: float = 1e-8
    """Length, relative to 1 + |t|, below which an interval is given up."""
    longest: float = 10.0
    """Length, relative to 1 + |t|, up to which one kink is told from two close together."""
    free_rows: int = 3000
    """Values without any kink after which the function counts as not piecewise linear."""
    rows_per_kink: int = 60
    """Values that every kink found adds to these; a kink takes 7 to 9."""
    most_kinks: int = 20_000
    """Kinks that add any."""


DEFAULT_KINK_OPTIONS = KinkOptions()


@dataclass(frozen=True, eq=False)
class Line:
    """x0 + t u for low <= t <= high."""

    start: Array
    """x0 (d,)"""
    direction: Array
    """u (d,)"""
    low: float
    high: float

    def points(self, t: Array) -> Array:
        """Return the points (n, d) at t (n,)."""
        return np.asarray(self.start + t[:, None] * self.direction)


@dataclass(frozen=True, eq=False)
class LineKinks:
    """What was found on a line."""

    positions: Array
    """(n,) ascending."""
    unresolved: int
    """Intervals that were given up as too short: two kinks or more too close together."""
    piecewise_linear: bool
    """False if the search was stopped because there was no end to the kinks."""
    places: Array
    """(n,) where values were asked, ascending."""

    @property
    def rows(self) -> int:
        """Values asked."""
        return len(self.places)


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
    options: KinkOptions

    @property
    def length(self) -> float:
        return self.right.t - self.left.t

    @property
    def tolerance(self) -> float:
        """Error of an end line at the other end."""
        return self.options.clear * self.error * (1 + self.length / min(self.left.window, self.right.window))

    @property
    def bend(self) -> Array:
        return self.left.slope - self.right.slope

    def is_straight(self) -> bool:
        """Return whether slopes and values agree."""
        left, right = self.left, self.right
        misses = np.abs(right.value - left.value - left.slope * self.length).max()
        return not self.bends() and bool(misses < self.tolerance)

    def bends(self) -> bool:
        """Return whether the slopes at the ends differ."""
        return bool(np.abs(self.bend).max() * self.length >= self.tolerance)

    def meeting_point(self) -> float | None:
        """Return t*, if it lies inside."""
        if not self.bends():
            return None
        apart = self.right.value - self.right.slope * self.length - self.left.value
        step = float(apart @ self.bend / (self.bend @ self.bend))
        return self.left.t + step if 0 < step < self.length else None

    def window_at(self, t: float) -> _End | None:
        """Return the end whose window reaches t, if that can be shortened."""
        for end in (self.left, self.right):
            near = abs(t - end.t) <= 1.1 * end.window  # t* has an error itself
            if near and end.window > self.options.shortest_window * self.length:
                return end
        return None

    def offset(self, t: float) -> float:
        """Return e for the test of one kink at t."""
        options = self.options
        error = self.tolerance / np.abs(self.bend).max()
        wanted = max(options.offset_errors * error, options.least_offset * self.length)
        return float(min(wanted, 0.4 * min(t - self.left.t, self.right.t - t)))

    def place_to_split(self, t: float | None) -> float:
        """Return a place beside t*, or near the middle; it varies with the depth."""
        spread = (0.618 * self.depth + 0.3) % 1  # multiples of the golden ratio spread evenly
        if t is not None and 0.02 < (t - self.left.t) / self.length < 0.98:  # else one half is nearly all
            after, before = self.right.t - t, t - self.left.t
            return t + (after if after > before else -before) * (0.04 + 0.05 * spread)
        return self.left.t + self.length * (0.35 + 0.3 * spread)


def find_kinks(
    values: Values,
    low: float,
    high: float,
    precision: Precision,
    cuts: tuple[float, ...] = (),
    options: KinkOptions = DEFAULT_KINK_OPTIONS,
) -> LineKinks:
    """Find all kinks of g = ``values`` on [low, high].

    ``precision`` gives the error of a value; whatever is smaller than a few of them counts as straight.
    ``cuts``, ascending, are places inside where the interval is split before anything else: kinks that
    cancel each other outside of a short stretch are only seen from within it.

    Example
    -------
    >>> hats = lambda t: np.abs(t[:, None] - np.array([[0.3, 2.0]])) @ np.ones((2, 1))
    >>> find_kinks(hats, -1e3, 1e3, lambda t: 1e-14 * (1 + np.abs(t))).positions.round(9)
    array([0.3, 2. ])
    """
    return _Search(values, precision, options).run(low, high, cuts)


class _Search:
    def __init__(self, values: Values, precision: Precision, options: KinkOptions) -> None:
        self._values, self._precision, self._options = values, precision, options
        self._kinks: list[float] = []
        self._places: list[float] = []
        self._unresolved = 0

    def run(self, low: float, high: float, cuts: tuple[float, ...]) -> LineKinks:
        window = self._options.window * (high - low)
        first = self._ask([low, low + window, high - window, high])
        left = _End(low, first[0], first[1], window, 1.0)
        right = _End(high, first[3], first[2], window, -1.0)
        pending = [self._interval(left, right, 0)]
        for cut in cuts:
            pending += self._split([(pending.pop(), cut)])
        while pending and len(self._places) <= self._most_rows():
            check()
            pending = self._generation(pending)
        places = np.sort(np.array(self._places))
        return LineKinks(np.sort(np.array(self._kinks)), self._unresolved, not pending, places)

    def _most_rows(self) -> int:
        counted = min(len(self._kinks), self._options.most_kinks)
        return self._options.free_rows + self._options.rows_per_kink * counted

    def _generation(self, pending: list[_Interval]) -> list[_Interval]:
        """Settle what can be settled; return what remains."""
        ends = [(end, piece.length) for piece in pending for end in (piece.left, piece.right)]
        options = self._options
        long = [(end, length) for end, length in ends if end.window > options.largest_window * length]
        self._measure([(end, options.window * length) for end, length in long])
        again: list[tuple[_Interval, _End]] = []
        tests: list[tuple[_Interval, float]] = []
        splits: list[tuple[_Interval, float]] = []
        for interval in pending:
            check()
            if interval.is_straight():
                continue
            if interval.length < options.shortest * (1 + abs(interval.left.t)):
                self._unresolved += 1
                continue
            t = interval.meeting_point()
            end = None if t is None else interval.window_at(t)
            if t is None:
                splits.append((interval, interval.place_to_split(None)))
            elif end is not None:
                again.append((interval, end))
            elif interval.length > options.longest * (1 + abs(t)):
                splits.append((interval, interval.place_to_split(t)))
            else:
                tests.append((interval, t))
        splits += self._test(tests)
        self._measure([(end, options.shorter * end.window) for _, end in again])
        return [interval for interval, _ in again] + self._split(splits)

    def _measure(self, ends: list[tuple[_End, float]]) -> None:
        """Measure slopes over the given windows."""
        answers = self._ask([end.t + end.inwards * window for end, window in ends])
        for (end, window), value in zip(ends, answers, strict=True):
            check()
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
            size = float(bend @ bend)
            step = float(apart @ bend) / size if size > 0 else np.inf
            # Errors of bends that hardly stand out of them may lead anywhere.
            self._kinks.append(t + step if before <= t + step <= after else t)
        return splits

    def _split(self, splits: list[tuple[_Interval, float]]) -> list[_Interval]:
        """Return both halves of each interval."""
        window = self._options.window
        windows = [(window * (t - whole.left.t), window * (whole.right.t - t)) for whole, t in splits]
        pairs = list(zip(splits, windows, strict=True))
        points = [place for (_, t), (before, after) in pairs for place in (t - before, t, t + after)]
        answers = self._ask(points).reshape(len(splits), 3, -1 if splits else 1)
        halves = []
        for ((interval, t), (before, after)), values in zip(pairs, answers, strict=True):
            value_before, value, value_after = values
            end, start = _End(t, value, value_before, before, -1.0), _End(t, value, value_after, after, 1.0)
            halves.append(self._interval(interval.left, end, interval.depth + 1))
            halves.append(self._interval(start, interval.right, interval.depth + 1))
        return halves

    def _interval(self, left: _End, right: _End, depth: int) -> _Interval:
        errors = self._precision(np.array([left.t, right.t]))
        return _Interval(left, right, depth, float(errors.max()), self._options)

    def _ask(self, t: list[float]) -> Array:
        if not t:
            return np.zeros((0, 1))
        self._places += t
        return self._values(np.array(t))
