"""Good networks by local search: the upper bound that makes lower bounds prune.

From many starts at once, damped steps on sum_j l(f(x_j), y_j) with f linearized in the units (w, q), the loss
replaced by the parabola that touches it from above. Most starts end in local optima. With little noise the
best of them is usually the global one, with labels at random often not; nothing relies on it.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.exact.losses import ConvexLoss

_DAMPED_STEPS = 80  # most starts have settled by then
_SEARCH_DAMPING = 1e-2  # first damping, over the largest diagonal entry
_SEARCH_DAMPING_FALL, _SEARCH_DAMPING_RISE = 1 / 3, 4.0  # its factors after success and failure
_LEAST_DAMPING, _MOST_DAMPING = 1e-12, 1e8  # no effect below the first; a start at the second is stuck


def local_search(
    z: Array, y: Array, width: int, loss: ConvexLoss, starts: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Units (R, w, q), signs (R, w) and losses (R,) of R = ``starts`` networks, the best first."""
    n, q = z.shape
    units = rng.standard_normal((starts, width, q))
    # Kinks belong among the points: every unit starts with its kink through one of them.
    through = z[rng.integers(n, size=(starts, width))]
    units[:, :, -1] = -np.sum(units[:, :, :-1] * through[:, :, :-1], axis=2)
    size = np.abs(units).max(axis=2, keepdims=True)
    units = units / np.where(size > 0, size, 1.0)
    if q == 1:
        units = np.abs(rng.standard_normal((starts, width, q)))
    signs = rng.choice([-1.0, 1.0], size=(starts, width))
    damping = np.full(starts, _SEARCH_DAMPING)
    losses = _losses(units, signs, z, y, loss)
    for _ in range(_DAMPED_STEPS):
        moving = damping < _MOST_DAMPING
        if not moving.any():
            break
        step = _steps(units, signs, z, y, loss, damping)
        trial = _losses(units + step, signs, z, y, loss)
        better = trial < losses
        units[better] += step[better]
        losses = np.where(better, trial, losses)
        damping = np.where(
            better, np.maximum(damping * _SEARCH_DAMPING_FALL, _LEAST_DAMPING), damping * _SEARCH_DAMPING_RISE
        )
    order = np.argsort(losses, kind="stable")
    return units[order], signs[order], losses[order]


def _losses(units: Array, signs: Array, z: Array, y: Array, loss: ConvexLoss) -> Array:
    return np.asarray(np.sum(loss.value(_values(units, signs, z)[0], y), axis=1))


def _values(units: Array, signs: Array, z: Array) -> tuple[Array, Array]:
    """Predictions (R, n) and inner values (R, n, w)."""
    inner = z @ np.swapaxes(units, 1, 2)
    return (np.maximum(inner, 0.0) @ signs[:, :, None])[:, :, 0], inner


def _steps(units: Array, signs: Array, z: Array, y: Array, loss: ConvexLoss, damping: Array) -> Array:
    f, inner = _values(units, signs, z)
    starts, n = inner.shape[:2]
    slopes = (inner > 0) * signs[:, None, :]
    jacobian = (slopes[:, :, :, None] * z[None, :, None, :]).reshape(starts, n, -1)
    transposed = np.swapaxes(jacobian, 1, 2)
    matrix = transposed @ (loss.weight(f, y)[:, :, None] * jacobian)
    diagonal = np.einsum("kii->ki", matrix)  # a view
    diagonal += damping[:, None] * np.maximum(diagonal.max(axis=1, keepdims=True), 1e-300)
    gradient = transposed @ loss.derivative(f, y)[:, :, None]
    return np.asarray(-np.linalg.solve(matrix, gradient)[:, :, 0].reshape(units.shape))
