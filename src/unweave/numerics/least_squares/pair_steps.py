"""Damped steps of many small problems at once, each with two unknowns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.numerics.least_squares.levenberg_marquardt import LevenbergMarquardtOptions, Steps, minimise


def pair_steps(
    normal: tuple[Array, Array, Array], gradient: tuple[Array, Array], damping: float | Array
) -> tuple[Array, Array]:
    """Solutions d of (H + lambda diag H) d = g by Cramer's rule, two arrays of the batch's shape.

    ``normal`` holds H_11, H_12 and H_22, ``gradient`` g_1 and g_2. Where H is singular, as for a problem
    whose unknowns hardly act, d is zero.
    """
    first, mixed, second = normal
    first, second = first * (1 + damping), second * (1 + damping)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        determinant = first * second - mixed**2
        one = (second * gradient[0] - mixed * gradient[1]) / determinant
        two = (first * gradient[1] - mixed * gradient[0]) / determinant
    usable = (determinant > 0) & np.isfinite(one) & np.isfinite(two)
    return np.where(usable, one, 0.0), np.where(usable, two, 0.0)


PairResiduals = Callable[[Array, Array], Array]
"""Residuals (u, r) of u problems at unknowns a > 0 and b, both (u,)."""

_SCHEDULE = LevenbergMarquardtOptions(
    steps=40,
    stalls=None,
    last_ratio=0.9999,
    damping=1e-3,
    damping_fall=0.2,
    damping_rise=5.0,
    max_damping=1e8,
)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Unknowns of many problems, and what they leave."""

    a: Array
    b: Array
    residual: Array
    """(u, r)"""
    size: Array
    """(u,) squared norms of the residuals"""

    def where(self, rows: BoolArray, other: Pairs) -> Pairs:
        """Take ``rows`` (u,) from here, the others from ``other``."""
        return Pairs(
            np.where(rows, self.a, other.a),
            np.where(rows, self.b, other.b),
            np.where(rows[:, None], self.residual, other.residual),
            np.where(rows, self.size, other.size),
        )


class _PairSteps(Steps[Pairs]):
    """Steps of all problems at once; derivatives are differences, relative to a, which stays positive."""

    def __init__(self, residuals: PairResiduals, difference: float) -> None:
        self._residuals, self._difference = residuals, difference

    def at(self, a: Array, b: Array) -> Pairs:
        residual = self._residuals(a, b)
        return Pairs(a, b, residual, np.einsum("ur,ur->u", residual, residual))

    def trial(self, point: Pairs, damping: float | Array) -> Pairs:
        step = self._difference * point.a
        by_a = (self.at(point.a + step, point.b).residual - point.residual) / step[:, None]
        by_b = (self.at(point.a, point.b + self._difference).residual - point.residual) / self._difference
        normal = (by_a**2).sum(axis=1), (by_a * by_b).sum(axis=1), (by_b**2).sum(axis=1)
        gradient = (by_a * point.residual).sum(axis=1), (by_b * point.residual).sum(axis=1)
        of_a, of_b = pair_steps(normal, gradient, damping)
        return self.at(np.maximum(point.a - of_a, point.a / 10), point.b - of_b)

    def accepted(self, better: bool | BoolArray, trial: Pairs, point: Pairs) -> Pairs:
        return trial.where(np.asarray(better), point)


def fit_pairs(
    residuals: PairResiduals, starts: Iterable[tuple[Array, Array]], difference: float = 1e-6
) -> Pairs:
    """Minimise |residual|^2 of every problem over (a, b) from all ``starts``; keep the best end of each.

    ``difference`` is the step of derivatives, relative to a, absolute for b.
    """
    steps = _PairSteps(residuals, difference)
    ends = [minimise(steps, steps.at(a, b), _SCHEDULE).point for a, b in starts]
    best = ends[0]
    for end in ends[1:]:
        best = end.where(end.size < best.size, best)
    return best
