"""Rounded answers of a piecewise affine target, read between flips of their last digit.

A target that rounds to multiples of g answers y at x, and another multiple from where it passes y + g/2 or
y - g/2 on. Halving finds these two flips on a line through x, at t- < 0 < t+, and where nothing bends between
them

    f(x) = v- - t- (v+ - v-) / (t+ - t-),        v+, v- = y + g/2, y - g/2,

to 2^-bits of a step. Whether something bends, the next flip on either side tells: it must be as far away
again. Where none is, a kink lies between, and either side is continued from its own two flips up to where
they meet. So kinks are read as sharply as straight pieces are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.probing.noise import Noise
from unweave.targets.region import NormalisedQueries

Ask = Callable[[Array], Array]
"""Points (n, d) to answers (n,)."""


@dataclass(frozen=True, kw_only=True)
class SharpenedOptions:
    """Where flips are looked for, and how sharply."""

    bits: int = 14
    """Halvings of a step."""
    directions: int = 4
    """Random directions, of which the one along which an answer moves most is taken."""
    look: float = 30.0
    """Length of the look in each of them, in steps over the spread of the answers."""
    overshoot: float = 1.2
    """First place beyond a flip that is tried, over its likely distance at most."""
    doublings: int = 10
    """Times that this is doubled before there is no flip."""
    within: float = 8.0
    """Distance from where the next flip must be that is allowed, in errors of a flip."""
    attempts: int = 3
    """Lines through a point, one after the other, until one of them tells its value."""

    @property
    def rows_per_answer(self) -> int:
        """The answer, one in each direction, two flips at their first try, both sides of the next one."""
        return 1 + self.directions + 2 * (1 + self.bits) + 2


DEFAULT_SHARPENED_OPTIONS = SharpenedOptions()


class SharpenedQueries(NormalisedQueries):
    """A view whose answers are read between flips: nan where they are not."""

    def __init__(
        self,
        view: NormalisedQueries,
        noise: Noise,
        spread: Array,
        rng: np.random.Generator,
        options: SharpenedOptions = DEFAULT_SHARPENED_OPTIONS,
    ) -> None:
        assert noise.decimals is not None
        super().__init__(view.ledger, view.region)
        self._grid, self._spread = 10.0**-noise.decimals, spread
        self._rng, self._options = rng, options
        share = 2.0**-options.bits * np.sqrt(3)  # of the error of a rounded answer, grid / sqrt(12)
        self.noise = replace(
            noise,
            sigma=share * noise.sigma,
            sigma_per_output=share * noise.sigma_per_output,
            relative=share * noise.relative,
            decimals=None,
        )
        """The error of an answer after sharpening."""

    @property
    def half(self) -> float:
        """By how much an answer that was given may be off."""
        return self._grid / 2

    def __call__(self, u: Array, *, fresh: bool = False) -> Array:
        """Return values (n, m) at the normalised points ``u`` (n, D)."""
        rounded = super().__call__(u, fresh=fresh)
        values = np.full(rounded.shape, np.nan)
        for output, spread in enumerate(self._spread):

            def ask(points: Array, output: int = output) -> Array:
                return np.asarray(NormalisedQueries.__call__(self, points)[:, output])

            for _ in range(self._options.attempts):
                left = np.flatnonzero(np.isnan(values[:, output]))
                if len(left):
                    values[left, output] = self._read(ask, u[left], rounded[left, output], float(spread))
        return values

    def _read(self, ask: Ask, points: Array, levels: Array, spread: float) -> Array:
        """Return values (n,) at points (n, d) that answer ``levels`` (n,)."""
        ways = self._ways(ask, points, levels, spread)
        up, down = ways.flip(ways.points, levels, 1.0), ways.flip(ways.points, levels, -1.0)
        rise = np.where(up.values > down.values, 1.0, -1.0)
        near = up.found & down.found & (up.values != down.values)
        values = np.full(len(points), np.nan)
        rows = np.flatnonzero(near)
        if not len(rows):
            return values
        ways, up, down, rise = ways.at(rows), up.at(rows), down.at(rows), rise[rows]
        length = up.places - down.places
        straight = ways.has_flip(up.places + length, up.values + rise * self._grid)
        left = np.flatnonzero(~straight)
        straight[left] = ways.at(left).has_flip(
            (down.places - length)[left], (down.values - rise * self._grid)[left]
        )
        inside = down.values - down.places * (up.values - down.values) / length
        bent = np.flatnonzero(~straight)
        if len(bent):
            inside[bent] = ways.at(bent).around_kink(up.at(bent), down.at(bent), rise[bent])
        values[rows] = inside
        return values

    def _ways(self, ask: Ask, points: Array, levels: Array, spread: float) -> _Ways:
        """Choose a line through each of the points (n, d)."""
        options = self._options
        drawn = self._rng.standard_normal((options.directions, *points.shape))
        drawn /= np.linalg.norm(drawn, axis=2, keepdims=True)
        step = options.look * self._grid / spread
        places = (points + step * drawn).reshape(-1, points.shape[1])
        moved = np.abs(ask(places).reshape(len(drawn), -1) - levels) / step
        best = np.argmax(moved, axis=0), np.arange(len(points))
        return _Ways(ask, points, drawn[best], moved[best], self._grid, options)


@dataclass(frozen=True, eq=False)
class _Flips:
    """Flips on lines, (n,) each."""

    places: Array
    """t"""
    values: Array
    """f there"""
    found: BoolArray

    def at(self, rows: IntArray) -> _Flips:
        return _Flips(self.places[rows], self.values[rows], self.found[rows])


@dataclass(frozen=True, eq=False)
class _Ways:
    """Lines x + t u."""

    ask: Ask
    points: Array
    """(n, d)"""
    directions: Array
    """(n, d)"""
    slopes: Array
    """(n,) about, without sign"""
    grid: float
    options: SharpenedOptions

    def at(self, rows: IntArray) -> _Ways:
        return replace(
            self, points=self.points[rows], directions=self.directions[rows], slopes=self.slopes[rows]
        )

    def flip(self, starts: Array, levels: Array, side: float) -> _Flips:
        """Return where answers first leave ``levels`` (n,) from ``starts`` (n, d) on, towards one side."""
        options, half = self.options, self.grid / 2
        low, values = np.zeros(len(starts)), np.full(len(starts), np.nan)
        moving = self.slopes > 0
        high = options.overshoot * self.grid / np.where(moving, self.slopes, 1.0)
        rows = np.flatnonzero(moving)

        def passed(rows: IntArray, at: Array) -> BoolArray:
            change = self.ask(starts[rows] + side * at[:, None] * self.directions[rows]) - levels[rows]
            beyond = np.abs(change) > half
            values[rows[beyond]] = levels[rows[beyond]] + np.sign(change[beyond]) * half
            return np.asarray(beyond)

        for _ in range(options.doublings):
            if not len(rows):
                break
            rows = rows[~passed(rows, high[rows])]
            low[rows], high[rows] = high[rows], 2 * high[rows]
        found = moving & ~np.isnan(values)
        rows = np.flatnonzero(found)
        for _ in range(options.bits if len(rows) else 0):
            middle = (low[rows] + high[rows]) / 2
            beyond = passed(rows, middle)
            high[rows[beyond]], low[rows[~beyond]] = middle[beyond], middle[~beyond]
        return _Flips(side * (low + high) / 2, values, found)

    @property
    def _errors(self) -> Array:
        """How far (n,) a flip may be from where it must be."""
        halved = 2.0**-self.options.bits * self.options.overshoot * self.grid / self.slopes
        ulps = np.finfo(np.float64).eps * np.abs(self.points).max(axis=1)
        return np.asarray(self.options.within * np.maximum(halved, ulps))

    def has_flip(self, at: Array, values: Array) -> BoolArray:
        """Return whether answers pass ``values`` (n,) at t = ``at`` (n,), to within an error."""
        if not len(at):
            return np.zeros(0, dtype=bool)
        ends = [at + side * self._errors for side in (-1, 1)]
        before, after = (self.ask(self.points + t[:, None] * self.directions) - values for t in ends)
        close = np.maximum(np.abs(before), np.abs(after)) < self.grid
        return np.asarray((before * after < 0) & close)

    def around_kink(self, up: _Flips, down: _Flips, rise: Array) -> Array:
        """Return values (n,) at t = 0 where one kink lies between two flips; nan if it does not."""
        sides = []
        for side, flips in ((1.0, up), (-1.0, down)):
            skipped = side * self._errors
            starts = self.points + (flips.places + skipped)[:, None] * self.directions
            beyond = self.flip(starts, flips.values + side * rise * self.grid / 2, side)
            with np.errstate(all="ignore"):
                slopes = (beyond.values - flips.values) / (beyond.places + skipped)
            sides.append((slopes, flips.values - slopes * flips.places))
        (after, right), (before, left) = sides
        with np.errstate(all="ignore"):
            kink = (left - right) / (after - before)
            between = (down.places <= kink) & (kink <= up.places)
        return np.where(between, np.where(kink > 0, left, right), np.nan)
