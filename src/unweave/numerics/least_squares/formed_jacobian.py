"""A Jacobian that was formed: what problems of moderate size hand to the solvers."""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array, RealArray
from unweave.numerics.least_squares.problem import Linearisation


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

    def precondition(self, vector: RealArray) -> RealArray:
        """v over the squared column norms."""
        return np.asarray(vector * self.preconditioner_diagonal().astype(vector.dtype))
