"""Gradient descent with backtracking (Armijo).

    W <- W - eta grad L(W),

eta halved until L falls by c eta |grad L|^2, and grown after success.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array


@dataclass(frozen=True, eq=False)
class ArmijoDescent:
    """End point of the descent."""

    point: Array
    losses: Array
    """Loss before every step and at the end: never rising."""
    gradient_norm: float
    """|grad L| at the end."""


def armijo_descent(
    loss: Callable[[Array], float],
    gradient: Callable[[Array], Array],
    start: Array,
    first_step: float,
    steps: int,
    done: Callable[[float, float], bool],
    *,
    decrease: float,
    growth: float = 1.3,
    least_step: float = 1e-12,
) -> ArmijoDescent:
    """Descend from ``start`` (any shape) until ``done(loss, gradient norm)``, or for ``steps`` steps.

    ``decrease`` is c. Descent also ends where eta falls below ``least_step`` times ``first_step``: no step
    lowers the loss any more.
    """
    point, value, slope, step = start, loss(start), gradient(start), first_step
    losses, norm = [value], float(np.linalg.norm(slope))
    while len(losses) <= steps and step > least_step * first_step and not done(value, norm):
        trial = point - step * slope
        trial_value = loss(trial)
        if trial_value <= value - decrease * step * norm**2:
            point, value, slope = trial, trial_value, gradient(trial)
            norm = float(np.linalg.norm(slope))
            losses.append(value)
            step *= growth
        else:
            step /= 2
    return ArmijoDescent(point, np.array(losses), norm)
