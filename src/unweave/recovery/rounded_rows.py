"""Rounded samples are bounds: the right network is within half a digit of every one of them.

Least squares does not know the bound, and a network that lacks a weak unit may stay near it. Whether some
parameters near those found keep it is told by linear programs one after the other [chebyshev],

    minimise t    subject to    |y_n - f(x_n) - J_n d| <= t,      |d_i| max_n |J_ni| <= radius,

each at the parameters that the one before led to. A network that keeps the bound does so whatever way it was
found; one that does not may lack a unit.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.numerics import clock, memory

NOT_KEPT = "no parameters near these round to all of the answers: a weak unit may be missing"
HALF_A_DIGIT = float(np.sqrt(3.0))
"""Half a digit over the standard deviation of rounding to it."""
_MOST_PARAMETERS = 200  # beyond, a program takes minutes
_MOST_ROWS = 4000  # those nearest to the bound and beyond it: the others keep it anyway
_PROGRAMS = 20  # at most; right networks need ten
_FIRST_RADIUS = 3.0  # largest change of an answer by one parameter, in largest errors
_SHRINKING = 0.5  # of the radius after a step that gained little
_LEAST_GAIN = 0.01  # of what is missing, that is worth another step as long
_LARGEST_RISE = 1.1  # of the least error so far: a row at a kink has another slope on its other side
_ROUNDING = 1e-6  # of the bound: what decimals stored in binary and the programs' tolerance leave
_LONGEST_PROGRAM = 60.0  # seconds, or what is left until the deadline
_MATRICES = 4.0  # of the Jacobian's size that a program holds


def keeps_rounding(network: Network, x: Array, y: Array, half: Array) -> bool:
    """Return whether ``network`` or one near it is within ``half`` (K,) of all ``y`` (n, K) at ``x`` (n, D).

    Networks that are too large to tell count as if they were.
    """
    model, bound = NetworkParameters.from_network(network), 1 + _ROUNDING
    error = _largest_error(model, x, y, half)
    if error <= bound or model.size > _MOST_PARAMETERS:
        return True
    radius = _FIRST_RADIUS
    for _ in range(_PROGRAMS):
        clock.check()
        trial = _nearer(model, x, y, half, radius)
        reached = np.inf if trial is None else _largest_error(trial, x, y, half)
        if reached <= bound:
            return True
        if trial is not None and reached < _LARGEST_RISE * error:
            model = trial
        if not error - reached > _LEAST_GAIN * (error - 1):
            radius *= _SHRINKING
        error = min(error, reached)
    return False


def _largest_error(model: NetworkParameters, x: Array, y: Array, half: Array) -> float:
    return float(np.abs((y - model.values(x)) / half).max())


def _nearer(
    model: NetworkParameters, x: Array, y: Array, half: Array, radius: float
) -> NetworkParameters | None:
    """Return the parameters that lower the largest error most, to first order; None if none are found."""
    from scipy.optimize import linprog  # here: slow to import, seldom needed

    errors = (y - model.values(x)) / half
    rows = np.argsort(np.abs(errors).max(axis=1))[-_MOST_ROWS:]
    memory.require(_MATRICES * len(rows) * y.shape[1] * model.size, "The bounds of rounded answers")
    slopes = ValueJacobian(model, x[rows]).dense() / np.tile(half, len(rows))[:, None]
    left = errors[rows].reshape(-1)
    size = np.abs(slopes).max(axis=0)
    size[size == 0] = 1.0
    scaled, ones = slopes / size, np.ones((len(left), 1))
    reach = radius * float(np.abs(left).max())
    solved = linprog(
        np.append(np.zeros(model.size), 1.0),
        A_ub=np.block([[scaled, -ones], [-scaled, -ones]]),
        b_ub=np.concatenate([left, -left]),
        bounds=[(-reach, reach)] * model.size + [(0.0, None)],
        method="highs",
        options={"time_limit": min(clock.remaining_seconds(), _LONGEST_PROGRAM)},
    )
    if solved.status != 0:
        return None
    return model.from_vector(model.to_vector() + solved.x[:-1] / size)
