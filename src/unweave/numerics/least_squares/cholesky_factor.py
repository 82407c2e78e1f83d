"""Cholesky factor of a Gram matrix with a ridge, in float64 or float32.

    L L^T = G + delta diag(G)

The factorisation's backward error is small relative to the diagonal, entry by entry, so that columns of
different scale need no scaling first. The ridge is raised until the factorisation succeeds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, lapack

from unweave.arrays import Array, RealArray

_SMALLEST_RIDGE = 10.0  # times the rounding unit: where the factorisation mostly still succeeds
_FACTOR_RIDGE_RISE = 10.0
_LARGEST_RIDGE = 1e6


@dataclass(frozen=True, eq=False)
class CholeskyFactor:
    """L (P, P), lower triangular in Fortran order, with the square roots of diag(G) (P,)."""

    lower: RealArray
    scale: Array
    """sqrt(G_ii), one where that is zero"""
    ridge: float
    """delta"""
    wanted: float
    """what was asked for, before it was raised to where the factorisation succeeds"""

    def half_solve(self, vector: RealArray) -> RealArray:
        """L^{-1} v, in the factor's precision."""
        return self._triangular(vector, 0)

    def other_half_solve(self, vector: RealArray) -> RealArray:
        """L^{-T} v, in the factor's precision."""
        return self._triangular(vector, 1)

    def _triangular(self, vector: RealArray, transposed: int) -> RealArray:
        solve = blas.dtrsv if self.lower.dtype == np.float64 else blas.strsv
        result: RealArray = solve(self.lower, vector.astype(self.lower.dtype), lower=1, trans=transposed)
        return result

    def inverse_diagonal(self) -> Array:
        """Diagonal of (L L^T)^{-1}, (P,): the columns' squared lengths in L^{-1}. P^3 / 3 flops."""
        invert = lapack.dtrtri if self.lower.dtype == np.float64 else lapack.strtri
        inverse, _ = invert(self.lower, lower=1)
        return np.asarray(np.einsum("ij,ij->j", inverse, inverse), np.float64)


def smallest_ridge(gram: RealArray) -> float:
    """The ridge that a factorisation in the precision of G begins with."""
    return _SMALLEST_RIDGE * float(np.finfo(gram.dtype).eps)


def cholesky_factor(gram: RealArray, ridge: float) -> CholeskyFactor | None:
    """Factor G, given by its upper triangle in C order (P, P), with a ridge of at least ``ridge``.

    None if G holds something that is not finite.
    """
    diagonal = gram.diagonal().astype(np.float64)
    if not np.isfinite(diagonal).all():
        return None
    diagonal = np.where(diagonal > 0, diagonal, 1.0)
    factorise = lapack.dpotrf if gram.dtype == np.float64 else lapack.spotrf
    wanted, ridge = ridge, max(ridge, smallest_ridge(gram))
    while ridge < _LARGEST_RIDGE:
        # The upper triangle in C order is the lower one of the transpose, which LAPACK can overwrite.
        trial = gram.copy().T
        np.fill_diagonal(trial, diagonal * (1 + ridge))
        lower, failed = factorise(trial, lower=1, overwrite_a=1, clean=1)
        if not failed:
            return CholeskyFactor(lower, np.sqrt(diagonal), ridge, wanted)
        ridge *= _FACTOR_RIDGE_RISE
    return None
