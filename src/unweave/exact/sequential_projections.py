"""Convex losses over a polyhedral cone by a sequence of projections.

At predictions f with derivatives g and weights h, a parabola through the loss is minimized over the cone,

    c+ = argmin_{C c >= 0}  sum_j h_j ((A c)_j - f_j + g_j / h_j)^2,

one nonnegative least squares problem (`project_on_cone`). The first steps take the parabola that touches the
loss from above, later ones its curvature (Newton's method), shortened until the loss falls; with c, all its
multiples are in the cone, and the best of them by doubling is taken. The multipliers of each step satisfy
A^T v = C^T lambda with v = g + h A (c+ - c), so each step also bounds the optimum from below. Most
programs of a search are ruled out by the bound of the first or second step.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.exact.cone_projection import project_on_cone
from unweave.exact.losses import ConvexLoss, dual_bounds

_MAJORIZED_STEPS = 4  # first steps, which use the parabola from above: Newton may overshoot at the start
_MAX_PROJECTIONS = 60  # nine of ten programs close within three
_LEAST_NEWTON_CURVATURE = 1e-6  # over that of the parabola: keeps the least squares problem regular
_MAX_HALVINGS = 20  # of a step, and doublings of a point: a factor of 1e6
_NEGLIGIBLE_GAIN = 1e-5  # predicted gain over the precision: a smaller one ends the iteration


def sequential_projections(
    design: Array, y: Array, conditions: Array, loss: ConvexLoss, precision: float, cutoff: float
) -> tuple[Array, Array, Array]:
    """Return the last point c (p,), and v (n,) and multipliers (m,) of the best bound.

    End early when loss and bound agree to ``precision``, or the bound exceeds ``cutoff``.
    """
    point = np.zeros(design.shape[1])
    v, multipliers, bound = np.zeros(len(y)), np.zeros(len(conditions)), 0.0
    reached = float(np.sum(loss.value(np.zeros(len(y)), y)))
    for number in range(_MAX_PROJECTIONS):
        f = design @ point
        weight, slope = loss.weight(f, y), loss.derivative(f, y)
        if number >= _MAJORIZED_STEPS:
            weight = np.maximum(loss.curvature(f, y), _LEAST_NEWTON_CURVATURE * weight)
        root = np.sqrt(weight)
        answer = project_on_cone(root[:, None] * design, root * f - slope / root, conditions)
        if answer is None:
            break
        trial, pull = answer
        change = design @ (trial - point)
        # Those multipliers belong to the parabola without its factor 1/2.
        pulled = slope + weight * change
        value, multiple = dual_bounds(loss, pulled[None, :], y)
        if value[0] > bound:
            bound, v, multipliers = float(value[0]), multiple[0] * pulled, multiple[0] * pull / 2
        predicted = -float(slope @ change)
        length = _shortened(loss, f, y, change, reached)
        if length:
            point = point + length * (trial - point)
            reached = float(np.sum(loss.value(design @ point, y)))
            point, reached = _stretched(loss, design, y, point, reached, _NEGLIGIBLE_GAIN * precision)
        if (
            bound > cutoff
            or reached - bound <= precision
            or predicted <= _NEGLIGIBLE_GAIN * precision
            or not length
        ):
            break
    return point, v, multipliers


def _stretched(
    loss: ConvexLoss, design: Array, y: Array, point: Array, reached: float, worthwhile: float
) -> tuple[Array, float]:
    """The first of c, 2 c, 4 c, ... that is not improved by the next: optima may lie at infinity."""
    f = design @ point
    for _ in range(_MAX_HALVINGS):
        trial = float(np.sum(loss.value(2 * f, y)))
        if not trial < reached - worthwhile:
            break
        point, f, reached = 2 * point, 2 * f, trial
    return point, reached


def _shortened(loss: ConvexLoss, f: Array, y: Array, change: Array, reached: float) -> float:
    """The first of 1, 1/2, 1/4, ... with a smaller loss; 0 if none has."""
    length = 1.0
    for _ in range(_MAX_HALVINGS):
        if float(np.sum(loss.value(f + length * change, y))) < reached:
            return length
        length /= 2
    return 0.0
