"""Networks in the style of the source, and the truth that its algorithms are measured against."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from unweave.derivatives.entangled import entangled_weights
from unweave.networks.network import Network


def planted(
    n_inputs: int,
    widths: Sequence[int],
    seed: int,
    output: str = "tanh",
    activation: str = "tanh",
    shift: float = 0.05,
) -> Network:
    """Unit columns in all layers, shifts of standard deviation ``shift``."""
    rng = np.random.default_rng(seed)
    sizes = [n_inputs, *widths]
    weights, biases = [], []
    for before, after in pairwise(sizes):
        columns = rng.standard_normal((before, after))
        weights.append(columns / np.linalg.norm(columns, axis=0))
        biases.append(shift * rng.standard_normal(after))
    return Network(weights, biases, [activation] * (len(widths) - 1) + [output])


def true_layers(network: Network, anchor: np.ndarray | None = None) -> list[np.ndarray]:
    """Unit entangled weights (D, m_l) of all layers."""
    point = np.zeros((1, network.n_inputs)) if anchor is None else anchor[None]
    return [unit(matrix[0]) for matrix in entangled_weights(network, point).matrices]


def unit(columns: np.ndarray) -> np.ndarray:
    return columns / np.linalg.norm(columns, axis=0)


def disordered(
    layers: Sequence[np.ndarray], rng: np.random.Generator, low: float = 1.0, high: float = 1.0
) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
    """Columns in random order (not the last layer's), times scales in [low, high] of random sign (idem)."""
    permutations, scales = [], []
    for layer in layers[:-1]:
        permutations.append(rng.permutation(layer.shape[1]))
        scales.append(rng.choice([-1.0, 1.0], layer.shape[1]) * rng.uniform(low, high, layer.shape[1]))
    outputs = layers[-1].shape[1]
    permutations.append(np.arange(outputs))
    scales.append(rng.uniform(low, high, outputs))
    mixed = [
        layer[:, order] * scale for layer, order, scale in zip(layers, permutations, scales, strict=True)
    ]
    return mixed, permutations, scales


def worst_distance(found: np.ndarray, columns: np.ndarray) -> float:
    """max over unit ``columns`` (D, m) of the distance to the nearest row of ``found`` (n, D), up to sign."""
    overlap = np.abs(found @ columns).max(axis=0)
    return float(np.sqrt(np.maximum(2 - 2 * overlap, 0)).max())
