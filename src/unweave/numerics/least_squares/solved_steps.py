"""Levenberg-Marquardt for vectors: the linear algebra that suits the size of the problem.

Who solves the damped normal equations depends on the size of J, on the memory and on what the problem offers:

- small problems: a QR factorisation of the stacked matrix (`DenseSolver`);
- problems with a cheap J^T J that fits into memory: conjugate gradients with its Cholesky factor as
  preconditioner, which serves for several steps (`GramSolver`);
- all others: conjugate gradients with the problem's own preconditioner, in float32
  (`ConjugateGradientSolver`).

The residual, on which the final accuracy depends, is always taken in float64. Steps may be bent by the
geodesic acceleration of Transtrum and Sethna [geodesic] (`LevenbergMarquardtOptions.acceleration`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput, OutOfTime
from unweave.numerics.clock import check
from unweave.numerics.least_squares.conjugate_gradient_solver import ConjugateGradientSolver
from unweave.numerics.least_squares.formed_jacobian import DenseSolver
from unweave.numerics.least_squares.gram_solver import GramSolver
from unweave.numerics.least_squares.levenberg_marquardt import (
    LevenbergMarquardtOptions,
    OnStep,
    Steps,
    minimise,
)
from unweave.numerics.least_squares.levenberg_solver import LevenbergSolver
from unweave.numerics.least_squares.problem import LeastSquares, Linearisation, Solver
from unweave.numerics.memory import allowed_bytes

_STRAIGHT_RATIO = 0.1  # of |r| after and before a step, up to which steps need not be bent
_CURVATURE_STEP = 0.1  # of the step: where its second derivative is measured
_CURVATURE_SEEN = 1e4  # times the rounding: below, the difference that measures it is lost
_LARGEST_BEND = 0.75  # of the step's length: a larger acceleration says that the series does not hold
_DENSE_COPIES = 3  # of J that a QR step holds: J itself, scaled and stacked
_GRAM_COPIES = 3  # of J^T J in float64 that error bars take: matrix, factor and the factor's inverse
_NUMBER_BYTES = 8


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
    on_step: OnStep | None = None,
) -> Fit:
    """Minimise the problem's residual from ``start`` (P,), as long as there is time.

    ``on_step`` is called with (accepted steps, rms); an exception it raises ends the fit.
    """
    options = options or LevenbergMarquardtOptions()
    steps = SolvedSteps(problem, start, options)
    path = minimise(steps, steps.start, options, on_step)
    end = path.point
    if not options.conditioning:
        iterations = steps.solver.iterations if path.history[1:] else 0
        return Fit(end.vector, end.size, path.history, np.inf, iterations, None)
    try:
        check()
        (condition, covariance), iterations = steps.solver.conditioning(end.linear), steps.solver.iterations
    except OutOfTime:
        condition, covariance, iterations = np.nan, None, 0
    return Fit(end.vector, end.size, path.history, condition, iterations, covariance)


@dataclass(frozen=True, eq=False)
class VectorPoint:
    """Residual and Jacobian at a vector."""

    problem: LeastSquares
    vector: Array
    """(P,)"""
    residual: Array
    """(rows,)"""
    size: float
    """Root mean square residual."""
    step: Array | None = None
    """(P,) that led here."""

    @cached_property
    def linear(self) -> Linearisation:
        """The problem at this point: formed when the first step from here is taken, if one is."""
        return self.problem.linearise(self.vector)


class SolvedSteps(Steps[VectorPoint]):
    """Solves the damped normal equations of a `LeastSquares` problem."""

    def __init__(self, problem: LeastSquares, start: Array, options: LevenbergMarquardtOptions) -> None:
        self._problem, self._options = problem, options
        self._rounding = options.floor if options.rounding is None else options.rounding
        self._curved = False
        residual = problem.residual(start)
        self.start = VectorPoint(problem, start, residual, self.size_of(start, residual))

    @cached_property
    def solver(self) -> Solver:
        """Who solves; chosen at the first step."""
        return _solver(self.start.linear, self._problem.n_equations, len(self.start.vector), self._options)

    def size_of(self, vector: Array, residual: Array) -> float:
        """What is to be least at ``vector``: the root mean square residual."""
        return _rms(residual)

    def trial(self, point: VectorPoint, damping: float | Array) -> VectorPoint:
        """The vector after a step, straight or bent."""
        damping = float(damping)
        with np.errstate(over="ignore", invalid="ignore"):  # a wild step is refused, not reported
            step = self.solver.step(point.linear, point.residual, damping)
            if self._curved and point.size > _CURVATURE_SEEN * self._rounding:
                step = step + self._acceleration(point, step, damping)
            vector = point.vector + step
            residual = self._problem.residual(vector)
            size = self.size_of(vector, residual)
        self._curved = self._curved or (
            self._options.acceleration and not size < _STRAIGHT_RATIO * point.size
        )
        return VectorPoint(self._problem, vector, residual, size, step)

    def is_hopeless(self, point: VectorPoint, trial: VectorPoint) -> bool:
        """Whether not even the linear model sees the step lower |r| by a worthwhile part."""
        assert trial.step is not None
        with np.errstate(over="ignore", invalid="ignore"):
            left = _rms(point.residual - point.linear.apply(trial.step))
        return left > (1 - self._options.worthwhile) * point.size

    def _acceleration(self, point: VectorPoint, step: Array, damping: float) -> Array:
        """Half the acceleration a of the geodesic with velocity d = ``step``, or zero where it is not small.

        (J^T J + lambda M) a = -J^T f'', with f'' the second derivative of the model along d, from

            r(x + h d) = r - h J d - h^2/2 f'' + O(h^3).
        """
        h = _CURVATURE_STEP
        ahead = self._problem.residual(point.vector + h * step)
        second = (point.residual - h * point.linear.apply(step) - ahead) * (2 / h**2)
        if not np.isfinite(second).all():
            return np.zeros_like(step)
        acceleration = self.solver.step(point.linear, -second, damping)
        if not 2 * np.linalg.norm(acceleration) <= _LARGEST_BEND * np.linalg.norm(step):
            return np.zeros_like(step)
        return acceleration / 2


def _solver(linear: Linearisation, rows: int, size: int, options: LevenbergMarquardtOptions) -> Solver:
    """The solver for a Jacobian (rows, size) like ``linear``, with which it will be used first."""
    name, inner = options.solver, (options.inner_steps, options.inner_tolerance)
    if name == "levenberg":
        return LevenbergSolver(*inner)
    limit = allowed_bytes() if options.max_memory is None else options.max_memory
    numbers = limit / _NUMBER_BYTES
    worthwhile = rows * size > options.small_entries and size <= options.gram_parameters
    if name == "gram" or (name == "auto" and worthwhile and _GRAM_COPIES * size**2 <= numbers):
        gram = linear.in_single_precision().gram()
        if gram is not None:
            return GramSolver(linear, gram, *inner, fresh=options.fresh_gram)
        if name == "gram":
            raise InvalidInput(
                'solver must be one that the problem supports. Got "gram" for one without a cheap J^T J '
                'instead. Leave the choice to "auto".'
            )
    fits = rows * size <= options.dense_entries and _DENSE_COPIES * rows * size + size**2 <= numbers
    if name == "dense" or (name == "auto" and fits):
        return DenseSolver()
    return ConjugateGradientSolver(*inner)


def _rms(residual: Array) -> float:
    with np.errstate(over="ignore", invalid="ignore"):  # a start that ran away has an infinite residual
        return float(np.sqrt(np.mean(residual**2))) if residual.size else 0.0
