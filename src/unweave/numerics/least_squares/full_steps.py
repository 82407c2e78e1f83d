"""Gauss-Newton: full steps near a solution, by a solver of the caller's choice.

    x <- x + d,      d = solve(r(x)),   for instance the shortest minimiser of |r - J d|

where the state x need not be a vector and J may be kept from step to step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from unweave.arrays import Array
from unweave.numerics.least_squares.levenberg_marquardt import (
    LevenbergMarquardtOptions,
    Path,
    Steps,
    minimise,
)

State = TypeVar("State")


@dataclass(frozen=True, eq=False)
class StatePoint(Generic[State]):
    """A state and what it leaves."""

    state: State
    residual: Array
    """(rows,)"""
    size: float
    """Root mean square residual."""


def take_full_steps(
    start: State,
    residual: Callable[[State], Array],
    move: Callable[[State, Array], State],
    options: LevenbergMarquardtOptions,
) -> Path[StatePoint[State]]:
    """Step from ``start``: ``move`` returns the state after the step for a residual (rows,) at a state."""
    return minimise(_FullSteps(residual, move), _point(start, residual(start)), options)


class _FullSteps(Steps[StatePoint[State]]):
    def __init__(self, residual: Callable[[State], Array], move: Callable[[State, Array], State]) -> None:
        self._residual, self._move = residual, move

    def trial(self, point: StatePoint[State], damping: float | Array) -> StatePoint[State]:
        state = self._move(point.state, point.residual)
        return _point(state, self._residual(state))


def _point(state: State, residual: Array) -> StatePoint[State]:
    return StatePoint(state, residual, float(np.sqrt(np.mean(residual**2))))
