"""Levenberg-Marquardt for small and large problems.

Each step solves the damped normal equations

    (J^T J + lambda M) d = J^T r,

lambda falling after a step that lowers |r| and rising after one that does not. Who solves them depends on
the size of J and on what the problem offers:

- small problems: a QR factorisation of the stacked matrix (`DenseSolver`);
- problems with a cheap J^T J that fits into memory: conjugate gradients with its Cholesky factor as
  preconditioner, which serves for several steps (`GramSolver`);
- all others: conjugate gradients with the problem's own preconditioner, in float32
  (`ConjugateGradientSolver`).

The residual, on which the final accuracy depends, is always taken in float64. Steps may be bent by the
geodesic acceleration of Transtrum and Sethna (`LevenbergMarquardtOptions.acceleration`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.numerics.least_squares.conjugate_gradient_solver import ConjugateGradientSolver
from unweave.numerics.least_squares.dense_solver import DenseSolver
from unweave.numerics.least_squares.gram_solver import GramSolver
from unweave.numerics.least_squares.problem import LeastSquares, Linearisation
from unweave.numerics.least_squares.solver import Solver

_DENSE_ENTRIES = 6_000_000  # J of at most this many entries is formed (48 MB)
_SMALL_ENTRIES = 100_000  # and of at most this many, even if the problem has a cheap J^T J
_GRAM_PARAMETERS = 12_000  # J^T J of at most this many rows is formed (two of 1.2 GB, half that in float32)
_DAMPING_FALL, _DAMPING_RISE = 1 / 8, 8.0
_MAX_DAMPING = 1e10
_WORTHWHILE = 1e-3  # relative decrease of |r| below which a step counts as no progress
_STRAIGHT = 0.1  # ratio of |r| after and before a step, up to which steps need not be bent
_CURVATURE_STEP = 0.1  # of the step: where its second derivative is measured
_CURVATURE_SEEN = 1e4  # times the rounding: below, the difference that measures it is lost
_LARGEST_BEND = 0.75  # of the step's length: a larger acceleration says that the series does not hold
_ROUND_OFF = 10.0  # times the rounding: here a refused step is the arithmetic, not the model


SolverName = Literal["auto", "dense", "gram", "conjugate gradients"]


@dataclass(frozen=True)
class LevenbergMarquardtOptions:
    """When to stop, and how hard to try."""

    steps: int = 60
    damping: float = 1e-4
    floor: float = 0.0
    """Root mean square residual at which the fit is as good as the data."""
    rounding: float | None = None
    """Root mean square rounding error of a residual, where that is another than the floor: with noise, a fit
    goes on below the level of the noise, and only at rounding is a refused step the arithmetic's."""
    least_steps: int = 0
    """Steps that are tried even from a start at the floor: a solver without a matrix knows the conditioning
    from its steps only."""
    inner_steps: int = 400
    inner_tolerance: float = 1e-3
    """Relative residual of the normal equations at which conjugate gradients stops."""
    stalls: int = 4
    """Steps without worthwhile progress after which it stops; half as many at rounding."""
    acceleration: bool = False
    """Once a step gained little, bend all later ones along the model's second derivative: the small residuals
    of an ill-conditioned problem lie along a curved valley, which straight steps leave. Costs a residual and
    a solve more per step."""
    solver: SolverName = "auto"
    """Who solves the normal equations; "auto" chooses by size and by what the problem offers."""


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
    x, residual = start, problem.residual(start)
    rms = _rms(residual)
    history, damping, stalled = [rms], options.damping, 0
    rounding = options.floor if options.rounding is None else options.rounding
    linear = problem.linearise(x)
    solver = _solver(linear, problem.n_equations, len(start), options)
    curved = False
    for tried in range(options.steps):
        at_rounding = rms < _ROUND_OFF * rounding
        patience = options.stalls // 2 if at_rounding else options.stalls
        at_floor = rms <= options.floor and tried >= options.least_steps
        if at_floor or stalled >= patience or damping > _MAX_DAMPING:
            break
        with np.errstate(over="ignore", invalid="ignore"):  # a wild step is refused, not reported
            step = solver.step(linear, residual, damping)
            if curved and rms > _CURVATURE_SEEN * rounding:
                step = step + _acceleration(problem, solver, x, residual, linear, step, damping)
            trial = x + step
            trial_residual = problem.residual(trial)
            trial_rms = _rms(trial_residual)
        curved = curved or (options.acceleration and not trial_rms < _STRAIGHT * rms)
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
            # At rounding no damping helps, nor at a minimum: even the linear model hopes for nothing there.
            at_minimum = options.rounding is not None and _hopeless(linear, residual, step)
            stalled += 1 if at_rounding or at_minimum else 0
    condition, covariance = solver.conditioning(linear)
    return Fit(x, rms, tuple(history), condition, solver.iterations, covariance)


def _acceleration(
    problem: LeastSquares,
    solver: Solver,
    x: Array,
    residual: Array,
    linear: Linearisation,
    step: Array,
    damping: float,
) -> Array:
    """Half the acceleration a of the geodesic with velocity d = ``step``, or zero where it is not small.

    (J^T J + lambda M) a = -J^T f'', with f'' the second derivative of the model along d, from

        r(x + h d) = r - h J d - h^2/2 f'' + O(h^3).
    """
    h = _CURVATURE_STEP
    second = (residual - h * linear.apply(step) - problem.residual(x + h * step)) * (2 / h**2)
    if not np.isfinite(second).all():
        return np.zeros_like(step)
    acceleration = solver.step(linear, -second, damping)
    if not 2 * np.linalg.norm(acceleration) <= _LARGEST_BEND * np.linalg.norm(step):
        return np.zeros_like(step)
    return acceleration / 2


def _hopeless(linear: Linearisation, residual: Array, step: Array) -> bool:
    """Whether not even the linear model sees the step lower |r| by a worthwhile part."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _rms(residual - linear.apply(step)) > (1 - _WORTHWHILE) * _rms(residual)


def _solver(linear: Linearisation, rows: int, size: int, options: LevenbergMarquardtOptions) -> Solver:
    """The solver for a Jacobian (rows, size) like ``linear``, with which it will be used first."""
    name, inner = options.solver, (options.inner_steps, options.inner_tolerance)
    worthwhile = rows * size > _SMALL_ENTRIES and size <= _GRAM_PARAMETERS
    if name == "gram" or (name == "auto" and worthwhile):
        gram = linear.in_single_precision().gram()
        if gram is not None:
            return GramSolver(linear, gram, *inner)
        if name == "gram":
            raise InvalidInput(
                'solver must be one that the problem supports. Got "gram" for one without a cheap J^T J '
                'instead. Leave the choice to "auto".'
            )
    if name == "dense" or (name == "auto" and rows * size <= _DENSE_ENTRIES):
        return DenseSolver()
    return ConjugateGradientSolver(*inner)


def _rms(residual: Array) -> float:
    with np.errstate(over="ignore", invalid="ignore"):  # a start that ran away has an infinite residual
        return float(np.sqrt(np.mean(residual**2))) if residual.size else 0.0
