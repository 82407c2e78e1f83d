"""What solves the damped normal equations of a Levenberg-Marquardt step."""

from __future__ import annotations

from abc import ABC, abstractmethod

from unweave.arrays import Array
from unweave.numerics.least_squares.problem import Linearisation


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
