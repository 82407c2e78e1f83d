"""Orthonormal columns by matrix products alone: Cholesky factors of Gram matrices."""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from unweave.arrays import Array

_MOST_PASSES = 4
_SHIFT = 11.0  # times eps (n + k + 1) k: makes any Gram matrix of unit columns positive definite


def orthonormal_columns(matrix: Array) -> tuple[Array, Array]:
    """Q (n, k), R (k, k) with Q R = ``matrix``, by Cholesky factors of Gram matrices.

    Two passes are as accurate as Householder's while the condition is below 1e8; where the first Gram matrix
    is too close to singular, a shift and one more pass take its place. All of it is matrix products.
    """
    count = matrix.shape[1]
    if not count:
        return matrix, np.zeros((0, 0))
    scale = np.linalg.norm(matrix, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    basis, triangle = matrix / scale, np.diag(scale)
    shift = _SHIFT * np.finfo(np.float64).eps * (sum(matrix.shape) + 1) * count
    passes, done = 2, 0
    while done < passes:
        gram = basis.T @ basis
        try:
            factor = cholesky(gram, check_finite=False)
        except LinAlgError:
            gram[np.diag_indices_from(gram)] += shift
            factor = cholesky(gram, check_finite=False)
            passes = min(passes + 1, _MOST_PASSES)
        # R^{-1} of so small a triangle is as good as solving, and a product is faster
        basis = basis @ solve_triangular(factor, np.eye(count), check_finite=False)
        triangle = factor @ triangle
        done += 1
    return basis, triangle
