"""Jennrich's decomposition of a tensor into rank-one terms, by the eigenvectors of two random slices.

    T = sum_i lambda_i u_i (x) u_i (x) z_i in R^{n x n x n'},   i = 1 .. r,   u_i linearly independent.

With P an orthonormal basis of span{u_i} (leading left singular vectors of T flattened to n x n n'), random
g, h in R^{n'} and A = P^T T[., ., g] P, B = P^T T[., ., h] P,

    A B^{-1} = (P^T U) diag( (z_i . g) / (z_i . h) ) (P^T U)^{-1},

so the eigenvectors are the P^T u_i. The eigenvalues must differ: of several draws of g and h the one with
real eigenvalues and the largest relative gap is kept, which is what decides the accuracy under noise.

At most d ReLU units take a single pencil in T_2, T_3 and T_4. Every unit has a nonzero coefficient a phi(b)
in T_2, so T_2 alone spans the units: P = eigenvectors of its m largest |eigenvalues|, A = P^T T_2 P. For
random g in R^d and symmetric G,

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
from unweave.numerics.hermite.symmetric_tensors import tensor_packing
from unweave.numerics.hermite.tensors import HermiteTensors
from unweave.subspace.symmetric import symmetric_packing

PENCIL_DRAWS = 20
"""Random pencils tried: four times as many widen the gap by 40 %."""
PencilDraw = Callable[[], tuple[Array, Array]]
"""Draws the two matrices (r, r) of a pencil."""
_IMAGINARY_ROUNDING = 1e-9  # over the largest modulus: smaller imaginary parts of eigenvalues are rounding
Contraction = Callable[[Array, Array], Array]
"""(g (d,), G (d, d)) -> T_3[g] + T_4[G] / sqrt(d), (d, d)."""


@dataclass(frozen=True, eq=False)
class RankOneTerms:
    """The vectors of the first two factors, and how well the pencil separated them."""

    vectors: Array
    """u, (n, r) unit columns, each up to sign."""
    gap: float
    """Least distance of two eigenvalues over the largest modulus; 1 for a single term."""
    real: bool
    """Whether all eigenvalues were real. If noise made complex pairs of some, real parts are taken."""
    singular_values: Array
    """Of the flattening n x n n': r of them stand out if there are r terms."""


def jennrich(tensor: Array, rank: int, rng: np.random.Generator, draws: int = PENCIL_DRAWS) -> RankOneTerms:
    """Decompose ``tensor`` (n, n, n'), symmetric in its first two modes, into ``rank`` terms."""
    size, _, depth = tensor.shape
    if not 0 <= rank <= size:
        raise InvalidInput(
            f"rank must be between 0 and {size}, the tensor's size. Got {rank} instead. "
            f"For more terms use tensors of higher order, flattened."
        )
    left, singular_values, _ = np.linalg.svd(tensor.reshape(size, -1), full_matrices=False)
    basis = left[:, :rank]
    if rank == 0:
        return RankOneTerms(np.zeros((size, 0)), 1.0, True, singular_values)
    core = np.einsum("ia,ijk,jb->kab", basis, tensor, basis, optimize=True).reshape(depth, -1)

    def pencil() -> tuple[Array, Array]:
        first, second = (rng.standard_normal((2, depth)) @ core).reshape(2, rank, rank)
        return first, second

    vectors, gap, real = best_pencil(pencil, draws)
    return RankOneTerms(unit_columns(basis @ vectors), gap, real, singular_values)


def best_pencil(pencil: PencilDraw, draws: int) -> tuple[Array, float, bool]:
    """Eigenvectors (r, r) of A B^{-1}, gap and realness for the best of ``draws`` pairs (A, B)."""
    best: tuple[Array, float, bool] | None = None
    for _ in range(draws):
        first, second = pencil()
        try:
            matrix = np.linalg.solve(second.T, first.T).T
        except np.linalg.LinAlgError:
            continue
        if not np.isfinite(matrix).all():
            continue
        values, vectors = np.linalg.eig(matrix)
        largest = max(float(np.abs(values).max()), np.finfo(np.float64).tiny)
        real = bool(np.abs(values.imag).max() <= _IMAGINARY_ROUNDING * largest)
        gap = eigenvalue_gap(values) / largest
        if best is None or (real, gap) > (best[2], best[1]):
            best = (np.asarray(vectors.real), gap, real)
    if best is None:
        raise InvalidInput(
            "the tensor must have as many independent terms as asked for. Got singular slices instead. "
            "Lower the rank to the number of singular values that stand out."
        )
    return best


def eigenvalue_gap(values: Array) -> float:
    """Least distance between two of the eigenvalues (r,); their largest modulus if there is only one."""
    if len(values) < 2:
        return float(np.abs(values).max())
    distances = np.abs(values[:, None] - values[None, :])
    return float(distances[np.triu_indices(len(values), 1)].min())


def folded_directions(vectors: Array, dimension: int, order: int) -> Array:
    """Directions w (d, r), up to sign, of packed w^{(x) l} (p, r), isometrically packed and noisy.

    Leading left singular vector of the d x d^{l-1} unfolding.
    """
    if order == 1:
        return unit_columns(vectors)
    packing = tensor_packing(dimension, order)
    columns = []
    for vector in vectors.T:
        unfolded = packing.dense(vector / packing.scale).reshape(dimension, -1)
        columns.append(np.linalg.svd(unfolded, full_matrices=False)[0][:, 0])
    return np.array(columns).reshape(-1, dimension).T


def unit_columns(vectors: Array) -> Array:
    """Columns divided by their lengths."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=0), np.finfo(np.float64).tiny))


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
