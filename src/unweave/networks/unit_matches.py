"""Which unit of one layer corresponds to which of another: an assignment modulo sign and phase."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.networks.symmetry import Layers

NEAR = 1e-6
"""Relative squared distance below which |u|^2 + |v|^2 - 2 <u, v> has lost too many digits."""


@dataclass(frozen=True)
class Match:
    """Unit i of the reference corresponds to unit permutation[i] of the other with (w, b) times signs[i]."""

    permutation: IntArray
    signs: IntArray


def match_units(reference: Layers, other: Layers, index: int) -> Match:
    """Assign the units of hidden layer ``index`` of ``other`` to those of ``reference``, at least total cost.

    The cost of a pair is |u - s v|^2 with u, v the stacked (w, b), s the better one of the signs that the
    activation allows; for sine, biases count modulo half turns. Cost: one GEMM of (m, D) by (D, m) and one
    assignment, O(m^3) at worst and close to O(m^2) for networks that do match.
    """
    from scipy.optimize import linear_sum_assignment  # here: it takes a third of the time of `import unweave`

    may_reflect = reference.reflection(index) is not None
    sine = reference.activations[index] == "sine"
    u, v = reference.weights[index].T, other.weights[index].T
    a, b = reference.biases[index], other.biases[index]
    if not sine:
        u, v = np.column_stack([u, a]), np.column_stack([v, b])
    costs = [_squared_distances(u, v)]
    if may_reflect:
        costs.append(_squared_distances(u, -v))
    if sine:
        costs = [cost + _phase(a[:, None] - sign * b) ** 2 for cost, sign in zip(costs, (1, -1), strict=True)]
    cheapest = np.minimum(*costs) if may_reflect else costs[0]
    rows, permutation = linear_sum_assignment(cheapest)
    signs = np.ones(len(rows), dtype=np.int64)
    if may_reflect:
        signs[costs[1][rows, permutation] < costs[0][rows, permutation]] = -1
    return Match(permutation.astype(np.int64), signs)


def _phase(difference: Array) -> Array:
    """Distance of an angle from the nearest multiple of pi, with sign."""
    return np.asarray(difference - math.pi * np.round(difference / math.pi))


def _squared_distances(u: Array, v: Array) -> Array:
    """Return |u_i - v_j|^2, (m, m), for rows of u (m, n) and v (m, n), exact where the rows nearly agree."""
    sizes = np.sum(u * u, axis=1)[:, None] + np.sum(v * v, axis=1)
    distances = np.maximum(sizes - 2 * (u @ v.T), 0)
    near = np.nonzero(distances <= NEAR * sizes)
    # As many pairs at a time as there are units, so that memory stays that of the layer even if all are near.
    for start in range(0, len(near[0]), len(u)):
        i, j = (part[start : start + len(u)] for part in near)
        distances[i, j] = np.sum((u[i] - v[j]) ** 2, axis=1)
    return np.asarray(distances)
