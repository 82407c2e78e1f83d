"""Ask a target with kinks: whole lines, short lines, single places where a kink is expected, hyperplanes.

Every answer is in units of its output's spread, and kept: rows that found the units serve to fit them. Once
the first layer is known, inputs only act through y = Q^T x with a basis Q of what its units read; from then
on points are given in y (`reduce`).

Gradients are measured in the subspace in which they can lie: that of the known layers in the region of the
point, or all that any gradient has shown so far. The slope along the line checks them; where it does not
agree, they are measured in all directions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.shared.kinked.copies import COPIES_OF_ASKED_ROWS
from unweave.methods.shared.kinked.lines import LineNoise, LineOptions, scan
from unweave.methods.shared.surfaces.off_sides import Slope
from unweave.numerics.clock import check
from unweave.numerics.line_kinks import Line, LineKinks, Precision, find_kinks
from unweave.numerics.memory import require
from unweave.targets.region import NormalisedQueries, Region


@dataclass(frozen=True, kw_only=True)
class ProbeOptions:
    """What counts as a kink, as its normal, and as a whole hyperplane of kinks."""

    lines: LineOptions = field(default_factory=LineOptions)
    clear: float = 100.0
    """Errors of an answer that a second difference must exceed to be a kink."""
    dull: float = 4.0
    """Errors of an answer up to which it does not move: what reads a unit is off there."""
    halves: float = 1e-2
    """Relative error up to which a kink's second difference halves with its step."""
    worst_normal: float = 1e-6
    """Error of a normal above which it says nothing: the kink may be an accident of rounding."""
    new_direction: float = 1e-5
    """Part of a gradient, relative to its size, that is no error of the directions seen before it."""
    slope_step: float = 1e-4
    """Step of a gradient beside a plane, relative to 1 + |x|."""
    plane_spreads: tuple[float, ...] = (2.0, 5.0, 10.0)
    """Standard deviations, in turn, of the points that are moved onto a hyperplane."""
    plane_step: float = 1e-3
    """Step across a hyperplane, relative to 1 + |x|."""
    plane_hits: int = 5
    """Kinks at which a hyperplane is a surface as a whole ..."""
    plane_miss: float = 0.0
    """... and kinks more for each point without one. What reads a unit may be off there: the deeper the
    layers, the more often; but where units are few, surfaces of deeper ones are flat far and wide."""
    plane_misses: tuple[float, float] = (4.0, 1.5)
    """Points without a kink at which it is not: so many, and so many more per kink."""
    plane_excused: bool = True
    """Whether points where the answers do not move at all count neither way."""
    plane_points: int = 20
    """Points after which a hyperplane in between is refused."""

    @classmethod
    def strict(cls) -> ProbeOptions:
        """Return options with which a hyperplane must show a kink nearly everywhere."""
        return cls(plane_miss=2.0, plane_misses=(1.5, 0.5), plane_excused=False, plane_points=30)


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


@dataclass(eq=False)
class KinkPool:
    """Lines that were searched, and the kinks on them whose normals were measured."""

    lines: list[ScannedLine] = field(default_factory=list)
    kinks: list[Kink] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Sightings:
    """What single places showed."""

    seen: BoolArray
    """(n,) whether there is a kink exactly there"""
    dull: BoolArray
    """(n,) whether the answers do not move at all, so that a kink cannot be seen"""

    @property
    def missed(self) -> BoolArray:
        """(n,) whether there is no kink although one would be seen."""
        return ~self.seen & ~self.dull


