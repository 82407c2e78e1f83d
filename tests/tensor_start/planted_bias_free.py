"""Bias-free networks with known parameters, and Gaussian samples of them."""

from __future__ import annotations

import numpy as np

import unweave


def planted(
    inputs: int, width: int, activation: str, seed: int, samples: int = 0
) -> tuple[unweave.Network, np.ndarray, np.ndarray]:
    """Nearly orthogonal units of lengths 0.8 to 1.3 with output weights +-1, and samples (n, d), (n,)."""
    rng = np.random.default_rng(seed)
    weights = np.linalg.qr(rng.standard_normal((inputs, width)))[0]
    weights = (weights + 0.15 * rng.standard_normal((inputs, width))) * rng.uniform(0.8, 1.3, width)
    outer = rng.choice([-1.0, 1.0], (width, 1))
    network = unweave.Network([weights, outer], [np.zeros(width), np.zeros(1)], [activation, "identity"])
    x = rng.standard_normal((samples, inputs))
    return network, x, network(x)[:, 0]


def error_of(truth: unweave.Network, found: unweave.Network) -> float:
    """Largest |w - w'| over |w|, units matched; output weights must agree."""
    a, b = truth.weights[0], found.weights[0]
    distances = np.linalg.norm(a[:, :, None] - b[:, None, :], axis=0) / np.linalg.norm(a, axis=0)[:, None]
    order = distances.argmin(axis=1)
    assert len(set(order)) == len(order)
    assert (truth.weights[1] == found.weights[1][order]).all()
    return float(distances.min(axis=1).max())
