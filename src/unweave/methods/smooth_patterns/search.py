"""Two hidden layers or more of units that level off, of any widths, from queries.

1. hyperplanes of the first layer from far-field circles (`directions`), and how its units level off;
2. answers far out, where the first layer is a pattern of signs (`sign_patterns`);
3. the second layer and the output layer from these, as one hidden layer with known inputs, or the second and
   the third (`layers_behind`);
4. norms and biases of the first layer, all else being known (`first_layer`);
5. all parameters by least squares on values near the origin.

Neither widths nor the activation nor that of the outputs need be known. No layer need be narrower than what
it reads, because the second layer's units live in the m1 dimensions of the signs, where they are far apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, islice

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.far_field import CircleOptions
from unweave.methods.shared.final_fit import corrected_widths, final_fits, points_near, with_final_fit
from unweave.methods.smooth_patterns.directions import CIRCLES, DirectionSearch, Hyperplanes
from unweave.methods.smooth_patterns.far_normals import COARSE_CIRCLES, NormalOptions
from unweave.methods.smooth_patterns.first_layer import ProfileOptions, first_layer
from unweave.methods.smooth_patterns.layers_behind import (
    BehindOptions,
    BehindSearch,
    LayersBehind,
    parameters,
)
from unweave.methods.smooth_patterns.reasons import PatternReason
from unweave.methods.smooth_patterns.sign_patterns import PatternOptions, SignPatterns
from unweave.methods.smooth_patterns.split_cells import CellOptions, split_cells
from unweave.methods.smooth_patterns.unit_kind import unit_kind
from unweave.networks.activations import SOFTMAX, get_activation
from unweave.networks.links import Link
from unweave.networks.network import Network
from unweave.networks.saturation import ERF, TANH, as_logistic
from unweave.search import Candidate, Context, Evidence, GaveUp, LayerEvidence, Search
from unweave.targets.change_of_inputs import in_own_inputs

PATTERN_ACTIVATIONS = ("tanh", "sigmoid", "erf")
OUTPUTS = ("identity", "tanh", "sigmoid", SOFTMAX)
"""Output activations behind which sign patterns are read."""


@dataclass(frozen=True, kw_only=True)
class SmoothPatternsOptions:
    """How two to four hidden layers of any widths are searched for."""

    circles: CircleOptions = field(default_factory=lambda: CIRCLES)
    coarse_circles: CircleOptions = field(default_factory=lambda: COARSE_CIRCLES)
    """For answers in float32."""
    normals: NormalOptions = field(default_factory=NormalOptions)
    """For answers in float32."""
    patterns: PatternOptions = field(default_factory=PatternOptions)
    behind: BehindOptions = field(default_factory=BehindOptions)
    most_layers: int = 4
    """Hidden layers that are searched for, where their number is not told."""
    starts_alone: int = 2
    """Starts of one layer behind the signs, before starts of two take turns with them, and so on."""
    unexplained: float = 3e-3
    """Residual of a start that may lack a unit of the first layer: cells are looked at, whether they are
    split, ..."""
    cells: CellOptions = field(default_factory=CellOptions)
    looks: int = 2
    """... at most so often in vain, ..."""
    further_circles: int = 3
    """... and at most so many circles are drawn through two parts of one."""
    profiles: ProfileOptions = field(default_factory=ProfileOptions)
    most_parameters: int = 3000
    """Parameters, without surplus, up to which several layers behind the signs are fitted: a minute."""
    kinds: tuple[str, ...] = ("tanh", "erf", "sine")
    """Activations of the second layer, where it is not that of the first."""
    fewest_patterns: int = 12
    """Sign patterns without which nothing is fitted."""
    first_patterns: int = 60
    """Sign patterns whose answers tell which output activations are possible."""
    spread: float = 1.5
    """Standard deviation of the inputs of the final fit: first-layer units are then partly saturated."""
    equations: tuple[float, float] = (1.5, 10.0)
    """Equations of the final fit per parameter; the second for answers in float32."""
    polishes: int = 3
    """Final fits, each with more points."""
    settled: float = 100.0
    """Residual of the final fit, over its floor, at which no further one is needed."""
    hopeless: float = 0.3
    """Share of its first residual that a fit in the wrong place leaves."""


class SmoothPatternsSearch(Search):
    """Finds the second layer behind the signs of the first."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.rng = context.rng.spawn(1)[0]  # a search that follows draws what it would have drawn without
        self._ask = context.view
        self._options: SmoothPatternsOptions = context.options
        self._network: Network | None = None
        self._evidence = Evidence()
        self._doing = "the first hidden layer was being looked for"
        self._circles: DirectionSearch | None = None
        self._in_vain = 0

    def candidate(self) -> Candidate:
        """Return the network, once all layers are known."""
        if self._network is None:
            return Candidate(evidence=self._evidence)
        network = in_own_inputs(self._network, self.findings.region)
        if self.request.activation == "sigmoid":
            network = as_logistic(network)
        notes = corrected_widths(self.request.hidden, network.hidden)
        return Candidate(network=network, evidence=self._evidence, notes=notes)

    def so_far(self) -> str:
        """Name what was searched for."""
        return self._doing

    def run(self) -> None:
        """Find the second layer, then the first, then fit all."""
        sent = self._ask.sent
        planes, activation = self._first_directions()
        self._doing = f"the layer behind {planes.count} units was being looked for"
        while (behind_signs := self._layers_behind(planes, activation)) is None:
            assert self._circles is not None
            planes = Hyperplanes.of(self._circles.units)
        found, link = behind_signs
        assert found.model is not None
        seen = self._ask.sent
        for number, units in enumerate(found.units, 2):
            self._note_layer(number, units, found.residual, found.starts, seen - sent)
        self._doing = "norms and biases of the first hidden layer were being looked for"
        with self.journal.stage("layer 1 norms and biases") as stage:
            kind = get_activation(activation)
            first = first_layer(self._ask, planes, kind, found.model, link, self.rng, self._options.profiles)
            misfit = float(first.misfits.max())
            stage.figures.update(misfit=misfit)
        self._note_layer(1, planes.count, misfit, 1, self._ask.sent - seen)
        behind = found.model
        self._network = Network(
            [first.weights, *behind.weights],
            [first.biases, *behind.biases],
            [activation, *[behind.activation.name] * (behind.depth - 1), link.name],
        )
        self._polish()

    @property
    def _is_single(self) -> bool:
        return self.findings.noise.kind == "float32"

    def _first_directions(self) -> tuple[Hyperplanes, str]:
        inputs, told = self.findings.region.n_inputs, self.request.activation
        with self.journal.stage("layer 1 directions") as stage:
            single = self._is_single
            circles = self._options.coarse_circles if single else self._options.circles
            search = DirectionSearch(self._ask, inputs, self.rng, circles)
            try:
                search.run(None if single else self.request.width)
                if single:
                    search.correct(self._options.normals)
            finally:
                stage.figures.update(found=len(search.units), circles=search.circles)
            if not search.units:
                raise GaveUp(PatternReason.NO_UNITS)
            noise = float(self.findings.noise.sigma_per_output.max())
            planes = Hyperplanes.of(search.units)
            self._circles = search
            if told is None:
                kind = unit_kind(self._ask, planes, noise, self.rng)
            else:
                kind = ERF if told == "erf" else TANH
            stage.figures.update(activation=kind.name)
        return planes, kind.name

    def _layers_behind(self, planes: Hyperplanes, activation: str) -> tuple[LayersBehind, Link] | None:
        """Return the layers behind the signs, and the output activation behind which they were found.

        None: a circle has shown a further unit of the first layer meanwhile.
        """
        options, where = self._options, self._options.patterns
        if self._is_single:
            where = replace(where, radius=where.coarse_radius, least_angle=where.coarse_angle)
        with self.journal.stage("layer 2") as stage:
            patterns = SignPatterns(self._ask, planes, self.findings.n_outputs, self.rng, where)
            patterns.extend(options.first_patterns)
            if len(patterns.signs) < options.fewest_patterns:
                raise GaveUp(PatternReason.FEW_PATTERNS, units=planes.count, patterns=len(patterns.signs))
            best, chosen = LayersBehind(None, np.inf, (), 0, 0), Link("identity")
            for link, found in self._starts(patterns, activation, planes.count):
                if found.model is not None or found.residual < best.residual:
                    best, chosen = found, link
                stage.figures.update(
                    units="-".join(map(str, best.units)),
                    residual=best.residual,
                    starts=best.starts,
                    patterns=best.rows,
                    output=chosen.name,
                )
                if best.model is not None:
                    return best, chosen
                if best.residual > options.unexplained and self._sees_more(planes, patterns, where):
                    return None
        units = " and ".join(map(str, best.units))
        raise GaveUp(PatternReason.NOT_EXACT, units=units, first=planes.count, residual=best.residual)

    def _sees_more(self, planes: Hyperplanes, patterns: SignPatterns, where: PatternOptions) -> bool:
        """Return whether cells are split, and a circle through one shows the unit that does it."""
        circles, options = self._circles, self._options
        if circles is None or self._in_vain >= options.looks:
            return False
        visible = (options.coarse_circles if self._is_single else options.circles).visible
        asked = patterns.points, patterns.answers
        split = split_cells(self._ask, planes, *asked, visible, self.rng, where, options.cells)
        pairs = islice(zip(*split, strict=True), options.further_circles)
        found = any(circles.again(pair) for pair in pairs)
        if found and self._is_single:
            circles.correct(options.normals)
        self._in_vain += not found
        return found

    def _starts(
        self, patterns: SignPatterns, activation: str, first: int
    ) -> Iterator[tuple[Link, LayersBehind]]:
        """Yield what single starts find: one layer behind the signs, after some starts more in turn."""
        groups = [
            [
                (link, self._behind(patterns, link, kind, (first, *widths)))
                for kind in kinds
                for link in self._links(patterns.answers)
            ]
            for kinds, widths in self._expected(activation, first)
        ]
        for number in count():
            tried = groups[: 1 + number // self._options.starts_alone]
            searches = [pair for group in tried for pair in group if pair[1].goes_on]
            if not searches and len(tried) == len(groups):
                return
            for link, search in searches:
                yield link, search.advance()

    def _expected(self, activation: str, first: int) -> list[tuple[tuple[str, ...], tuple[int, ...]]]:
        """Return activations and widths of the layers behind ``first`` signs, the likeliest first."""
        told, options = self.request, self._options
        same = (activation,)
        if told.hidden is None:
            widths = [(first,) * layers for layers in range(1, options.most_layers)]
        else:
            widths = [told.hidden[1:]]
        result: list[tuple[tuple[str, ...], tuple[int, ...]]] = [(same, each) for each in widths]
        if told.activation is None:
            others = tuple(name for name in options.kinds if name != activation)
            result[1:1] = [(others, widths[0])]
        outputs = self.findings.n_outputs
        small = [
            (kinds, each)
            for kinds, each in result
            if len(each) == 1 or parameters((first, *each, outputs)) <= options.most_parameters
        ]
        if not small:
            raise GaveUp(PatternReason.TOO_LARGE, hidden=[first, *widths[0]])
        return small

    def _behind(
        self, patterns: SignPatterns, link: Link, activation: str, widths: tuple[int, ...]
    ) -> BehindSearch:
        return BehindSearch(
            partial(patterns.rows, link),
            activation,
            (*widths, self.findings.n_outputs),
            self.findings.noise.relative,
            self.rng,
            self._options.behind,
            self.on_step,
        )

    def _links(self, answers: Array) -> list[Link]:
        """Output activations whose range holds all ``answers`` (n, K), the likeliest first."""
        told = self.request.output_activation
        if told is not None:
            return [Link(told)]
        if SOFTMAX in self.findings.links:
            return [Link(SOFTMAX)]  # probabilities that sum to one
        return [link for link in map(Link, ("identity", "sigmoid", "tanh")) if link.fits(answers)]

    def _note_layer(self, number: int, width: int, residual: float, attempts: int, queries: int) -> None:
        entry = LayerEvidence(number, width, residual, None, None, attempts, queries)
        layers = sorted([*self._evidence.layers, entry], key=lambda layer: layer.layer)
        self._evidence = Evidence(layers=tuple(layers))

    def _polish(self) -> None:
        assert self._network is not None
        options = self._options
        fits = final_fits(
            self._network,
            self._near,
            self._ask,
            float(self.findings.noise.sigma_per_output.max()),
            self.journal,
            polishes=options.polishes,
            settled=options.settled,
            hopeless=options.hopeless,
            equations_per_parameter=options.equations[self._is_single],
        )
        for fit in fits:
            self._network = fit.model.to_network()
            self._evidence = with_final_fit(self._evidence, fit, float(self.findings.spread.max()))

    def _near(self, count: int) -> Array:
        assert self._network is not None
        return points_near(self._network, self.findings.region, count, (self._options.spread,), self.rng)
