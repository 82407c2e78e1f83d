"""The published pipeline for deep networks: [identification] Alg. 4.1, Alg. 4.2, completion.

From answers of a network with D inputs, hidden layers of odd smooth activations and widths
(m_1, .., m_L), output layer last, it recovers the entangled weights at x* from Hessians, sorts them into
layers by Hessians far from the origin, and fits the remaining 3 m - m_L + D scales and shifts to answers.
Kept as a reference to measure against: the result keeps the error of the entangled weights, 1e-3 to 1e-2.

Assumptions: architecture and activations known; D >= m_1 >= .. >= m_{L-1}; shifts small and weights of
about unit length; enough outputs, m* well below m_L (D + 1), for linear outputs min(m_L, m_L-1) (D + 1),
since each Hessian is then linear in the last layer's weights. x* = 0 unless told otherwise: there g' is
stationary while g'' moves, which the method lives on, and errors grow fast away from it. For L > 3 an oracle
must tell the inner layers apart.

Cost: 8 m (2 D^2 + 1) rows for the Hessians, the training rows, and O(m log m) power iterations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from unweave.arrays import Array, real_numbers
from unweave.derivatives.stencils import Function
from unweave.errors import InvalidInput
from unweave.networks.activations import get_activation
from unweave.networks.network import Network
from unweave.published.deep.completion import CompletionFit, complete, complete_in_closed_form, training_count
from unweave.published.deep.entangled_recovery import EntangledRecovery, recover_entangled_weights
from unweave.published.deep.layer_assignment import (
    LayerAssignment,
    LayerOracle,
    assign_layers,
    hidden_directions,
    layers_of,
)
from unweave.published.deep.options import PublishedDeepOptions
from unweave.published.deep.range_test import RepairedLayers, range_residuals, repair_by_swaps
from unweave.published.deep.reparametrization import reparametrise
from unweave.published.deep.sources import DerivativeSource, DifferencedFunction


class Outcome(Enum):
    """Stage that the pipeline reached; the value is the message."""

    COMPLETED = "all stages ran"
    STOPPED_AS_ASKED = "stopped before the completion, as asked"
    TOO_FEW_FOUND = (
        "fewer directions were found than there are hidden units: the Hessians near one point do not tell "
        "them apart. More outputs, or another route, are needed"
    )
    INNER_LAYERS_UNKNOWN = (
        "stopped after sorting into first, inner and last layer: with more than three layers this method "
        "needs a layer_oracle for the inner ones"
    )
    NOT_A_PYRAMID = (
        "stopped after sorting into layers: weights follow from entangled weights only if "
        "D >= m_1 >= .. >= m_L-1"
    )

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, eq=False)
class PublishedDeepResult:
    """What the pipeline recovered; None for stages it did not reach."""

    outcome: Outcome
    entangled: EntangledRecovery
    directions: Array
    """(found, D) unit directions of hidden units, unsorted."""
    assignment: LayerAssignment | None = None
    layers: tuple[Array, ...] | None = None
    """(D, m_l) unit entangled weights per layer, after repairs."""
    repair: RepairedLayers | None = None
    completion: CompletionFit | None = None
    """None also if completed in closed form."""
    network: Network | None = None
    figures: dict[str, float] = field(default_factory=dict)
    """Per-stage figures that need no truth: "found", "needed", "span gap", "lowest Phi", "score gap",
    "lowest first score", "highest inner score", "range residual", "swaps", "training rms"."""
    queries: dict[str, int] = field(default_factory=dict)
    """Rows asked by stage: "entangled weights", "assignment", "completion"."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds by the same stages."""


def recover_deep_as_published(
    function: Function | DerivativeSource,
    n_inputs: int,
    widths: Sequence[int],
    output_activation: str = "tanh",
    options: PublishedDeepOptions | None = None,
    rng: int | np.random.Generator = 0,
    layer_oracle: LayerOracle | None = None,
    activation: str | Sequence[str] = "tanh",
    clock: Callable[[], float] = time.perf_counter,
    anchor: Array | None = None,
) -> PublishedDeepResult:
    """Run the pipeline on answers, (n, D) to (n, m_L), or on a source of exact derivatives.

    ``anchor`` (D,) is x*, the point near which Hessians are taken; the origin if None. ``activation`` is that
    of all hidden layers, or one name for each ([identification] Def. 1.2).

    Example:
        >>> from unweave.networks.random import random_network
        >>> target = random_network([8, 8, 6], seed=2, outer="unit", bias=0.1, output_activation="tanh")
        >>> result = recover_deep_as_published(target, 8, (8, 6))
        >>> result.outcome.name, result.network
        ('COMPLETED', Network(8-8-6, tanh, tanh output, 126 parameters))
    """
    options = options or PublishedDeepOptions()
    widths = _checked_widths(widths)
    run = _Run(function, n_inputs, widths, output_activation, activation, options, rng, clock, anchor)
    run.find_directions()
    if len(run.directions) < run.hidden_units:
        return run.result(Outcome.TOO_FEW_FOUND)
    run.assign()
    if not run.sort_inner(layer_oracle):
        return run.result(Outcome.INNER_LAYERS_UNKNOWN)
    if any(after > before for before, after in zip((n_inputs, *widths[:-2]), widths[:-1], strict=True)):
        return run.result(Outcome.NOT_A_PYRAMID)
    if options.completion == "none":
        return run.result(Outcome.STOPPED_AS_ASKED)
    run.complete()
    return run.result(Outcome.COMPLETED)


