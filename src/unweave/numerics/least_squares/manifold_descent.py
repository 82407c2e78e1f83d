"""Levenberg-Marquardt for least squares whose unknowns are not a vector, a subspace for instance.

A step moves the state along the tangent of its manifold and returns to the manifold. So the problem itself
moves its state and provides J^T J and J^T r; a step solves

    (J^T J + lambda diag(J^T J)) d = -J^T r .
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.numerics.least_squares import LevenbergMarquardtOptions, Steps, minimise

State = TypeVar("State")

_DIAGONAL_FLOOR = 1e-6  # of the mean diagonal of J^T J: directions that the data hardly determine move little
_MANIFOLD_SCHEDULE = LevenbergMarquardtOptions(
    refusals=16,
    round_off=0.0,
    stalls=1,
    last_below=1e-8,  # here steps converge quadratically: one that does not has met the rounding
    last_ratio=np.sqrt(0.5),
    damping_fall=1 / 6,
    damping_rise=4.0,
    least_damping=1e-13,
    least_raised=0.0,
    max_damping=np.inf,
)


class ProjectedProblem(Protocol[State]):
    """Minimise |r(state)|^2; r is scaled so that its norm is a relative residual."""

    def cost(self, state: State) -> float:
        """Return |r|^2; infinite where it is not defined."""

    def normal_equations(self, state: State) -> tuple[Array, Array, float]:
        """Return J^T J, J^T r and |r|^2."""

    def moved(self, state: State, step: Array) -> State:
        """Return the state after a step."""


@dataclass(frozen=True)
class Descent(Generic[State]):
    """Where the descent ended."""

    state: State
    residual: float
    history: tuple[float, ...]


def descend(
    problem: ProjectedProblem[State],
    start: State,
    *,
    steps: int = 60,
    damping: float = 1e-2,
    enough: float = 1e-13,
    slow: float = 1.0,
    on_step: Callable[[int, float], None] | None = None,
) -> Descent[State]:
    """Minimise from ``start``, until the residual is ``enough`` or only rounding is left.

    A step that leaves more than ``slow`` of the cost is the last. ``on_step`` is called with (steps made,
    residual) before every step.
    """
    worthwhile = 1 - float(np.sqrt(slow))
    options = replace(_MANIFOLD_SCHEDULE, steps=steps, damping=damping, floor=enough, worthwhile=worthwhile)
    manifold_steps = _ManifoldSteps(problem, on_step)
    path = minimise(manifold_steps, manifold_steps.start(start), options)
    return Descent(path.point.state, path.history[-1], path.history)


@dataclass(eq=False)
class _ManifoldPoint(Generic[State]):
    state: State
    size: float
    equations: tuple[Array, Array, Array] | None = None
    """J^T J, J^T r and the damping's metric, once a step begins here."""


class _ManifoldSteps(Steps[_ManifoldPoint[State]]):
    def __init__(
        self, problem: ProjectedProblem[State], on_step: Callable[[int, float], None] | None
    ) -> None:
        self._problem, self._on_step = problem, on_step
        self._begun = 0

    def start(self, state: State) -> _ManifoldPoint[State]:
        gram, gradient, cost = self._problem.normal_equations(state)
        return self._with_equations(_ManifoldPoint(state, float(np.sqrt(cost))), gram, gradient)

    def trial(self, point: _ManifoldPoint[State], damping: float | Array) -> _ManifoldPoint[State]:
        if point.equations is None:
            self._with_equations(point, *self._problem.normal_equations(point.state)[:2])
        assert point.equations is not None
        gram, gradient, diagonal = point.equations
        damped = gram.copy()
        damped[np.diag_indices(len(diagonal))] += damping * diagonal
        try:
            factor = scipy.linalg.cho_factor(damped, lower=True, overwrite_a=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            return _ManifoldPoint(point.state, np.inf)
        step = -scipy.linalg.cho_solve(factor, gradient, check_finite=False)
        if not np.isfinite(step).all():
            return _ManifoldPoint(point.state, np.inf)
        moved = self._problem.moved(point.state, step)
        with np.errstate(all="ignore"):
            return _ManifoldPoint(moved, float(np.sqrt(self._problem.cost(moved))))

    def _with_equations(
        self, point: _ManifoldPoint[State], gram: Array, gradient: Array
    ) -> _ManifoldPoint[State]:
        if self._on_step is not None:
            self._on_step(self._begun, point.size)
        self._begun += 1
        diagonal = np.diag(gram)
        point.equations = gram, gradient, np.maximum(diagonal, _DIAGONAL_FLOOR * diagonal.mean())
        return point
