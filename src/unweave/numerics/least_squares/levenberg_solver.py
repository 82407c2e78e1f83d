"""Damped least squares without any matrix, the damping alike for parameters that are alike.

    (J^T J + lambda D) d = J^T r,      D: the mean of the diagonal of J^T J over parameters that are alike,

by conjugate gradients in float32, preconditioned with the damping included. In directions that J hardly sees
the step is short, as Levenberg's is: far from a solution, where many parameters do little yet, that keeps
them from running away. `conjugate_gradient_solver` damps in the metric of its preconditioner instead.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.numerics.clock import out_of_time
from unweave.numerics.least_squares.problem import Linearisation, Solver


class LevenbergSolver(Solver):
    """At most ``steps`` iterations, to the relative residual ``tolerance`` of the normal equations."""

    def __init__(self, steps: int, tolerance: float) -> None:
        self._steps, self._tolerance = steps, tolerance
        self._home: Linearisation | None = None
        self._single: Linearisation | None = None

    def step(self, linear: Linearisation, residual: Array, damping: float) -> Array:
        """Preconditioned CGLS."""
        scale = float(np.linalg.norm(residual))
        if scale == 0.0:
            return np.zeros_like(linear.adjoint(residual))
        if self._home is not linear or self._single is None:
            self._home, self._single = linear, linear.in_single_precision()
        single, added = self._single, damping * self._single.typical_squares()
        weights = added.astype(np.float32)
        # Scaled to one, so that float32 neither under- nor overflows on the way.
        remainder = (residual / scale).astype(np.float32)
        gradient = single.adjoint(remainder)
        solution = np.zeros_like(gradient)
        direction = single.precondition_with_ridge(gradient, added)
        size = first = float(np.dot(gradient, direction))
        for _ in range(self._steps):
            if out_of_time():
                break
            image = single.apply(direction)
            curvature = float(np.dot(image, image)) + float(np.dot(direction, weights * direction))
            if not curvature > 0:
                break
            length = np.float32(size / curvature)
            solution += length * direction
            remainder -= length * image
            gradient = single.adjoint(remainder) - weights * solution
            preconditioned = single.precondition_with_ridge(gradient, added)
            size, previous = float(np.dot(gradient, preconditioned)), size
            self.iterations += 1
            if not size > self._tolerance**2 * first:
                break
            direction = preconditioned + np.float32(size / previous) * direction
        return solution.astype(np.float64) * scale

    def conditioning(self, linear: Linearisation) -> tuple[float, Array | None]:
        """Unknown: such solves end long before they would show it."""
        return np.nan, None
