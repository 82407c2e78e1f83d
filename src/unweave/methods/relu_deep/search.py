"""Networks with two hidden layers of (leaky) ReLU units from queries.

1. Find the kinks of long lines and their normals (`probe`). Those whose surface is a whole hyperplane are the
   first layer, up to signs. Search further lines until one brings nothing new.
2. Find a first unit or two of the second layer without the signs (`trace`): they tell them (`assembly`).
3. With signs, find all units of the second layer (`layer_units`); search more lines while kinks or answers
   are not explained.
4. Once the answers are affine in what is known, fit the output layer, find the signs of the second, and
   polish all parameters over the rows that were asked on the way (`complete`, `polish`).
5. Ask fresh rows, many of them where a missing unit would show. One that does not agree is a counterexample:
   between it and a row that does there is a kink that nothing explains, and the search goes on from it.

Assumed: answers precise to float64, an affine output layer, no box. Layers may be wider than what they read.
Units that switch nowhere on lines or check rows cannot be seen; one that is active wherever it was asked is
part of the affine rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_deep.assembly import signed_layers, signed_unit, signs_from_next_layer
from unweave.methods.relu_deep.complete import Completed, Completion, CompletionOptions
from unweave.methods.relu_deep.layer_units import LayerOptions, LayerUnits
from unweave.methods.relu_deep.trace import Unit
from unweave.methods.shared.kinked.evidence import KinkedEvidence
from unweave.methods.shared.kinked.lines import line_stream
from unweave.methods.shared.surfaces.first_layer import FirstLayer, FirstLayerOptions
from unweave.methods.shared.surfaces.lifted import LiftedLayers
from unweave.methods.shared.surfaces.probe import KinkPool, Probe, ProbeOptions, ScannedLine
from unweave.networks.network import Network
from unweave.networks.signs import KINKED, negative_slope
from unweave.numerics.line_kinks import Line
from unweave.search import Candidate, Context, GaveUp, Reason, Search
from unweave.targets.change_of_inputs import in_own_inputs


@dataclass(frozen=True, kw_only=True)
class ReluDeepOptions:
    """How many lines are searched, and how far they reach."""

    probe: ProbeOptions = field(default_factory=ProbeOptions.strict)
    first_layer: FirstLayerOptions = field(
        default_factory=lambda: FirstLayerOptions(long_lines=8)  # the second layer needs few lines of its own
    )
    layer: LayerOptions = field(default_factory=LayerOptions)
    completion: CompletionOptions = field(default_factory=CompletionOptions)
    near_reach: float = 100.0
    """Half length of lines for the second layer, whose kinks are nearer."""
    most_lines: int = 40
    """Lines at most, for both layers together."""
    dry_lines: int = 4
    """Lines without a new unit after which a layer is given up."""
    units_for_signs: int = 6
    """Units of the second layer that should make the signs of the first clear."""
    most_restarts: int = 3
    """Times that the second layer is begun anew because more of the first showed up."""


class ReluDeepReason(Reason):
    """Why no network of this class was found."""

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
        self._options: ReluDeepOptions = context.options
        self._spread = findings.spread
        self._sigma = float((findings.noise.sigma_per_output / self._spread).max())
        self._probe = Probe(context.view, self._spread, self._sigma, self._options.probe)
        self._pool = KinkPool()
        may_be_off = self.request.activation in (None, KINKED[0])
        self._first = FirstLayer(self._probe, self._pool, self.rng, self._options.first_layer, may_be_off)
        self._trusted: LiftedLayers | None = None
        self._activation = self.request.activation or KINKED[0]
        self._completed: Completed | None = None
        self._evidence = KinkedEvidence()
        self._notes: list[str] = []

    def run(self) -> None:
        """Find the first layer, then the second; begin again where more of the first shows up."""
        with self.journal.stage("layer 1") as stage:
            try:
                self._first.find(self._line_rng)
            finally:
                stage.figures.update(units=self._first.width, lines=len(self._pool.lines))
                region = self._probe.region
                for scanned in self._pool.lines:
                    self._evidence = self._evidence.with_line(region, scanned.line, scanned.positions)
        self._first.reduce_inputs()
        for _ in range(self._options.most_restarts):
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
            network=None if done is None else in_own_inputs(done.network, self._probe.region, self._spread),
            evidence=self._evidence,
            notes=tuple(self._notes),
            ambiguity=None if done is None else done.ambiguity,
            known_layers=self._known_layers(),
        )

    def so_far(self) -> str:
        """Count the units of the first layer."""
        return f"{self._first.width} units of the first layer had been found"

    # -- deeper layers ------------------------------------------------------------------------------------

    def _second_layer(self) -> None:
        known = LiftedLayers(self._probe.n_inputs).with_unsigned(self._first.matrix)
        with self.journal.stage("signs of layer 1") as stage:
            search = self._signed_search(known)
            stage.figures.update(units=len(search.units))
        self._trusted = search.known
        self._whole_layer(search)
        self._tell_limits()

    def _signed_search(self, known: LiftedLayers) -> LayerUnits:
        """Find the signs of the first layer; return the search for the second with them."""
        options, assembly = self._options, self._options.completion.assembly
        if self._first.signs is not None and self._activation == KINKED[0]:
            return self._with_signs(known, [], self._first.signs, KINKED[0])
        search = self._search_behind(known)
        names = KINKED if self.request.activation is None else (self.request.activation,)
        complete: list[Unit] = []
        lines = 0
        while len(complete) < options.units_for_signs and lines < options.dry_lines:
            if search.find_next() is None:
                if search.is_hopeless:
                    break
                self._more_kinks(search)
                lines += 1
                continue
            self.journal.tell(len(search.units), None, "units")
            complete = [unit for unit in search.units if not unit.unread]
            for name in names if complete else ():
                found = signs_from_next_layer(known, complete, name, assembly)
                if found.solved and found.unique:
                    return self._with_signs(known, complete, found.signs, name)
        if not complete:
            raise GaveUp(ReluDeepReason.NO_UNIT_TELLS_SIGNS, units=self._first.width)
        raise GaveUp(ReluDeepReason.NO_SIGNS)

    def _search_behind(self, known: LiftedLayers) -> LayerUnits:
        return LayerUnits(self._probe, known, self._pool, self.rng, self._options.layer)

    def _with_signs(self, known: LiftedLayers, units: Sequence[Unit], signs: Array, name: str) -> LayerUnits:
        self._activation = name
        slope = negative_slope(name)
        signed = self._search_behind(signed_layers(known, signs, slope))
        signed.units += [signed_unit(unit, known, signs, slope) for unit in units]
        return signed

    def _more_kinks(self, search: LayerUnits) -> None:
        """Search one more line for kinks that nothing explains."""
        direction, start = self._line_rng.standard_normal((2, self._probe.n_inputs))
        reach = self._options.near_reach
        line = Line(start, direction / np.linalg.norm(direction), -reach, reach)
        self._take_kinks(search, self._probe.scan(line))

    def _take_kinks(self, search: LayerUnits, scanned: ScannedLine) -> None:
        self._pool.lines.append(scanned)
        known = search.known
        wanted = search.sight.unexplained_on(len(self._pool.lines) - 1, search.alphas)
        kinks = self._probe.kinks_with_normals(
            scanned, wanted, lambda point: known.basis(known.pattern(point))
        )
        if self._first.sort(kinks):
            raise _MoreHyperplanes

    def _whole_layer(self, search: LayerUnits) -> None:
        """Find units until they explain the target (then it is complete), or no more are found."""
        options = self._options
        completion = Completion(
            self._probe, self._activation, self._sigma, self.journal, self.rng, options.completion
        )
        dry, polished = 0, 0
        while len(self._pool.lines) < options.most_lines and not search.is_hopeless:
            before = len(search.units)
            with self.journal.stage("layer 2") as stage:
                while search.find_next() is not None:
                    self.journal.tell(len(search.units), None, "units")
                stage.figures.update(units=len(search.units), lines=len(self._pool.lines))
            dry = 0 if len(search.units) > before else dry + 1
            if dry > options.dry_lines:
                break
            nearly = dry > 0 and len(search.units) > polished
            outcome = completion.attempt(search, nearly)
            polished = len(search.units) if nearly else polished
            if isinstance(outcome, Completed):
                self._completed = outcome
                self._evidence = replace(self._evidence, **outcome.figures)
                return
            with self.journal.stage("line") as stage:
                if outcome is None:
                    self._more_kinks(search)
                else:  # the way from a row that agrees to one that does not
                    self._take_kinks(search, self._probe.scan_between(*outcome))
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
        """Return the first layer once its signs are known: then it is certain."""
        if self._trusted is None:
            return None
        matrix = self._trusted.stages[0].matrix
        weights = self._probe.frame @ matrix[:, :-1].T
        return in_own_inputs(Network([weights], [matrix[:, -1]], [self._activation]), self._probe.region)
