"""Planted rank-one subspaces shared by the tests of this folder."""

from __future__ import annotations

import numpy as np

from unweave.subspace.rank_one_space import RankOneSpace, Representation, orthonormal_basis
from unweave.subspace.symmetric import symmetric_packing


def unit_rows(n: int, dimension: int, rng: np.random.Generator) -> np.ndarray:
    rows = rng.standard_normal((n, dimension))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def planted_space(
    dimension: int, width: int, seed: int, representation: Representation | None = None
) -> tuple[RankOneSpace, np.ndarray]:
    """The span of the squares of ``width`` random unit rows, and those rows."""
    weights = unit_rows(width, dimension, np.random.default_rng(seed))
    packing = symmetric_packing(dimension)
    return RankOneSpace(orthonormal_basis(packing.outer(weights).T), packing, representation), weights


def direction_errors(weights: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Distance of every row of ``weights`` to the nearest row of ``found`` up to sign."""
    overlap = weights @ found.T
    nearest = np.argmax(np.abs(overlap), axis=1)
    sign = np.sign(overlap[np.arange(len(weights)), nearest])
    return np.linalg.norm(weights - sign[:, None] * found[nearest], axis=1)
