"""Nonnegative least squares with a check of optimality.

    min_{x >= 0} | A x - b |

SciPy's solver is fast and mostly right, but on degenerate problems (b on the border of the polar cone, as
for patterns that fit exactly) it may return any vector with a residual of zero. So check its answer against
the conditions of optimality

    x >= 0,      A^T (b - A x) <= 0,      with equality where x > 0,

and where it fails, run the active-set method of Lawson and Hanson [nnls], with every least squares problem
solved by singular values and columns that cannot enter skipped.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from unweave.arrays import Array, BoolArray

_ZERO_GRADIENT = 1e-10  # gradient along unit columns over |b|: smaller ones are rounding
_ENTERING_GRADIENT = 1e-13  # gradient over |b| above which a column is tried: below the former, to be safe
_STEPS_PER_COLUMN = 3  # the limit of Lawson and Hanson; columns seldom enter twice


def nonnegative_least_squares(matrix: Array, right: Array) -> Array | None:
    """x (m,) for A (p, m), b (p,), columns of any length; None if no answer satisfies the conditions."""
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
