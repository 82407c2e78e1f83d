"""One hidden layer of (leaky) ReLU units from queries: one long line sees every unit.

1. line: all kinks of t -> f(x0 + t u), |t| <= 1e5 (`line_kinks`);
2. gradients: the units behind them (`line_units`); 3. completeness: least squares of f on (|z|, x, 1) over
   fresh rows; while it fails, further lines;
4. refinement: every unit again on its own hyperplane (`line_refine`), and rows far out in other directions;
   if these are not explained, further lines;
5. signs: from the affine part (`signs`), which also tells ReLU from leaky ReLU;
6. polish: Gauss-Newton on all parameters over the rows on both sides of every unit, which are there already.

Assumed: answers precise to float64, an affine output layer. Cost: about 1.5 rows per parameter for 1 to 3,
2 for 4, nothing more. Units whose hyperplane lies beyond the line's reach (in a box: outside of it) cannot be
seen; a unit that is active wherever it was asked is part of the affine rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.errors import BudgetExhausted
from unweave.methods.relu.line_fit import fit_affine, fit_all, relative_misfit
from unweave.methods.relu.line_polish import polish, worth_polishing
from unweave.methods.relu.line_refine import refine_units
from unweave.methods.shared.kinked.absolute_form import AbsoluteForm
from unweave.methods.shared.kinked.line_kinks import Precision, Values, find_kinks
from unweave.methods.shared.kinked.line_units import (
    Line,
    Units,
    line_stream,
    merge,
    random_line,
    unexplained,
    units_at_kinks,
)
from unweave.methods.shared.kinked.signs import KINKED, SignSolution, negative_slope, solve_signs, to_network
from unweave.networks.network import Network
from unweave.numerics.threads import single_threaded_blas
from unweave.probing.look import Findings
from unweave.search.candidate import Candidate, Evidence
from unweave.search.journal import Journal
from unweave.targets.region import NormalisedQueries

REACH = 1e5
"""How far a line goes without a box, in normalised inputs: units with |b| <= 100 |w| are hardly missed."""
_EPS = float(np.finfo(np.float64).eps)
_ERROR = 32.0  # roundings of the terms that an answer is summed from
_NOISE = 8.0  # standard deviations of the noise that an answer may be off
_MOST_LINES, _MOST_LINES_IN_BOX = 8, 400
_DRY_LINES, _DRY_LINES_IN_BOX = 4, 40  # lines without a new unit after which no more are tried
_FEW_KINKS, _SHARE_OF_KINKS = 3, 0.25  # new ones on a further line that one hidden layer may leave
_CONFIRMING_LINES = 10  # lines in a box that must bring nothing new: one alone crosses few hyperplanes
_CUTS = (-4.1, -0.6, 0.7, 3.7)  # in units of sqrt(d)
_SPARE_ROWS, _SPARE_ROWS_IN_BOX = 10, 60
_WIDE = 3.0  # half of the rows of the completeness check are spread by this much more
_FAR_DIRECTIONS = 4  # of rows far out
_EXPLAINED_FAR = 1e-7  # the same for rows far out, after refinement, relative to the largest slope
_EXPLAINED = 1e-5  # residual of the completeness check, relative to the spread of its answers
_NEGLIGIBLE = 1e-9  # height relative to the largest one below which a unit is an accident of the fit
_WORST_FLOOR = 1e-9  # relative error of the fit that is believed to be rounding


@dataclass(frozen=True)
class LineOptions:
    """What is known beforehand; None where it is to be found."""

    width: int | None = None
    activation: str | None = None
    reach: float = REACH


def recover_by_lines(
    view: NormalisedQueries,
    findings: Findings,
    options: LineOptions,
    journal: Journal,
    rng: np.random.Generator,
) -> Candidate:
    """Recover the network, as far as the budget goes; never raises when budget or time is gone."""
    return LineRecovery(view, findings, options, journal, rng).run()


class LineRecovery:
    """Runs the route and knows at any time what it could hand back."""

    def __init__(
        self,
        view: NormalisedQueries,
        findings: Findings,
        options: LineOptions,
        journal: Journal,
        rng: np.random.Generator,
    ) -> None:
        self._view = view
        self._findings = findings
        self._region = findings.region
        self._options = options
        self._journal = journal
        self._rng, self._line_rng = rng, line_stream(rng)
        # All outputs in units of their spread, so that one tolerance serves them all.
        self._spread = np.where(findings.output_scale > 0, findings.output_scale, 1.0)
        self._sigma = float((findings.noise.sigma_per_output / self._spread).max())
        self._units = Units.none(view.n_inputs, findings.n_outputs)
        self._error = 0.0  # of the worst refined unit
        self._network: Network | None = None
        self._evidence = Evidence()
        self._notes: list[str] = []
        self._ambiguity: str | None = None
        self._rows = np.zeros((0, view.n_inputs))
        self._answers = np.zeros((0, findings.n_outputs))

    def run(self) -> Candidate:
        """Recover the network, as far as the budget goes."""
        problem, interrupted = None, False
        try:
            with single_threaded_blas():
                problem = self._recover()
        except BudgetExhausted as error:
            problem = f"{error} {self._units.width} units had been found"
        except KeyboardInterrupt:
            problem, interrupted = "interrupted", True
        except np.linalg.LinAlgError as error:
            problem = f"the numbers broke down ({error})"
        return Candidate(
            network=None if self._network is None else self._in_inputs(self._network),
            evidence=self._evidence,
            notes=tuple(self._notes),
            problem=problem,
            ambiguity=self._ambiguity,
            interrupted=interrupted,
        )

    def _recover(self) -> str | None:
        for _ in range(_MOST_LINES):
            form, problem = self._search()
            if form is None or problem is not None:
                return problem
            self._set_unsigned(form)
            form = self._refine(form)
            far = 0.0 if self._region.has_box else self._far_misfit(form)
            if far <= _EXPLAINED_FAR:
                break
        else:
            return f"rows far out differ by {far:.1e}: some units are nearly parallel to every line"
        self._note_reach()
        self._set_unsigned(form)
        solution, activation = self._signs(form)
        self._network = to_network(form, solution, activation)
        self._compare_width()
        self._polish()
        return None

    def _set_unsigned(self, form: AbsoluteForm) -> None:
        """What is handed back if the budget ends before the signs are known."""
        open_signs = SignSolution(np.ones(form.width), np.nan, "none", solved=False, unique=False)
        self._network = to_network(form, open_signs, self._options.activation or KINKED[0])
        self._ambiguity = "the signs of the units were not looked for: the affine rest is a skip matrix"

    def _ask(self, points: Array) -> Array:
        return self._view(points) / self._spread

    # -- lines ------------------------------------------------------------------------------------------

    def _search(self) -> tuple[AbsoluteForm | None, str | None]:
        """Lines until their units explain the target, with the reason if they do not."""
        in_box = self._region.has_box
        most = _MOST_LINES_IN_BOX if in_box else _MOST_LINES
        patience, enough = (_DRY_LINES_IN_BOX, _CONFIRMING_LINES) if in_box else (_DRY_LINES, 0)
        dry = 0
        form: AbsoluteForm | None = None
        residual = np.inf
        for _ in range(most):
            line = random_line(self._region, self._options.reach, self._line_rng)
            before = self._units.width
            with self._journal.stage("line") as stage:
                precision = self._precision(line)
                cuts = self._cuts(line)
                found = find_kinks(self._along(line), line.low, line.high, precision, cuts)
                stage.figures.update(kinks=len(found.positions), unresolved=found.unresolved)
            self._note_kinks(line, found.positions)
            if not found.piecewise_linear:
                return form, "the target is not piecewise linear: there is no end to the kinks on a line"
            kinks = found.positions
            if form is not None and not in_box and self._is_layered(line, kinks):
                break
            with self._journal.stage("gradients") as stage:
                new, left = units_at_kinks(self._ask, self._region, line, kinks, self._units, precision)
                self._units = merge(self._units, new)
                stage.figures.update(units=self._units.width, open_kinks=left + found.unresolved)
            dry = 0 if self._units.width > before else dry + 1
            with self._journal.stage("completeness") as stage:
                form, residual = self._fit(self._units)
                stage.figures.update(residual=residual, units=self._units.width)
            if residual <= _EXPLAINED and dry >= enough:
                self._evidence = replace(self._evidence, width=self._units.width, found=self._units.width)
                return form, None
            if dry >= patience:
                break
        return form, (
            f"{self._units.width} units were found on lines, and {residual:.1e} of the answers' spread is "
            "not explained by one hidden layer of them: there are more layers (residual blocks and pooling "
            "count), or units that no line resolved"
        )

    def _is_layered(self, line: Line, kinks: Array) -> bool:
        """Whether a further line has so many new kinks that their surfaces cannot be hyperplanes.

        A line without ends crosses the hyperplanes of all units, those of the lines before among them.
        """
        new = len(unexplained(kinks, self._units.crossings(line)))
        return new > max(_FEW_KINKS, _SHARE_OF_KINKS * len(kinks))

    def _note_kinks(self, line: Line, positions: Array) -> None:
        """Keep the first line that crosses something, for the picture of it."""
        if self._evidence.kinks is None and len(positions):
            where = np.stack([self._region.to_inputs(line.start), self._region.scale * line.direction])
            self._evidence = replace(self._evidence, kinks=positions, line=where)

    def _cuts(self, line: Line) -> tuple[float, ...]:
        """Places among the kinks: w . u is about 1/sqrt(d), so that is where z changes sign."""
        scale = float(np.sqrt(self._region.n_inputs))
        places = (scale * place for place in _CUTS)
        return tuple(place for place in places if line.low < place < line.high)

    def _along(self, line: Line) -> Values:
        return lambda t: self._ask(line.points(t))

    def _precision(self, line: Line) -> Precision:
        """Error of an answer on the line, in units of the outputs' spread: rounding grows with the terms."""
        ends = np.array([line.low, line.low / 2, 0.0, line.high / 2, line.high])
        answers = np.abs(self._ask(line.points(ends))).max(axis=1)
        growth = float((np.delete(answers, 2) / np.maximum(np.abs(np.delete(ends, 2)), 1.0)).max())
        level = _NOISE * self._sigma + _ERROR * _EPS * float(answers[2])
        return lambda t: level + _ERROR * _EPS * growth * np.abs(t)

    def _note_reach(self) -> None:
        if self._region.has_box:
            lines = sum(stage.name == "line" for stage in self._journal.stages)
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
        """Heights and affine part by least squares on fresh rows, and the residual relative to the spread."""
        d, m = self._region.n_inputs, units.width
        in_box = self._region.has_box
        wanted = m + d + 1 + (_SPARE_ROWS_IN_BOX if in_box else _SPARE_ROWS)
        more = self._region.sample(max(0, wanted - len(self._rows)), self._rng)
        if not in_box:
            more[::2] *= _WIDE
        if len(more):
            self._answers = np.concatenate([self._answers, self._ask(more)])
            self._rows = np.concatenate([self._rows, more])
        return fit_all(units, self._rows, self._answers)

    def _far_misfit(self, form: AbsoluteForm) -> float:
        """Largest relative error of the form at points far out, in directions that no line had.

        A unit whose hyperplane is nearly parallel to the line is missed there, and near rows may all lie on
        one side of it; far out in another direction it is beyond its kink.
        """
        directions = self._rng.standard_normal((_FAR_DIRECTIONS, self._region.n_inputs))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        reach = self._options.reach
        points = np.concatenate([t * directions for t in (-reach, -np.sqrt(reach), np.sqrt(reach), reach)])
        return relative_misfit(form, points, self._ask(points))

    # -- refinement, signs, polish ------------------------------------------------------------------------

    def _refine(self, form: AbsoluteForm) -> AbsoluteForm:
        """The form with units measured on their own hyperplanes, and its affine part refitted."""
        largest = np.abs(form.heights).max(axis=1, initial=0.0)
        alive = largest > _NEGLIGIBLE * largest.max(initial=0.0)
        units = replace(self._units, heights=form.heights).keep(alive)
        with self._journal.stage("refinement") as stage:
            rows = 2 * (units.weights.shape[0] + 1) * units.width
            small = worth_polishing(
                rows * self._answers.shape[1], units.weights.size + 2 * units.heights.size
            )
            result = refine_units(self._ask, self._region, units, _EPS, self._rng, keep_rows=small)
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

    def _signs(self, form: AbsoluteForm) -> tuple[SignSolution, str]:
        """Signs, and the activation for which there are any."""
        names = KINKED if self._options.activation is None else (self._options.activation,)
        with self._journal.stage("signs") as stage:
            for name in names:
                solution = solve_signs(form, negative_slope(name))
                if solution.solved:
                    break
            else:
                name = names[0]
            stage.figures.update(method=solution.method, residual=solution.residual, activation=name)
        self._ambiguity = None
        if not solution.solved:
            self._ambiguity = (
                "the units are known up to signs, and no signs were found that explain the affine part: it "
                "is given as a skip matrix (units that are active everywhere, pairs of units on one "
                "hyperplane, a skip connection, or more units than sign search can handle)"
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
        return solution, name

    def _polish(self) -> None:
        assert self._network is not None
        if not self._network.hidden:
            return
        with self._journal.stage("polish") as stage:
            result = polish(self._network, self._rows, self._answers)
            stage.figures.update(residual=result.history[-1], steps=len(result.history) - 1)
        self._network = result.network
        size = float(np.sqrt(np.mean(self._answers**2)))
        floor = max(self._sigma, _EPS * size)
        self._evidence = replace(
            self._evidence,
            fit_history=result.history,
            fit_floor=_ERROR * floor,
            prediction_floor=min(max(result.history[-1], floor), _WORST_FLOOR),
        )

    def _compare_width(self) -> None:
        told, seen = self._options.width, self._units.width
        if told is not None and told != seen:
            self._notes.append(
                f"hidden=[{told}] was said, {seen} units are what the answers show: dead units, units on "
                "one hyperplane and units that are active wherever they were asked do not count"
            )

    def _in_inputs(self, network: Network) -> Network:
        """From normalised inputs and outputs to the target's own."""
        first = network.weights[0] / self._region.scale[:, None]
        biases = [network.biases[0] - self._region.location @ first, *network.biases[1:]]
        weights = [first, *network.weights[1:]]
        skip = network.skip
        if skip is not None:
            skip = skip / self._region.scale[:, None]
            biases[-1] = biases[-1] - self._region.location @ skip
            skip = skip * self._spread
        weights[-1], biases[-1] = weights[-1] * self._spread, biases[-1] * self._spread
        return Network(weights, biases, network.activations, skip)
