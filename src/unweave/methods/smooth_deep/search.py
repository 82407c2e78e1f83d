"""Networks with several smooth hidden layers from queries, layer by layer.

1. what the first layer reads (`reading_frame`), and the layer itself from the far field (`first_layer`);
   inside a box, where the far field is out of reach, the first layer is found like any other;
2. each further layer through the known ones (`inner_layer`), until what remains is affine up to an
   output activation;
3. the output layer by linear least squares;
4. Gauss-Newton on all parameters (`unweave.networks.value_fit`), to the last digit.

An output activation phi acts on each output alone, so gradients keep their directions, and the layers before
the last do not depend on it. Only the last hidden layer tells phi^{-1}(f) from f, at no query.

Assumed: tanh, logistic or erf units; no layer wider than what it reads. Neither widths, depth nor the
output activation need be known.
"""

from __future__ import annotations

from dataclasses import replace

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.methods.shared.final_fit import corrected_widths, final_fits, with_final_fit
from unweave.methods.smooth_deep.base_points import PointSource
from unweave.methods.smooth_deep.first_layer import FirstLayerSearch
from unweave.methods.smooth_deep.inner_layer import InnerLayerSearch
from unweave.methods.smooth_deep.known_layers import KnownLayers
from unweave.methods.smooth_deep.layer_search import DeepReason, LayerFound, LayerSetting
from unweave.methods.smooth_deep.options import SmoothDeepOptions
from unweave.methods.smooth_deep.reading_frame import GradientSample, independent_outputs, reading_frame
from unweave.networks.links import Link
from unweave.networks.network import Network
from unweave.networks.saturation import ERF, TANH, as_logistic
from unweave.networks.value_fit import OutputFit, fit_output
from unweave.numerics.clock import check
from unweave.search import Candidate, Context, Evidence, GaveUp, LayerEvidence, Search
from unweave.targets.change_of_inputs import in_own_inputs

DEEP_ACTIVATIONS = ("tanh", "sigmoid", "erf")
OUTPUTS = {name: Link(name) for name in ("identity", "tanh", "sigmoid")}
"""Output activations that a deep network may have, the simplest first."""


