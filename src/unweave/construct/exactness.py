"""Networks in fractions or in floats, and the choice between the two."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from unweave.arrays import AnyArray
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.networks.rationals import fraction, holds_fractions, rational_array

Number = Any  # float or Fraction, never mixed


def as_exact(network: Network) -> Network:
    """The same network with fractions for parameters: every float64 is a rational number, so none changes."""
    if network.is_exact:
        return network
    weights = [rational_array(w, "weights") for w in network.weights]
    biases = [rational_array(b, "biases") for b in network.biases]
    skip = None if network.skip is None else rational_array(network.skip, "skip")
    return Network(weights, biases, network.activations, skip)


def as_float(network: Network) -> Network:
    """The network with its parameters rounded to float64."""
    if not network.is_exact:
        return network
    try:
        weights = [w.astype(np.float64) for w in network.weights]
        biases = [b.astype(np.float64) for b in network.biases]
        skip = None if network.skip is None else network.skip.astype(np.float64)
    except OverflowError as error:
        raise InvalidInput(
            f"network must have parameters below 1.8e308 to be rounded. Got {network!r} with a larger one "
            f"instead. Keep it exact, or rescale it."
        ) from error
    return Network(weights, biases, network.activations, skip)


def alike(networks: Sequence[Network]) -> list[Network]:
    """Make all networks exact if one is, so that they combine without rounding."""
    exact = any(network.is_exact for network in networks)
    return [as_exact(network) for network in networks] if exact else list(networks)


def size(network: Network) -> int:
    """Number of hidden units (gates)."""
    return sum(network.hidden)


def depth(network: Network) -> int:
    """Number of layers with weights: one more than there are hidden layers."""
    return len(network.weights)


def is_exact(exact: bool | None, *values: Any) -> bool:
    """``exact``; if it is None, whether a Fraction is among the numbers given."""
    return any(holds_fractions(value) for value in values) if exact is None else exact


def number(value: Any, exact: bool, name: str) -> Number:
    """A finite real number, as Fraction or float."""
    if exact:
        return fraction(value, name)
    try:
        converted = float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(
            f"{name} must be real numbers. Got {value!r} instead ({error}). Give floats, or fractions."
        ) from error
    if not np.isfinite(converted):
        raise InvalidInput(f"{name} must be finite. Got {value!r} instead. Leave such entries out.")
    return converted


def numbers(values: Any, exact: bool, name: str) -> list[Number]:
    """A list of finite real numbers, as Fractions or floats."""
    try:
        listed = list(values)
    except TypeError as error:
        raise InvalidInput(
            f"{name} must be a list of numbers. Got {values!r} instead. Put a single one into a list."
        ) from error
    return [number(value, exact, name) for value in listed]


def array(values: Any, exact: bool, name: str = "values") -> AnyArray:
    """An array of Fractions or of float64."""
    if exact:
        return rational_array(values, name)
    try:
        converted = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"{name} must be a rectangular array of real numbers. Got {type(values).__name__} instead "
            f"({error}). Give rows of one length."
        ) from error
    if not np.isfinite(converted).all():
        raise InvalidInput(f"{name} must be finite. Got NaN or infinite entries instead. Remove them.")
    return converted


def zeros(shape: int | tuple[int, ...], exact: bool) -> AnyArray:
    """Zeros, as Fractions or float64."""
    return np.full(shape, Fraction(0), dtype=object) if exact else np.zeros(shape)


def identity(n: int, exact: bool) -> AnyArray:
    """The (n, n) identity matrix, as Fractions or float64."""
    result = zeros((n, n), exact)
    result[np.arange(n), np.arange(n)] = Fraction(1) if exact else 1.0
    return result
