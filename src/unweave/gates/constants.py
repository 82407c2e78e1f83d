"""Constants that set the step of a gate learner and bound its error.

Labels are y = relu(w* . x) + xi with |xi| <= theta. Over the law of x, with the inner set
I = {w* . x > 2 theta} and the outer set O = {w* . x > 0},

    lambda = lambda_min E[1_I x x^T],      Lambda = lambda_max E[1_O |x|^2 x x^T],   c1 = E[1_O |x|^4],
    kappa  = sup_u E[1_O |u . x|] <= sqrt(P(O) lambda_max E[1_O x x^T]),             m2 = E[1_O |x|^2].

The learner updates on rows with y > theta, a set between I and O whatever the xi. For clean labels
I = O = {y > 0}: everything is estimated from labels alone. With theta > 0 and w* unknown, I is replaced by
its subset {y > 3 theta} and O by its superset {y > -theta}, which keeps every bound valid and makes it wider
(kappa about doubles when half of the labels are zero).

Predicted errors iterate the recursion of `unweave.gates.stochastic`. With z_t = sqrt(E|w_t - w*|^2), step eta
and share beta of poisoned labels,

    z_{t+1}^2 = rho z_t^2 + 2 eta beta theta kappa z_t + 2 eta^2 beta theta^2 m2,

rho = 1 - 2 eta lambda + s eta^2 Lambda, s = 1 for clean and 2 for poisoned labels. Its right side grows with
z, so that iterating it bounds every later error; its fixed point solves

    (lambda - eta Lambda) z^2 - beta theta kappa z - eta beta theta^2 m2 = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.errors import InvalidInput
from unweave.gates.common import checked_rows, checked_theta, checked_vector

_FIXED_POINT_TOLERANCE = 1e-12  # relative distance to the fixed point: nearer, the curve is constant


@dataclass(frozen=True)
class GateConstants:
    """The constants of the module's formulas, estimated from ``rows`` samples."""

    smallest: float
    """lambda; zero if the active rows do not span the inputs."""
    largest: float
    """lambda_max E[1_O x x^T]."""
    weighted: float
    """Lambda."""
    fourth: float
    """c1, at least Lambda and at least n^2 lambda^2."""
    second: float
    """m2."""
    active: float
    """P(O)."""
    theta: float
    """The bound on |xi| for which I and O were taken."""
    rows: int

    @property
    def directional(self) -> float:
        """sqrt(P(O) lambda_max E[1_O x x^T]), an upper bound on kappa."""
        return math.sqrt(self.active * self.largest)

    @property
    def theorem_step(self) -> float:
        """lambda/c1, the step of [mathematics] Thm. 3.3.1."""
        return self.smallest / self.fourth

    @property
    def theorem_factor(self) -> float:
        """1 - lambda^2/c1, by which E|w - w*|^2 falls per sample with that step, at least."""
        return 1 - self.smallest**2 / self.fourth

    @property
    def sharper_step(self) -> float:
        """lambda/Lambda: E[1 |x|^2 (u . x)^2] is bounded by Lambda |u|^2 instead of c1 |u|^2."""
        return self.smallest / self.weighted

    @property
    def sharper_factor(self) -> float:
        """1 - lambda^2/Lambda."""
        return 1 - self.smallest**2 / self.weighted

    @property
    def robust_step(self) -> float:
        """lambda/(4 Lambda), for poisoned labels: the step adds to the floor, a quarter of it little."""
        return self.sharper_step / 4

    def factor(self, step: float) -> float:
        """1 - 2 eta lambda + eta^2 Lambda, the factor of E|w - w*|^2 for clean labels and any step eta."""
        return 1 - 2 * step * self.smallest + step**2 * self.weighted

    def samples_needed(self, ratio: float, failure: float, factor: float | None = None) -> float:
        """T with P[|w_T - w*| <= ratio |w_1 - w*|] >= 1 - failure, for clean labels.

            T = 1 + log(1/(ratio^2 failure)) / -log(factor),

        factor that of the sharper step unless given. With the theorem's own, T grows like n^2 at least,
        since c1 >= n^2 lambda^2.
        """
        factor = self.sharper_factor if factor is None else factor
        if not 0 < factor < 1:
            return math.inf
        return 1 + math.log(1 / (ratio**2 * failure)) / -math.log(factor)


class GateMoments:
    """Sums behind `GateConstants`, over samples that arrive in blocks. Memory: two (n, n) matrices."""

    def __init__(self, theta: float = 0.0, truth: Any = None) -> None:
        self._theta = checked_theta(theta)
        self._truth = None if truth is None else checked_vector(truth, None, "truth")
        self._inner = self._outer = self._weighted = np.zeros((0, 0))
        self._rows, self._active, self._fourth, self._second = 0, 0, 0.0, 0.0

    def partial_fit(self, x: Any, y: Any) -> GateMoments:
        """Add samples x (N, n), y (N,)."""
        known = len(self._inner) or (None if self._truth is None else len(self._truth))
        x, y = checked_rows(x, y, known)
        if not len(self._inner):
            self._inner = self._outer = self._weighted = np.zeros((x.shape[1],) * 2)
        inner, outer = self._sets(x, y)
        inside, around = x[inner], x[outer]
        squares = np.sum(around**2, axis=1)
        self._inner = self._inner + inside.T @ inside
        self._outer = self._outer + around.T @ around
        self._weighted = self._weighted + (around * squares[:, None]).T @ around
        self._rows += len(x)
        self._active += len(around)
        self._fourth += float(np.sum(squares**2))
        self._second += float(np.sum(squares))
        return self

    def constants(self) -> GateConstants:
        """The constants of all samples so far."""
        if not self._active:
            raise InvalidInput(
                f"y must have labels above {3 * self._theta:g}. None of {self._rows} rows has one. Give "
                f"more samples; a gate that never opens cannot be learned."
            )
        n = self._rows
        return GateConstants(
            smallest=max(float(np.linalg.eigvalsh(self._inner / n)[0]), 0.0),
            largest=float(np.linalg.eigvalsh(self._outer / n)[-1]),
            weighted=float(np.linalg.eigvalsh(self._weighted / n)[-1]),
            fourth=self._fourth / n,
            second=self._second / n,
            active=self._active / n,
            theta=self._theta,
            rows=n,
        )

    def _sets(self, x: Array, y: Array) -> tuple[BoolArray, BoolArray]:
        """Rows in I and in O, or in the sets that replace them when w* is not known."""
        if self._truth is not None:
            z = x @ self._truth
            return z > 2 * self._theta, z > 0
        if self._theta == 0:
            return y > 0, y > 0
        return y > 3 * self._theta, y > -self._theta


def gate_constants(x: Any, y: Any, theta: float = 0.0, truth: Any = None) -> GateConstants:
    """The constants of samples x (N, n), y (N,), with labels off by at most ``theta``.

    With ``truth`` = w* (n,) the sets I and O are the true ones; without it, sets that the labels show.
    Cost: 3 N n^2 flops.

    Example:
        >>> rng = np.random.default_rng(1000)
        >>> x = rng.standard_normal((100_000, 4))
        >>> found = gate_constants(x, np.maximum(x[:, 0], 0))
        >>> round(found.smallest, 1), round(found.weighted), round(found.fourth)  # 1/2, n/2 + 1, n(n+2)/2
        (0.5, 3, 12)
    """
    return GateMoments(theta, truth).partial_fit(x, y).constants()


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
