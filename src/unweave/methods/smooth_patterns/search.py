"""Two hidden layers of units that level off, of any widths, from queries.

1. hyperplanes of the first layer from far-field circles (`directions`), and how its units level off;
2. answers far out, where the first layer is a pattern of signs (`sign_patterns`);
3. the second layer and the output layer from these, as one hidden layer with known inputs (`second_layer`);
4. norms and biases of the first layer, all else being known (`first_layer`);
5. all parameters by least squares on values near the origin.

Neither widths nor the activation nor that of the outputs need be known. No layer need be narrower than what
it reads, because the second layer's units live in the m1 dimensions of the signs, where they are far apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.far_field import CircleOptions
from unweave.methods.shared.final_fit import corrected_widths, final_fits, points_near, with_final_fit
from unweave.methods.smooth_patterns.directions import CIRCLES, DirectionSearch, Hyperplanes
from unweave.methods.smooth_patterns.far_normals import COARSE_CIRCLES, NormalOptions
from unweave.methods.smooth_patterns.first_layer import ProfileOptions, first_layer
from unweave.methods.smooth_patterns.second_layer import SecondLayer, SecondLayerOptions, SecondLayerSearch
from unweave.methods.smooth_patterns.sign_patterns import PatternOptions, SignPatterns
from unweave.methods.smooth_patterns.unit_kind import unit_kind
from unweave.networks.activations import SOFTMAX
from unweave.networks.links import Link
from unweave.networks.network import Network
from unweave.networks.saturation import ERF, TANH, as_logistic
from unweave.search import Candidate, Context, Evidence, GaveUp, LayerEvidence, Reason, Search
from unweave.targets.change_of_inputs import in_own_inputs

PATTERN_ACTIVATIONS = ("tanh", "sigmoid", "erf")
OUTPUTS = ("identity", "tanh", "sigmoid", SOFTMAX)
"""Output activations behind which sign patterns are read."""


class PatternReason(Reason):
    """Why no network with two such layers was found."""

    NO_UNITS = "far away no unit of a first hidden layer is seen to switch"
    FEW_PATTERNS = (
        "the {units} units of layer 1 show {patterns} sign patterns, too few for the layer behind them; "
        "more inputs would show more"
    )
    NOT_EXACT = (
        "{units} units behind the signs of {first} first-layer units leave a residual of {residual:.2g}: "
        "more than two hidden layers, units of another kind, or a first-layer unit that was not seen"
    )


@dataclass(frozen=True, kw_only=True)
class SmoothPatternsOptions:
    """How two hidden layers of any widths are searched for."""

    circles: CircleOptions = field(default_factory=lambda: CIRCLES)
    coarse_circles: CircleOptions = field(default_factory=lambda: COARSE_CIRCLES)
    """For answers in float32."""
    normals: NormalOptions = field(default_factory=NormalOptions)
    """For answers in float32."""
    patterns: PatternOptions = field(default_factory=PatternOptions)
    second_layer: SecondLayerOptions = field(default_factory=SecondLayerOptions)
    profiles: ProfileOptions = field(default_factory=ProfileOptions)
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
        second, link = self._second_layer(planes, activation)
        assert second.model is not None
        seen = self._ask.sent
        self._note_layer(2, second.units, second.residual, second.starts, seen - sent)
        self._doing = "norms and biases of the first hidden layer were being looked for"
        with self.journal.stage("layer 1 norms and biases") as stage:
            first = first_layer(self._ask, planes, second.model, link, self.rng, self._options.profiles)
            misfit = float(first.misfits.max())
            stage.figures.update(misfit=misfit)
        self._note_layer(1, planes.count, misfit, 1, self._ask.sent - seen)
        behind = second.model
        self._network = Network(
            [first.weights, *behind.weights],
            [first.biases, *behind.biases],
            [activation, activation, link.name],
        )
        self._polish()

    def _first_directions(self) -> tuple[Hyperplanes, str]:
        inputs, told = self.findings.region.n_inputs, self.request.activation
        with self.journal.stage("layer 1 directions") as stage:
            single = self.findings.noise.kind == "float32"
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
            if told is None:
                kind = unit_kind(self._ask, planes, noise, self.rng)
            else:
                kind = ERF if told == "erf" else TANH
            stage.figures.update(activation=kind.name)
        return planes, kind.name

    def _second_layer(self, planes: Hyperplanes, activation: str) -> tuple[SecondLayer, Link]:
        """Return the layer behind the signs, and the output activation behind which it was found."""
        hidden, options = self.request.hidden, self._options
        expected = planes.count if hidden is None else hidden[1]
        noise = self.findings.noise.relative
        with self.journal.stage("layer 2") as stage:
            where = options.patterns
            if self.findings.noise.kind == "float32":
                where = replace(where, radius=where.coarse_radius, least_angle=where.coarse_angle)
            patterns = SignPatterns(self._ask, planes, self.findings.n_outputs, self.rng, where)
            patterns.extend(options.first_patterns)
            if len(patterns.signs) < options.fewest_patterns:
                raise GaveUp(PatternReason.FEW_PATTERNS, units=planes.count, patterns=len(patterns.signs))
            searches = {
                link.name: SecondLayerSearch(
                    partial(patterns.rows, link),
                    activation,
                    (planes.count, expected, self.findings.n_outputs),
                    noise,
                    self.rng,
                    options.second_layer,
                    self.on_step,
                )
                for link in self._links(patterns.answers)
            }
            best, chosen = SecondLayer(None, np.inf, 0, 0, 0), Link("identity")
            while any(search.goes_on for search in searches.values()) and best.model is None:
                for name, search in searches.items():
                    if search.goes_on and best.model is None:
                        found = search.advance()
                        if found.residual < best.residual:
                            best, chosen = found, Link(name)
            stage.figures.update(
                units=best.units, residual=best.residual, starts=best.starts, patterns=best.rows
            )
            stage.figures.update(output=chosen.name)
        if best.model is None:
            raise GaveUp(
                PatternReason.NOT_EXACT, units=best.units, first=planes.count, residual=best.residual
            )
        return best, chosen

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
            equations_per_parameter=options.equations[self.findings.noise.kind == "float32"],
        )
        for fit in fits:
            self._network = fit.model.to_network()
            self._evidence = with_final_fit(self._evidence, fit, float(self.findings.spread.max()))

    def _near(self, count: int) -> Array:
        assert self._network is not None
        return points_near(self._network, self.findings.region, count, (self._options.spread,), self.rng)
