"""Is a matrix a local maximizer of the spectral norm over the unit sphere of a span?

Maximize ||M|| over M in W with ||M||_F = 1 ([identification] (2.14)). Let lambda be the eigenvalue of M of
largest modulus, simple, u its eigenvector and (lambda_k, u_k) the others. M is stationary if (2.15)

    u^T X u = lambda <X, M>  for all X in W,       that is  P(u u^T) = lambda M,

and there the second derivative of ||M + a X|| / ||M + a X||_F along X in W, X orthogonal to M, ||X||_F = 1,
is

    2 sum_{k != *} (u^T X u_k)^2 / |lambda - lambda_k|  -  |lambda|                      (2.16)

(for lambda < 0 take -M). So M is a local maximizer if the largest eigenvalue of the first term, a quadratic
form on W without M, is below |lambda|, and only if it is not above; the source has "if and only if" with "<",
which leaves the border open.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, real_numbers
from unweave.errors import InvalidInput
from unweave.subspace.rank_one_space import RankOneSpace


@dataclass(frozen=True)
class SpectralOptimality:
    """First and second order at one matrix."""

    eigenvalue: float
    """|lambda|, the spectral norm for ||M||_F = 1: one at rank-one members."""
    spectral_gap: float
    """Distance of |lambda| to the next eigenvalue of -M or M; the test needs it above zero."""
    stationarity: float
    """||P(u u^T) - lambda M||_F: zero at stationary points."""
    ratio: float
    """Largest value of the quadratic form over |lambda|: below one at strict maximizers."""

    def is_maximizer(self, tolerance: float = 1e-6) -> bool:
        """Whether M is a strict local maximizer, stationarity being zero up to ``tolerance``."""
        return self.stationarity <= tolerance and self.ratio < 1


def spectral_optimality(space: RankOneSpace, matrix: Array) -> SpectralOptimality:
    """Test symmetric ``matrix`` (D, D), scaled to ||M||_F = 1 and projected onto ``space``.

    Cost: O(m D^2 + m^3) flops.

    Example:
        >>> from unweave.subspace import RankOneSpace, orthonormal_basis, symmetric_packing
        >>> packing = symmetric_packing(3)
        >>> space = RankOneSpace(orthonormal_basis(packing.outer(np.eye(3)).T), packing)
        >>> spectral_optimality(space, np.diag([1.0, 0.0, 0.0])).is_maximizer()
        True
    """
    given = real_numbers(matrix, "matrix")
    dimension = space.packing.dimension
    if given.shape != (dimension, dimension):
        raise InvalidInput(
            f"matrix must be of shape ({dimension}, {dimension}). Got {given.shape} instead. For a direction "
            f"u, give np.outer(u, u)."
        )
    basis = np.asarray(space.packing.unpack(space.basis.T), dtype=np.float64)  # (m, D, D)
    coefficients = np.einsum("jab,ab->j", basis, given)
    length = float(np.linalg.norm(coefficients))
    if not length > 0:
        raise InvalidInput("matrix must have a part in the span. It is orthogonal to it. Take another one.")
    coefficients /= length
    member = np.einsum("j,jab->ab", coefficients, basis)
    values, vectors = np.linalg.eigh(member)
    if -values[0] > values[-1]:  # take -M, whose leading eigenvalue is positive
        values, vectors, coefficients = -values[::-1], vectors[:, ::-1], -coefficients
    leading, u = float(values[-1]), vectors[:, -1]
    gap = leading - max(float(values[-2]) if dimension > 1 else 0.0, -float(values[0]))
    gradient = np.einsum("a,jab,b->j", u, basis, u)  # coefficients of P(u u^T)
    stationarity = float(np.linalg.norm(gradient - leading * coefficients))
    across = np.einsum("a,jab,bk->jk", u, basis, vectors[:, :-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        form = 2 * (across / (leading - values[:-1])) @ across.T
    if not np.isfinite(form).all():
        return SpectralOptimality(leading, max(gap, 0.0), stationarity, np.inf)
    off = np.eye(len(coefficients)) - np.outer(coefficients, coefficients)
    ratio = float(np.linalg.eigvalsh(off @ form @ off)[-1]) / leading
    return SpectralOptimality(leading, max(gap, 0.0), stationarity, ratio)
