"""Damped least squares without any matrix.

(J^T J + lambda M) d = J^T r by conjugate gradients preconditioned with the problem's own M and stopped after
a few digits, so that float32 is enough for the products. The tridiagonal matrix of the iteration estimates
lambda_min(M^{-1} J^T J), and with it the conditioning and the bound (J^T J)^{-1} <= M^{-1} / lambda_min on
the covariance.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from unweave.arrays import Array, RealArray
from unweave.numerics.clock import out_of_time
from unweave.numerics.least_squares.problem import Linearisation, Solver


class ConjugateGradientSolver(Solver):
    """At most ``steps`` iterations, to the relative residual ``tolerance`` of the normal equations."""

    def __init__(self, steps: int, tolerance: float) -> None:
        self._steps, self._tolerance = steps, tolerance
        self._extremes = (np.nan, np.nan)

    def step(self, linear: Linearisation, residual: Array, damping: float) -> Array:
        """Preconditioned CGLS; M is the preconditioner's matrix."""
        size_of_residual = float(np.linalg.norm(residual))
        if size_of_residual == 0.0:
            return np.zeros_like(linear.adjoint(residual))
        single = linear.in_single_precision()
        # Scaled to one, so that float32 neither under- nor overflows on the way.
        remainder = (residual / size_of_residual).astype(np.float32)
        gradient = single.adjoint(remainder)
        solution, metric_solution = np.zeros_like(gradient), np.zeros_like(gradient)
        direction = preconditioned = single.precondition(gradient)
        # M d is followed alongside d, so that the damping term needs no product with M.
        metric = gradient.copy()
        size = first = _dot(gradient, preconditioned)
        diagonal: list[float] = []
        ratios: list[float] = []
        least, useful = size, 0
        for _ in range(self._steps):
            if out_of_time():
                break
            image = single.apply(direction)
            curvature = _dot(image, image) + damping * _dot(direction, metric)
            if not curvature > 0:
                break
            length = size / curvature
            solution += np.float32(length) * direction
            metric_solution += np.float32(length) * metric
            remainder -= np.float32(length) * image
            gradient = single.adjoint(remainder) - np.float32(damping) * metric_solution
            preconditioned = single.precondition(gradient)
            size, previous = _dot(gradient, preconditioned), size
            diagonal.append(1 / length)
            ratios.append(size / previous)
            self.iterations += 1
            if size < least:
                least, useful = size, len(diagonal)
            if size <= self._tolerance**2 * first:
                break
            direction = preconditioned + np.float32(ratios[-1]) * direction
            metric = gradient + np.float32(ratios[-1]) * metric
        if useful > 1:
            # Past the least gradient, coefficients are those of float32's rounding.
            smallest, largest = _lanczos_extremes(np.array(diagonal[:useful]), np.array(ratios[:useful]))
            # Ritz values only approach the extremes, best where the right-hand side is rich: keep the widest.
            self._extremes = (
                float(np.fmin(smallest - damping, self._extremes[0])),
                float(np.fmax(largest - damping, self._extremes[1])),
            )
        return solution.astype(np.float64) * size_of_residual

    def conditioning(self, linear: Linearisation) -> tuple[float, Array | None]:
        """From the widest Ritz values seen; the diagonal is an estimated upper bound."""
        smallest, largest = self._extremes
        if not smallest > 0:
            return np.nan if np.isnan(smallest) else np.inf, None
        return float(np.sqrt(largest / smallest)), linear.preconditioner_diagonal() / smallest


def _dot(a: RealArray, b: RealArray) -> float:
    return float(np.dot(a, b))


def _lanczos_extremes(inverse_lengths: Array, ratios: Array) -> tuple[float, float]:
    """Extreme eigenvalues of M^{-1} (J^T J + lambda M), from the coefficients of conjugate gradients."""
    diagonal = inverse_lengths.copy()
    diagonal[1:] += inverse_lengths[:-1] * ratios[:-1]
    off = np.sqrt(ratios[:-1]) * inverse_lengths[:-1]
    if not (np.isfinite(diagonal).all() and np.isfinite(off).all()):
        return np.nan, np.nan  # products that overflowed say nothing
    values = scipy.linalg.eigvalsh_tridiagonal(diagonal, off)
    return float(values[0]), float(values[-1])
