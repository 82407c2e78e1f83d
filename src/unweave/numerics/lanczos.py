"""Extreme eigenvalues of a symmetric matrix given as a product.

Lanczos: an orthonormal basis Q of span{v, A v, A^2 v, ...}, in which A is the tridiagonal T = Q^T A Q. The
extreme eigenvalues of T approach those of A from inside, isolated ones first; k steps cost k products and
2 k^2 n flops to keep Q orthogonal in floating point.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from unweave.arrays import Array

_CONDITION_STEPS = 30  # give the extreme eigenvalues of a matrix and its inverse to a few per cent
_INVARIANT_SUBSPACE_RESIDUAL = 1e-12  # of the largest vector: then Q spans an invariant subspace


def lanczos_extremes(
    product: Callable[[Array], Array], size: int, steps: int, rng: np.random.Generator
) -> tuple[tuple[float, Array], tuple[float, Array]]:
    """Smallest and largest Ritz value of A (size, size), each with its unit Ritz vector (size,).

    Example:
        >>> rng = np.random.default_rng(0)
        >>> (low, _), (high, _) = lanczos_extremes(lambda v: np.arange(1.0, 6.0) * v, 5, 5, rng)
        >>> round(low, 9), round(high, 9)
        (1.0, 5.0)
    """
    steps = min(steps, size)
    basis = np.zeros((steps, size))
    vector = rng.standard_normal(size)
    diagonal: list[float] = []
    off: list[float] = []
    length = float(np.linalg.norm(vector))
    for k in range(steps):
        basis[k] = vector / length
        vector = product(basis[k])
        diagonal.append(float(basis[k] @ vector))
        for _ in range(2):  # once is not enough: the first pass leaves rounding along the basis
            vector = vector - basis[: k + 1].T @ (basis[: k + 1] @ vector)
        length = float(np.linalg.norm(vector))
        if not length > _INVARIANT_SUBSPACE_RESIDUAL * max(map(abs, [*diagonal, *off])):
            break
        off.append(length)
    count = len(diagonal)
    values, vectors = scipy.linalg.eigh_tridiagonal(np.array(diagonal), np.array(off[: count - 1]))
    low, high = vectors[:, 0] @ basis[:count], vectors[:, -1] @ basis[:count]
    return (float(values[0]), low), (float(values[-1]), high)


def root_condition(matrix: Array, lower: Array) -> float:
    """Estimate the condition number of the root of ``matrix`` (n, n), given with its Cholesky factor.

    Example:
        >>> matrix = np.diag([4.0, 1.0, 9.0])
        >>> round(root_condition(matrix, np.linalg.cholesky(matrix)), 9)
        3.0
    """

    def solved(vector: Array) -> Array:
        half = scipy.linalg.solve_triangular(lower, vector, lower=True, check_finite=False)
        whole = scipy.linalg.solve_triangular(lower, half, lower=True, trans=1, check_finite=False)
        return np.asarray(whole, np.float64)

    rng = np.random.default_rng(0)
    largest = lanczos_extremes(lambda vector: matrix @ vector, len(matrix), _CONDITION_STEPS, rng)[1][0]
    of_inverse = lanczos_extremes(solved, len(matrix), _CONDITION_STEPS, rng)[1][0]
    return float(np.sqrt(max(largest * of_inverse, 1.0)))
