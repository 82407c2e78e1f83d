"""Predicted errors of a gate learner: the recursion of `unweave.gates.stochastic`, iterated.

With z_t = sqrt(E|w_t - w*|^2), step eta, share beta of poisoned labels and the constants lambda, Lambda,
kappa, m2:

    z_{t+1}^2 = rho z_t^2 + 2 eta beta theta kappa z_t + 2 eta^2 beta theta^2 m2,

rho = 1 - 2 eta lambda + s eta^2 Lambda, s = 1 for clean and 2 for poisoned labels. Its right side grows with
z, so that iterating it bounds every later error; its fixed point solves

    (lambda - eta Lambda) z^2 - beta theta kappa z - eta beta theta^2 m2 = 0.
"""

from __future__ import annotations

import math

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.gates.constants import GateConstants

_FIXED_POINT_TOLERANCE = 1e-12  # relative distance to the fixed point: nearer, the curve is constant


def error_curve(
    constants: GateConstants, step: float, first: float, times: IntArray, fraction: float = 1.0
) -> Array:
    """Bounds (H,) on sqrt(E|w - w*|^2) after ``times`` (H,) samples, ascending, from |w_1 - w*| = first."""
    if constants.theta * fraction == 0:
        with np.errstate(over="ignore", under="ignore"):  # a step that is too long has no finite bound
            return np.asarray(first * max(constants.factor(step), 0.0) ** (times / 2))
    rho = constants.factor(step) + step**2 * constants.weighted
    linear = 2 * step * fraction * constants.theta * constants.directional
    constant = 2 * step**2 * fraction * constants.theta**2 * constants.second
    floor = error_floor(constants, step, fraction)
    bounds, z, now = np.empty(len(times)), first, 0
    for entry, time in enumerate(times.tolist()):
        while now < time and not abs(z - floor) <= _FIXED_POINT_TOLERANCE * floor:
            z = math.sqrt(rho * z * z + linear * z + constant)
            now += 1
        now, bounds[entry] = time, z
    return bounds


def error_floor(constants: GateConstants, step: float = 0.0, fraction: float = 1.0) -> float:
    """Limit of the bounds: theta kappa/lambda as the step goes to zero; inf if the step is too long."""
    theta = constants.theta
    if theta * fraction == 0:
        return 0.0
    slope = constants.smallest - step * constants.weighted
    if slope <= 0:
        return math.inf
    push = fraction * theta * constants.directional
    noise = step * fraction * theta**2 * constants.second
    return (push + math.sqrt(push**2 + 4 * slope * noise)) / (2 * slope)
