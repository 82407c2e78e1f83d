"""What the user may say about a network with one smooth hidden layer."""

from __future__ import annotations

from dataclasses import dataclass

from unweave.subspace.power_method import PowerMethodOptions

SMOOTH_ACTIVATIONS = ("tanh", "erf", "softplus", "gelu", "swish", "sine")
"""Activations tried when none is given; tanh stands for the logistic function too."""


@dataclass(frozen=True)
class ShallowOptions:
    """What the user said about the network."""

    width: int | None = None
    activations: tuple[str, ...] = SMOOTH_ACTIVATIONS
    power_method: PowerMethodOptions | None = None
    autodiff: bool = False
    """Whether gradients and Hessians are the target's own instead of differences of its answers."""
