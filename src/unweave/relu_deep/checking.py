"""Rows that a network found must answer as the target does, chosen so that a missing unit shows.

A unit that is rarely active is missed by lines and by rows at random alike. Rows where the first layer's
states are extreme, x = argmax_{|x| = r} w . h(x) for random w, spread over directions in which the units of the
next layer differ most from what they usually are.
"""

from __future__ import annotations

import numpy as np

from unweave.activations import get_activation
from unweave.arrays import Array
from unweave.network import Network

_SPREADS = np.array([1.0, 3.0, 10.0])
_ASCENTS = 6


def check_points(network: Network, count: int, rng: np.random.Generator) -> Array:
    """(count, d): half at random, half extreme, at several distances."""
    half = count // 2
    radii = _SPREADS[rng.integers(len(_SPREADS), size=count)]
    points = rng.standard_normal((count, network.n_inputs)) * radii[:, None]
    points[:half] = _extreme(network, points[:half], rng)
    return points


def _extreme(network: Network, points: Array, rng: np.random.Generator) -> Array:
    """Points of the same lengths where a random combination of the first states is as large as can be."""
    weights, biases = network.weights[0], network.biases[0]
    below = float(-get_activation(network.activations[0])(np.array([-1.0]))[0])
    wanted = rng.standard_normal((len(points), weights.shape[1]))
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    for _ in range(_ASCENTS):
        slopes = np.where(points @ weights + biases > 0, 1.0, below)
        uphill = (slopes * wanted) @ weights.T
        size = np.linalg.norm(uphill, axis=1, keepdims=True)
        points = np.where(size > 0, lengths * uphill / np.where(size > 0, size, 1.0), points)
    return points
