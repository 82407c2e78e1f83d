"""A Jacobian that was formed, as problems of moderate size do, and damped least squares with it.

The damped normal equations (J^T J + lambda diag(J^T J)) d = J^T r are those of the stacked system

    [ J                   ]       [ r ]
    [ sqrt(lambda) M^(1/2) ] d  =  [ 0 ],      M = diag(J^T J),

whose QR factorisation keeps the digits that squaring J would lose.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from unweave.arrays import Array, RealArray
from unweave.numerics.clock import check
from unweave.numerics.least_squares.problem import Linearisation, Solver


class FormedJacobian(Linearisation):
    """J (rows, P) as a matrix, preconditioned by its column norms."""

    def __init__(self, matrix: RealArray) -> None:
        self._matrix = matrix

    def apply(self, vector: RealArray) -> RealArray:
        """J v."""
        return np.asarray(self._matrix @ vector)

    def adjoint(self, rows: RealArray) -> RealArray:
        """J^T r."""
        return np.asarray(self._matrix.T @ rows)

    def dense(self) -> Array:
        """J."""
        return np.asarray(self._matrix, dtype=np.float64)

    def gram(self) -> RealArray:
        """J^T J."""
        return np.asarray(self._matrix.T @ self._matrix)

    def in_single_precision(self) -> Linearisation:
        """The same in float32."""
        return FormedJacobian(self._matrix.astype(np.float32))

    def preconditioner_diagonal(self) -> Array:
        """One over the squared column norms."""
        squares = np.einsum("ij,ij->j", self._matrix, self._matrix).astype(np.float64)
        return np.asarray(1 / np.where(squares > 0, squares, 1.0))


class DenseSolver(Solver):
    """QR of the stacked matrix: 2 rows P^2 flops a step."""

    def step(self, linear: Linearisation, residual: Array, damping: float) -> Array:
        """Solution of the stacked system."""
        jacobian = linear.dense()
        scale = _column_norms(jacobian)
        size = len(scale)
        check(2 * len(jacobian) * size**2)
        # The right-hand side rides along as the last column, so that Q is never formed.
        stacked = np.zeros((len(jacobian) + size, size + 1), order="F")
        stacked[: len(jacobian), :size] = jacobian / scale
        stacked[: len(jacobian), size] = residual
        stacked[len(jacobian) + np.arange(size), np.arange(size)] = np.sqrt(damping)
        r = scipy.linalg.qr(stacked, mode="r", overwrite_a=True, check_finite=False)[0]
        solution: Array = scipy.linalg.solve_triangular(r[:size, :size], r[:size, size], check_finite=False)
        return solution / scale

    def conditioning(self, linear: Linearisation) -> tuple[float, Array | None]:
        """Singular values of the column-scaled Jacobian, and the exact diagonal."""
        jacobian = linear.dense()
        scale = _column_norms(jacobian)
        r = scipy.linalg.qr(jacobian / scale, mode="r", check_finite=False)[0][: len(scale)]
        values = scipy.linalg.svdvals(r, check_finite=False)
        if len(r) < len(scale) or values[-1] <= np.finfo(np.float64).eps * values[0]:
            return np.inf, None
        inverse = scipy.linalg.solve_triangular(r, np.eye(len(scale)), check_finite=False)
        with np.errstate(over="ignore", divide="ignore"):  # a parameter that ran away has no error bar
            return float(values[0] / values[-1]), np.einsum("ij,ij->i", inverse, inverse) / scale**2


def _column_norms(matrix: Array) -> Array:
    norms = np.sqrt(np.einsum("ij,ij->j", matrix, matrix))
    return np.where(norms > 0, norms, 1.0)
