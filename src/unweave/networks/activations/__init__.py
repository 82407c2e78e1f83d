"""Activation functions: values, derivatives up to the third, symmetries, and a registry by name."""

from __future__ import annotations

from unweave.networks.activations.activation import MAX_ORDER, Activation, Reflection, hermite_polynomials
from unweave.networks.activations.registry import (
    SOFTMAX,
    activation_names,
    get_activation,
    hidden_activation,
    register_activation,
)

__all__ = [
    "MAX_ORDER",
    "SOFTMAX",
    "Activation",
    "Reflection",
    "activation_names",
    "get_activation",
    "hermite_polynomials",
    "hidden_activation",
    "register_activation",
]
