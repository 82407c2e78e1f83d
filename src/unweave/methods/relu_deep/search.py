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
from dataclasses import replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_deep.assembly import signed_unit, signs_from_next_layer
from unweave.methods.relu_deep.completing import Completed, Completion
from unweave.methods.relu_deep.hyperplanes import are_hyperplanes, holds, with_hyperplanes
from unweave.methods.relu_deep.layer_units import KinkPool, LayerUnits
from unweave.methods.relu_deep.lifted import Layer, LiftedLayers
from unweave.methods.relu_deep.probing import Kink, Probe, ScannedLine
from unweave.methods.relu_deep.tracing import Unit
from unweave.methods.shared.kinked.evidence import KinkedEvidence
from unweave.methods.shared.kinked.line_units import REACH, line_stream, random_line, unexplained
from unweave.networks.network import Network
from unweave.networks.signs import KINKED, negative_slope
from unweave.search import Candidate, Context, GaveUp, Reason, Search
from unweave.targets.change_of_inputs import in_own_inputs

_NEAR_REACH = 100.0  # of lines that look for units of the second layer, in normalised inputs
_MOST_LINES = 40
_LONG_LINES = 8  # among which those for the first layer must come to an end
_DRY_LINES = 4  # lines without a new unit after which a layer is given up
_UNITS_FOR_SIGNS = 6  # of the second layer, from which on the signs of the first should be clear
_MOST_RESTARTS = 3


class ReluDeepReason(Reason):
    """Why no network of this class was found."""

    NOT_PIECEWISE_LINEAR = "the target is not piecewise linear: there is no end to the kinks on a line"
    NO_FIRST_LAYER = "no kink on a line belongs to a first hidden layer"
    NO_SECOND_LAYER = "all kinks on lines are hyperplanes: there is no second hidden layer"
    NO_END_OF_FIRST_LAYER = "units of the first layer kept showing up"
    NO_UNIT_TELLS_SIGNS = (
        "{units} units of the first hidden layer were found up to signs, and none of the second could be "
        "followed as a whole, which would tell them"
    )
    NO_SIGNS = (
        "no signs of the first hidden layer explain how the second one reads it: some units are active "
        "wherever they were asked, there are more layers, or a skip connection"
    )
    NOT_EXPLAINED = (
        "{units} units of the second hidden layer were found, {left}, and answers differ by up to "
        "{misfit:.1e} of their size from what these explain: there are more layers, or units that hardly "
        "ever switch"
    )


class _MoreHyperplanes(Exception):
    """Units of the first layer showed up while a deeper one was searched for."""