class Probe:
    """Asks the target, in normalised inputs and units of the outputs' spread."""

    def __init__(self, view: NormalisedQueries, spread: Array, sigma: float, options: ProbeOptions) -> None:
        self.options = options
        self._view, self._spread, self._sigma = view, spread, sigma
        self._level, self._growth = 1.0, 1.0
        self._frame: Array | None = None
        self._points: list[Array] = []
        self._answers: list[Array] = []
        self._kept = 0
        self.visible = np.zeros((view.n_inputs, 0))
        """(d, r) directions in which answers were seen to move, orthonormal."""
        self.slopes: list[Slope] = []
        """Gradients that were measured in all inputs."""
        self._seen_all = False
        self.not_piecewise_linear = False

    @property
    def region(self) -> Region:
        """Where the target is asked."""
        return self._view.region

    @property
    def frame(self) -> Array:
        """Q (d, r), orthonormal: points y stand for x = Q y."""
        return np.eye(self._view.n_inputs) if self._frame is None else self._frame

    @property
    def n_inputs(self) -> int:
        """Dimension of the points."""
        return int(self._view.n_inputs if self._frame is None else self._frame.shape[1])

    @property
    def n_outputs(self) -> int:
        """K"""
        return len(self._spread)

    @property
    def rows_kept(self) -> int:
        """Number of the rows that are kept."""
        return sum(map(len, self._points))

    @property
    def is_reduced(self) -> bool:
        """Whether points have fewer dimensions than the target has inputs."""
        return self._frame is not None

    def reduce(self, frame: Array) -> None:
        """Give points in y from now on; earlier rows are forgotten, as the frame is only measured."""
        self._frame = frame
        self._points, self._answers, self._kept = [], [], 0
        self.visible = np.eye(frame.shape[1])

    def __call__(self, points: Array) -> Array:
        """Ask for answers (n, K) at points (n, r)."""
        self._kept += points.size
        require(COPIES_OF_ASKED_ROWS * self._kept, "the rows that were asked")
        answers = self.ask_inputs(points if self._frame is None else points @ self._frame.T)
        self._points.append(points)
        self._answers.append(answers)
        return answers

    def ask_inputs(self, inputs: Array) -> Array:
        """Ask for answers (n, K) at normalised inputs (n, d), which are not kept."""
        return np.asarray(self._view(inputs) / self._spread)

    def asked(self) -> tuple[Array, Array]:
        """Return all points (n, r) and answers (n, K) that are kept."""
        return np.concatenate(self._points), np.concatenate(self._answers)

    def given_before(self) -> tuple[Array, Array]:
        """Return points (n, r) and answers (n, K) of the whole run that were kept as evidence.

        Other searches have asked most of them; they are not among those of `asked`.
        """
        inputs, answers = self._view.ledger.witnesses.rows()
        return self.region.to_normalised(inputs) @ self.frame, answers / self._spread

    def error_at(self, points: Array) -> Array:
        """Return the error (n,) of an answer at points (n, d): rounding grows with the terms it sums."""
        size = self._level + self._growth * np.linalg.norm(points, axis=1)
        lines = self.options.lines
        rounding = lines.rounding_errors * np.finfo(np.float64).eps
        return np.asarray(lines.noise_errors * self._sigma + rounding * size)

    # -- lines --------------------------------------------------------------------------------------------

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

    # -- normals ------------------------------------------------------------------------------------------

    def kinks_with_normals(
        self, scanned: ScannedLine, wanted: IntArray, basis_at: Callable[[Array], Array] | None = None
    ) -> list[Kink]:
        """Measure the normals of the kinks numbered ``wanted``, as far as that can be done.

        ``basis_at`` gives the subspace (d, r) in which gradients at a point lie.
        """
        if not len(wanted):
            return []
        line, positions, options = scanned.line, scanned.positions, self.options.lines
        beyond = max(options.least_end, options.end_share * float(positions[-1] - positions[0]))
        outer = max(line.low, positions[0] - beyond), min(line.high, positions[-1] + beyond)
        ends = np.concatenate([outer[:1], positions, outer[1:]])
        beside = np.unique(np.concatenate([wanted, wanted + 1]))
        middle, length = ((ends[1:] + ends[:-1]) / 2)[beside], np.diff(ends)[beside]
        gradients, errors = self._gradients(scanned, middle, length, basis_at)
        index = {segment: row for row, segment in enumerate(beside)}
        found = []
        for kink in wanted:
            before, after = gradients[index[kink]], gradients[index[kink + 1]]
            if before is None or after is None:
                continue
            left, values, _ = np.linalg.svd(after - before, full_matrices=False)
            if values[0] == 0 or (len(values) > 1 and values[1] > options.rank_one * values[0]):
                continue
            error = np.hypot(errors[index[kink]], errors[index[kink + 1]]) / values[0]
            if error <= self.options.worst_normal:
                found.append(Kink(line.start + positions[kink] * line.direction, left[:, 0], float(error)))
        return found

    def _gradients(
        self,
        scanned: ScannedLine,
        middle: Array,
        length: Array,
        basis_at: Callable[[Array], Array] | None,
    ) -> tuple[list[Array | None], Array]:
        """Return gradients (d, K) at places (n,) of a line, None where the check fails, and errors (n,)."""
        options, line = self.options.lines, scanned.line
        base = line.points(middle)
        values = self(np.concatenate([base, line.points(middle + options.chord * length)]))
        values, ahead = values[: len(base)], values[len(base) :]
        slopes = (ahead - values) / (options.chord * length)[:, None]
        precision = scanned.precision(middle)
        found: list[Array | None] = [None] * len(base)
        errors = np.full(len(base), np.inf)
        for number, point in enumerate(base):
            check()
            steps = options.step * length[number]
            for _ in range(options.tries):
                for basis in self._bases(point, basis_at):
                    moved = point + steps * basis.T
                    gradient = basis @ ((self(moved) - values[number]) / steps)
                    error = precision[number] / steps
                    off = np.abs(line.direction @ gradient - slopes[number]).max()
                    if off <= options.check_errors * error:
                        found[number] = gradient
                        errors[number] = error * np.sqrt(basis.shape[1])
                        self._note_directions(gradient)
                        if self._frame is None:
                            self.slopes.append(Slope(point, gradient, float(errors[number])))
                        break
                if found[number] is not None:
                    break
                steps *= options.smaller
        return found, errors

    def look_at_slopes(self, points: Array, rng: np.random.Generator) -> None:
        """Measure the gradients at points (n, d), where no kink is near.

        Steps in a few directions tell it; one more, in a random direction, must agree with them.
        """
        options = self.options.lines
        for point in points:
            check()
            step, other = (
                self.options.slope_step * (1 + float(np.abs(point).max())),
                rng.standard_normal(len(point)),
            )
            for basis in self._bases(point, None):
                moved = point + step * np.vstack([np.zeros(len(point)), basis.T, other])
                answers = self(moved)
                gradient = basis @ (answers[1:-1] - answers[0]) / step
                error = float(self.error_at(point[None])[0]) / step
                off = np.abs(answers[-1] - answers[0] - step * other @ gradient).max() / step
                if off <= options.check_errors * error * np.linalg.norm(other):
                    self.slopes.append(Slope(point, gradient, error * np.sqrt(basis.shape[1])))
                    self._note_directions(gradient)
                    break

    def _bases(self, point: Array, basis_at: Callable[[Array], Array] | None) -> list[Array]:
        """Return subspaces in which a gradient is measured, the smallest first."""
        everything = np.eye(len(point))
        if basis_at is None:
            return [self.visible, everything] if self._seen_all else [everything]
        few = basis_at(point)
        return [everything] if few.shape[1] >= len(point) else [few, everything]

    def _note_directions(self, gradient: Array) -> None:
        """Extend the visible directions by those of a gradient (d, K)."""
        if self.visible.shape[1] >= len(gradient):
            self._seen_all = False
            return
        rest = gradient - self.visible @ (self.visible.T @ gradient)
        size = float(np.linalg.norm(gradient))
        left, values, _ = np.linalg.svd(rest, full_matrices=False)
        new = left[:, values > self.options.new_direction * size]
        self.visible = np.hstack([self.visible, new])[:, : len(gradient)]
        self._seen_all = not new.shape[1]  # what brings nothing new may be the last there is

    # -- single places ------------------------------------------------------------------------------------

    def have_kinks(self, points: Array, normals: Array, steps: Array) -> Sightings:
        """Look for a kink exactly at points (n, d), across normals (n, d).

        The second difference over a step h (n,) is h times the slope's jump: it must halve with the step.
        """
        if not len(points):
            return Sightings(np.zeros(0, dtype=bool), np.zeros(0, dtype=bool))
        moves = steps[:, None] * normals
        answers = self(np.concatenate([points, points + moves, points - moves]))
        middle, after, before = answers.reshape(3, len(points), -1)
        errors = self.error_at(points)
        dull = np.abs(after - before).max(axis=1) <= self.options.dull * errors
        full = after + before - 2 * middle
        output = np.argmax(np.abs(full), axis=1)
        size = np.abs(full).max(axis=1)
        found = np.asarray(size > self.options.clear * errors)
        rows = np.flatnonzero(found)
        if len(rows):
            halves = self(np.concatenate([points[rows] + moves[rows] / 2, points[rows] - moves[rows] / 2]))
            after, before = halves.reshape(2, len(rows), -1)
            half = after + before - 2 * middle[rows]
            chosen = np.arange(len(rows)), output[rows]
            ratio = 2 * half[chosen] / full[rows][chosen]
            found[rows] = np.abs(ratio - 1) <= self.options.halves + 8 * errors[rows] / size[rows]
        return Sightings(found, dull & ~found)

    def are_hyperplanes(self, kinks: list[Kink], rng: np.random.Generator) -> BoolArray:
        """Return (n,) which of the kinks lie on a hyperplane that is a surface as a whole."""
        options = self.options
        hits, misses = np.zeros(len(kinks)), np.zeros(len(kinks))
        least, more = options.plane_misses

        def accepted() -> BoolArray:
            return np.asarray(hits >= options.plane_hits + options.plane_miss * misses)

        for number in range(options.plane_points):
            rows = np.flatnonzero(~accepted() & (misses < least + more * hits))
            if not len(rows):
                break
            anchors = np.stack([kinks[row].point for row in rows])
            normals = np.stack([kinks[row].normal for row in rows])
            spread = options.plane_spreads[number % len(options.plane_spreads)]
            points = spread * rng.standard_normal(anchors.shape)
            points -= np.einsum("nd,nd->n", points - anchors, normals)[:, None] * normals
            steps = options.plane_step * (1 + np.abs(points).max(axis=1))
            sightings = self.have_kinks(points, normals, steps)
            hits[rows] += sightings.seen
            misses[rows] += sightings.missed if options.plane_excused else ~sightings.seen
        return accepted()

    def _noted(self, found: LineKinks) -> LineKinks:
        self.not_piecewise_linear |= not found.piecewise_linear
        return found
