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
