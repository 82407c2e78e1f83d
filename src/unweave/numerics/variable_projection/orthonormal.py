"""Orthonormal columns by matrix products alone: Cholesky factors of Gram matrices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from unweave.arrays import Array

_MOST_CHOLESKY_PASSES = 4  # two suffice for conditions below 1e8, shifted ones take one or two more
_GRAM_SHIFT_ROUNDINGS = 11.0  # times eps (n + k + 1) k: makes the Gram matrix of unit columns definite
_ROWS_IN_CACHE = 2048  # rows of a block, whose products stay in the cache
_ORTHONORMAL_DEVIATION = 1e-10  # of a Gram matrix from the identity, up to which columns need no forming


def row_blocks(rows: int) -> Iterator[slice]:
    """Slices of some two thousand rows: what is computed for one of them stays in the cache."""
    return (slice(start, start + _ROWS_IN_CACHE) for start in range(0, rows, _ROWS_IN_CACHE))


def orthonormal_columns(matrix: Array, *, overwrite: bool = False) -> tuple[Array, Array]:
    """Q (n, k), R (k, k) with Q R = ``matrix``, by Cholesky factors of Gram matrices.

    Two passes are as accurate as Householder's while the condition is below 1e8; where the first Gram matrix
    is too close to singular, a shift and one more pass take its place. All of it is matrix products. With
    ``overwrite``, Q takes the place of the matrix.
    """
    count = matrix.shape[1]
    if not count:
        return matrix, np.zeros((0, 0))
    scale = _sizes(matrix)
    basis = np.divide(matrix, scale, out=matrix if overwrite else None)
    triangle = np.diag(scale)
    shift = _GRAM_SHIFT_ROUNDINGS * np.finfo(np.float64).eps * (sum(matrix.shape) + 1) * count
    passes, done = 2, 0
    while done < passes:
        gram = basis.T @ basis
        try:
            factor = cholesky(gram, check_finite=False)
        except LinAlgError:
            gram[np.diag_indices_from(gram)] += shift
            factor = cholesky(gram, check_finite=False)
            passes = min(passes + 1, _MOST_CHOLESKY_PASSES)
        inverse = _inverse(factor)
        for rows in row_blocks(len(basis)):  # no second array of this size
            basis[rows] = basis[rows] @ inverse
        triangle = factor @ triangle
        done += 1
    return basis, triangle


class OrthonormalSpan:
    """The projection onto the columns of M (n, q), through Q = M T with orthonormal columns.

    Q is not formed while T (q, q) is harmless: M, which is as large as the data, is then held once. Where the
    columns of M are nearly dependent, Q takes the place of M, and T is the identity.
    """

    def __init__(self, matrix: Array) -> None:
        self.columns, self.triangle = matrix, _orthonormalising(matrix)
        """M and T."""
        gram = self.triangle.T @ (matrix.T @ matrix) @ self.triangle
        if not np.abs(gram - np.eye(len(gram))).max(initial=0.0) <= _ORTHONORMAL_DEVIATION:
            self.columns = orthonormal_columns(matrix)[0]
            self.triangle = np.eye(matrix.shape[1])

    @property
    def count(self) -> int:
        """q"""
        return int(self.columns.shape[1])

    def formed(self) -> Array:
        """Q (n, q)."""
        return np.asarray(self.columns @ self.triangle)

    def removed(self, values: Array) -> Array:
        """``values`` (n, k) less their projection, in their place."""
        for _ in range(2):  # twice: orthogonal to rounding
            coefficients = self.triangle @ (self.triangle.T @ (self.columns.T @ values))
            for rows in row_blocks(len(values)):
                values[rows] -= self.columns[rows] @ coefficients
        return values


def _orthonormalising(matrix: Array) -> Array:
    """T such that ``matrix`` T is orthonormal, as far as one Gram matrix and one correction can tell."""
    scale = _sizes(matrix)
    gram = matrix.T @ matrix
    result = np.diag(1 / scale)
    for _ in range(2):
        try:
            result = result @ _inverse(cholesky(result.T @ gram @ result, check_finite=False))
        except LinAlgError:
            break
    return np.asarray(result)


def _sizes(matrix: Array) -> Array:
    sizes = np.sqrt(np.einsum("ij,ij->j", matrix, matrix))
    return np.where(sizes > 0, sizes, 1.0)


def _inverse(triangle: Array) -> Array:
    """Of so small a triangle it is as good as solving, and a product is faster."""
    return np.asarray(solve_triangular(triangle, np.eye(len(triangle)), check_finite=False))
