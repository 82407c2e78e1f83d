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
