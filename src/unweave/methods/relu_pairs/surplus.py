"""Units of two kinked layers that others make up for.

A hyperplane that belongs to no unit of the first layer, or a second unit for one surface, does nothing in an
exact fit, or the same as others: without it the rest fits as well. Which one it is only a fit can say, and
those that add least come first. The influence of a unit of the first layer is what the second one reads of
it,

    a_i = sum_k |V_ik| |o_k| std(g(z_i)),

with V the weights of the second layer and o_k what its unit k adds to the outputs.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.networks.network import Network


def weakest(network: Network, points: Array, count: int) -> list[tuple[int, int]]:
    """Return (layer, unit) of the ``count`` units of each hidden layer that add least at points (n, d)."""
    choices: list[tuple[int, int]] = []
    for layer in (1, 0):
        if network.hidden[layer] < 2:
            continue
        order = np.argsort(contributions(network, layer, points))[:count]
        choices += [(layer, int(unit)) for unit in order]
    return choices


def contributions(network: Network, layer: int, points: Array) -> Array:
    """Return how much (m,) the units of a hidden layer (0 or 1) move the answers before the link."""
    below = Network(
        network.weights[: layer + 1], network.biases[: layer + 1], network.activations[: layer + 1]
    )
    outgoing = np.linalg.norm(network.weights[2], axis=1)
    if layer == 0:
        outgoing = np.abs(network.weights[1]) @ outgoing
    return np.asarray(below(points).std(axis=0) * outgoing)


def without(network: Network, layer: int, unit: int) -> Network:
    """Return the network without a unit of a hidden layer (0 or 1)."""
    kept = np.arange(network.hidden[layer]) != unit
    weights, biases = list(network.weights), list(network.biases)
    weights[layer], biases[layer] = weights[layer][:, kept], biases[layer][kept]
    weights[layer + 1] = weights[layer + 1][kept]
    return Network(weights, biases, network.activations)
