"""Hypotheses and weight figures of networks with several hidden layers, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from unweave.diagnose.hypotheses import (
    ActivationHypotheses,
    Independence,
    activation_hypotheses,
    independence,
)
from unweave.diagnose.incoherence import Incoherence, incoherence, unit_columns
from unweave.networks.activations import get_activation
from unweave.networks.network import Network


@dataclass(frozen=True, eq=False)
class LayerDiagnostics:
    """Figures of one hidden layer, its weights scaled to unit columns."""

    incoherence: Incoherence
    independence: Independence
    activation: ActivationHypotheses
    smallest_singular: float
    """Least singular value of the weights over the largest: what is lost of the digits behind the layer."""


@dataclass(frozen=True, eq=False)
class DeepDiagnostics:
    """The deep network model ([identification] Assumption 4.1), and all hidden layers."""

    layers: tuple[LayerDiagnostics, ...]
    pyramidal: bool
    """Whether no hidden layer is wider than what it reads (DNM4)."""
    units: int
    """m*: hidden units, the number of rank-one matrices that Hessians mix."""
    shown: int
    """Largest number of units that D(D-1)/2 leaves room for."""

    @property
    def smooth(self) -> bool:
        """Whether all activations meet DNM1 and DNM2."""
        return all(layer.activation.deep for layer in self.layers)


def diagnose_layers(network: Network) -> DeepDiagnostics:
    """Diagnostics of all hidden layers of ``network``, one or more.

    Example:
        >>> from unweave.networks.random import random_network
        >>> found = diagnose_layers(random_network([10, 8, 5, 1], seed=0))
        >>> found.pyramidal, found.smooth, found.units
        (True, True, 13)
    """
    layers = []
    for weight, bias, name in zip(
        network.weights[:-1], network.biases[:-1], network.activations[:-1], strict=True
    ):
        columns, _ = unit_columns(weight)
        values = np.linalg.svd(weight, compute_uv=False)
        layers.append(
            LayerDiagnostics(
                incoherence(columns),
                independence(columns),
                activation_hypotheses(get_activation(name), bias),
                float(values[-1] / values[0]),
            )
        )
    inputs = network.n_inputs
    return DeepDiagnostics(
        layers=tuple(layers),
        pyramidal=all(a >= b for a, b in pairwise((inputs, *network.hidden))),
        units=sum(network.hidden),
        shown=inputs * (inputs - 1) // 2,
    )
