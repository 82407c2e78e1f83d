"""Units of one hidden layer from kinks on lines, up to their signs.

1. line: find all kinks of t -> z(x0 + t u) (`numerics.line_kinks`).
2. gradients: find the units behind them (`units`).
3. completeness: fit z to (|z_i|, x, 1) over fresh rows; while that fails, search further lines.
4. refinement: measure every unit again on its own hyperplane (`refine`), and ask rows far out in other
   directions; if these are not explained, search further lines.

z is what `reading` reads of the answers: behind a link a line is followed as far as they tell it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.kinked.absolute_fit import affine_frame, fit_affine, fit_all, relative_misfit
from unweave.methods.shared.kinked.evidence import KinkedEvidence
from unweave.methods.shared.kinked.lines import (
    LINE_REACH,
    LineOptions,
    line_stream,
    random_line,
    scan,
    unexplained,
)
from unweave.methods.shared.kinked.reading import LARGEST_ERROR, Reading
from unweave.methods.shared.kinked.refine import RefinementOptions, refine_units
from unweave.methods.shared.kinked.units import Units, merge, units_at_kinks
from unweave.networks.absolute_form import AbsoluteForm
from unweave.numerics.line_kinks import KinkOptions, Line
from unweave.numerics.memory import require
from unweave.search import GaveUp, Journal, Reason
from unweave.search.request import VERDICT_ROWS

_SPARING_REACH = 1e4  # a line that is ten times shorter takes a tenth fewer rows
_SPARING_STEP = 1e-3  # of a segment between two kinks: what precision this loses, the final fit brings back
_COPIES_OF_FITTED_ROWS = 5  # kept, joined, as features, and the two that least squares makes of those


class LineReason(Reason):
    """Why no network of this class was found."""

    NOT_READ = "answers near the ends of their range hide what is behind a {link} nearly everywhere"
    NOT_PIECEWISE_LINEAR = "the target is not piecewise linear: there is no end to the kinks on a line"
    FAR_ROWS_DIFFER = "rows far out differ by {misfit:.1e}: some units are nearly parallel to every line"
    NOT_ONE_LAYER = (
        "{units} units were found on lines, and {residual:.1e} of the answers' spread is not explained by "
        "one hidden layer of them: there are more layers (residual blocks and pooling count), or units that "
        "no line resolved"
    )


@dataclass(frozen=True, kw_only=True)
class LineSearchOptions:
    """How lines are searched, and what counts as explained."""

    coarse: bool = False
    """Whether answers are too coarse to follow lines far, or to see all units on one."""
    sparing: bool = False
    """Whether rows are few: all that were asked on lines are fitted, and nothing is measured again."""
    lines: LineOptions = field(default_factory=LineOptions)
    refinement: RefinementOptions = field(default_factory=RefinementOptions)
    reach: float = LINE_REACH
    """Half length of a line without a box, in normalised inputs."""
    most_lines: int = 8
    """Lines that are searched at most; also searches that rows far out may send back to the start."""
    most_lines_in_box: int = 400
    """The same in a box, where one line crosses few hyperplanes."""
    dry_lines: int = 4
    """Lines without a new unit after which no more are searched."""
    dry_lines_in_box: int = 40
    """The same in a box."""
    confirming_lines_in_box: int = 10
    """Lines in a box that must bring nothing new, even where all rows are explained."""
    few_kinks: int = 3
    """New kinks on a further line without ends that one hidden layer may always leave."""
    share_of_kinks: float = 0.25
    """New kinks among all of a further line that it may leave; with more, there are more layers. In a box:
    crossings of known hyperplanes at which lines may have no kink, among all of them."""
    fewest_crossings_in_box: int = 30
    """Crossings from which on that share says something."""
    missed_in_box: float = 1e-3
    """Distance of a crossing to the next kink, over the length of the line, at which it has none."""
    spare_rows: int = 10
    """Rows of the completeness check beyond its unknowns."""
    spare_rows_in_box: int = 60
    """The same in a box, where units may be active on few rows."""
    most_short_lines: int = 40
    """Lines that are searched where one is followed over a part of its length."""
    dry_short_lines: int = 4
    """Those of them without a new unit after which no more are searched."""
    worthwhile: float = 0.0
    """Ratio of residuals after and before a line, up to which it has brought something. Answers that are too
    coarse show two units as one where their kinks are close together, and other lines tell them apart, ..."""
    idle_lines: int = 0
    """... so that as many lines that bring nothing are searched though all is explained, ..."""
    crowded: int = 20
    """... if a line has more kinks than this."""
    most_units_per_kink: float = 4.0
    """Units over kinks on a short line, beyond which units are not those that lines cross."""
    dry_rounds: int = 1
    """Rounds of lines and refinement without a new unit after which short lines are given up."""
    times_typical: float | None = None
    """Error, over the typical one, up to which a row on a line is read: where errors are larger at one end,
    weak kinks are hidden all along. None: as long as it tells anything."""
    drawn_lines: int = 64
    """Lines of which the one is searched that is likely to be read farthest, behind a link."""
    most_draws: int = 6
    """Times that rows of the completeness check are drawn, where some are not read."""
    wide: float = 3.0
    """Factor on every other row of the completeness check, in a region without a box."""
    far_directions: int = 4
    """Directions in which rows far out are asked."""
    far_steps: int = 11
    """Rows per direction of which the farthest that are read count, behind a link."""
    explained: float = 1e-5
    """Residual of the completeness check, relative to the spread of its answers."""
    explained_far: float = 1e-7
    """Error of rows far out after refinement, relative to the largest slope."""
    settled: float = 30.0
    """Residual of refined units over the error behind a link, above which some are missing."""
    worse_in_places: float = 10.0
    """Error of what is read behind a link where units are measured, over its typical error."""
    weak: float = 1e-6
    """Height, relative to the largest one, up to which a unit must be met again to count."""
    negligible: float = 1e-9
    """Height, relative to the largest one, below which a unit is an accident of the fit."""
    kept_rows: float = 2e11
    """Rows of refinement times parameters squared up to which all are kept, for a fit of all parameters."""


_Options = TypeVar("_Options", bound=LineSearchOptions)


class _NotRead(Exception):
    """A row on a line does not tell what is behind a link."""


class UnitsOnLines:
    """Finds units; holds what it found at any time."""

    def __init__(
        self,
        reading: Reading,
        journal: Journal,
        rng: np.random.Generator,
        options: LineSearchOptions,
        on_form: Callable[[AbsoluteForm], None],
        told: int | None = None,
        known: AbsoluteForm | None = None,
        through: Array | None = None,
    ) -> None:
        self._told = told
        self.known = known
        """Units that need not be searched for: lines lead through what they leave."""
        self._drawn = 0  # rows of the completeness check
        self._crossed = self._missed = (
            0  # known hyperplanes on lines in a box, and those without a kink there
        )
        self._through = [] if through is None else list(through)
        self._reading, self._region, self._options = reading, reading.region, options
        self._journal, self._rng, self._line_rng = journal, rng, line_stream(rng)
        self._on_form = on_form
        lines = options.lines
        # Lines are chosen for equal answers, or known units leave little: elsewhere it is a spread per scale.
        if reading.is_limited or known is not None:
            slope = self._region.n_inputs**-0.5 if options.coarse else 1.0  # the usual one, or the steepest
            lines = replace(lines, least_growth=slope)
        self._line_options = lines
        self._error = 0.0  # of the worst refined unit
        outputs = len(reading.spread)
        self.units = Units.none(self._region.n_inputs, outputs)
        self.evidence = KinkedEvidence()
        self.notes: list[str] = []
        self.residual = np.inf
        """What the units leave of fresh rows, relative to the spread of these."""
        self.left_out = 0
        """Weak units that were seen on a line and not met again: accidents, or too weak to be measured."""
        self.rows = np.zeros((0, self._region.n_inputs))
        """(n, d) rows that were read, on both sides of every unit once all are refined."""
        self.answers = np.zeros((0, outputs))
        """(n, K) what was read there."""
        self._on_lines: list[tuple[Array, Array, Array]] = []

    @property
    def every_unit(self) -> tuple[Array, Array]:
        """Weights (d, m) and biases (m,) of all units, those known first."""
        units = self.units if self.known is None else Units.of(self.known).followed_by(self.units)
        return units.weights, units.biases

    @property
    def options(self) -> LineSearchOptions:
        """How lines are searched."""
        return self._options

    @property
    def far_rows(self) -> tuple[Array, Array, Array]:
        """Rows (n, d) on coarse lines, what was read there (n, K), and its error (n,)."""
        none = self.rows[:0], self.answers[:0], np.zeros(0)
        points, values, errors = (np.concatenate(each) for each in zip(none, *self._on_lines, strict=True))
        return self._with_rounding(points, values, errors)

    def read_far_out(self, count: int, reach: float) -> tuple[Array, Array, Array]:
        """Read ``count`` rows in all directions, up to ``reach`` far out; see `far_rows`."""
        points = self._region.sample(count, self._rng)
        farthest = reach / points.shape[1] ** 0.5
        points *= np.geomspace(1.0, max(farthest, 1.0), count)[:, None]
        values, errors = self._reading.with_errors(points)
        return self._with_rounding(points, values, errors.max(axis=1))

    def _with_rounding(self, points: Array, values: Array, errors: Array) -> tuple[Array, Array, Array]:
        """Return the rows that were read, with errors that grow far out."""
        read = np.isfinite(values).all(axis=1)
        # Rounding grows with the terms that an answer is summed from, behind a link, too.
        distance = np.linalg.norm(points, axis=1) / points.shape[1] ** 0.5
        growing = self._reading.error * np.maximum(1.0, distance)
        return points[read], values[read], np.maximum(errors, growing)[read]

    def run(self) -> AbsoluteForm:
        """Search lines until their units explain what is read; tell ``on_form`` of every form on the way."""
        options, dry = self._options, 0
        for _ in range(options.most_lines):
            before = self.units.width
            form = self.search()
            self._on_form(form)
            form = self._refine(form)
            far = 0.0 if self._region.has_box or self._spares_checks else self._far_misfit(form)
            dry = 0 if self.units.width > before else dry + 1
            given_up = dry >= options.dry_rounds and self._is_short
            if far <= options.explained_far and (given_up or not self._lacks_weak_units(form)):
                break
        else:
            raise GaveUp(LineReason.FAR_ROWS_DIFFER, misfit=far)
        form = self._better_fit(self._without_accidents(form))
        left = int((~self.units.refined).sum())
        if left and not self._options.sparing:
            self.notes.append(
                f"{left} of {self.units.width} units had no room around their hyperplane to be refined in"
            )
        self._note_reach()
        self._on_form(form)
        return form

    @property
    def _is_short(self) -> bool:
        """Whether lines are followed over a part of their length, and do not show all units."""
        return self._options.coarse or self._reading.is_limited

    @property
    def _spares_checks(self) -> bool:
        """Whether the units are as many as was told, and rows too few to look for more before the verdict."""
        return self._options.sparing and self.units.width == self._told

    def _read_line(self, points: Array) -> Array:
        """Read rows on a line; keep them for the fit where rows are few."""
        values, errors = self._reading.with_errors(points)
        if self._options.coarse:
            self._on_lines.append((points, values, errors.max(axis=1)))
        if self._options.sparing:
            self.rows = np.concatenate([self.rows, points])
            self.answers = np.concatenate([self.answers, values])
        return self._left_of(values, points)

    def _left_of(self, values: Array, points: Array) -> Array:
        """Return what known units leave of ``values`` (n, K) at ``points`` (n, d)."""
        return values if self.known is None else values - self.known(points)

    def _explained(self) -> Units:
        """Return the units whose kinks are no news: those found, and those known, which may leave errors."""
        return self.units if self.known is None else self.units.followed_by(Units.of(self.known))

    def _ask_on_line(self, points: Array) -> Array:
        values = self._read_line(points)
        if self._reading.is_limited and not np.isfinite(values).all():
            raise _NotRead
        return values

    def search(self) -> AbsoluteForm:
        """Search lines until their units, as they are measured there, explain the target."""
        options, in_box, dry = self._options, self._region.has_box, 0
        self._wanted(self.units)
        most, patience, enough = options.most_lines, options.dry_lines, 0
        if in_box:
            most, patience = options.most_lines_in_box, options.dry_lines_in_box
            enough = options.confirming_lines_in_box
        elif self._is_short:
            most, patience = options.most_short_lines, options.dry_short_lines
        form: AbsoluteForm | None = None
        least, idle = np.inf, 0
        for _ in range(most):
            drawn = self._draw_line(self._whole(form))
            before = self.units.width
            with self._journal.stage("line") as stage:
                read = self._reading.stretch(drawn, self._largest_error)
                if read is None:
                    continue
                line, noise = read
                try:
                    found, precision = scan(self._ask_on_line, line, noise, self._line_options)
                except _NotRead:
                    continue
                stage.figures.update(kinks=len(found.positions), unresolved=found.unresolved)
            self.evidence = self.evidence.with_line(self._region, line, found.positions)
            if not found.piecewise_linear:
                raise GaveUp(LineReason.NOT_PIECEWISE_LINEAR)
            kinks = found.positions
            if form is not None and not self._is_short and self._is_layered(line, kinks):
                break
            if self._are_accidents(len(kinks)):
                break  # hardly any unit is met again: their normals are wrong
            with self._journal.stage("gradients") as stage:
                new, left = units_at_kinks(
                    self._read_line,
                    self._region,
                    line,
                    kinks,
                    self._explained(),
                    precision,
                    options.lines,
                    found.places if options.sparing else None,
                )
                self.units = merge(self.units, new, options.lines)
                stage.figures.update(units=self.units.width, open_kinks=left + found.unresolved)
            dry = 0 if self.units.width > before else dry + 1
            with self._journal.stage("completeness") as stage:
                form, self.residual = self._fit(self.units)
                stage.figures.update(residual=self.residual, units=self.units.width)
            idle = 0 if self.residual <= options.worthwhile * least else idle + 1
            least = min(least, self.residual)
            told = idle >= options.idle_lines or len(kinks) <= options.crowded
            if self.residual <= options.explained and dry >= enough and told:
                self.evidence = replace(self.evidence, width=self.units.width, found=self.units.width)
                return form
            if dry >= patience:
                break
        raise GaveUp(LineReason.NOT_ONE_LAYER, units=self.units.width, residual=self.residual)

    def _are_accidents(self, kinks: int) -> bool:
        """Whether units are far more than the kinks of a coarse line; weak ones are not met on each."""
        most = self._options.most_units_per_kink * max(kinks, 1)
        return self._options.coarse and self.known is None and self.units.width > most

    def _whole(self, form: AbsoluteForm | None) -> AbsoluteForm | None:
        """Return ``form`` with what is known."""
        if self.known is None or form is None:
            return form or self.known
        return self.known.joined(form)

    @property
    def _largest_error(self) -> float:
        factor = self._options.times_typical
        return LARGEST_ERROR if factor is None else self._reading.times_typical(factor)

    def _draw_line(self, form: AbsoluteForm | None) -> Line:
        """Draw a line; behind a link, the one of many that ``form`` says is read over the longest stretch.

        Level lines, along which the form does not change at first, lead farthest.
        """
        options = self._options
        many = 1 if form is None or not self._reading.is_limited else options.drawn_lines
        draw = partial(random_line, self._region, options.reach, self._line_rng, options.lines.corner)
        lines = [draw() for _ in range(many)]
        if self._through:  # a point at which something is missing, whose kink is not far then
            start = self._through.pop(0)
            lines = [replace(line, start=start) for line in lines]
        if form is None or many == 1:
            return lines[0]
        lines[::2] = [_levelled(line, form) for line in lines[::2]]
        t = np.geomspace(1.0, options.reach, options.far_steps)
        is_read = partial(self._reading.is_read, largest=self._largest_error)
        sides = [[is_read(form(line.points(way * t))) for line in lines] for way in (-1, 1)]
        steps_read = np.minimum.accumulate(np.array(sides), axis=2).sum(axis=(0, 2))
        return lines[int(np.argmax(steps_read))]

    def _is_layered(self, line: Line, kinks: Array) -> bool:
        """Return whether a further line has so many new kinks that they cannot all be on hyperplanes.

        A line without ends crosses the hyperplanes of all units, those of the lines before among them. In a
        box it crosses a part of them, and has a kink at every crossing unless surfaces are bent.
        """
        options = self._options
        if self._region.has_box:
            inside = self.units.crossings(line)
            inside = inside[(inside > line.low) & (inside < line.high)]
            reach = options.missed_in_box * (line.high - line.low)
            self._crossed += len(inside)
            self._missed += int((np.abs(inside[:, None] - kinks).min(axis=1, initial=np.inf) > reach).sum())
            often = self._crossed >= options.fewest_crossings_in_box
            return often and self._missed > options.share_of_kinks * self._crossed
        new = len(unexplained(kinks, self.units.crossings(line), options.lines.same_place))
        return new > max(options.few_kinks, options.share_of_kinks * len(kinks))

    def _note_reach(self) -> None:
        if self._reading.is_limited:
            self.notes.append(
                f"lines were searched as far as answers behind the {self._reading.link.name} are read: units "
                "that switch only beyond that, and dead units, cannot be seen"
            )
        elif self._region.has_box:
            lines = sum(stage.name == "line" for stage in self._journal.stages)
            self.notes.append(
                f"{lines} lines through the box were searched: units whose hyperplane does not cross the "
                "box, or only a corner of it, cannot be seen"
            )
        else:
            self.notes.append(
                f"lines were searched up to {self._options.reach:.0e} times the inputs' scale: units that "
                "switch beyond that, and dead units, cannot be seen"
            )

    def _fit(self, units: Units) -> tuple[AbsoluteForm, float]:
        """Fit heights and affine part to fresh rows; return the residual relative to the spread, too."""
        options, in_box = self._options, self._region.has_box
        wanted = self._wanted(units)
        for _ in range(options.most_draws):
            kept = self._drawn if options.sparing else len(self.rows)
            more = self._region.sample(max(0, wanted - kept), self._rng)
            if not len(more):
                break
            if not in_box:
                more[::2] *= options.wide
            answers = self._left_of(self._reading(more), more)
            read = np.isfinite(answers).all(axis=1)
            self.answers = np.concatenate([self.answers, answers[read]])
            self.rows = np.concatenate([self.rows, more[read]])
            self._drawn += int(read.sum())
        return fit_all(units, self.rows, self.answers)

    def _wanted(self, units: Units) -> int:
        """Return how many rows the fit of these units takes; raise if they do not fit into memory."""
        options, frame = self._options, affine_frame(units)
        slopes = self._region.n_inputs if frame is None else frame.shape[1]
        spare = options.spare_rows_in_box if self._region.has_box else options.spare_rows
        wanted = units.width + slopes + 1 + spare
        if options.sparing:  # they also make up for gradients between kinks that are close together
            fewest = 0 if self._spares_checks else spare
            left = wanted if self._reading.rows_left is None else self._reading.rows_left - VERDICT_ROWS
            wanted = min(wanted, max(fewest, self._drawn + left))
        numbers = _COPIES_OF_FITTED_ROWS * wanted * self._region.n_inputs
        require(numbers, "rows that show whether units are missing")
        return wanted

    def _far_misfit(self, form: AbsoluteForm) -> float:
        """Return the largest relative error of the form at points far out, in directions that no line had.

        A unit whose hyperplane is nearly parallel to the line is missed there, and near rows may all lie on
        one side of it; far out in another direction it is beyond its kink.
        """
        directions = self._rng.standard_normal((self._options.far_directions, self._region.n_inputs))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        reach = self._options.reach
        far = [reach, np.sqrt(reach)]
        if self._reading.is_limited:  # as far as can be read
            far = list(np.geomspace(1.0, reach, self._options.far_steps))
        points = np.concatenate([t * directions for t in (*(-t for t in far), *far[::-1])])
        answers = self._reading(points)
        read = np.isfinite(answers).all(axis=1)
        return relative_misfit(form, points[read], answers[read]) if read.any() else 0.0

    def _lacks_weak_units(self, form: AbsoluteForm) -> bool:
        """Return whether refined units leave more than errors of what is read, where lines are short.

        Trained networks have units that weight decay has all but removed: short lines miss some, and rows at
        the ends of a line, which would show them, are not read.
        """
        return self._is_short and self._leaves_much(form)

    def _refine(self, form: AbsoluteForm) -> AbsoluteForm:
        """Measure the units of the form on their own hyperplanes, and fit its affine part again."""
        options = self._options
        largest = np.abs(form.heights).max(axis=1, initial=0.0)
        alive = largest > options.negligible * largest.max(initial=0.0)
        units = replace(self.units, heights=form.heights).keep(alive)
        if options.sparing:
            self.units = units
            return fit_all(units, self.rows, self.answers)[0]
        with self._journal.stage("refinement") as stage:
            rows = 2 * (units.weights.shape[0] + 1) * units.width
            parameters = units.weights.size + 2 * units.heights.size
            small = rows * self.answers.shape[1] * parameters**2 <= options.kept_rows
            result = refine_units(
                self._reading,
                self._region,
                units,
                self._rounding,
                self._rng,
                small,
                options.refinement,
                (lambda points: self._reading.is_read(form(points))) if self._reading.is_limited else None,
            )
            self.units = units = result.units
            worst = max(self._error, float(result.error[np.isfinite(result.error)].max(initial=0.0)))
            self._error = worst
            stage.figures.update(
                refined=int(units.refined.sum()),
                units=units.width,
                least_clearance=float(units.clearance.min(initial=np.inf)),
                error=worst,
            )
            refitted = fit_affine(units, self.rows, self.answers)
            read = np.isfinite(result.answers).all(axis=1)
            self.rows = np.concatenate([self.rows, result.points[read]])
            self.answers = np.concatenate([self.answers, result.answers[read]])
        self.evidence = replace(self.evidence, parameter_error_bar=worst)
        return refitted

    def _better_fit(self, form: AbsoluteForm) -> AbsoluteForm:
        """Return ``form``, or the one with heights fitted to all rows where that leaves less of them."""
        if not self._leaves_much(form):
            return form
        other = fit_all(self.units, self.rows, self.answers)[0]
        return min(form, other, key=self._left_by)

    @property
    def _rounding(self) -> float:
        """Error of what is read relative to its size; behind a link it is larger in places."""
        precision = self._options.lines.precision
        if not self._reading.is_limited:
            return precision
        return max(precision, self._options.worse_in_places * self._reading.error)

    def _leaves_much(self, form: AbsoluteForm) -> bool:
        """Return whether ``form`` leaves more of the rows than errors of what is read."""
        return self._left_by(form) > self._options.settled * self._reading.error

    def _left_by(self, form: AbsoluteForm) -> float:
        return float(np.sqrt(np.mean((form(self.rows) - self.answers) ** 2)))

    def _without_accidents(self, form: AbsoluteForm) -> AbsoluteForm:
        """Leave out weak units that were not met again on their own hyperplane."""
        largest = np.abs(form.heights).max(axis=1, initial=0.0)
        weak = largest <= self._options.weak * largest.max(initial=0.0)
        accidents = weak & ~self.units.refined
        if not accidents.any():
            return form
        self.left_out = int(accidents.sum())
        self.units = self.units.keep(~accidents)
        return fit_affine(self.units, self.rows, self.answers)


def sparing_line_options(options: _Options) -> _Options:
    """Return ``options`` for few rows: a line is searched less far out, and gradients are taken in small
    steps, which seldom cross a unit.
    """
    lines = replace(options.lines, step=min(options.lines.step, _SPARING_STEP))
    return replace(options, sparing=True, reach=min(options.reach, _SPARING_REACH), lines=lines)


def _levelled(line: Line, form: AbsoluteForm) -> Line:
    """Turn a line so that the form does not change along it at its start."""
    gradients = form.gradient(line.start)
    basis = np.linalg.qr(gradients)[0][:, : np.linalg.matrix_rank(gradients)]
    if basis.shape[1] >= len(line.direction):
        return line
    direction = line.direction - basis @ (basis.T @ line.direction)
    return replace(line, direction=direction / np.linalg.norm(direction))


def coarse_line_options(precision: float) -> LineSearchOptions:
    """Return options for answers that are rounded by ``precision`` relative to their spread.

    Windows and steps are long, so that slopes stand out of the rounding; kinks that are too close together
    for that are seen on other lines.
    """
    kinks = KinkOptions(
        window=0.1,
        largest_window=0.4,
        shorter=0.3,
        shortest_window=0.02,
        clear=3.0,
        least_offset=1e-4,
        offset_errors=2.0,
        shortest=1e-5,
    )
    lines = LineOptions(
        kinks=kinks,
        precision=precision,
        rounding_errors=2.0,
        noise_errors=3.0,
        step=0.2,
        smaller=0.4,
        check_errors=5.0,
        rank_one=0.1,
        same_direction=2e-3,
        same_bias=0.03,
        same_place=1e-3,
    )
    return LineSearchOptions(
        coarse=True,
        lines=lines,
        reach=100.0,
        explained=3e-3,
        worthwhile=0.7,
        idle_lines=2,
        spare_rows=100,
        most_short_lines=16,
    )


def finer_line_options(options: LineSearchOptions) -> LineSearchOptions:
    """Return coarse ``options`` that see weaker kinks and closer ones: between long windows, and with fewer
    errors to spare. What is no unit, values tell.
    """
    kinks = replace(
        options.lines.kinks, window=0.2, largest_window=0.45, shorter=0.3, shortest_window=0.02, clear=1.5
    )
    lines = replace(
        options.lines, kinks=kinks, noise_errors=1.5, rounding_errors=1.0, step=0.1, check_errors=2.0
    )
    return replace(options, lines=lines, times_typical=5.0)
