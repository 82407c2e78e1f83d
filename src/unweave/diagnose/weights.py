"""All weight diagnostics of a known one-hidden-layer network in one call."""

from __future__ import annotations

from dataclasses import dataclass

from unweave.arrays import Array
from unweave.diagnose.frame_theory import FrameTheory, frame_theory
from unweave.diagnose.incoherence import Incoherence, incoherence, unit_columns
from unweave.diagnose.learnability import Learnability, expected_learnability
from unweave.diagnose.shifts import ShiftProblem, shift_problem
from unweave.errors import InvalidInput
from unweave.networks.activations import get_activation
from unweave.networks.network import Network


@dataclass(frozen=True, eq=False)
class WeightDiagnostics:
    """How hard a one-hidden-layer network is to recover, judged by its weights.

    The figures are those of the network with weights w_k / |w_k| and unchanged shifts.
    """

    norms: Array
    """(m,) norms of the weights; spread over orders of magnitude, the faint units show last."""
    incoherence: Incoherence
    """Whether the units can be separated, and at what loss of digits."""
    frame: FrameTheory
    """Guarantees of the linear-regime theorems; they hold only for weights close to orthonormal."""
    learnability: Learnability | None
    """How well Gaussian Hessians show the units; None for activations with a kink."""
    shifts: ShiftProblem | None
    """How well the shifts are conditioned on Gaussian inputs; None for activations with a kink."""


def diagnose_network(network: Network, subspace_error: float = 0.0) -> WeightDiagnostics:
    """Diagnostics of a one-hidden-layer ``network``; ``subspace_error`` is the delta of an estimated span.

    Cost: a handful of m x m eigenproblems.

    Example
    -------
    >>> from unweave.networks.random import random_network
    >>> diagnose_network(random_network([20, 40, 1], seed=1)).incoherence.independent
    True
    """
    if len(network.hidden) != 1:
        raise InvalidInput(
            f"network must have one hidden layer. Got {len(network.hidden)} instead. "
            "Diagnose the layers of a deeper network one at a time."
        )
    weights, norms = unit_columns(network.weights[0])
    activation = get_activation(network.activations[0])
    figures = incoherence(weights)
    smooth = activation.smooth
    biases, outgoing = network.biases[0], network.weights[1]
    return WeightDiagnostics(
        norms=norms,
        incoherence=figures,
        frame=frame_theory(max(0.0, figures.frame_constant), subspace_error),
        learnability=expected_learnability(weights, biases, activation, outgoing) if smooth else None,
        shifts=shift_problem(weights, biases, activation) if smooth else None,
    )
