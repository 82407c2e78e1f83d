"""Hypotheses of the bounds on risk, and what the bounds share: checks, balanced layers, costs of choices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from unweave.certify.margins import LabelledData, RiskBound
from unweave.certify.perturbation import LayerNorms
from unweave.errors import InvalidInput
from unweave.networks.network import Network

BASEL = np.pi**2 / 6
"""Sum of 1/j^2: the price of a choice among j = 1, 2, ..."""
SMALLEST_MARGIN = 2.0**-60
"""Smallest margin tried: below it, answers of order one differ by rounding."""


def balanced(network: Network) -> Network:
    """The same function with layers of one spectral norm, for a ReLU network without biases."""
    norms = LayerNorms.of(network)
    if homogeneous_problem(network, norms):
        raise InvalidInput(
            f"network must have relu units, no biases and no layer of zeros. Got {network!r} instead. "
            f"Only positive homogeneity lets factors move between layers."
        )
    beta = norms.geometric_mean
    weights = [w * (beta / norm) for w, norm in zip(network.weights, norms.weights, strict=True)]
    return Network(weights, network.biases, network.activations)


def homogeneous_problem(network: Network, norms: LayerNorms) -> str:
    """Reason why factors cannot move between the layers; empty if they can."""
    if len(norms.weights) < 2:
        return "the network must have a hidden layer"
    if network.skip is not None or any(norms.biases):
        return "the network must have no biases and no skip"
    if set(network.activations[:-1]) != {"relu"} or network.activations[-1] != "identity":
        return "the network must have relu units and an identity output"
    return "" if all(norms.weights) else "a layer has no weights but zeros"


def norm_problem(data: LabelledData, input_norm: float) -> str:
    """Report of an |x| that exceeds the bound on inputs; empty if none does."""
    allowed = input_norm * (1 + 4 * np.finfo(np.float64).eps)  # rows normalized to it may be off by rounding
    return "" if data.largest_norm <= allowed else f"|x| = {data.largest_norm:.3g} exceeds {input_norm:.3g}"


def infinite(loss: float, margin: float, reason: str, proved: bool = True) -> RiskBound:
    """No bound, and why."""
    return RiskBound(np.inf, loss, np.inf, margin, proved=proved, reason=reason)


def checked(
    network: Network, x: ArrayLike, y: ArrayLike, margin: float, input_norm: float, delta: float
) -> LabelledData:
    """The samples, once all arguments are usable."""
    for name, value in (("margin", margin), ("input_norm", input_norm)):
        if not (np.isfinite(value) and value > 0):
            raise InvalidInput(
                f"{name} must be positive and finite. Got {value} instead. Choose it in advance."
            )
    if not 0 < delta < 1:
        raise InvalidInput(f"delta must be between 0 and 1. Got {delta} instead. For example 0.05.")
    return LabelledData.of(network, x, y)


def require_alike(network: Network, others: Sequence[Network]) -> None:
    """Raise unless all networks have the same widths."""
    for other in others:
        same = isinstance(other, Network) and (other.n_inputs, other.hidden, other.n_outputs) == (
            network.n_inputs,
            network.hidden,
            network.n_outputs,
        )
        if not same:
            raise InvalidInput(
                f"networks must have the widths of {network!r}. Got {other!r} instead. Distances are taken "
                f"parameter by parameter."
            )


def layer_distances(a: Network, b: Network) -> list[float]:
    """|A_l - B_l|^2 with the biases, layer by layer."""
    pairs = zip(a.weights, b.weights, a.biases, b.biases, strict=True)
    return [float(np.sum((w - v) ** 2) + np.sum((p - q) ** 2)) for w, v, p, q in pairs]


def integer_cost(j: int) -> float:
    """-log of a probability over the integers that falls like 1/j^2."""
    return float(np.log((2 * BASEL - 1) * (1 + abs(j)) ** 2))


def grid_point(value: float, low: float, high: float, points: int) -> float:
    """The middle of value's cell, of ``points`` equal cells in [low, high]."""
    width = (high - low) / points
    cell = 0 if width == 0 else min(points - 1, int((value - low) / width))
    return float(low + (cell + 0.5) * width)
