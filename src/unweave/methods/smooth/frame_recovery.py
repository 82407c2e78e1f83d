"""One hidden layer in the coordinates of a frame: directions, neurons, then all parameters at once.

Gauss-Newton at the end stands on the values and gradients already paid for and a few more.
"""

from __future__ import annotations

import numpy as np

from unweave.derivatives.stencils import Jets
from unweave.execution.executor import Executor
from unweave.methods.smooth.final_fit import fit_all_parameters
from unweave.methods.smooth.found_so_far import FoundSoFar
from unweave.methods.smooth.frame_directions import DirectionFinder, Directions
from unweave.methods.smooth.frame_neurons import NeuronFitter, ProfileSamples
from unweave.methods.smooth.frame_target import FrameTarget
from unweave.methods.smooth.options import SmoothOptions
from unweave.networks.parameters import NetworkParameters
from unweave.search import GaveUp, Journal, Request

_OVERDETERMINED = 1.6  # equations per parameter in the final fit
_SITES_PER_NEURON = 1.5  # at least, however many equations several outputs give per site
_SITES_AT_NEURONS = 0.25  # sites per neuron placed where it acts, for the neurons that are seen least
_RIVAL = 10.0  # an activation whose profiles fit at most this much worse than the best may be the right one


class FrameRecovery:
    """Recovers the network that ``target`` is in its frame, and writes it to ``found``.

    ``in_all_inputs`` are the gradients that located the frame, ``noise`` is the answers' relative noise.
    """

    def __init__(
        self,
        target: FrameTarget,
        in_all_inputs: Jets,
        noise: float,
        request: Request,
        options: SmoothOptions,
        found: FoundSoFar,
        journal: Journal,
        rng: np.random.Generator,
        executor: Executor | None,
    ) -> None:
        self._target, self._in_all_inputs, self._noise = target, in_all_inputs, noise
        self._found, self._journal = found, journal
        self._jets = None if target.reduced else in_all_inputs
        """Gradients in the frame, on which the final fit stands besides the Hessians' own."""
        self._directions = DirectionFinder(target, request, options, found, journal, rng, executor)
        self._neurons = NeuronFitter(target, request, self._directions, found, journal, rng, executor)
        self.profiles: ProfileSamples | None = None
        """Samples of the neurons' own profiles, once there are directions."""

    def run(self) -> None:
        """Recover the network."""
        found, pencil = self._found, self._directions.by_pencils()
        if pencil is not None:
            self._finish(pencil)
        if pencil is None or not (found.at_floor and found.is_determined):
            try:
                span = self._directions.by_span()
            except GaveUp:
                if pencil is not None and found.at_floor:
                    return
                raise
            self._finish(span)

    def _finish(self, directions: Directions) -> None:
        """From directions to a fitted network; the next best activation is tried if the best does not fit."""
        found, previous = self._found, self._found.snapshot()
        self.profiles, ranking = self._neurons.rank_activations(directions)
        for rank, name in enumerate(ranking[:2]):
            if rank and (found.at_floor or not self._is_rival(ranking[0], name)):
                break
            best = found.snapshot() if rank else None
            self._neurons.fit(directions, self.profiles, name)
            self._polish()
            if best is not None and best.residual <= found.residual:
                found.restore(best)
        better = found.at_floor and found.is_determined
        if previous.model is not None and not better and previous.residual <= found.residual:
            found.restore(previous)

    def _is_rival(self, best: str, second: str) -> bool:
        residuals = self._found.evidence.activation_residuals
        return residuals[second] < _RIVAL * residuals[best]

    def _polish(self) -> None:
        """Gauss-Newton on everything, on values and gradients."""
        model, hessian_sites = self._found.model, self._directions.jets
        assert model is not None
        with self._journal.stage("polish") as stage:
            per_site = (self._target.dimension + 1) * self._target.outputs
            enough = max(_OVERDETERMINED * model.size / per_site, _SITES_PER_NEURON * model.width)
            needed = int(np.ceil(enough)) - len(hessian_sites)
            self._jets = self._target.gradients(self._jets, max(needed, 1))
            if not self._target.reduced:
                self._jets = self._with_sites_at_neurons(self._jets, model)
            jets = (self._jets, hessian_sites)
            model = self._fit_all(model, jets)
            stage.figures.update(
                equations=sum(len(part) for part in jets) * per_site,
                parameters=model.size,
                residual=self._found.residual,
                floor=float(self._found.evidence.fit_floor or 0.0),
                steps=len(self._found.evidence.fit_history) - 1,
            )

    def _with_sites_at_neurons(self, jets: Jets, model: NetworkParameters) -> Jets:
        """With gradients where the neurons act that the sites so far see least."""
        bend = model.activation.jet(jets.sites @ model.weights[0] + model.biases[0], 2)[2]
        seen = np.einsum("nm,nm->m", bend, bend)
        least = np.argsort(seen)[: int(np.ceil(_SITES_AT_NEURONS * model.width))]
        return Jets.concatenate([jets, self._target.gradients_at(model, least)])

    def _fit_all(self, model: NetworkParameters, jets: tuple[Jets, ...]) -> NetworkParameters:
        fit = fit_all_parameters(
            model, jets, self._noise, lambda step, _: self._journal.tell(step, None, "steps")
        )
        if fit.model.width < model.width:
            self._found.note(width=fit.model.width, found=fit.model.width)
        self._found.model = fit.model
        self._found.note(
            fit_history=fit.history,
            fit_floor=fit.floor,
            prediction_floor=float(np.hypot(fit.prediction_floor, self._lifting_floor())),
            condition=fit.condition,
            parameter_error_bar=fit.error_bar,
        )
        return fit.model

    def _lifting_floor(self) -> float:
        """What the noise of the gradients that locate the subspace leaves of a prediction."""
        if not self._target.reduced:
            return 0.0
        jets, d = self._in_all_inputs, self._target.dimension
        spare = max((len(jets) - 1) * self._target.outputs - d, 1)
        return self._noise * jets.gradient_noise * float(np.sqrt(jets.sites.shape[1] * d / spare))
