"""How a target with kinks is asked: whole lines, short lines, and single places where a kink is expected.

Every answer is in units of its output's spread, and kept: what was asked to find the units is good enough to
fit them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.shared.kinked.line_kinks import LineKinks, Precision, find_kinks
from unweave.methods.shared.kinked.line_units import Line, jumps_at_kinks
from unweave.targets.region import NormalisedQueries, Region

_EPS = float(np.finfo(np.float64).eps)
_ERROR = 32.0  # roundings of the terms that an answer is summed from
_NOISE = 8.0  # standard deviations of the noise that an answer may be off
_CLEAR = 100.0  # errors of an answer that a second difference must exceed to be a kink
_HALVES = 1e-2  # relative: a kink's second difference halves with its step, up to its position's error
_WORST_NORMAL = 1e-6  # error from which on a normal says nothing: the kink may be an accident of rounding
_CUTS = (-4.1, -0.6, 0.7, 3.7)  # in units of sqrt(d): where the kinks of a long line are


@dataclass(frozen=True, eq=False)
class Kink:
    """A point of some unit's surface, with the normal of the surface there."""

    point: Array
    """(d,)"""
    normal: Array
    """(d,) of length one, up to its sign"""
    error: float
    """Estimated error of the normal."""
    clearance: float
    """Room to the next kink on the line where it was seen."""


@dataclass(frozen=True, eq=False)
class ScannedLine:
    """A line and its kinks."""

    line: Line
    positions: Array
    """(n,) ascending"""
    precision: Precision
    complete: bool
    """Whether all of its kinks could be told apart."""


class Probe:
    """Asks the target, in normalised inputs and units of the outputs' spread."""

    def __init__(self, view: NormalisedQueries, spread: Array, sigma: float) -> None:
        self._view = view
        self._spread = spread
        self._sigma = sigma
        self._level, self._growth = 1.0, 1.0
        self._points: list[Array] = []
        self._answers: list[Array] = []
        self.not_piecewise_linear = False

    @property
    def region(self) -> Region:
        """Where the target is asked."""
        return self._view.region

    @property
    def n_inputs(self) -> int:
        """d"""
        return self.region.n_inputs

    @property
    def sent(self) -> int:
        """Rows that were sent so far."""
        return self._view.ledger.sent

    def __call__(self, points: Array) -> Array:
        """Answers (n, K) at points (n, d)."""
        answers = self._view(points) / self._spread
        self._points.append(points)
        self._answers.append(answers)
        return answers

    def asked(self) -> tuple[Array, Array]:
        """All points (n, d) and answers (n, K) so far, each point once."""
        points, first = np.unique(np.concatenate(self._points), axis=0, return_index=True)
        return points, np.concatenate(self._answers)[first]

    def error_at(self, points: Array) -> Array:
        """(n,) error of an answer at points (n, d): rounding grows with the terms it is summed from."""
        size = self._level + self._growth * np.linalg.norm(points, axis=1)
        return np.asarray(_NOISE * self._sigma + _ERROR * _EPS * size)

    def scan(self, line: Line) -> ScannedLine:
        """All kinks of a long line."""
        ends = np.array([line.low, line.low / 2, 0.0, line.high / 2, line.high])
        answers = np.abs(self(line.points(ends))).max(axis=1)
        growth = float((np.delete(answers, 2) / np.maximum(np.abs(np.delete(ends, 2)), 1.0)).max())
        level = _NOISE * self._sigma + _ERROR * _EPS * float(answers[2])
        self._level = max(self._level, float(answers[2]))
        self._growth = max(self._growth, growth)

        def precision(t: Array) -> Array:
            return level + _ERROR * _EPS * growth * np.abs(t)

        cuts = tuple(cut for cut in np.sqrt(self.n_inputs) * np.array(_CUTS) if line.low < cut < line.high)
        found = self._find(line, precision, cuts)
        complete = found.piecewise_linear and not found.unresolved
        return ScannedLine(line, found.positions, precision, complete)

    def scan_between(self, first: Array, second: Array) -> ScannedLine:
        """All kinks between two points (d,)."""
        length = float(np.linalg.norm(second - first))
        line = Line((first + second) / 2, (second - first) / length, -length / 2, length / 2)
        positions, complete = self.kinks_near(line.start, line.direction, line.low, line.high)
        error = float(self.error_at(np.stack([first, second])).max())
        return ScannedLine(line, positions, lambda t: np.full(np.shape(t), error), complete)

    def kinks_near(self, start: Array, direction: Array, low: float, high: float) -> tuple[Array, bool]:
        """Kinks t of a short line start + t direction, and whether they could be told apart."""
        line = Line(start, direction, low, high)
        error = float(self.error_at(line.points(np.array([low, high]))).max())
        # In units of the line's length: the search gives up on intervals that are short against one.
        length = high - low
        scaled = Line(start, direction * length, low / length, high / length)
        found = self._find(scaled, lambda t: np.full(np.shape(t), error), ())
        return found.positions * length, found.piecewise_linear and not found.unresolved

    def kinks_with_normals(self, scanned: ScannedLine, wanted: IntArray) -> list[Kink]:
        """The kinks with the numbers ``wanted`` whose normals could be measured."""
        line = scanned.line
        jumps = jumps_at_kinks(self, self.region, line, scanned.positions, wanted, scanned.precision)
        return [
            Kink(line.start + jump.position * line.direction, jump.normal, jump.error, jump.clearance)
            for jump in jumps
            if jump.error <= _WORST_NORMAL
        ]

    def have_kinks(self, points: Array, normals: Array, steps: Array) -> BoolArray:
        """(n,) whether there is a kink exactly at points (n, d), across normals (n, d).

        The second difference over a step h (n,) is h times the slope's jump: it must halve with the step.
        """
        if not len(points):
            return np.zeros(0, dtype=bool)
        moves = steps[:, None] * normals
        answers = self(np.concatenate([points, points + moves, points - moves]))
        middle, after, before = answers.reshape(3, len(points), -1)
        full = after + before - 2 * middle
        output = np.argmax(np.abs(full), axis=1)
        size = np.abs(full).max(axis=1)
        found = np.asarray(size > _CLEAR * self.error_at(points))
        rows = np.flatnonzero(found)
        if not len(rows):
            return found
        halves = self(np.concatenate([points[rows] + moves[rows] / 2, points[rows] - moves[rows] / 2]))
        after, before = halves.reshape(2, len(rows), -1)
        half = after + before - 2 * middle[rows]
        chosen = np.arange(len(rows)), output[rows]
        ratio = 2 * half[chosen] / full[rows][chosen]
        allowed = _HALVES + 8 * self.error_at(points[rows]) / size[rows]
        found[rows] = np.abs(ratio - 1) <= allowed
        return found

    def _find(self, line: Line, precision: Precision, cuts: tuple[float, ...]) -> LineKinks:
        found = find_kinks(lambda t: self(line.points(t)), line.low, line.high, precision, cuts)
        self.not_piecewise_linear |= not found.piecewise_linear
        return found
