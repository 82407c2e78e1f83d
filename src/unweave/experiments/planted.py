"""What several experiments plant and compare: unit directions, and deep networks of unit columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from unweave.arrays import Array
from unweave.networks.network import Network


def unit_rows(rng: np.random.Generator, count: int, dimension: int) -> Array:
    """(count, D) rows, uniform on the unit sphere."""
    rows = rng.standard_normal((count, dimension))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


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
        weights.append(unit_rows(rng, after, before).T)
        biases.append(shifts * rng.standard_normal(after))
    return Network(weights, biases, ["tanh"] * (len(widths) - 1) + [output])
