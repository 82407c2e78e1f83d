"""Levenberg-Marquardt for small and large problems.

Each step solves the damped normal equations

    (J^T J + lambda M) d = J^T r,

lambda falling after a step that lowers |r| and rising after one that does not. Small problems are solved
densely, with M = diag(J^T J), through the QR factorisation of the stacked matrix

    [ J                   ]       [ r ]
    [ sqrt(lambda) M^(1/2) ] d  =  [ 0 ],

which keeps the digits that squaring J would lose. Large ones are solved without forming J, by conjugate
gradients preconditioned with the problem's own M and stopped after a few digits, so float32 is enough
for the products; the residual, on which the final accuracy depends, is always taken in float64. The
tridiagonal matrix of the iteration estimates lambda_min(M^{-1} J^T J), and with it the conditioning and
the bound (J^T J)^{-1} <= M^{-1} / lambda_min on the covariance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array, RealArray
from unweave.optimize.least_squares import LeastSquares, Linearisation

_DENSE_ENTRIES = 6_000_000  # J of at most this many entries is formed (48 MB)
_DAMPING_FALL, _DAMPING_RISE = 1 / 8, 8.0
_MAX_DAMPING = 1e10
_WORTHWHILE = 1e-3  # relative decrease of |r| below which a step counts as no progress
_ROUND_OFF = 10.0  # times the floor: here a refused step is the arithmetic, not the model


@dataclass(frozen=True)
class LevenbergMarquardtOptions:
    """When to stop, and how hard to try."""

    steps: int = 60
    damping: float = 1e-4
    floor: float = 0.0
    """Root mean square residual at which the fit is as good as the data."""
    inner_steps: int = 400
    inner_tolerance: float = 1e-3
    """Relative residual of the normal equations at which conjugate gradients stops."""
    stalls: int = 4
    """Steps without worthwhile progress after which it stops; half as many at the floor."""


@dataclass(frozen=True, eq=False)
class Fit:
    """Where Levenberg-Marquardt ended."""

    vector: Array
    rms: float
    history: tuple[float, ...]
    """Root mean square residual after every accepted step, the start first."""
    condition: float
    """Estimated ratio of the extreme singular values of the (scaled or preconditioned) Jacobian."""
    inner_iterations: int
    """Conjugate-gradient iterations in all; 0 if solved densely."""
    covariance_diagonal: Array | None
    """Diagonal of (J^T J)^{-1} at the end, or an estimate of an upper bound if J was not formed; None if
    singular."""


def levenberg_marquardt(
    problem: LeastSquares,
    start: Array,
    options: LevenbergMarquardtOptions | None = None,
    on_step: Callable[[int, float], None] | None = None,
) -> Fit:
    """Minimise the problem's residual from ``start`` (P,).

    ``on_step`` is called with (accepted steps, rms); an exception it raises ends the fit.
    """
    options = options or LevenbergMarquardtOptions()
    dense = problem.n_equations * len(start) <= _DENSE_ENTRIES
    solver: _Solver = _DenseSolver() if dense else _ConjugateGradientSolver(options)
    x, residual = start, problem.residual(start)
    rms = _rms(residual)
    history, damping, stalled = [rms], options.damping, 0
    linear = problem.linearise(x)
    for _ in range(options.steps):
        patience = options.stalls // 2 if rms < _ROUND_OFF * options.floor else options.stalls
        if rms <= options.floor or stalled >= patience or damping > _MAX_DAMPING:
            break
        with np.errstate(over="ignore", invalid="ignore"):  # a wild step is refused, not reported
            trial = x + solver.step(linear, residual, damping)
            trial_residual = problem.residual(trial)
            trial_rms = _rms(trial_residual)
        if np.isfinite(trial_rms) and trial_rms < rms:
            stalled = stalled + 1 if trial_rms > (1 - _WORTHWHILE) * rms else 0
            x, residual, rms = trial, trial_residual, trial_rms
            damping *= _DAMPING_FALL
            history.append(rms)
            linear = problem.linearise(x)
            if on_step is not None:
                on_step(len(history) - 1, rms)
        else:
            damping = max(damping, 1e-8) * _DAMPING_RISE
            stalled += 1 if rms < _ROUND_OFF * options.floor else 0  # at round-off no damping helps
    condition, covariance = solver.conditioning(linear)
    return Fit(x, rms, tuple(history), condition, solver.iterations, covariance)


class _Solver(ABC):
    iterations = 0

    @abstractmethod
    def step(self, linear: Linearisation, residual: Array, damping: float) -> Array:
        """Solution d of the damped normal equations."""

    @abstractmethod
    def conditioning(self, linear: Linearisation) -> tuple[float, Array | None]:
        """Condition number of the scaled Jacobian and the diagonal of (J^T J)^{-1}."""


class _DenseSolver(_Solver):
    def step(self, linear: Linearisation, residual: Array, damping: float) -> Array:
        jacobian = linear.dense()
        scale = _column_norms(jacobian)
        size = len(scale)
        # The right-hand side rides along as the last column, so that Q is never formed.
        stacked = np.zeros((len(jacobian) + size, size + 1), order="F")
        stacked[: len(jacobian), :size] = jacobian / scale
        stacked[: len(jacobian), size] = residual
        stacked[len(jacobian) + np.arange(size), np.arange(size)] = np.sqrt(damping)
        r = scipy.linalg.qr(stacked, mode="r", overwrite_a=True, check_finite=False)[0]
        solution: Array = scipy.linalg.solve_triangular(r[:size, :size], r[:size, size], check_finite=False)
        return solution / scale

    def conditioning(self, linear: Linearisation) -> tuple[float, Array | None]:
        jacobian = linear.dense()
        scale = _column_norms(jacobian)
        r = scipy.linalg.qr(jacobian / scale, mode="r", check_finite=False)[0][: len(scale)]
        values = scipy.linalg.svdvals(r, check_finite=False)
        if values[-1] <= np.finfo(np.float64).eps * values[0]:
            return np.inf, None
        inverse = scipy.linalg.solve_triangular(r, np.eye(len(scale)), check_finite=False)
        return float(values[0] / values[-1]), np.einsum("ij,ij->i", inverse, inverse) / scale**2


class _ConjugateGradientSolver(_Solver):
    def __init__(self, options: LevenbergMarquardtOptions) -> None:
        self._options = options
        self._extremes = (np.nan, np.nan)

    def step(self, linear: Linearisation, residual: Array, damping: float) -> Array:
        """Preconditioned CGLS on (J^T J + lambda M) d = J^T r; M is the preconditioner's matrix."""
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
        for _ in range(self._options.inner_steps):
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
            if size <= self._options.inner_tolerance**2 * first:
                break
            direction = preconditioned + np.float32(ratios[-1]) * direction
            metric = gradient + np.float32(ratios[-1]) * metric
        if len(diagonal) > 1:
            smallest, largest = _lanczos_extremes(np.array(diagonal), np.array(ratios))
            # Ritz values only approach the extremes, best where the right-hand side is rich: keep the widest.
            self._extremes = (
                float(np.fmin(smallest - damping, self._extremes[0])),
                float(np.fmax(largest - damping, self._extremes[1])),
            )
        return solution.astype(np.float64) * size_of_residual

    def conditioning(self, linear: Linearisation) -> tuple[float, Array | None]:
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
    values = scipy.linalg.eigvalsh_tridiagonal(diagonal, off)
    return float(values[0]), float(values[-1])


def _column_norms(matrix: Array) -> Array:
    norms = np.sqrt(np.einsum("ij,ij->j", matrix, matrix))
    return np.where(norms > 0, norms, 1.0)


def _rms(residual: Array) -> float:
    with np.errstate(over="ignore", invalid="ignore"):  # a start that ran away has an infinite residual
        return float(np.sqrt(np.mean(residual**2))) if residual.size else 0.0