class ReluDeepSearch(Search):
    """Finds the first layer on lines, then follows the surfaces of the second through it."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        findings = self.findings
        self._line_rng = line_stream(self.rng)
        self._spread = findings.spread
        sigma = float((findings.noise.sigma_per_output / self._spread).max())
        self._probe = Probe(context.view, self._spread, sigma)
        self._sigma = sigma
        self._pool = KinkPool()
        self._first = Layer(np.zeros((context.view.n_inputs, 0)), np.zeros(0))
        self._trusted: LiftedLayers | None = None
        self._activation = self.request.activation or KINKED[0]
        self._completed: Completed | None = None
        self._evidence = KinkedEvidence()
        self._notes: list[str] = []

    def run(self) -> None:
        """Find the first layer, then the second; begin again where more of the first shows up."""
        with self.journal.stage("layer 1") as stage:
            try:
                self._first_layer()
            finally:
                stage.figures.update(units=self._first.width, lines=len(self._pool.lines))
        for _ in range(_MOST_RESTARTS):
            try:
                self._second_layer()
                return
            except _MoreHyperplanes:
                self._trusted = None
        raise GaveUp(ReluDeepReason.NO_END_OF_FIRST_LAYER)

    def candidate(self) -> Candidate:
        """Return the network if it is complete, and the first layer once its signs are known."""
        done = self._completed
        return Candidate(
            network=None if done is None else self._in_inputs(done.network),
            evidence=self._evidence,
            notes=tuple(self._notes),
            ambiguity=None if done is None else done.ambiguity,
            known_layers=self._known_layers(),
        )

    def so_far(self) -> str:
        """Count the units of the first layer."""
        return f"{self._first.width} units of the first layer had been found"

    # -- first layer --------------------------------------------------------------------------------------

    def _first_layer(self) -> None:
        for _ in range(_LONG_LINES):
            before = self._first.width
            scanned = self._scan(REACH)
            if self._probe.not_piecewise_linear:
                raise GaveUp(ReluDeepReason.NOT_PIECEWISE_LINEAR)
            known = LiftedLayers(self._probe.n_inputs, (self._first,))
            numbers = unexplained(scanned.positions, known.places_on(scanned.line)[1:-1])
            self._sort(self._probe.kinks_with_normals(scanned, numbers))
            self._note_kinks(scanned)
            if self._first.width == before:
                break
        if self._first.width == 0:
            raise GaveUp(ReluDeepReason.NO_FIRST_LAYER)
        if not self._pool.kinks:
            raise GaveUp(ReluDeepReason.NO_SECOND_LAYER)

    def _scan(self, reach: float) -> ScannedLine:
        scanned = self._probe.scan(random_line(self._probe.region, reach, self._line_rng))
        self._pool.lines.append(scanned)
        return scanned

    def _sort(self, kinks: list[Kink]) -> bool:
        """Kinks to the first layer or to the pool; whether the first layer has grown."""
        flat = are_hyperplanes(self._probe, kinks, self.rng)
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

    def _second_layer(self) -> None:
        known = _unsigned(self._first)
        with self.journal.stage("signs of layer 1") as stage:
            search = self._signed_search(known)
            stage.figures.update(units=len(search.units))
        self._trusted = search.known
        self._whole_layer(search)
        self._tell_limits()

    def _signed_search(self, known: LiftedLayers) -> LayerUnits:
        """The search for the second layer, with the signs of the first."""
        search = LayerUnits(self._probe, known, self._pool, self.rng)
        names = KINKED if self.request.activation is None else (self.request.activation,)
        complete: list[Unit] = []
        lines = 0
        while len(complete) < _UNITS_FOR_SIGNS and lines < _DRY_LINES:
            if search.find_next() is None:
                if search.is_hopeless:
                    break
                self._more_kinks(search)
                lines += 1
                continue
            self.journal.tell(len(search.units), None, "units")
            complete = [unit for unit in search.units if not unit.unread]
            for name in names if complete else ():
                found = signs_from_next_layer(known, complete, name)
                if found.solved and found.unique:
                    return self._with_signs(known, complete, found.signs, name)
        if not complete:
            raise GaveUp(ReluDeepReason.NO_UNIT_TELLS_SIGNS, units=self._first.width)
        raise GaveUp(ReluDeepReason.NO_SIGNS)

    def _with_signs(self, known: LiftedLayers, units: Sequence[Unit], signs: Array, name: str) -> LayerUnits:
        self._activation = name
        slope = negative_slope(name)
        signed = LayerUnits(self._probe, known.with_signs(signs, slope), self._pool, self.rng)
        signed.units += [signed_unit(unit, known, signs, slope) for unit in units]
        return signed

    def _more_kinks(self, search: LayerUnits) -> None:
        """One more line, and the kinks on it that nothing explains."""
        self._take_kinks(search, self._scan(_NEAR_REACH))

    def _take_kinks(self, search: LayerUnits, scanned: ScannedLine) -> None:
        if self._sort(self._probe.kinks_with_normals(scanned, search.unexplained_on(scanned))):
            raise _MoreHyperplanes

    def _whole_layer(self, search: LayerUnits) -> None:
        """Units until they explain the target (then it is complete), or no more are found."""
        completion = Completion(self._probe, self._activation, self._sigma, self.journal, self.rng)
        dry = 0
        while len(self._pool.lines) < _MOST_LINES and not search.is_hopeless:
            before = len(search.units)
            with self.journal.stage("layer 2") as stage:
                while search.find_next() is not None:
                    self.journal.tell(len(search.units), None, "units")
                stage.figures.update(units=len(search.units), lines=len(self._pool.lines))
            dry = 0 if len(search.units) > before else dry + 1
            if dry > _DRY_LINES:
                break
            outcome = completion.attempt(search)
            if isinstance(outcome, Completed):
                self._completed = outcome
                self._evidence = replace(self._evidence, **outcome.figures)
                return
            with self.journal.stage("line") as stage:
                if outcome is None:
                    self._more_kinks(search)
                else:  # the way from a row that agrees to one that does not
                    scanned = self._probe.scan_between(*outcome)
                    self._pool.lines.append(scanned)
                    self._take_kinks(search, scanned)
                stage.figures.update(kinks=len(self._pool.kinks))
        left = "kinks remain that cannot be followed" if search.is_hopeless else "no line shows more"
        raise GaveUp(
            ReluDeepReason.NOT_EXPLAINED, units=len(search.units), left=left, misfit=completion.misfit
        )

    def _tell_limits(self) -> None:
        assert self._completed is not None
        told, seen = self.request.hidden, self._completed.network.hidden
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
