"""Planted subspaces of symmetric matrices: what the power method alone is measured on."""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.subspace import RankOneSpace, orthonormal_basis, symmetric_packing

FOUND = 1e-6
"""Largest distance at which a planted direction counts as found. Two random directions are of order one
apart; an exact span gives each of them to about 1e-12."""


def planted_directions(dimension: int, count: int, seed: int) -> Array:
    """(count, D) uniform unit rows."""
    rows = np.random.default_rng(seed).standard_normal((count, dimension))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def exact_span(directions: Array, space: type[RankOneSpace] = RankOneSpace) -> RankOneSpace:
    """The span of w w^T over the unit rows w (m, D)."""
    packing = symmetric_packing(directions.shape[1])
    return space(orthonormal_basis(packing.outer(directions).T), packing)


def distances(planted: Array, found: Array) -> Array:
    """Distance (m,) of every planted row (m, D) to the nearest row of ``found`` up to sign; inf if none."""
    if not len(found):
        return np.full(len(planted), np.inf)
    overlap = planted @ found.T
    nearest = np.argmax(np.abs(overlap), axis=1)
    signs = np.sign(overlap[np.arange(len(planted)), nearest])
    return np.asarray(np.linalg.norm(planted - signs[:, None] * found[nearest], axis=1))
