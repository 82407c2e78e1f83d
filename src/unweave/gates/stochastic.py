"""A ReLU gate from a stream of samples ([mathematics] Alg. 2, and its form for poisoned labels).

Labels are y = relu(w* . x) + xi, |xi| <= theta. Every row with y > theta has w* . x > 0 for certain, and
there the label is linear in w*; the learner steps on these rows alone:

    w <- w + eta 1{y > theta} (y - w . x) x.

Clean labels (theta = 0): with the constants of `unweave.gates.constants`,

    E|w_{t+1} - w*|^2 <= (1 - 2 eta lambda + eta^2 Lambda) E|w_t - w*|^2,

for any law of x with a fourth moment and lambda > 0 (Thm. 3.3.1, which has c1 >= Lambda in the place of
Lambda; its step lambda/c1 costs about n/2 times as many samples as lambda/Lambda).

Poisoned labels: z = sqrt(E|w - w*|^2) obeys

    z'^2 <= (1 - 2 eta lambda + 2 eta^2 Lambda) z^2 + 2 eta theta kappa z + 2 eta^2 theta^2 m2,

however xi was chosen, knowing x and w_t; so it ends at (theta kappa/lambda)(1 + O(eta)). If only a fraction
beta of the labels is poisoned, drawn independently of x, theta kappa becomes beta theta kappa and theta^2 m2
becomes beta theta^2 m2. A gate at y > 0 instead would let the errors of all inactive rows in: its error is
of order one for any theta > 0.

Cost: 2 n flops per row. Rows are taken in blocks of b: with X, y the block's active rows and r_i the residual
at row i, w_i = w_0 + eta sum_{j<i} r_j x_j makes r the solution of

    (1 + eta tril(X X^T, -1)) r = y - X w_0,

so that a block costs one product and one triangular solve, and the iterates are those of the plain loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import scipy.linalg

from unweave.arrays import Array, IntArray
from unweave.errors import InvalidInput
from unweave.gates.common import GateResult, checked_positive, checked_rows, checked_theta, checked_vector
from unweave.gates.constants import GateConstants, GateMoments, error_curve, error_floor

Attack = Literal["random", "biased", "adaptive"]
StepRule = Literal["theorem", "sharper", "robust"]
_ROWS_PER_SOLVE = 64  # rows per triangular solve, where it is fastest; also the spacing of the history


@dataclass(frozen=True, eq=False)
class GateFit(GateResult):
    """A gate learned from a stream, with the errors that theory predicts."""

    weights: Array
    """(n,)"""
    rows: int
    """Samples seen."""
    used: int
    """Samples that passed the gate."""
    step: float
    constants: GateConstants
    times: IntArray
    """(H,) samples seen at each entry of the history, zero first."""
    bounds: Array | None
    """(H,) bound on sqrt(E|w - w*|^2) at these times; None if |w_1 - w*| is not known."""
    errors: Array | None
    """(H,) |w - w*| of this run at these times; None if w* is not known."""
    floor: float
    """The limit of the bounds: zero for clean labels."""


class ReluGateLearner:
    """Learns a gate from blocks of samples, none of which is kept.

    Args:
        step: "theorem" (lambda/c1), "sharper" (lambda/Lambda), "robust" (lambda/(4 Lambda)) or a number;
            by default sharper for clean and robust for poisoned labels.
        theta: bound on the error of a label.
        poisoned_fraction: bound on the share of labels with an error, drawn independently of x.
        constants: of `gate_constants`; otherwise estimated from the first ``warm_up`` n active rows, which
            are held back until then.
        start: w_1 (n,), zero if not given.
        radius: a bound on |w_1 - w*|, from which the predicted errors start when the truth is not known.
        truth: w* (n,), to record errors; never used for learning.

    Example:
        >>> rng = np.random.default_rng(1000)
        >>> learner = ReluGateLearner()
        >>> for _ in range(20):
        ...     x = rng.standard_normal((500, 5))
        ...     _ = learner.partial_fit(x, np.maximum(x @ [1, -2, 3, 0, 1], 0))
        >>> [round(float(w), 6) + 0.0 for w in learner.fit().weights]
        [1.0, -2.0, 3.0, 0.0, 1.0]
    """

    def __init__(
        self,
        *,
        step: StepRule | float | None = None,
        theta: float = 0.0,
        poisoned_fraction: float = 1.0,
        constants: GateConstants | None = None,
        warm_up: int = 40,
        start: Any = None,
        radius: float | None = None,
        truth: Any = None,
    ) -> None:
        self._theta = checked_theta(theta)
        if not 0 <= poisoned_fraction <= 1:
            raise InvalidInput(
                f"poisoned_fraction must be between 0 and 1. Got {poisoned_fraction!r} instead. It is the "
                f"share of labels that have an error."
            )
        self._fraction = float(poisoned_fraction)
        self._rule = _checked_rule(step, self._theta)
        self._given, self._warm_up = constants, warm_up
        if constants is not None and constants.theta != self._theta:
            raise InvalidInput(
                f"constants must be those of theta {self._theta:g}. Got those of {constants.theta:g} "
                "instead. Call gate_constants with the same theta."
            )
        self._truth = None if truth is None else checked_vector(truth, None, "truth")
        inputs = None if self._truth is None else len(self._truth)
        self._weights = None if start is None else checked_vector(start, inputs, "start")
        self._radius = None if radius is None else checked_positive(radius, "radius", "a bound on |w_1 - w*|")
        self._moments = GateMoments(self._theta)
        self._held: list[tuple[Array, Array]] = []
        self._constants: GateConstants | None = None
        self._step = self._rule if isinstance(self._rule, float) else float("nan")
        self._rows = self._used = self._active = 0
        self._times: list[int] = []
        self._errors: list[float] = []

    def partial_fit(self, x: Any, y: Any) -> ReluGateLearner:
        """Learn from samples x (N, n), y (N,), in their order."""
        known = self._weights if self._weights is not None else self._truth
        x, y = checked_rows(x, y, None if known is None else len(known))
        if self._weights is None:
            self._weights = np.zeros(x.shape[1])
        if not self._times:
            self._record()
        if self._constants is None:
            if self._given is None:
                self._moments.partial_fit(x, y)
            # Copied: what the caller does with its block afterwards must not reach the rows held back.
            self._held.append((x.copy(), y.copy()))
            self._active += int(np.sum(y > 3 * self._theta))
            if self._given is None and self._active < self._warm_up * x.shape[1]:
                return self
            self._begin()
        else:
            self._learn(x, y)
        return self

    def fit(self) -> GateFit:
        """The gate as learned so far."""
        if self._weights is None:
            raise InvalidInput("partial_fit must be called with samples before fit.")
        constants = self._constants or self._begin()
        times = np.array(self._times, dtype=np.int64)
        first = self._errors[0] if self._errors else self._radius
        bounds = None if first is None else error_curve(constants, self._step, first, times, self._fraction)
        return GateFit(
            weights=self._weights.copy(),
            rows=self._rows,
            used=self._used,
            step=self._step,
            constants=constants,
            times=times,
            bounds=bounds,
            errors=np.array(self._errors) if self._truth is not None else None,
            floor=error_floor(constants, self._step, self._fraction),
        )

    def _begin(self) -> GateConstants:
        """Fix constants and step, and learn from the rows held back."""
        self._constants = constants = self._given or self._moments.constants()
        if not isinstance(self._rule, float):  # rules are named after the steps of GateConstants
            self._step = getattr(constants, f"{self._rule}_step")
        if not self._step > 0:
            raise InvalidInput(
                f"x must span all {len(self._weights if self._weights is not None else [])} inputs where the "
                f"label is above {3 * self._theta:g}. Got a singular second moment instead. Give more "
                f"samples, or drop inputs that are constant or repeated."
            )
        held, self._held = self._held, []
        for x, y in held:
            self._learn(x, y)
        return constants

    def _learn(self, x: Array, y: Array) -> None:
        assert self._weights is not None
        for begin in range(0, len(x), _ROWS_PER_SOLVE):
            rows, labels = x[begin : begin + _ROWS_PER_SOLVE], y[begin : begin + _ROWS_PER_SOLVE]
            active = labels > self._theta
            self._weights = block_update(self._weights, rows[active], labels[active], self._step)
            self._rows += len(rows)
            self._used += int(active.sum())
            self._record()

    def _record(self) -> None:
        self._times.append(self._rows)
        if self._truth is not None and self._weights is not None:
            self._errors.append(float(np.linalg.norm(self._weights - self._truth)))


def relu_gate_sgd(x: Any, y: Any, step: StepRule | float = "sharper", **options: Any) -> GateFit:
    """Learn a gate from clean samples x (N, n), y (N,), each used once, in their order.

    ``options`` are those of `ReluGateLearner`. Where all samples fit into memory, `relu_gate_ols` is exact
    from n active rows.

    Example:
        >>> rng = np.random.default_rng(1000)
        >>> x = rng.standard_normal((4000, 5))
        >>> found = relu_gate_sgd(x, np.maximum(x[:, 0], 0), truth=[1, 0, 0, 0, 0])
        >>> bool(found.errors[-1] < 1e-9)
        True
    """
    return ReluGateLearner(step=step, **options).partial_fit(x, y).fit()


def relu_gate_sgd_robust(x: Any, y: Any, theta: float, **options: Any) -> GateFit:
    """Learn a gate from samples whose labels are off by at most ``theta``, chosen by an adversary.

    ``GateFit.floor`` bounds the error that remains. ``options`` are those of `ReluGateLearner`.
    """
    return ReluGateLearner(theta=theta, **options).partial_fit(x, y).fit()


def poison(
    attack: Attack, theta: float, x: Array, weights: Array, truth: Array, rng: np.random.Generator
) -> Array:
    """xi (N,) with |xi| = theta for rows x (N, n), against the iterate ``weights``, (n,) or one per row.

    - "random": a fair sign;
    - "biased": always upwards;
    - "adaptive": sign((w_t - w*) . x), the sign that pushes w_t away from w* at this very row.
    """
    theta = checked_theta(theta)
    if attack not in get_args(Attack):
        raise InvalidInput(f"attack must be one of {get_args(Attack)}. Got {attack!r} instead. Choose one.")
    if attack == "random":
        return theta * rng.choice([-1.0, 1.0], len(x))
    if attack == "biased":
        return np.full(len(x), theta)
    push = np.sum((weights - truth) * x, axis=1)
    return np.asarray(theta * np.where(push < 0, -1.0, 1.0))


def gate_update(weights: Array, x: Array, y: Array, step: float, theta: float = 0.0) -> Array:
    """One step of R independent runs: weights (R, n), one sample each, x (R, n) and y (R,)."""
    residual = np.where(y > theta, y - np.sum(weights * x, axis=1), 0.0)
    return np.asarray(weights + step * residual[:, None] * x)


def block_update(weights: Array, x: Array, y: Array, step: float) -> Array:
    """w (n,) after stepping on the active rows x (b, n), y (b,), one after the other."""
    if not len(x):
        return weights
    triangle = np.tril(step * (x @ x.T), -1)
    np.fill_diagonal(triangle, 1.0)
    residual = scipy.linalg.solve_triangular(
        triangle, y - x @ weights, lower=True, unit_diagonal=True, check_finite=False
    )
    return np.asarray(weights + step * (residual @ x))


def _checked_rule(step: StepRule | float | None, theta: float) -> StepRule | float:
    if step is None:
        return "robust" if theta > 0 else "sharper"
    if isinstance(step, str):
        if step not in get_args(StepRule):
            raise InvalidInput(
                f"step must be a number or one of {get_args(StepRule)}. Got {step!r} instead. Choose one."
            )
        return step
    return checked_positive(step, "step", "the length eta of a step")
