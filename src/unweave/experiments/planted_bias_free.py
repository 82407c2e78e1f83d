"""Bias-free networks y = sum_i v_i g(w_i . x) with v_i = +-1, as the tensor start wants them."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from unweave.arrays import Array, IntArray
from unweave.networks.network import Network


def plant(rng: np.random.Generator, inputs: int, width: int, activation: str) -> Network:
    """Nearly orthogonal units of lengths 0.8 to 1.3."""
    weights = np.linalg.qr(rng.standard_normal((inputs, width)))[0]
    weights = (weights + 0.15 * rng.standard_normal((inputs, width))) * rng.uniform(0.8, 1.3, width)
    outer = rng.choice([-1.0, 1.0], (width, 1))
    return Network([weights, outer], [np.zeros(width), np.zeros(1)], [activation, "identity"])


def matching(truth: Network, found: Network) -> tuple[IntArray, Array]:
    """Order (k,) of the found units, and the relative error (k,) of each."""
    a, b = truth.weights[0], found.weights[0]
    far = np.linalg.norm(a[:, :, None] - b[:, None, :], axis=0) / np.linalg.norm(a, axis=0)[:, None]
    rows, order = linear_sum_assignment(far)
    return order, np.asarray(far[rows, order])
