"""Two hidden layers of kinked units that switch where they are asked, and what a float32 runtime answers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from unweave.arrays import Array
from unweave.networks.network import Network


def planted_pair(
    layers: list[int], activation: str = "relu", output: str = "identity", seed: int = 1000
) -> Network:
    """Normal weights of variance 2 / n_in, and biases of half a standard deviation."""
    rng = np.random.default_rng(seed)
    weights = [rng.standard_normal(shape) * np.sqrt(2 / shape[0]) for shape in pairwise(layers)]
    biases = [rng.standard_normal(width) / 2 for width in layers[1:]]
    return Network(weights, biases, [activation, activation, output])


def in_float32(network: Network) -> Callable[[Array], Array]:
    """Answer like a float32 runtime with the weights of a ReLU network."""
    layers = [
        (weights.astype(np.float32), biases.astype(np.float32))
        for weights, biases in zip(network.weights, network.biases, strict=True)
    ]

    def answer(x: Array) -> Array:
        hidden = x.astype(np.float32)
        for weights, biases in layers[:-1]:
            hidden = np.maximum(hidden @ weights + biases, 0)
        return np.asarray(hidden @ layers[-1][0] + layers[-1][1])

    return answer
