"""Good networks by local search: the upper bound that makes lower bounds prune.

From many starts at once, damped steps on sum_j l(f(x_j), y_j) with f linearized in the units (w, q), the loss
replaced by the parabola that touches it from above. Most starts end in local optima. With little noise the
best of them is usually the global one, with labels at random often not; nothing relies on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.exact.losses import ConvexLoss
from unweave.numerics.least_squares import LevenbergMarquardtOptions, Steps, minimise

_LOCAL_SEARCH_SCHEDULE = LevenbergMarquardtOptions(
    steps=80,
    stalls=None,
    damping=1e-2,
    damping_fall=1 / 3,
    damping_rise=4.0,
    least_damping=1e-12,
    least_raised=0.0,
    max_damping=1e8,
)


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
    steps = _UnitSteps(signs, z, y, loss)
    end = minimise(steps, steps.at(units), _LOCAL_SEARCH_SCHEDULE).point
    units, losses = end.units, end.size
    order = np.argsort(losses, kind="stable")
    return units[order], signs[order], losses[order]


@dataclass(frozen=True, eq=False)
class _Units:
    """The networks of all starts."""

    units: Array  # (R, w, q)
    size: Array  # losses, (R,)


class _UnitSteps(Steps[_Units]):
    def __init__(self, signs: Array, z: Array, y: Array, loss: ConvexLoss) -> None:
        self._signs, self._z, self._y, self._loss = signs, z, y, loss

    def at(self, units: Array) -> _Units:
        return _Units(units, np.sum(self._loss.value(self._values(units)[0], self._y), axis=1))

    def trial(self, point: _Units, damping: float | Array) -> _Units:
        signs, z = self._signs, self._z
        f, inner = self._values(point.units)
        starts, n = inner.shape[:2]
        slopes = (inner > 0) * signs[:, None, :]
        jacobian = (slopes[:, :, :, None] * z[None, :, None, :]).reshape(starts, n, -1)
        transposed = np.swapaxes(jacobian, 1, 2)
        matrix = transposed @ (self._loss.weight(f, self._y)[:, :, None] * jacobian)
        diagonal = np.einsum("kii->ki", matrix)  # a view
        diagonal += np.asarray(damping)[:, None] * np.maximum(diagonal.max(axis=1, keepdims=True), 1e-300)
        gradient = transposed @ self._loss.derivative(f, self._y)[:, :, None]
        step = np.linalg.solve(matrix, gradient)[:, :, 0].reshape(point.units.shape)
        return self.at(point.units - step)

    def accepted(self, better: bool | BoolArray, trial: _Units, point: _Units) -> _Units:
        units = np.where(np.asarray(better)[:, None, None], trial.units, point.units)
        return _Units(units, np.where(better, trial.size, point.size))

    def _values(self, units: Array) -> tuple[Array, Array]:
        """Predictions (R, n) and inner values (R, n, w)."""
        inner = self._z @ np.swapaxes(units, 1, 2)
        return (np.maximum(inner, 0.0) @ self._signs[:, :, None])[:, :, 0], inner