class _Run:
    """The stages, one after the other, with what they found."""

    def __init__(
        self,
        function: Function | DerivativeSource,
        n_inputs: int,
        widths: tuple[int, ...],
        output_activation: str,
        activation: str | Sequence[str],
        options: PublishedDeepOptions,
        rng: int | np.random.Generator,
        clock: Callable[[], float],
        anchor: Array | None,
    ) -> None:
        self._source = (
            function
            if isinstance(function, DerivativeSource)
            else DifferencedFunction(function, options.step, options.scheme)
        )
        self._widths, self._options, self._rng = widths, options, np.random.default_rng(rng)
        hidden = (activation,) * (len(widths) - 1) if isinstance(activation, str) else tuple(activation)
        if len(hidden) != len(widths) - 1:
            raise InvalidInput(
                f"activation must be one name, or one for each of {len(widths) - 1} hidden layers. Got "
                f"{len(hidden)} instead. The output layer has output_activation."
            )
        self._activations = (*hidden, output_activation)
        self._anchor = np.zeros(n_inputs) if anchor is None else real_numbers(anchor, "anchor")
        if self._anchor.shape != (n_inputs,):
            raise InvalidInput(
                f"anchor must be of shape ({n_inputs},). Got {self._anchor.shape} instead. The origin is "
                "taken where none is given."
            )
        self._curved = get_activation(output_activation).name != "identity"
        self._clock, self._meter = clock, _Meter(self._source, clock)
        self.hidden_units = sum(widths[:-1])
        self.directions: Array = np.zeros((0, n_inputs))
        self._entangled: EntangledRecovery | None = None
        self._assignment: LayerAssignment | None = None
        self._layers: tuple[Array, ...] | None = None
        self._repair: RepairedLayers | None = None
        self._fit: CompletionFit | None = None
        self._network: Network | None = None
        self._figures: dict[str, float] = {}

    def find_directions(self) -> None:
        """[identification] Alg. 4.1, and the first half of 4.2."""
        units = sum(self._widths)
        rank = units if self._curved else self.hidden_units
        found = recover_entangled_weights(self._source, rank, units, self._rng, self._anchor, self._options)
        if len(found.output_gradients) != self._widths[-1]:
            raise InvalidInput(
                f"the last width must be the number of outputs, {len(found.output_gradients)}. "
                f"Got {self._widths[-1]} instead. Widths end with the output layer."
            )
        self.directions = hidden_directions(found, self.hidden_units, self._curved, self._rng, self._options)
        self._entangled = found
        self._figures |= {
            "found": len(self.directions),
            "needed": self.hidden_units,
            "distinct": len(found.directions),
            "span gap": found.span.gap(rank),
            "lowest Phi": float(found.objectives[:rank].min(initial=1.0)),
        }
        self._meter.lap("entangled weights")

    def assign(self) -> None:
        """[identification] Alg. 4.2 from its third step on."""
        assert self._entangled is not None
        self._assignment = assign_layers(
            self._source,
            self.directions,
            self._entangled.output_directions,
            self._widths,
            self._rng,
            self._options,
        )
        self._figures |= {
            "score gap": self._assignment.gap,
            "lowest first score": self._assignment.lowest_first,
            "highest inner score": self._assignment.highest_inner,
        }
        self._meter.lap("assignment")

    def sort_inner(self, oracle: LayerOracle | None) -> bool:
        """Layers from the assignment, repaired; False if the inner ones stay together."""
        assert self._assignment is not None
        self._layers = layers_of(self._assignment, self._widths, oracle)
        if self._layers is None:
            return False
        if self._options.repair:
            self._repair = repair_by_swaps(self._layers)
            self._layers = self._repair.layers
            self._figures["swaps"] = self._repair.swaps
        self._figures["range residual"] = float(range_residuals(self._layers).max(initial=0.0))
        return True

    def complete(self) -> None:
        """Scales and shifts."""
        assert self._layers is not None
        assert self._entangled is not None
        model = reparametrise(self._layers, self._activations)
        if self._options.completion == "closed form":
            here = self._anchor[None]
            parameters = complete_in_closed_form(
                model,
                self._layers,
                self._anchor,
                self._source.values(here)[0],
                self._entangled.output_gradients,
                self._source.hessians(here)[0],
            )
        else:
            points = self._rng.standard_normal((training_count(model, self._options), len(self._anchor)))
            answers = self._source.values(points)
            self._fit = complete(model, points, answers, self._rng, self._options, clock=self._clock)
            parameters = self._fit.parameters
            self._figures["training rms"] = self._fit.history[-1]
        self._network = model.to_network(parameters)
        self._meter.lap("completion")

    def result(self, outcome: Outcome) -> PublishedDeepResult:
        """Everything found so far."""
        assert self._entangled is not None
        return PublishedDeepResult(
            outcome,
            self._entangled,
            self.directions,
            self._assignment,
            self._layers,
            self._repair,
            self._fit,
            self._network,
            self._figures,
            self._meter.rows,
            self._meter.seconds,
        )


class _Meter:
    """Rows and seconds between laps."""

    def __init__(self, source: DerivativeSource, clock: Callable[[], float]) -> None:
        self._source, self._clock = source, clock
        self._last = (source.rows, clock())
        self.rows: dict[str, int] = {}
        self.seconds: dict[str, float] = {}

    def lap(self, name: str) -> None:
        now = (self._source.rows, self._clock())
        self.rows[name], self.seconds[name] = now[0] - self._last[0], now[1] - self._last[1]
        self._last = now


def _checked_widths(widths: Sequence[int]) -> tuple[int, ...]:
    checked = tuple(int(width) for width in widths)
    if len(checked) < 2 or min(checked) < 1:
        raise InvalidInput(
            f"widths must be at least two positive integers, hidden layers first and outputs last. "
            f"Got {list(widths)} instead. For example (50, 25, 10)."
        )
    return checked
