"""Overdetermined equations by J^T J, for steps that later ones correct."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from unweave.arrays import Array

_LEAST_PIVOT = 1e-5  # of the factor of scaled J^T J, whose solution has some five digits then


def solve_near(matrix: Array, right: Array) -> Array:
    """Return x (p,) of least |A x - b| for A = ``matrix`` (n, p), to a few digits.

    A tenth of the time of a singular value decomposition, which is left for columns that nearly depend on
    each other.
    """
    gram = matrix.T @ matrix
    scale = np.sqrt(np.maximum(gram.diagonal(), np.finfo(np.float64).tiny))
    factor, failed = lapack.dpotrf(gram / (scale[:, None] * scale))
    if failed or factor.diagonal().min(initial=1.0) < _LEAST_PIVOT:
        return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0])
    solution, _ = lapack.dpotrs(factor, (matrix.T @ right) / scale)
    return np.asarray(solution / scale)
