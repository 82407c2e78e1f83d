"""Levenberg-Marquardt for least squares whose unknowns are not a vector.

The unknowns of a layer are a matrix, a bias vector and a *subspace*; a step moves the subspace along its
tangent and returns to it. So the problem itself moves its state, and provides J^T J and J^T r; a step solves

    (J^T J + lambda diag(J^T J)) d = -J^T r .
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
import scipy.linalg

from unweave.arrays import Array

State = TypeVar("State")

_TRIES = 16  # dampings tried at one point before it counts as a minimum
_FALL, _RISE = 1 / 6, 4.0
_SMALLEST_DAMPING = 1e-13
_DIAGONAL_FLOOR = 1e-6  # of the mean diagonal of J^T J: directions the data hardly see move little
_QUADRATIC = 1e-8  # residual below which a step that does not halve it has met the rounding floor


class ProjectedProblem(Protocol[State]):
    """Minimise |r(state)|^2; r is scaled so that its norm is a relative residual."""

    def cost(self, state: State) -> float:
        """|r|^2; infinite where it is not defined."""

    def normal_equations(self, state: State) -> tuple[Array, Array, float]:
        """J^T J, J^T r and |r|^2."""

    def moved(self, state: State, step: Array) -> State:
        """The state after a step."""


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
    """Minimise from ``start``; stops at residual ``enough``, at rounding, or when a step leaves more than
    ``slow`` of the cost."""
    state, history = start, []
    for number in range(steps):
        gram, gradient, cost = problem.normal_equations(state)
        history.append(float(np.sqrt(cost)))
        if on_step is not None:
            on_step(number, history[-1])
        if history[-1] < enough:
            break
        diagonal = np.diag(gram).copy()
        diagonal = np.maximum(diagonal, _DIAGONAL_FLOOR * diagonal.mean())
        for _ in range(_TRIES):
            trial, trial_cost = _tried(problem, state, gram, gradient, damping * diagonal)
            if trial_cost < cost:
                break
            damping *= _RISE
        else:
            break
        state = trial
        damping = max(damping * _FALL, _SMALLEST_DAMPING)
        finished = history[-1] < _QUADRATIC and trial_cost > 0.5 * cost
        if finished or trial_cost > slow * cost:
            history.append(float(np.sqrt(trial_cost)))
            break
    else:
        history.append(float(np.sqrt(problem.cost(state))))
    return Descent(state, history[-1], tuple(history))


def _tried(
    problem: ProjectedProblem[State], state: State, gram: Array, gradient: Array, ridge: Array
) -> tuple[State, float]:
    damped = gram.copy()
    damped[np.diag_indices(len(ridge))] += ridge
    try:
        factor = scipy.linalg.cho_factor(damped, lower=True, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        return state, np.inf
    step = -scipy.linalg.cho_solve(factor, gradient, check_finite=False)
    if not np.isfinite(step).all():
        return state, np.inf
    moved = problem.moved(state, step)
    with np.errstate(all="ignore"):
        cost = problem.cost(moved)
    return moved, cost if np.isfinite(cost) else np.inf
