"""What is planted: subspaces of symmetric matrices for the power method alone, and networks of any depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

import unweave
from unweave.arrays import Array
from unweave.subspace import RankOneSpace, orthonormal_basis, symmetric_packing

FOUND = 1e-6
"""Largest distance at which a planted direction counts as found. Two random directions are of order one
apart; an exact span gives each of them to about 1e-12."""


@dataclass(frozen=True)
class Law:
    """How parameters are drawn, the same in all layers, the output's included."""

    norms: tuple[float, float]
    """Weight vectors: uniform on the sphere, times a length that is uniform between these."""
    bias: float
    """Standard deviation of the biases, which are normal."""


LAWS = {"generic": Law((0.6, 1.6), 0.5), "unit": Law((1.0, 1.0), 0.05), "steep": Law((2.0, 5.0), 0.5)}
"""By name. "unit" is the source's; "steep" is for sigmoid units, four times as flat as tanh ones."""


def planted_network(
    inputs: int, widths: Sequence[int], law: Law, seed: int, activation: str, output: str
) -> unweave.Network:
    """A network of ``widths``, the output's last, drawn by ``law``; ``output`` names the last activation."""
    rng = np.random.default_rng(seed)
    weights, biases = [], []
    for n_in, n_out in pairwise((inputs, *widths)):
        columns = rng.standard_normal((n_in, n_out))
        columns *= rng.uniform(*law.norms, n_out) / np.linalg.norm(columns, axis=0)
        weights.append(columns)
        biases.append(law.bias * rng.standard_normal(n_out))
    return unweave.Network(weights, biases, [activation] * (len(widths) - 1) + [output])


def planted_directions(dimension: int, count: int, seed: int) -> Array:
    """(count, D) uniform unit rows."""
    rows = np.random.default_rng(seed).standard_normal((count, dimension))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def exact_span(directions: Array, space: type[RankOneSpace] = RankOneSpace) -> RankOneSpace:
    """The span of w w^T over the unit rows w (m, D)."""
    packing = symmetric_packing(directions.shape[1])
    return space(orthonormal_basis(packing.outer(directions).T), packing)
