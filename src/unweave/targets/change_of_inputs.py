"""The same network seen in other inputs: f(s u + c) as a network of u."""

from __future__ import annotations

from unweave.arrays import Array
from unweave.networks.network import Network
from unweave.targets.region import Region


def in_normalised_inputs(network: Network, region: Region) -> Network:
    """Return the network of u = (x - location) / scale that ``network`` is of x."""
    return _of(network, region.scale, region.location)


def in_own_inputs(network: Network, region: Region, spread: Array | None = None) -> Network:
    """Return the network of x that ``network`` is of u = (x - location) / scale.

    With ``spread`` (K,), outputs of ``network`` are in units of it, and those of the result are not.
    """
    moved = _of(network, 1 / region.scale, -region.location / region.scale)
    if spread is None:
        return moved
    weights, biases, skip = list(moved.weights), list(moved.biases), moved.skip
    weights[-1], biases[-1] = weights[-1] * spread, biases[-1] * spread
    return Network(weights, biases, moved.activations, None if skip is None else skip * spread)


def _of(network: Network, scale: Array, location: Array) -> Network:
    """Return f(scale u + location) for scale and location (D,)."""
    weights, biases, skip = list(network.weights), list(network.biases), network.skip
    biases[0] = biases[0] + location @ weights[0]
    weights[0] = weights[0] * scale[:, None]
    if skip is not None:
        biases[-1] = biases[-1] + location @ skip
        skip = skip * scale[:, None]
    return Network(weights, biases, network.activations, skip)
