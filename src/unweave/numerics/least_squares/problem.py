"""What a nonlinear least-squares problem and the solver of its damped normal equations must provide."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np

from unweave.arrays import Array, RealArray


class Linearisation(ABC):
    """The Jacobian J (rows, P) of the model at one point, as products, a matrix, and a preconditioner."""

    @abstractmethod
    def apply(self, vector: RealArray) -> RealArray:
        """J v, (rows,)."""

    @abstractmethod
    def adjoint(self, rows: RealArray) -> RealArray:
        """J^T r, (P,)."""

    @abstractmethod
    def dense(self) -> Array:
        """J, (rows, P); only asked for when it is small."""

    def gram(self) -> RealArray | None:
        """J^T J (P, P) in C order, of which only the upper triangle is read; None if it is not cheap."""
        return None

    @abstractmethod
    def in_single_precision(self) -> Linearisation:
        """The same Jacobian with products in float32, for solves to a few digits."""

    @abstractmethod
    def preconditioner_diagonal(self) -> Array:
        """Diagonal of M^{-1}, of the parameters for which error bars are wanted."""

    def precondition(self, vector: RealArray) -> RealArray:
        """M^{-1} v for a symmetric positive definite M that resembles J^T J; here M is diagonal."""
        return np.asarray(vector * self.preconditioner_diagonal().astype(vector.dtype))

    def precondition_with_ridge(self, vector: RealArray, ridge: Array) -> RealArray:
        """M^{-1} v for an M that resembles J^T J + diag(``ridge``), (P,); here without the ridge."""
        return self.precondition(vector)

    def typical_squares(self) -> Array:
        """Typical sizes (P,) of the diagonal of J^T J, alike for parameters that are alike."""
        return np.asarray(1 / self.preconditioner_diagonal())


class LeastSquares(Protocol):
    """Minimise |r(x)|^2 with r = data - model(x); J is the model's Jacobian, minus that of r."""

    @property
    def n_equations(self) -> int:
        """Number of rows of r."""

    def residual(self, vector: Array) -> Array:
        """r(x), (rows,)."""

    def linearise(self, vector: Array) -> Linearisation:
        """The model's Jacobian at x."""


class Solver(ABC):
    """Solves (J^T J + lambda M) d = J^T r, again and again as J, r and lambda change."""

    iterations = 0
    """Inner iterations so far."""

    @abstractmethod
    def step(self, linear: Linearisation, residual: Array, damping: float) -> Array:
        """Solution d (P,). The same ``linear`` object twice means that the step before was refused."""

    @abstractmethod
    def conditioning(self, linear: Linearisation) -> tuple[float, Array | None]:
        """Condition number of the scaled Jacobian and the diagonal of (J^T J)^{-1}, None if singular."""