class SmoothDeepSearch(Search):
    """Finds one layer after the other, then all parameters together."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        findings, request = self.findings, self.request
        self._ask = context.view
        self._options: SmoothDeepOptions = context.options
        self._points = PointSource(findings.region, self.rng, self._options.points)
        self._outputs: tuple[Link, ...] = ()
        self._known = KnownLayers((), ERF if request.activation == "erf" else TANH)
        # A bottleneck lets no more outputs through than it has units.
        self._independent = min(findings.n_outputs, *(request.hidden or (findings.n_outputs,)))
        self._network: Network | None = None
        self._trusted = self._known
        self._doubt: GaveUp | None = None
        """Why the first uncertain layer may be wrong; the final fit may still mend it."""
        self._evidence = Evidence()
        self._notes: list[str] = []

    def candidate(self) -> Candidate:
        """Return the network if it is complete, and the layers that are certain."""
        known = self._trusted.as_network()
        return Candidate(
            network=None if self._network is None else self._in_inputs(self._network),
            evidence=self._evidence,
            notes=tuple(self._notes),
            known_layers=None if known is None else self._in_inputs(known),
        )

    def so_far(self) -> str:
        """Name the layer that was searched for."""
        return f"layer {len(self._known.layers) + 1} was being looked for"

    def _told_width(self, number: int) -> int | None:
        """Return the width that the caller gives to layer ``number``, the first being 1."""
        hidden = self.request.hidden
        return hidden[number - 1] if hidden is not None and number <= len(hidden) else None

    def _told_last(self, number: int) -> bool | None:
        """Return whether the caller says that layer ``number`` is the last hidden one."""
        return None if self.request.hidden is None else number >= len(self.request.hidden)

    def run(self) -> None:
        """Find layers until what follows is affine, then fit all parameters."""
        with self.journal.stage("layer 1 inputs") as stage:
            answers = self._ask(self._points.inputs(2 * self.findings.region.n_inputs + 20))
            self._outputs = possible_outputs(answers, self.request.output_activation)
            n_inputs = self.findings.region.n_inputs
            frame, sample = self._reading_frame(self._told_width(1))
            stage.figures.update(inputs=n_inputs, read=frame.shape[1])
        number, found = 1, self._layer(1, frame, sample)
        while True:
            check()
            known = self._known.with_layer(found.layer)
            output = self._output_layer(known, found)
            if output is None and found.problem is not None:
                self._doubt = self._doubt or GaveUp(DeepReason.LAYER, number=number, what=found.problem)
                if not found.residual < self._options.worth_trying:
                    raise self._doubt
            if self._doubt is None:
                self._trusted = known
            self._known = known
            if output is not None or number >= self._options.most_layers:
                break
            number += 1
            assert found.next_range is not None
            found = self._layer(number, found.next_range, None)
        if output is None:
            raise GaveUp(DeepReason.NO_END, layers=number)
        self._network = self._assembled(*output)
        self._notes.extend(corrected_widths(self.request.hidden, self._network.hidden))
        self._polish()
        if self._doubt is not None:
            raise self._doubt
        if found.problem is not None:
            raise GaveUp(DeepReason.LAST_LAYER, what=found.problem)

    def _layer(self, number: int, frame: Array, sample: GradientSample | None) -> LayerFound:
        """Find layer ``number``; if there is none, an earlier doubt explains that better."""
        try:
            if number == 1 and not self.findings.region.has_box:
                return self._first_layer(frame, sample)
            return self._inner_layer(number, frame)
        except GaveUp as error:
            raise self._doubt or GaveUp(DeepReason.LAYER, number=number, what=error) from error

    def _reading_frame(self, width: int | None) -> tuple[Array, GradientSample | None]:
        """Find the frame (D, d) of layer 1, and count the independent outputs."""
        n_inputs, n_outputs = self.findings.region.n_inputs, self.findings.n_outputs
        options = self._options.frame
        frame, sample = reading_frame(self._ask, self._points, n_inputs, n_outputs, width, options)
        if sample is not None:
            self._independent = independent_outputs(sample, options.rank)
        return frame, sample

    def _first_layer(self, frame: Array, sample: GradientSample | None) -> LayerFound:
        sent = self._ask.sent
        with self.journal.stage("layer 1 directions") as stage:
            search = FirstLayerSearch(self._setting(), frame, sample)
            try:
                search.find_directions()
            except GaveUp:
                if sample is not None:
                    raise
                # The caller says that the layer is as wide as the inputs, but is it?
                frame, sample = self._reading_frame(None)
                if frame.shape[1] == len(frame):
                    raise
                search = FirstLayerSearch(self._setting(), frame, sample)
                search.find_directions()
            finally:
                stage.figures.update(found=len(search.units), circles=search.circles)
        with self.journal.stage("layer 1 norms") as stage:
            profiles = search.find_profiles(self._known.g)
            largest = self._options.profiles.other_activation
            if self.request.activation is None and profiles.typical_residual > largest:
                others = search.find_profiles(ERF)
                if others.typical_residual < profiles.typical_residual:
                    profiles, self._known = others, KnownLayers((), ERF)
            stage.figures.update(activation=self._known.g.name, residual=profiles.typical_residual)
        search.check_count()  # more circles may have shown more units
        with self.journal.stage("layer 1 biases") as stage:
            found = search.find_biases(profiles, self._known.g, self._told_width(2), self._told_last(2))
            self._note_layer(1, found, self._ask.sent - sent)
            stage.figures.update(**found.figures())
        return found

    def _setting(self) -> LayerSetting:
        return LayerSetting(
            ask=self._ask,
            points=self._points,
            outputs=self._outputs,
            n_outputs=self._independent,
            journal=self.journal,
            rng=self.rng,
            options=self._options,
        )

    def _inner_layer(self, number: int, frame: Array) -> LayerFound:
        sent = self._ask.sent
        with self.journal.stage(f"layer {number}") as stage:
            found = InnerLayerSearch(self._setting(), self._known, frame).run(
                self._told_width(number + 1), self._told_last(number), self._told_last(number + 1)
            )
            self._note_layer(number, found, self._ask.sent - sent)
            stage.figures.update(**found.figures())
        return found

    def _note_layer(self, number: int, found: LayerFound, queries: int) -> None:
        entry = LayerEvidence(
            layer=number,
            width=found.layer.width,
            residual=found.residual,
            gap=found.gap,
            off_diagonal=found.off_diagonal,
            attempts=found.attempts,
            queries=queries,
        )
        self._evidence = replace(self._evidence, layers=(*self._evidence.layers, entry))

    def _output_layer(self, known: KnownLayers, found: LayerFound) -> tuple[OutputFit, Link] | None:
        """Fit the output layer; return None if more than that is left after the known layers."""
        with self.journal.stage("output layer") as stage:
            points = self._points.for_values(known, 3 * found.layer.width + self._options.spare_points)
            answers = self._ask(points)
            states = known.states(points).last
            outputs = self._outputs if found.output is None else (found.output,)
            fits = [(fit_output(states, answers, output), output) for output in outputs]
            best = min(fits, key=lambda pair: pair[0].residual)
            stage.figures.update(residual=best[0].residual, activation=best[1].name)
        return best if found.is_last or best[0].residual < self._options.affine else None

    def _assembled(self, fit: OutputFit, output: Link) -> Network:
        layers = self._known.layers
        weights = [*(layer.weights for layer in layers), fit.weights]
        biases = [*(layer.biases for layer in layers), fit.biases]
        return Network(weights, biases, [self._known.g.name] * len(layers) + [output.name])

    def _polish(self) -> None:
        assert self._network is not None
        options = self._options
        fits = final_fits(
            self._network,
            lambda count: self._points.for_values(self._known, count),
            self._ask,
            float(self.findings.noise.sigma_per_output.max()),
            self.journal,
            polishes=options.polishes,
            settled=options.settled,
            hopeless=options.hopeless,
        )
        for fit in fits:
            self._network = fit.model.to_network()
            self._evidence = with_final_fit(self._evidence, fit, float(self.findings.spread.max()))

    def _in_inputs(self, network: Network) -> Network:
        """Turn to the target's own inputs, and to logistic units if the caller asks for them."""
        moved = in_own_inputs(network, self.findings.region)
        if self.request.activation == "sigmoid" and self._network is not None:
            return as_logistic(moved)
        return moved


def possible_outputs(answers: Array, name: str | None) -> tuple[Link, ...]:
    """Return the output activations to consider, given all ``answers`` (n, K) seen so far."""
    if name is None:
        return tuple(output for output in OUTPUTS.values() if output.fits(answers))
    if name not in OUTPUTS:
        raise InvalidInput(
            f"output_activation must be one of {', '.join(OUTPUTS)} for networks with several hidden layers. "
            f"Got {name!r} instead."
        )
    return (OUTPUTS[name],)
