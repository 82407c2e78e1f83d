"""Ask a target with kinks: whole lines, short lines, single places where a kink is expected, hyperplanes.

Every answer is in units of its output's spread, and kept: rows that found the units serve to fit them.

The surface of a first-layer unit is a hyperplane; that of a deeper one bends wherever it meets the surface
of a unit before it. So a kink (p, n) belongs to the first layer if there is a kink at points of the
hyperplane n . (x - p) = 0 all over the region. A random walk of +1 for each that shows one and -2 for each
that does not decides, at 5 rows for a hit and 3 for a miss. (Not every point must show it: what reads the
unit may be off there.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.shared.kinked.copies import COPIES_OF_ASKED_ROWS
from unweave.methods.shared.kinked.lines import LineNoise, LineOptions, jumps_at_kinks, on_hyperplane, scan
from unweave.networks.lifted_layers import Layer
from unweave.numerics.line_kinks import Line, LineKinks, Precision, find_kinks
from unweave.numerics.memory import require
from unweave.targets.region import NormalisedQueries, Region


@dataclass(frozen=True, kw_only=True)
class ProbeOptions:
    """What counts as a kink, as its normal, and as a whole hyperplane of kinks."""

    lines: LineOptions = field(default_factory=LineOptions)
    clear: float = 100.0
    """Errors of an answer that a second difference must exceed to be a kink."""
    halves: float = 1e-2
    """Relative error up to which a kink's second difference halves with its step."""
    worst_normal: float = 1e-6
    """Error of a normal above which it says nothing: the kink may be an accident of rounding."""
    plane_spreads: tuple[float, ...] = (2.0, 5.0, 10.0)
    """Standard deviations, in turn, of the points that are moved onto a hyperplane."""
    plane_step: float = 1e-3
    """Step across a hyperplane, relative to 1 + |x|."""
    plane_accepted: int = 5
    """Score at which a hyperplane is a surface as a whole."""
    plane_refused: int = -3
    """Score at which it is not."""
    plane_points: int = 30
    """Points after which a hyperplane in between is refused."""


