"""Deep networks of unit columns that several experiments plant, and distances of directions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from unweave.arrays import Array
from unweave.networks.network import Network
from unweave.subspace.power_method import uniform_starts


def distances(rows: Array, others: Array) -> Array:
    """Distance (m,) of every unit row (m, D) to the nearest of ``others`` (n, D) up to sign; inf if none."""
    if not len(others):
        return np.full(len(rows), np.inf)
    overlap = rows @ others.T
    nearest = np.argmax(np.abs(overlap), axis=1)
    signs = np.sign(overlap[np.arange(len(rows)), nearest])
    return np.asarray(np.linalg.norm(rows - signs[:, None] * others[nearest], axis=1))


def deep_network(
    rng: np.random.Generator, inputs: int, widths: Sequence[int], output: str, shifts: float
) -> Network:
    """A tanh network of ``widths``, the output's last: unit columns, biases N(0, ``shifts``^2)."""
    weights, biases = [], []
    for before, after in pairwise((inputs, *widths)):
        weights.append(uniform_starts(after, before, rng).T)
        biases.append(shifts * rng.standard_normal(after))
    return Network(weights, biases, ["tanh"] * (len(widths) - 1) + [output])


def sum_of_units(rng: np.random.Generator, inputs: int, width: int, shifts: float) -> Network:
    """sum_k tanh(w_k . x + tau_k): unit columns, shifts N(0, ``shifts``^2)."""
    weights = uniform_starts(width, inputs, rng).T
    biases = shifts * rng.standard_normal(width)
    return Network([weights, np.ones((width, 1))], [biases, np.zeros(1)], ["tanh", "identity"])


def uniform_error(
    truth: Network, found: Network, points: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Largest |f(x) - f^(x)| over ``points`` Gaussian inputs, and the same over the largest |f(x)|."""
    moved, size, block = 0.0, 0.0, 10_000
    for first in range(0, points, block):
        x = rng.standard_normal((min(block, points - first), truth.n_inputs))
        answers = truth(x)
        moved = max(moved, float(np.linalg.norm(answers - found(x), axis=1).max()))
        size = max(size, float(np.linalg.norm(answers, axis=1).max()))
    return moved, moved / size


def unit_errors(truth: Network, found: Network) -> tuple[float, float]:
    """Largest distance of a weight to the nearest found, and the l2 distance of the shifts matched so."""
    a, b = truth.weights[0].T, found.weights[0].T
    far = np.sqrt(np.maximum(np.sum(a**2, 1)[:, None] + np.sum(b**2, 1) - 2 * a @ b.T, 0.0))
    near = np.argmin(far, axis=1)
    worst = float(far[np.arange(len(a)), near].max())
    return worst, float(np.linalg.norm(truth.biases[0] - found.biases[0][near]))
