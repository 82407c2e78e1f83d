"""Least squares over a polyhedral cone by one nonnegative least squares problem.

    min_c |A c - y|^2  such that  C c >= 0.

With u = R c, |A c - y|^2 = |u - b|^2 + const, this is the projection of b onto the cone {u : G u >= 0},
G = C R^{-1}. By Moreau's decomposition b is the sum of its projections onto the cone and onto its polar cone
{-G^T lambda : lambda >= 0}, so

    lambda = argmin_{lambda >= 0} | G^T lambda + b |,       u = b + G^T lambda.

Unlike the least-distance form, which returns infeasible points on rank-deficient patterns, it divides by no
small number. Directions that A does not see get a small weight, whose effect is removed afterwards: on the
conditions found active, the problem is a linear one.

SciPy's solver of min_{x >= 0} | A x - b | is fast and mostly right, but on degenerate problems (b on the
border of the polar cone, as for patterns that fit exactly) it may return any vector with a residual of zero.
So check its answer against the conditions of optimality

    x >= 0,      A^T (b - A x) <= 0,      with equality where x > 0,

and where it fails, run the active-set method of Lawson and Hanson [nnls], with every least squares problem
solved by singular values and columns that cannot enter skipped.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from unweave.arrays import Array, BoolArray

_RANK_TOLERANCE = 1e-12  # singular value over the largest: smaller ones are rounding
# Attempts: singular value, over the largest, up to which a direction is unseen, and the weight it then gets.
_UNSEEN_DIRECTIONS = ((1e-12, 1e-4), (1e-12, 1e-6), (1e-12, 1e-8), (1e-9, 1e-3), (1e-7, 1e-2))
_BALANCE_TOLERANCE = 1e-11  # derivative along c left by the multipliers, over |y|^2: ends the attempts
_VIOLATION_ROUNDING = 1e-10  # violation of a condition over |c|: smaller ones are rounding
_ACTIVE_PULL = 1e-10  # pull of a condition over |y|: stronger ones hold the optimum back
_LARGEST_VIOLATION = 1e-8  # violation over |y| up to which an answer is worth judging
_ZERO_GRADIENT = 1e-10  # gradient along unit columns over |b|: smaller ones are rounding
_ENTERING_GRADIENT = 1e-13  # gradient over |b| above which a column is tried: below the former, to be safe
_STEPS_PER_COLUMN = 3  # the limit of Lawson and Hanson; columns seldom enter twice


def project_on_cone(design: Array, y: Array, conditions: Array) -> tuple[Array, Array] | None:
    """c (p,) and multipliers (m,) of |A c - y|^2, for A (n, p), C (m, p); None if no attempt is feasible."""
    # Zero rows change nothing, and make room for all p singular directions.
    missing = max(0, design.shape[1] - len(design))
    if missing:
        design, y = np.pad(design, ((0, missing), (0, 0))), np.pad(y, (0, missing))
    left, values, right = np.linalg.svd(design, full_matrices=False)
    size = float(np.linalg.norm(y))
    best, least = None, np.inf
    for zero, unseen in _UNSEEN_DIRECTIONS:
        seen = int(np.sum(values > zero * values[0])) if values[0] > 0 else 0
        scale = np.full(design.shape[1], unseen * (values[0] if values[0] > 0 else 1.0))
        scale[:seen] = values[:seen]
        b = np.zeros(design.shape[1])
        b[:seen] = left[:, :seen].T @ y
        cone = (conditions @ right.T) / scale
        multipliers = nonnegative_least_squares(cone.T, -b)
        if multipliers is None:
            continue
        point = right.T @ ((b + cone.T @ multipliers) / scale)
        active = multipliers * np.linalg.norm(cone, axis=1) > _ACTIVE_PULL * size
        # The derivative of |A c - y|^2 is twice A^T (A c - y), and so are the multipliers.
        point, multipliers = _polished(design, y, conditions, point, 2 * multipliers, active)
        if not _feasible(conditions, point, _LARGEST_VIOLATION * size):
            continue
        balance = 2 * design.T @ (design @ point - y) - conditions.T @ multipliers
        left_over = float(np.linalg.norm(balance) * np.linalg.norm(point))
        if left_over < least:
            best, least = (point, multipliers), left_over
        if left_over <= _BALANCE_TOLERANCE * size**2:
            break
    return best


def _feasible(conditions: Array, point: Array, slack: float) -> bool:
    return bool(np.min(conditions @ point, initial=0.0) >= -slack)


def _polished(
    design: Array, y: Array, conditions: Array, point: Array, multipliers: Array, active: BoolArray
) -> tuple[Array, Array]:
    """The same point, exact on the conditions found active, where that is feasible and no worse."""
    held = conditions[active]
    _, sizes, directions = np.linalg.svd(held)
    free = directions[int(np.sum(sizes > _RANK_TOLERANCE)) :].T  # conditions have unit length
    start = free @ (free.T @ point)
    # Along free directions A may be rounding and nothing else: small against A, not against A on these.
    left, values, right = np.linalg.svd(design @ free, full_matrices=False)
    seen = values > _RANK_TOLERANCE * np.linalg.norm(design)
    step = right[seen].T @ ((left[:, seen].T @ (y - design @ start)) / values[seen])
    exact = start + free @ step
    # A condition wrongly held would cost loss; one wrongly free, feasibility.
    worse = np.linalg.norm(design @ exact - y) > np.linalg.norm(
        design @ point - y
    ) + _VIOLATION_ROUNDING * np.linalg.norm(y)
    if worse or not _feasible(conditions, exact, _VIOLATION_ROUNDING * float(np.linalg.norm(exact))):
        return point, multipliers
    if not len(held):
        return exact, np.zeros(len(conditions))
    refined = np.zeros(len(conditions))
    pulls = nonnegative_least_squares(held.T, 2 * design.T @ (design @ exact - y))
    if pulls is None:
        return exact, multipliers
    refined[active] = pulls
    return exact, refined


def nonnegative_least_squares(matrix: Array, right: Array) -> Array | None:
    """x (m,) for A (p, m), b (p,), columns of any length; None if no answer satisfies the conditions."""
    if not matrix.shape[1]:  # SciPy's solver crashes without columns
        return np.zeros(0)
    length = np.linalg.norm(matrix, axis=0)
    unit = matrix / np.where(length > 0, length, 1.0)
    tolerance = _ZERO_GRADIENT * float(np.linalg.norm(right))
    for solver in (_fast, _careful):
        x = solver(unit, right)
        if x is not None and _optimal(unit, right, x, tolerance):
            return np.asarray(x / np.where(length > 0, length, 1.0))
    return None


def _optimal(unit: Array, right: Array, x: Array, tolerance: float) -> bool:
    gradient = unit.T @ (right - unit @ x)
    return bool(x.min(initial=0.0) >= 0 and gradient.max(initial=0.0) <= tolerance) and bool(
        np.abs(gradient[x > 0]).max(initial=0.0) <= tolerance
    )


def _fast(unit: Array, right: Array) -> Array | None:
    try:
        return np.asarray(nnls(unit, right, maxiter=_STEPS_PER_COLUMN * unit.shape[1])[0])
    except RuntimeError:
        return None


def _careful(unit: Array, right: Array) -> Array | None:
    count = unit.shape[1]
    x, passive = np.zeros(count), np.zeros(count, dtype=np.bool_)
    enters = _ENTERING_GRADIENT * float(np.linalg.norm(right))
    refused = np.zeros(count, dtype=np.bool_)
    for _ in range(_STEPS_PER_COLUMN * count):
        gradient = np.where(passive | refused, -np.inf, unit.T @ (right - unit @ x))
        entering = int(np.argmax(gradient))
        if not gradient[entering] > enters:
            return x
        passive[entering] = True
        target = _least_squares(unit, right, passive)
        if target[entering] <= 0:  # only rounding says that it helps
            passive[entering], refused[entering] = False, True
            continue
        refused[:] = False
        while target[passive].min() <= 0:
            blocking = np.flatnonzero(passive & (target <= 0))
            ratio = x[blocking] / np.maximum(x[blocking] - target[blocking], np.finfo(np.float64).tiny)
            x = x + ratio.min() * (target - x)
            passive[blocking[ratio == ratio.min()]] = False
            x[~passive] = 0.0
            if not passive.any():
                target = np.zeros(count)
                break
            target = _least_squares(unit, right, passive)
        x = target
    return None


def _least_squares(unit: Array, right: Array, passive: BoolArray) -> Array:
    full = np.zeros(unit.shape[1])
    full[passive] = np.linalg.lstsq(unit[:, passive], right, rcond=None)[0]
    return full