@dataclass(frozen=True, eq=False)
class Kink:
    """A point of some unit's surface, with the normal of the surface there."""

    point: Array
    """(d,)"""
    normal: Array
    """(d,) of length one, up to its sign"""
    error: float
    """Estimated error of the normal."""


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

    def __init__(self, view: NormalisedQueries, spread: Array, sigma: float, options: ProbeOptions) -> None:
        self.options = options
        self._view = view
        self._spread = spread
        self._sigma = sigma
        self._level, self._growth = 1.0, 1.0
        self._points: list[Array] = []
        self._answers: list[Array] = []
        self._kept = 0
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
        """Ask for answers (n, K) at points (n, d)."""
        self._kept += points.size
        require(COPIES_OF_ASKED_ROWS * self._kept, "the rows that were asked")
        answers = self._view(points) / self._spread
        self._points.append(points)
        self._answers.append(answers)
        return answers

    def asked(self) -> tuple[Array, Array]:
        """Return all points (n, d) and answers (n, K) so far, each point once."""
        points, first = np.unique(np.concatenate(self._points), axis=0, return_index=True)
        return points, np.concatenate(self._answers)[first]

    def error_at(self, points: Array) -> Array:
        """Return the error (n,) of an answer at points (n, d): rounding grows with the terms it sums."""
        size = self._level + self._growth * np.linalg.norm(points, axis=1)
        lines = self.options.lines
        rounding = lines.rounding_errors * np.finfo(np.float64).eps
        return np.asarray(lines.noise_errors * self._sigma + rounding * size)

    def scan(self, line: Line) -> ScannedLine:
        """Find all kinks of a long line."""
        found, error = scan(self, line, LineNoise.constant(self._sigma), self.options.lines)
        self._level = max(self._level, error.start)
        self._growth = max(self._growth, error.growth)
        complete = self._noted(found).piecewise_linear and not found.unresolved
        return ScannedLine(line, found.positions, error, complete)

    def scan_between(self, first: Array, second: Array) -> ScannedLine:
        """Find all kinks between two points (d,)."""
        length = float(np.linalg.norm(second - first))
        line = Line((first + second) / 2, (second - first) / length, -length / 2, length / 2)
        positions, complete = self.kinks_near(line.start, line.direction, line.low, line.high)
        error = float(self.error_at(np.stack([first, second])).max())
        return ScannedLine(line, positions, lambda t: np.full(np.shape(t), error), complete)

    def kinks_near(self, start: Array, direction: Array, low: float, high: float) -> tuple[Array, bool]:
        """Find the kinks t of a short line start + t direction; say whether they could be told apart."""
        line = Line(start, direction, low, high)
        error = float(self.error_at(line.points(np.array([low, high]))).max())
        # In units of the line's length: the search gives up on intervals that are short against one.
        length = high - low
        scaled = Line(start, direction * length, low / length, high / length)
        found = self._noted(
            find_kinks(
                lambda t: self(scaled.points(t)),
                scaled.low,
                scaled.high,
                lambda t: np.full(np.shape(t), error),
                options=self.options.lines.kinks,
            )
        )
        return found.positions * length, found.piecewise_linear and not found.unresolved

    def kinks_with_normals(self, scanned: ScannedLine, wanted: IntArray) -> list[Kink]:
        """Measure the normals of the kinks numbered ``wanted``, as far as that can be done."""
        line = scanned.line
        jumps = jumps_at_kinks(
            self, self.region, line, scanned.positions, wanted, scanned.precision, self.options.lines
        )
        return [
            Kink(line.start + jump.position * line.direction, jump.normal, jump.error)
            for jump in jumps
            if jump.error <= self.options.worst_normal
        ]

    def have_kinks(self, points: Array, normals: Array, steps: Array) -> BoolArray:
        """Return (n,) whether there is a kink exactly at points (n, d), across normals (n, d).

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
        found = np.asarray(size > self.options.clear * self.error_at(points))
        rows = np.flatnonzero(found)
        if not len(rows):
            return found
        halves = self(np.concatenate([points[rows] + moves[rows] / 2, points[rows] - moves[rows] / 2]))
        after, before = halves.reshape(2, len(rows), -1)
        half = after + before - 2 * middle[rows]
        chosen = np.arange(len(rows)), output[rows]
        ratio = 2 * half[chosen] / full[rows][chosen]
        allowed = self.options.halves + 8 * self.error_at(points[rows]) / size[rows]
        found[rows] = np.abs(ratio - 1) <= allowed
        return found

    def are_hyperplanes(self, kinks: list[Kink], rng: np.random.Generator) -> BoolArray:
        """Return (n,) which of the kinks lie on a hyperplane that is a surface as a whole."""
        options = self.options
        scores = np.zeros(len(kinks), dtype=int)
        for number in range(options.plane_points):
            rows = np.flatnonzero((scores > options.plane_refused) & (scores < options.plane_accepted))
            if not len(rows):
                break
            anchors = np.stack([kinks[row].point for row in rows])
            normals = np.stack([kinks[row].normal for row in rows])
            spread = options.plane_spreads[number % len(options.plane_spreads)]
            points = spread * rng.standard_normal(anchors.shape)
            points -= np.einsum("nd,nd->n", points - anchors, normals)[:, None] * normals
            steps = options.plane_step * (1 + np.abs(points).max(axis=1))
            scores[rows] += np.where(self.have_kinks(points, normals, steps), 1, -2)
        return scores >= options.plane_accepted

    def with_hyperplanes(self, layer: Layer, kinks: list[Kink]) -> Layer:
        """Add the hyperplanes of kinks that the layer does not hold yet, as units of weight one."""
        for kink in sorted(kinks, key=lambda kink: kink.error):
            if not self.holds(layer, kink):
                weights = np.hstack([layer.weights, kink.normal[:, None]])
                layer = Layer(weights, np.append(layer.biases, -float(kink.normal @ kink.point)))
        return layer

    def holds(self, layer: Layer, kink: Kink) -> bool:
        """Return whether a kink is that of a unit of the layer, whose weights have length one."""
        bias = -float(kink.normal @ kink.point)
        same = on_hyperplane(layer.weights, layer.biases, kink.normal, bias, self.options.lines)
        return bool(same.any())

    def _noted(self, found: LineKinks) -> LineKinks:
        self.not_piecewise_linear |= not found.piecewise_linear
        return found
