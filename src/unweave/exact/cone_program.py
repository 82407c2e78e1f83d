"""The convex program of fixed patterns and signs, with a bound that certifies its answer.

    min_c  sum_j l((A c)_j, y_j)    such that    C c >= 0,

A = [P_1 Z, ..., P_w Z], and C holds s_i z_j on the active points of unit i and -s_i z_j on the others. For
any v and lambda >= 0 with A^T v = C^T lambda, no feasible c has a loss below -sum_j l*(v_j, y_j). So every
answer comes with a lower bound from its own multipliers, and with the loss recomputed from the network. No
solver is trusted: an infeasible point has the loss of its network, and unbalanced multipliers lower the
bound.

The squared loss takes one projection onto the cone, other losses a sequence of them. At predictions f with
derivatives g and weights h, a parabola through the loss is minimized over the cone,

    c+ = argmin_{C c >= 0}  sum_j h_j ((A c)_j - f_j + g_j / h_j)^2,

by `project_on_cone`. The first steps take the parabola that touches the
loss from above, later ones its curvature (Newton's method), shortened until the loss falls; with c, all its
multiples are in the cone, and the best of them by doubling is taken. The multipliers of each step satisfy
A^T v = C^T lambda with v = g + h A (c+ - c), so each step also bounds the optimum from below. Most
programs of a search are ruled out by the bound of the first or second step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from unweave.arrays import Array, BoolArray
from unweave.exact.cone_projection import nonnegative_least_squares, project_on_cone
from unweave.exact.linear_losses import PiecewiseLinear
from unweave.exact.losses import ConvexLoss, Squared, dual_bounds

_OPTIMUM_REACH = 4.0  # norm of the optimum over that of the answer or of the labels: a safe upper limit
_IMBALANCE_ROUNDING = 1e-7  # imbalance of the multipliers over the terms summed: smaller ones are rounding
_DOMAIN_EXCESS = 1e-4  # distance of v outside the domain of l* that is clipped and charged to the bound
_MAJORIZED_STEPS = 4  # first steps, which use the parabola from above: Newton may overshoot at the start
_MAX_PROJECTIONS = 60  # nine of ten programs close within three
_LEAST_NEWTON_CURVATURE = 1e-6  # over that of the parabola: keeps the least squares problem regular
_MAX_HALVINGS = 20  # of a step, and doublings of a point: a factor of 1e6
_NEGLIGIBLE_GAIN = 1e-5  # predicted gain over the precision: a smaller one ends the iteration


@dataclass(frozen=True, eq=False)
class ConeProgram:
    """Predictions A c that are linear in c, within the cone C c >= 0."""

    design: Array
    """A, (n, p)."""
    conditions: Array
    """C, (m, p), rows of unit length."""
    y: Array
    """(n,)."""

    def predictions(self, point: Array) -> Array:
        """Predictions (n,) at c (p,)."""
        return np.asarray(self.design @ point)


@dataclass(frozen=True, eq=False)
class PatternProgram(ConeProgram):
    """One choice of patterns and signs; p = w q and m = w n."""

    signs: Array
    """(w,)."""
    z: Array
    """(n, q)."""

    def units(self, point: Array) -> Array:
        """(w, q): a_i = s_i c_i."""
        return np.asarray(self.signs[:, None] * point.reshape(len(self.signs), -1))

    def predictions(self, point: Array) -> Array:
        """Predictions of the network, which an infeasible point does not have in common with A c."""
        return predictions(self.units(point), self.signs, self.z)


@dataclass(frozen=True, eq=False)
class ConeOptimum:
    """A point with the loss of its predictions, and a bound that holds for all points of the program."""

    point: Array
    """(p,)."""
    loss: float
    lower_bound: float


@dataclass(frozen=True, eq=False)
class ConeFit:
    """An answer: the loss is that of the network, the bound holds for all networks of the program."""

    units: Array
    """(w, q): a_i = s_i c_i."""
    signs: Array
    """(w,)."""
    loss: float
    lower_bound: float


def cone_program(active: BoolArray, signs: Array, z: Array, y: Array) -> PatternProgram:
    """The program of patterns (w, n) with signs (w,), points z (n, q), labels (n,)."""
    n, q = z.shape
    width = len(signs)
    length = np.linalg.norm(z, axis=1, keepdims=True)  # at least 1: the last column is
    design = np.zeros((n, width * q))
    conditions = np.zeros((width * n, width * q))
    for i, sign in enumerate(signs):
        part = slice(i * q, (i + 1) * q)
        design[:, part] = active[i][:, None] * z
        conditions[i * n : (i + 1) * n, part] = np.where(active[i], sign, -sign)[:, None] * (z / length)
    return PatternProgram(design, conditions, y, signs, z)


def solve(program: PatternProgram, loss: ConvexLoss, precision: float, cutoff: float = np.inf) -> ConeFit:
    """Solve to a gap between loss and bound of at most ``precision``, if arithmetic allows.

    A bound beyond ``cutoff`` ends the work as well: such a program is of no interest.
    """
    best = minimize_over_cone(program, loss, precision, cutoff)
    return ConeFit(program.units(best.point), program.signs, best.loss, best.lower_bound)


def minimize_over_cone(
    program: ConeProgram, loss: ConvexLoss, precision: float, cutoff: float = np.inf
) -> ConeOptimum:
    """Minimize sum_j l(f_j, y_j) over the cone, as `solve` does."""
    a, y, c = program.design, program.y, program.conditions
    if isinstance(loss, Squared):
        point, multipliers = project_on_cone(a, y, c) or (np.zeros(a.shape[1]), np.zeros(len(c)))
        return _judged(program, loss, point, loss.derivative(a @ point, y), multipliers)
    point, v, multipliers = sequential_projections(a, y, c, loss, precision, cutoff)
    fit = _judged(program, loss, point, v, multipliers)
    if _closed(fit, precision, cutoff):
        return fit
    fit = _better(fit, _judged(program, loss, *_from_the_end(program, loss, point)))
    if isinstance(loss, PiecewiseLinear) and not _closed(fit, precision, cutoff):
        fit = _better(fit, _judged(program, loss, *_linear_program(program, loss)))
    return fit


def predictions(units: Array, signs: Array, z: Array) -> Array:
    """(n,) the network sum_i s_i relu(a_i . z), units (w, q)."""
    return np.asarray(np.maximum(z @ units.T, 0.0) @ signs)


def _judged(
    program: ConeProgram, loss: ConvexLoss, point: Array, v: Array, multipliers: Array
) -> ConeOptimum:
    """Loss of the predictions at ``point`` (p,), and the bound that v (n,), multipliers (m,) >= 0 give.

    First move v by the least amount that makes A^T v = C^T lambda hold. The imbalance that remains is charged
    to the bound if it is rounding; otherwise the bound is zero.
    """
    a, y = program.design, program.y
    reached = float(np.sum(loss.value(program.predictions(point), y)))
    pull = program.conditions.T @ multipliers
    dual = v + np.linalg.lstsq(a.T, pull - a.T @ v, rcond=None)[0]
    left_over = float(np.linalg.norm(a.T @ dual - pull))
    at_zero = np.abs(loss.derivative(np.zeros(len(y)), y))
    terms = float(np.linalg.norm(np.abs(a).T @ np.maximum(np.abs(dual), at_zero)))
    if left_over > _IMBALANCE_ROUNDING * terms:
        return ConeOptimum(point, reached, 0.0)
    charge = _OPTIMUM_REACH * left_over * max(float(np.linalg.norm(point)), float(np.linalg.norm(y)))
    value, multiple = dual_bounds(loss, dual[None, :], y)
    bounds = [0.0, float(value[0] - multiple[0] * charge)]
    inside = np.clip(dual, *loss.dual_range(y))
    moved = float(np.abs(inside - dual).max())
    if moved <= _DOMAIN_EXCESS:  # tiny v of either sign: scaling all of them would lose the others
        largest = max(1.0, float(np.abs(a @ point).max()))
        charge += _OPTIMUM_REACH * float(np.abs(inside - dual).sum()) * largest
        bounds.append(-float(np.sum(loss.conjugate(inside, y))) - charge)
    return ConeOptimum(point, reached, max(bounds))


def _closed(fit: ConeOptimum, precision: float, cutoff: float) -> bool:
    return fit.loss - fit.lower_bound <= precision or fit.lower_bound > cutoff


def _better(first: ConeOptimum, second: ConeOptimum) -> ConeOptimum:
    """The better point with the better bound."""
    best = first if first.loss <= second.loss else second
    return ConeOptimum(best.point, best.loss, max(first.lower_bound, second.lower_bound))


def _from_the_end(program: ConeProgram, loss: ConvexLoss, point: Array) -> tuple[Array, Array, Array]:
    """The derivatives at the point, with the multipliers that balance them best."""
    v = loss.derivative(program.design @ point, program.y)
    multipliers = nonnegative_least_squares(program.conditions.T, program.design.T @ v)
    if multipliers is None:
        multipliers = np.zeros(len(program.conditions))
    return point, v, multipliers


def _linear_program(program: ConeProgram, loss: PiecewiseLinear) -> tuple[Array, Array, Array]:
    """Minimize sum t with t_j >= slope_kj (A c)_j + offset_kj for all lines k; multipliers come with it."""
    n, p = program.design.shape
    slopes, offsets = loss.lines(program.y)
    above = np.vstack([np.hstack([slope[:, None] * program.design, -np.eye(n)]) for slope in slopes])
    inside = np.hstack([-program.conditions, np.zeros((len(program.conditions), n))])
    answer = linprog(
        np.concatenate([np.zeros(p), np.ones(n)]),
        A_ub=np.vstack([above, inside]),
        b_ub=np.concatenate([-offsets.ravel(), np.zeros(len(inside))]),
        bounds=[(None, None)] * p + [(0, None)] * n,
        method="highs",
    )
    if answer.status != 0:
        return np.zeros(p), np.zeros(n), np.zeros(len(program.conditions))
    prices = -answer.ineqlin.marginals
    v = np.sum(slopes * prices[: len(above)].reshape(slopes.shape), axis=0)
    return np.asarray(answer.x[:p]), v, np.maximum(prices[len(above) :], 0.0)


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
