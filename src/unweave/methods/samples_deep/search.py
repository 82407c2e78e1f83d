"""Two hidden layers of told widths from samples: all parameters at once, at a ridge that falls.

Small random units are fitted as `layered_starts` says. Some starts end in local minima, so that there are
many; the first that is exact ends it. Kinked units have far more local minima than smooth ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.methods.shared.layered_starts import fit_layers, random_layers
from unweave.methods.shared.sample_evidence import (
    LARGEST_SAMPLE_CONDITION,
    SAMPLES_PER_PARAMETER,
    SampleEvidence,
    information,
    missing_directions_note,
    undetermined_weights,
)
from unweave.networks.activations import Activation, get_activation
from unweave.networks.parameters import NetworkParameters
from unweave.networks.standardized import StandardizedSamples
from unweave.networks.value_fit import ValueFitResult
from unweave.numerics.clock import check
from unweave.search import Candidate, Context, Search

UNTOLD = "tanh"
"""Activation of both layers where the caller gives none."""


@dataclass(frozen=True, kw_only=True)
class SamplesDeepOptions:
    """How hard to search for two layers."""

    starts: int = 24
    """Random starts."""
    work: float = 2e11
    """Flops of all fits together, roughly, after which no further start is made."""
    equations: float = 20.0
    """Equations per parameter that a start is fitted to."""
    near: float = 0.03
    """Residual below which a start is fitted without ridge."""


class SamplesDeepSearch(Search):
    """Fits both layers at once from random starts."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._options: SamplesDeepOptions = context.options
        self._samples = StandardizedSamples.of(context.view.x, context.view.y)
        self._best: ValueFitResult | None = None
        self._residual, self._starts = np.inf, 0

    def run(self) -> None:
        """Try starts until one is exact."""
        rows, options = self.context.view, self._options
        kind = get_activation(self.request.activation or UNTOLD)
        floor = rows.floor()[0]
        with self.journal.stage(f"fit two layers of {kind.name}") as stage:
            flops = 0.0
            while self._starts < options.starts and flops < options.work and self._residual > floor:
                check()
                self._starts += 1
                flops += self._try(self._start(kind))
                stage.figures.update(rows=len(rows.x), starts=self._starts, residual=float(self._residual))

    def candidate(self) -> Candidate:
        """Return the best fit."""
        if self._best is None:
            return Candidate(problem="no start came near the samples")
        rows, best = self.context.view, self._best
        network = self._samples.network(best.model)
        needed = SAMPLES_PER_PARAMETER * network.n_parameters / network.n_outputs
        missing = rows.x.shape[1] - self._samples.whitening.rank
        few = f"{rows.count} samples are too few for {network.n_parameters} parameters"
        ambiguity = "the answers agree, but the samples leave some parameters undetermined"
        homogeneous = best.model.activation.homogeneity is not None
        if missing:
            ambiguity = undetermined_weights(missing)
        open_parameters = not homogeneous and best.condition > LARGEST_SAMPLE_CONDITION
        return Candidate(
            network,
            SampleEvidence(
                restarts=self._starts,
                fit_history=(*best.history, float(self._residual)),
                fit_floor=rows.floor()[0],
                condition=None if homogeneous else best.condition,
                parameter_error_bar=best.error_bar,
                samples_per_parameter=rows.y.size / network.n_parameters,
            ),
            notes=(
                f"two hidden layers at once from {self._starts} random starts at a falling ridge",
                *((missing_directions_note(missing),) if missing else ()),
            ),
            causes="a local minimum, noise, or another number of layers or units",
            objection=few if rows.count < needed else None,
            ambiguity=ambiguity if missing or open_parameters else None,
            criterion=information(float(self._residual), network.n_parameters, rows.y.size),
        )

    def _start(self, kind: Activation) -> NetworkParameters:
        samples = self._samples
        assert self.request.hidden is not None
        widths = (samples.inputs.shape[1], *self.request.hidden, samples.answers.shape[1])
        return random_layers(widths, kind, self.rng)

    def _try(self, start: NetworkParameters) -> float:
        """Fit from one start, keep the result if it is the best, and return the flops it took."""
        samples, options = self._samples, self._options
        rows = min(len(samples.inputs), int(options.equations * start.size / samples.answers.shape[1]))
        near = np.inf if self._best is None else options.near
        inputs, answers = samples.inputs[:rows], samples.answers[:rows]
        found, _, flops = fit_layers(start, inputs, answers, near, self.on_step)
        if found is not None:
            residual = samples.residual(found.model)
            if residual < self._residual:
                self._best, self._residual = found, residual
        return flops
