"""One hidden layer of (leaky) ReLU units from queries: one long line sees every unit.

1. line: find all kinks of t -> f(x0 + t u), |t| <= 1e5 (`numerics.line_kinks`).
2. gradients: find the units behind them (`units`).
3. completeness: fit f to (|z|, x, 1) over fresh rows; while that fails, search further lines.
4. refinement: measure every unit again on its own hyperplane (`refine`), and ask rows far out in other
   directions; if these are not explained, search further lines.
5. signs: find them from the affine part (`networks.signs`), which also tells ReLU from leaky ReLU.
6. polish: Gauss-Newton on all parameters (`fit`) over the rows on both sides of every unit, already asked.

Assumed: answers precise to float64, an affine output layer. Cost: about 1.5 rows per parameter for 1 to 3,
2 for 4, nothing more. Units whose hyperplane lies beyond the line's reach (in a box: outside of it) cannot be
seen; a unit that is active wherever it was asked is part of the affine rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu.fit import (
    PolishOptions,
    affine_frame,
    fit_affine,
    fit_all,
    polish,
    polished_form,
    relative_misfit,
    worth_polishing,
)
from unweave.methods.relu.refine import RefinementOptions, refine_units
from unweave.methods.relu.units import Units, merge, units_at_kinks
from unweave.methods.shared.kinked.evidence import KinkedEvidence
from unweave.methods.shared.kinked.lines import (
    LINE_REACH,
    LineOptions,
    line_stream,
    random_line,
    scan,
    unexplained,
)
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.network import Network
from unweave.networks.signs import (
    KINKED,
    SIGN_TOLERANCE,
    SignSolution,
    negative_slope,
    solve_signs,
    to_network,
)
from unweave.numerics.line_kinks import Line
from unweave.numerics.memory import require
from unweave.numerics.sign_search import WIDEST_ENUMERATION, SignOptions
from unweave.search import Candidate, Context, GaveUp, Reason, Search
from unweave.targets.change_of_inputs import in_own_inputs

_TOLERATED_ERRORS = 1e3  # of a sign equation: far more than chance, far less than a wrong sign
_COPIES_OF_FITTED_ROWS = 5  # kept, joined, as features, and the two that least squares makes of those


class ReluReason(Reason):
    """Why no network of this class was found."""

    NOT_PIECEWISE_LINEAR = "the target is not piecewise linear: there is no end to the kinks on a line"
    FAR_ROWS_DIFFER = "rows far out differ by {misfit:.1e}: some units are nearly parallel to every line"
    NOT_ONE_LAYER = (
        "{units} units were found on lines, and {residual:.1e} of the answers' spread is not explained by "
        "one hidden layer of them: there are more layers (residual blocks and pooling count), or units that "
        "no line resolved"
    )


@dataclass(frozen=True, kw_only=True)
class ReluOptions:
    """How lines are searched, and what counts as explained."""

    lines: LineOptions = field(default_factory=LineOptions)
    refinement: RefinementOptions = field(default_factory=RefinementOptions)
    polish: PolishOptions = field(default_factory=PolishOptions)
    signs: SignOptions = field(default_factory=SignOptions)
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
    """New kinks among all of a further line that it may leave; with more, there are more layers."""
    spare_rows: int = 10
    """Rows of the completeness check beyond its unknowns."""
    spare_rows_in_box: int = 60
    """The same in a box, where units may be active on few rows."""
    wide: float = 3.0
    """Factor on every other row of the completeness check, in a region without a box."""
    far_directions: int = 4
    """Directions in which rows far out are asked."""
    explained: float = 1e-5
    """Residual of the completeness check, relative to the spread of its answers."""
    explained_far: float = 1e-7
    """Error of rows far out after refinement, relative to the largest slope."""
    negligible: float = 1e-9
    """Height, relative to the largest one, below which a unit is an accident of the fit."""
    worst_floor: float = 1e-9
    """Relative residual of the polish that may pass for rounding."""


class ReluSearch(Search):
    """Finds units on lines, then their signs, then all parameters."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        findings = self.findings
        self._options: ReluOptions = context.options
        self._region = findings.region
        self._line_rng = line_stream(self.rng)
        # All outputs in units of their spread, so that one tolerance serves them all.
        self._spread = findings.spread
        self._sigma = float((findings.noise.sigma_per_output / self._spread).max())
        self._units = Units.none(context.view.n_inputs, findings.n_outputs)
        self._error = 0.0  # of the worst refined unit
        self._network: Network | None = None
        self._evidence = KinkedEvidence()
        self._notes: list[str] = []
        self._ambiguity: str | None = None
        self._rows = np.zeros((0, context.view.n_inputs))
        self._answers = np.zeros((0, findings.n_outputs))

    def run(self) -> None:
        """Search lines until their units explain the target, then find signs and polish."""
        for _ in range(self._options.most_lines):
            form = self._search()
            self._set_unsigned(form)
            form = self._refine(form)
            far = 0.0 if self._region.has_box else self._far_misfit(form)
            if far <= self._options.explained_far:
                break
        else:
            raise GaveUp(ReluReason.FAR_ROWS_DIFFER, misfit=far)
        self._note_reach()
        self._set_unsigned(form)
        self._signs(form)
        self._compare_width()
        self._polish()

    def candidate(self) -> Candidate:
        """Return the units found so far as a network."""
        return Candidate(
            network=None
            if self._network is None
            else in_own_inputs(self._network, self._region, self._spread),
            evidence=self._evidence,
            notes=tuple(self._notes),
            ambiguity=self._ambiguity,
        )

    def so_far(self) -> str:
        """Count the units."""
        return f"{self._units.width} units had been found"

    def _set_unsigned(self, form: AbsoluteForm) -> None:
        """Keep the form with a skip matrix, in case the budget ends before the signs are known."""
        open_signs = SignSolution(np.ones(form.width), np.nan, "none", solved=False, unique=False)
        self._network = to_network(form, open_signs, self.request.activation or KINKED[0])
        self._ambiguity = "the signs of the units were not looked for: the affine rest is a skip matrix"

    def _ask(self, points: Array) -> Array:
        answers: Array = self.context.view(points) / self._spread
        return answers

    # -- lines ------------------------------------------------------------------------------------------

    def _search(self) -> AbsoluteForm:
        """Search lines until their units explain the target."""
        options, in_box, dry = self._options, self._region.has_box, 0
        self._rows_wanted(self._units)
        most, patience, enough = options.most_lines, options.dry_lines, 0
        if in_box:
            most, patience = options.most_lines_in_box, options.dry_lines_in_box
            enough = options.confirming_lines_in_box
        form: AbsoluteForm | None = None
        residual = np.inf
        for _ in range(most):
            line = random_line(self._region, options.reach, self._line_rng, options.lines.corner)
            before = self._units.width
            with self.journal.stage("line") as stage:
                found, precision = scan(self._ask, line, self._sigma, options.lines)
                stage.figures.update(kinks=len(found.positions), unresolved=found.unresolved)
            self._evidence = self._evidence.with_line(self._region, line, found.positions)
            if not found.piecewise_linear:
                raise GaveUp(ReluReason.NOT_PIECEWISE_LINEAR)
            kinks = found.positions
            if form is not None and not in_box and self._is_layered(line, kinks):
                break
            with self.journal.stage("gradients") as stage:
                new, left = units_at_kinks(
                    self._ask, self._region, line, kinks, self._units, precision, options.lines
                )
                self._units = merge(self._units, new, options.lines)
                stage.figures.update(units=self._units.width, open_kinks=left + found.unresolved)
            dry = 0 if self._units.width > before else dry + 1
            with self.journal.stage("completeness") as stage:
                form, residual = self._fit(self._units)
                stage.figures.update(residual=residual, units=self._units.width)
            if residual <= options.explained and dry >= enough:
                self._evidence = replace(self._evidence, width=self._units.width, found=self._units.width)
                return form
            if dry >= patience:
                break
        raise GaveUp(ReluReason.NOT_ONE_LAYER, units=self._units.width, residual=residual)

    def _is_layered(self, line: Line, kinks: Array) -> bool:
        """Return whether a further line has so many new kinks that they cannot all be on hyperplanes.

        A line without ends crosses the hyperplanes of all units, those of the lines before among them.
        """
        options = self._options
        new = len(unexplained(kinks, self._units.crossings(line), options.lines.same_place))
        return new > max(options.few_kinks, options.share_of_kinks * len(kinks))

    def _note_reach(self) -> None:
        if self._region.has_box:
            lines = sum(stage.name == "line" for stage in self.journal.stages)
            self._notes.append(
                f"{lines} lines through the box were searched: units whose hyperplane does not cross the "
                "box, or only a corner of it, cannot be seen"
            )
        else:
            self._notes.append(
                f"lines were searched up to {self._options.reach:.0e} times the inputs' scale: units that "
                "switch beyond that, and dead units, cannot be seen"
            )

    def _fit(self, units: Units) -> tuple[AbsoluteForm, float]:
        """Fit heights and affine part to fresh rows; return the residual relative to the spread, too."""
        options, in_box = self._options, self._region.has_box
        wanted = self._rows_wanted(units)
        more = self._region.sample(max(0, wanted - len(self._rows)), self.rng)
        if not in_box:
            more[::2] *= options.wide
        if len(more):
            self._answers = np.concatenate([self._answers, self._ask(more)])
            self._rows = np.concatenate([self._rows, more])
        return fit_all(units, self._rows, self._answers)

    def _rows_wanted(self, units: Units) -> int:
        """Return how many rows the fit of these units takes; raise if they do not fit into memory."""
        options, frame = self._options, affine_frame(units)
        slopes = self._region.n_inputs if frame is None else frame.shape[1]
        spare = options.spare_rows_in_box if self._region.has_box else options.spare_rows
        wanted = units.width + slopes + 1 + spare
        numbers = _COPIES_OF_FITTED_ROWS * wanted * self._region.n_inputs
        require(numbers, "rows that show whether units are missing")
        return wanted

    def _far_misfit(self, form: AbsoluteForm) -> float:
        """Return the largest relative error of the form at points far out, in directions that no line had.

        A unit whose hyperplane is nearly parallel to the line is missed there, and near rows may all lie on
        one side of it; far out in another direction it is beyond its kink.
        """
        directions = self.rng.standard_normal((self._options.far_directions, self._region.n_inputs))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        reach = self._options.reach
        points = np.concatenate([t * directions for t in (-reach, -np.sqrt(reach), np.sqrt(reach), reach)])
        return relative_misfit(form, points, self._ask(points))

    # -- refinement, signs, polish ------------------------------------------------------------------------

    def _refine(self, form: AbsoluteForm) -> AbsoluteForm:
        """Measure the units of the form on their own hyperplanes, and fit its affine part again."""
        options = self._options
        largest = np.abs(form.heights).max(axis=1, initial=0.0)
        alive = largest > options.negligible * largest.max(initial=0.0)
        units = replace(self._units, heights=form.heights).keep(alive)
        with self.journal.stage("refinement") as stage:
            rows = 2 * (units.weights.shape[0] + 1) * units.width
            parameters = units.weights.size + 2 * units.heights.size
            small = worth_polishing(rows * self._answers.shape[1], parameters, options.polish)
            result = refine_units(
                self._ask,
                self._region,
                units,
                float(np.finfo(np.float64).eps),
                self.rng,
                small,
                options.refinement,
            )
            self._units = units = result.units
            worst = max(self._error, float(result.error[np.isfinite(result.error)].max(initial=0.0)))
            self._error = worst
            stage.figures.update(
                refined=int(units.refined.sum()),
                units=units.width,
                least_clearance=float(units.clearance.min(initial=np.inf)),
                error=worst,
            )
            refitted = fit_affine(units, self._rows, self._answers)
            self._rows = np.concatenate([self._rows, result.points])
            self._answers = np.concatenate([self._answers, result.answers])
        self._evidence = replace(self._evidence, parameter_error_bar=worst)
        left = int((~units.refined).sum())
        if left:
            self._notes.append(
                f"{left} of {units.width} units had no room around their hyperplane to be refined in"
            )
        return refitted

    def _signs(self, form: AbsoluteForm) -> None:
        """Find the signs, and the activation for which there are any; keep the network that has them."""
        names = KINKED if self.request.activation is None else (self.request.activation,)
        signs, error, tolerance = self._options.signs, None, SIGN_TOLERANCE
        with self.journal.stage("signs") as stage:
            wide = form.width > max(WIDEST_ENUMERATION, signs.widest_branching * form.slope.size)
            if wide and self._region.n_inputs <= len(self._rows):
                # Only precise equations carry enough bits.
                polished = polished_form(form, self._rows, self._answers, self._options.polish, self.rng)
                if polished is not None:
                    form, error = polished
                    tolerance = min(tolerance, _TOLERATED_ERRORS * error)
                    stage.figures.update(equation_error=error)
            # Every activation is tried with half the effort before one gets all of it.
            half = replace(signs, lattice_seconds=signs.lattice_seconds / 2)
            tries = [(half, name) for name in names] + [(signs, names[0])] * wide
            for effort, name in tries:
                solution = solve_signs(form, negative_slope(name), tolerance, options=effort, error=error)
                if solution.solved:
                    break
            else:
                name = names[0]
            stage.figures.update(method=solution.method, residual=solution.residual, activation=name)
        self._network, self._ambiguity = to_network(form, solution, name), None
        if not solution.solved:
            self._ambiguity = (
                "the units are known up to signs, and no signs were found that explain the affine part: it "
                "is given as a skip matrix (units that are active everywhere, pairs of units on one "
                "hyperplane, a skip connection, or more units than sign search can handle"
                f"{': ' if solution.reason else ''}{solution.reason})"
            )
        elif not solution.unique:
            known = len(solution.alternatives)
            self._ambiguity = (
                f"{known + 1} sign patterns of the units fit the same function"
                if known
                else "the signs of the units fit, but others may fit as well"
            )
            for pattern in solution.alternatives:
                flipped = np.flatnonzero(pattern != solution.signs)
                self._notes.append(f"the same function with the signs of units {flipped.tolist()} reversed")

    def _polish(self) -> None:
        assert self._network is not None
        if not self._network.hidden:
            return
        with self.journal.stage("polish") as stage:
            result = polish(self._network, self._rows, self._answers, self._options.polish)
            stage.figures.update(residual=result.history[-1], steps=len(result.history) - 1)
        self._network = result.network
        size = float(np.sqrt(np.mean(self._answers**2)))
        floor = max(self._sigma, float(np.finfo(np.float64).eps) * size)
        self._evidence = replace(
            self._evidence,
            fit_history=result.history,
            fit_floor=self._options.lines.rounding_errors * floor,
            prediction_floor=min(max(result.history[-1], floor), self._options.worst_floor),
        )

    def _compare_width(self) -> None:
        told, seen = self.request.width, self._units.width
        if told is not None and told != seen:
            self._notes.append(
                f"hidden=[{told}] was said, {seen} units are what the answers show: dead units, units on "
                "one hyperplane and units that are active wherever they were asked do not count"
            )
