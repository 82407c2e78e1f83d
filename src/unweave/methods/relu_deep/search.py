"""Networks with two hidden layers of (leaky) ReLU units from queries.

1. kinks of long lines, and the normals there (`probing`); those whose surface is a whole hyperplane are the
   first layer, up to signs (`hyperplanes`); further lines until one brings nothing new;
2. a first unit or two of the second layer, found without the signs (`tracing`): it tells them (`assembly`);
3. with signs, all units of the second layer; more lines while kinks or answers are not explained;
4. once the answers are affine in what is known: output layer, signs of the second, Gauss-Newton on all
   parameters over the rows that were asked on the way (`polishing`);
5. fresh rows, many of them where a missing unit would show (`checking`). One that does not agree is a
   counterexample: on the way from it to a row that does there is a kink that nothing explains, and the search
   goes on from it.

Assumed: answers precise to float64, an affine output layer, no box. Layers may be wider than what they read.
Units that switch nowhere on lines or check rows cannot be seen; one that is active wherever it was asked is
part of the affine rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.errors import BudgetExhausted
from unweave.methods.relu.search import REACH
from unweave.methods.relu_deep.assembly import signed_unit, signs_from_next_layer
from unweave.methods.relu_deep.completing import Completed, Completion
from unweave.methods.relu_deep.hyperplanes import are_hyperplanes, holds, with_hyperplanes
from unweave.methods.relu_deep.layer_units import KinkPool, LayerUnits
from unweave.methods.relu_deep.lifted import Layer, LiftedLayers
from unweave.methods.relu_deep.probing import Kink, Probe, ScannedLine
from unweave.methods.relu_deep.tracing import Unit
from unweave.methods.shared.kinked.line_units import line_stream, random_line, unexplained
from unweave.methods.shared.kinked.signs import KINKED, negative_slope
from unweave.networks.network import Network
from unweave.numerics.threads import single_threaded_blas
from unweave.probing.look import Findings
from unweave.search.candidate import Candidate, Evidence
from unweave.search.journal import Journal
from unweave.targets.change_of_inputs import in_own_inputs
from unweave.targets.region import NormalisedQueries

_NEAR_REACH = 100.0  # of lines that look for units of the second layer, in normalised inputs
_MOST_LINES = 40
_LONG_LINES = 8  # among which those for the first layer must come to an end
_DRY_LINES = 4  # lines without a new unit after which a layer is given up
_UNITS_FOR_SIGNS = 6  # of the second layer, from which on the signs of the first should be clear
_MOST_RESTARTS = 3


@dataclass(frozen=True)
class KinkedLayersOptions:
    """What is known beforehand; None where it is to be found."""

    hidden: tuple[int, ...] | None = None
    activation: str | None = None


class _MoreHyperplanes(Exception):
    """Units of the first layer showed up while a deeper one was searched for."""


class KinkedLayersRecovery:
    """Runs the route; `run` never raises when budget or time is gone but hands back what there is."""

    def __init__(
        self,
        view: NormalisedQueries,
        findings: Findings,
        options: KinkedLayersOptions,
        journal: Journal,
        rng: np.random.Generator,
    ) -> None:
        self._options = options
        self._journal = journal
        self._line_rng, self._rng = line_stream(rng), rng
        self._spread = np.where(findings.output_scale > 0, findings.output_scale, 1.0)
        sigma = float((findings.noise.sigma_per_output / self._spread).max())
        self._probe = Probe(view, self._spread, sigma)
        self._sigma = sigma
        self._pool = KinkPool()
        self._first = Layer(np.zeros((view.n_inputs, 0)), np.zeros(0))
        self._trusted: LiftedLayers | None = None
        self._activation = options.activation or KINKED[0]
        self._completed: Completed | None = None
        self._evidence = Evidence()
        self._notes: list[str] = []

    def run(self) -> Candidate:
        """Recover the network, as far as the budget goes."""
        problem, interrupted = None, False
        try:
            with single_threaded_blas():
                problem = self._recover()
        except BudgetExhausted as error:
            problem = f"{error} {self._so_far()}"
        except KeyboardInterrupt:
            problem, interrupted = "interrupted", True
        except np.linalg.LinAlgError as error:
            problem = f"the numbers broke down ({error}); {self._so_far()}"
        done = self._completed
        return Candidate(
            network=None if done is None else self._in_inputs(done.network),
            evidence=self._evidence,
            notes=tuple(self._notes),
            problem=problem,
            ambiguity=None if done is None else done.ambiguity,
            interrupted=interrupted,
            known_layers=self._known_layers(),
        )

    def _so_far(self) -> str:
        return f"{self._first.width} units of the first layer had been found"

    def _recover(self) -> str | None:
        with self._journal.stage("layer 1") as stage:
            problem = self._first_layer()
            stage.figures.update(units=self._first.width, lines=len(self._pool.lines))
        if problem is not None:
            return problem
        for _ in range(_MOST_RESTARTS):
            try:
                return self._second_layer()
            except _MoreHyperplanes:
                self._trusted = None
        return "units of the first layer kept showing up"

    # -- first layer --------------------------------------------------------------------------------------

    def _first_layer(self) -> str | None:
        for _ in range(_LONG_LINES):
            before = self._first.width
            scanned = self._scan(REACH)
            if self._probe.not_piecewise_linear:
                return "the target is not piecewise linear: there is no end to the kinks on a line"
            known = LiftedLayers(self._probe.n_inputs, (self._first,))
            numbers = unexplained(scanned.positions, known.places_on(scanned.line)[1:-1])
            self._sort(self._probe.kinks_with_normals(scanned, numbers))
            self._note_kinks(scanned)
            if self._first.width == before:
                break
        if self._first.width == 0:
            return "no kink on a line belongs to a first hidden layer"
        if not self._pool.kinks:
            return "all kinks on lines are hyperplanes: there is no second hidden layer"
        return None

    def _scan(self, reach: float) -> ScannedLine:
        scanned = self._probe.scan(random_line(self._probe.region, reach, self._line_rng))
        self._pool.lines.append(scanned)
        return scanned

    def _sort(self, kinks: list[Kink]) -> bool:
        """Kinks to the first layer or to the pool; whether the first layer has grown."""
        flat = are_hyperplanes(self._probe, kinks, self._rng)
        before = self._first.width
        self._first = with_hyperplanes(self._first, [kinks[row] for row in np.flatnonzero(flat)])
        # A unit that most of its readers hide may have been refused before it was seen for what it is.
        others = self._pool.kinks + [kinks[row] for row in np.flatnonzero(~flat)]
        self._pool.kinks = [kink for kink in others if not holds(self._first, kink)]
        return self._first.width > before

    def _note_kinks(self, scanned: ScannedLine) -> None:
        """Keep the first line that crosses something, for the picture of it."""
        if self._evidence.kinks is None and len(scanned.positions):
            region, line = self._probe.region, scanned.line
            where = np.stack([region.to_inputs(line.start), region.scale * line.direction])
            self._evidence = replace(self._evidence, kinks=scanned.positions, line=where)

    # -- deeper layers ------------------------------------------------------------------------------------

    def _second_layer(self) -> str | None:
        known = _unsigned(self._first)
        with self._journal.stage("signs of layer 1") as stage:
            search = self._signed_search(known)
            stage.figures.update(units=0 if isinstance(search, str) else len(search.units))
        if isinstance(search, str):
            return search
        self._trusted = search.known
        problem = self._whole_layer(search)
        if self._completed is not None:
            self._tell_limits()
        return problem

    def _signed_search(self, known: LiftedLayers) -> LayerUnits | str:
        """The search for the second layer, with the signs of the first."""
        search = LayerUnits(self._probe, known, self._pool, self._rng)
        names = KINKED if self._options.activation is None else (self._options.activation,)
        complete: list[Unit] = []
        lines = 0
        while len(complete) < _UNITS_FOR_SIGNS and lines < _DRY_LINES:
            if search.find_next() is None:
                if search.is_hopeless:
                    break
                self._more_kinks(search)
                lines += 1
                continue
            self._journal.tell(len(search.units), None, "units")
            complete = [unit for unit in search.units if not unit.unread]
            for name in names if complete else ():
                found = signs_from_next_layer(known, complete, name)
                if found.solved and found.unique:
                    return self._with_signs(known, complete, found.signs, name)
        if not complete:
            return (
                f"{self._first.width} units of the first hidden layer were found up to signs, and none of "
                "the second could be followed as a whole, which would tell them"
            )
        return (
            "no signs of the first hidden layer explain how the second one reads it: some units are active "
            "wherever they were asked, there are more layers, or a skip connection"
        )

    def _with_signs(self, known: LiftedLayers, units: Sequence[Unit], signs: Array, name: str) -> LayerUnits:
        self._activation = name
        slope = negative_slope(name)
        signed = LayerUnits(self._probe, known.with_signs(signs, slope), self._pool, self._rng)
        signed.units += [signed_unit(unit, known, signs, slope) for unit in units]
        return signed

    def _more_kinks(self, search: LayerUnits) -> None:
        """One more line, and the kinks on it that nothing explains."""
        self._take_kinks(search, self._scan(_NEAR_REACH))

    def _take_kinks(self, search: LayerUnits, scanned: ScannedLine) -> None:
        if self._sort(self._probe.kinks_with_normals(scanned, search.unexplained_on(scanned))):
            raise _MoreHyperplanes

    def _whole_layer(self, search: LayerUnits) -> str | None:
        """Units until they explain the target (then it is complete), or no more are found."""
        completion = Completion(self._probe, self._activation, self._sigma, self._journal, self._rng)
        dry = 0
        while len(self._pool.lines) < _MOST_LINES and not search.is_hopeless:
            before = len(search.units)
            with self._journal.stage("layer 2") as stage:
                while search.find_next() is not None:
                    self._journal.tell(len(search.units), None, "units")
                stage.figures.update(units=len(search.units), lines=len(self._pool.lines))
            dry = 0 if len(search.units) > before else dry + 1
            if dry > _DRY_LINES:
                break
            outcome = completion.attempt(search)
            if isinstance(outcome, Completed):
                self._completed = outcome
                self._evidence = replace(self._evidence, **outcome.figures)
                return None
            with self._journal.stage("line") as stage:
                if outcome is None:
                    self._more_kinks(search)
                else:  # the way from a row that agrees to one that does not
                    scanned = self._probe.scan_between(*outcome)
                    self._pool.lines.append(scanned)
                    self._take_kinks(search, scanned)
                stage.figures.update(kinks=len(self._pool.kinks))
        left = "kinks remain that cannot be followed" if search.is_hopeless else "no line shows more"
        return (
            f"{len(search.units)} units of the second hidden layer were found, {left}, and "
            f"answers differ by up to {completion.misfit:.1e} of their size from what these explain: there "
            "are more layers, or units that hardly ever switch"
        )

    def _tell_limits(self) -> None:
        assert self._completed is not None
        told, seen = self._options.hidden, self._completed.network.hidden
        if told is not None and told != seen:
            self._notes.append(
                f"hidden={list(told)} was said, {list(seen)} is what the answers show: dead units, units on "
                "one surface and units that are active wherever they were asked do not count"
            )
        self._notes.append(
            f"{len(self._pool.lines)} lines and {self._completed.checked} fresh rows were searched: units "
            "that switch on none of them, and dead units, cannot be seen"
        )

    # -- telling ------------------------------------------------------------------------------------------

    def _known_layers(self) -> Network | None:
        """The first layer, once its signs are known: then it is certain."""
        if self._trusted is None:
            return None
        layer = self._trusted.layers[0]
        return in_own_inputs(Network([layer.weights], [layer.biases], [self._activation]), self._probe.region)

    def _in_inputs(self, network: Network) -> Network:
        """From normalised inputs and outputs to the target's own."""
        moved = in_own_inputs(network, self._probe.region)
        weights, biases = list(moved.weights), list(moved.biases)
        weights[-1], biases[-1] = weights[-1] * self._spread, biases[-1] * self._spread
        return Network(weights, biases, moved.activations)


def _unsigned(layer: Layer) -> LiftedLayers:
    """The first layer, its signs open."""
    inputs = len(layer.weights)
    return LiftedLayers(inputs).with_unsigned(layer, narrow=layer.width <= inputs)
