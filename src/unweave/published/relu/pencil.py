"""Directions of at most d units from one eigenvalue problem in T_2, T_3 and T_4.

Every unit has a nonzero coefficient a phi(b) in T_2, so T_2 alone spans the units: P = eigenvectors of its m
largest |eigenvalues|, A = P^T T_2 P. For random g in R^d and symmetric G,

    K = P^T ( T_3[g] + T_4[G] / sqrt(d) ) P,
    K A^{-1} = (P^T W) diag( -b_i (w_i . g) + (b_i^2 - 1) w_i^T G w_i / sqrt(d) ) (P^T W)^{-1},

whose eigenvalues are generically distinct whatever the biases are, zero and one included. One pencil in
place of two decompositions, no thresholds and no duplicates; and since only the contractions T_3[g], T_4[G]
enter, O(d^2) memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.numerics.hermite.tensors import HermiteTensors
from unweave.published.relu.jennrich import PENCIL_DRAWS, best_pencil, unit_columns
from unweave.subspace.symmetric import symmetric_packing

Contraction = Callable[[Array, Array], Array]
"""(g (d,), G (d, d)) -> T_3[g] + T_4[G] / sqrt(d), (d, d)."""


@dataclass(frozen=True, eq=False)
class PencilDirections:
    """Directions up to sign, and how clearly the pencil separated them."""

    weights: Array
    """w~, (d, m) unit columns."""
    gap: float
    """Least distance of two eigenvalues over the largest modulus."""
    real: bool
    """Whether all eigenvalues were real."""
    eigenvalues: Array
    """Of T_2, (d,), by falling modulus: m of them stand out."""


def active_subspace(second: Array, width: int) -> tuple[Array, Array]:
    """Orthonormal basis (d, m) of the units' span from T_2 (d, d), and its eigenvalues by falling modulus
    (d,)."""
    if not 0 < width <= len(second):
        raise InvalidInput(
            f"width must be between 1 and {len(second)}, the number of inputs. Got {width} instead. "
            f"For more units use the analysis of order 2."
        )
    values, vectors = np.linalg.eigh(second)
    order = np.argsort(-np.abs(values))
    return np.ascontiguousarray(vectors[:, order[:width]]), values[order]


def pencil_directions(
    second: Array, contraction: Contraction, width: int, rng: np.random.Generator, draws: int = PENCIL_DRAWS
) -> PencilDirections:
    """Directions of ``width`` units from T_2 (d, d) and contractions of T_3 and T_4."""
    dimension = len(second)
    basis, eigenvalues = active_subspace(second, width)
    base = basis.T @ second @ basis

    def pencil() -> tuple[Array, Array]:
        matrix = rng.standard_normal((dimension, dimension))
        mixed = contraction(rng.standard_normal(dimension), (matrix + matrix.T) / 2)
        return basis.T @ mixed @ basis, base

    vectors, gap, real = best_pencil(pencil, draws)
    return PencilDirections(unit_columns(basis @ vectors), gap, real, eigenvalues)


def tensor_contraction(coefficients: HermiteTensors) -> Contraction:
    """The contraction from packed T_3 and T_4."""
    packing = symmetric_packing(coefficients.dimension)
    third, fourth = coefficients.flattened(2, 1), coefficients.flattened(2, 2)
    scale = 1 / np.sqrt(coefficients.dimension)

    def contraction(vector: Array, matrix: Array) -> Array:
        mixed = third @ vector + scale * (fourth @ packing.pack(matrix))
        return np.asarray(packing.unpack(mixed))

    return contraction
