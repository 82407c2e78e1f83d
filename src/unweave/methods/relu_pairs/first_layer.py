"""The hyperplanes of the first hidden layer, line by line.

Every kink of a line that no known hyperplane explains gets its normal from the gradients beside it, and is
grown (`planes`). Lines without a new hyperplane end the search: each crosses nearly all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.methods.relu_pairs.features import FirstUnits
from unweave.methods.relu_pairs.planes import Kink, Plane, PlaneOptions, grow, joined
from unweave.methods.shared.kinked.evidence import KinkedEvidence
from unweave.methods.shared.kinked.line_search import coarse_line_options
from unweave.methods.shared.kinked.lines import (
    Jump,
    LineOptions,
    jumps_at_kinks,
    line_stream,
    random_line,
    scan,
)
from unweave.methods.shared.kinked.reading import Reading
from unweave.numerics.line_kinks import Line, Precision
from unweave.search import Journal
from unweave.targets.region import Region


@dataclass(frozen=True, kw_only=True)
class FirstLayerOptions:
    """How many lines are searched, and how far they reach."""

    planes: PlaneOptions = field(default_factory=PlaneOptions)
    reach: float = 100.0
    """Half length of a line without a box, in normalised inputs."""
    most_lines: int = 24
    """Lines at most."""
    dry_lines: int = 3
    """Lines without a new hyperplane that end the search."""
    dry_lines_in_box: int = 8
    """The same in a box, where a line crosses few hyperplanes."""
    explained: float = 10.0
    """Standard errors of a hyperplane within which it explains a kink."""
    same_place: float = 1e-4
    """The same distance at least, relative to 1 + |t|."""
    worst_normal: float = 0.1
    """Error of a normal above which it says nothing."""


class _NotRead(Exception):
    """A row on a line does not tell what is behind a link."""


class FirstLayer:
    """Finds hyperplanes; holds what it found at any time."""

    def __init__(
        self,
        reading: Reading,
        noise: float,
        journal: Journal,
        rng: np.random.Generator,
        options: FirstLayerOptions,
    ) -> None:
        self._reading, self._region, self._options = reading, reading.region, options
        self._precision = max(noise, float(np.finfo(np.float64).eps))
        self._journal, self._rng, self._line_rng = journal, rng, line_stream(rng)
        self._lines: LineOptions = coarse_line_options(self._precision).lines
        if reading.is_limited:
            self._lines = replace(self._lines, least_growth=1.0)
        self.planes: list[Plane] = []
        self.lines = 0
        self.rest: list[Kink] = []
        """Kinks of all lines that no hyperplane explained when they were seen."""
        self.evidence = KinkedEvidence()

    @property
    def layer(self) -> FirstUnits:
        """The hyperplanes as units of weight one, their signs open."""
        units = [plane.unit for plane in self.planes]
        weights = np.stack([normal for normal, _ in units], axis=1)
        return FirstUnits(weights, np.array([bias for _, bias in units]))

    @property
    def region(self) -> Region:
        """Where answers are read."""
        return self._region

    @property
    def is_limited(self) -> bool:
        """Whether there are rows that are not read."""
        return self._reading.is_limited

    def plane_errors(self) -> Array:
        """Return the errors (m,) of the hyperplanes, relative to 1 + |x|."""
        places = self._region.sample(16, self._rng)
        sizes = 1 + np.abs(places).max(axis=1)
        return np.array([np.median(plane.onto(places)[1] / sizes) for plane in self.planes])

    def draw_line(self) -> Line:
        """Return a random line."""
        return random_line(self._region, self._options.reach, self._line_rng, self._lines.corner)

    @property
    def error(self) -> float:
        """Typical error of a hyperplane in the region, in normalised inputs."""
        places = self._region.sample(16, self._rng)
        errors = [float(np.median(plane.onto(places)[1])) for plane in self.planes]
        return float(np.sqrt(np.mean(np.square(errors))))

    def read(self, points: Array) -> tuple[Array, Array]:
        """Return values (n, K) at points (n, d) and how far each may be off (n,)."""
        values, errors = self._reading.with_errors(points)
        lines = self._lines
        with np.errstate(invalid="ignore"):
            size = lines.rounding_errors * self._precision * np.abs(values).max(axis=1)
        return values, lines.noise_errors * errors.max(axis=1) + size

    def search(self) -> None:
        """Search lines until some in a row bring nothing new."""
        options, dry = self._options, 0
        patience = options.dry_lines_in_box if self._region.has_box else options.dry_lines
        for _ in range(options.most_lines):
            before = len(self.planes)
            self.search_line(self.draw_line())
            dry = 0 if len(self.planes) > before else dry + 1
            if dry >= patience:
                break

    def search_line(self, drawn: Line) -> None:
        """Take the hyperplanes of one more line."""
        read = self._reading.stretch(drawn)
        if read is None:
            return
        line, noise = read
        with self._journal.stage("line") as stage:
            try:
                found, precision = scan(self._ask, line, noise, self._lines)
            except _NotRead:
                return
            self.lines += 1
            self.evidence = self.evidence.with_line(self._region, line, found.positions)
            wanted = self._unexplained(line, found.positions)
            jumps = jumps_at_kinks(
                self._values, self._region, line, found.positions, wanted, precision, self._lines
            )
            stage.figures.update(kinks=len(found.positions), new=len(wanted))
        with self._journal.stage("hyperplanes") as stage:
            good = [jump for jump in jumps if jump.error <= self._options.worst_normal]
            kinks = [_kink(line, jump, precision) for jump in good]
            starts = [Plane.through(kink) for kink in kinks]
            options = self._options.planes
            grown = grow(self.read, self._region, starts, self.answer_error(), self._rng, options)
            self.planes = joined(self.planes, grown, self._region, self._rng, options)
            self.rest += [kink for kink, plane in zip(kinks, starts, strict=True) if plane not in grown]
            stage.figures.update(found=len(self.planes), grown=len(grown), tried=len(starts))

    def answer_error(self) -> float:
        """Return how far a typical answer may be off."""
        return float(self.read(self._region.sample(8, self._rng))[1].min())

    def _values(self, points: Array) -> Array:
        """Return what is read (n, K), nan where it is nothing."""
        return self._reading.with_errors(points)[0]

    def _ask(self, points: Array) -> Array:
        values = self._values(points)
        if not np.isfinite(values).all():
            raise _NotRead
        return values

    def _unexplained(self, line: Line, kinks: Array) -> IntArray:
        """Return the numbers of the kinks (n,) at none of the known hyperplanes."""
        explained = np.zeros(len(kinks), dtype=bool)
        for plane in self.planes:
            normal, bias = plane.unit
            speed = float(normal @ line.direction)
            if speed == 0:
                continue
            t = -float(normal @ line.start + bias) / speed
            error = float(plane.onto(line.points(np.array([t])))[1][0])
            allowed = self._options.explained * error / abs(speed) + self._options.same_place * (1 + abs(t))
            explained |= np.abs(kinks - t) <= allowed
        return np.flatnonzero(~explained)


def _kink(line: Line, jump: Jump, precision: Precision) -> Kink:
    """Return a kink of a line with the error of its position across its surface."""
    along = float(jump.normal @ line.direction)
    error = float(precision(np.array([jump.position]))[0])
    bend = 2 * jump.height * np.sign(along)
    position = 4 * error / float(np.abs(bend).max()) * abs(along)
    return Kink(line.start + jump.position * line.direction, jump.normal, jump.error, position, bend)
