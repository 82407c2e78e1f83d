"""A least-squares problem with a ridge: one more equation per parameter, which pulls it towards zero.

    minimise |r(x)|^2 + |p * x|^2        p (P,) >= 0, zero for parameters that are left alone

J gets the rows diag(p), and J^T J their squares on its diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, RealArray
from unweave.numerics.least_squares.problem import LeastSquares, Linearisation


@dataclass(frozen=True, eq=False)
class Ridged:
    """``problem`` and a ``pull`` (P,) on its parameters."""

    problem: LeastSquares
    pull: Array

    @property
    def n_equations(self) -> int:
        """Number of rows, those of the ridge included."""
        return self.problem.n_equations + len(self.pull)

    def residual(self, vector: Array) -> Array:
        """The problem's residual above that of the ridge."""
        return np.concatenate([self.problem.residual(vector), -self.pull * vector])

    def linearise(self, vector: Array) -> Linearisation:
        """The Jacobian of both at ``vector``."""
        return _RidgedLinearisation(self.problem.linearise(vector), self.pull)


class _RidgedLinearisation(Linearisation):
    def __init__(self, linear: Linearisation, pull: RealArray) -> None:
        self._linear, self._pull = linear, pull

    def apply(self, vector: RealArray) -> RealArray:
        return np.concatenate([self._linear.apply(vector), self._pull * vector])

    def adjoint(self, rows: RealArray) -> RealArray:
        values, ridge = np.split(rows, [len(rows) - len(self._pull)])
        return np.asarray(self._linear.adjoint(values) + self._pull * ridge)

    def dense(self) -> Array:
        return np.concatenate([self._linear.dense(), np.diag(self._pull).astype(np.float64)])

    def gram(self) -> RealArray | None:
        result = self._linear.gram()
        if result is not None:
            result[np.diag_indices(len(result))] += (self._pull**2).astype(result.dtype)
        return result

    def in_single_precision(self) -> Linearisation:
        return _RidgedLinearisation(self._linear.in_single_precision(), self._pull.astype(np.float32))

    def preconditioner_diagonal(self) -> Array:
        return self._linear.preconditioner_diagonal()

    def precondition(self, vector: RealArray) -> RealArray:
        return self._linear.precondition_with_ridge(vector, np.square(self._pull, dtype=np.float64))

    def precondition_with_ridge(self, vector: RealArray, ridge: Array) -> RealArray:
        return self._linear.precondition_with_ridge(vector, ridge + self._pull**2)

    def typical_squares(self) -> Array:
        return self._linear.typical_squares()
