"""NAG, heavy ball, RMSProp and ADAM, in the forms of the convergence theorems.

With g_t the gradient at x_t:

    NAG       v <- mu v + g,                                    x <- x - alpha (g + mu v);
    heavy ball  v <- mu v + g,                                  x <- x - alpha v;
    RMSProp   v <- beta2 v + (1 - beta2)(g^2 + xi),             x <- x - alpha_t g / sqrt(v);
    ADAM      m <- beta1 m + (1 - beta1) g,
              v <- beta2 v + (1 - beta2) g^2,                   x <- x - alpha_t m / (sqrt(v) + xi),

all from v = m = 0. They differ from those of deep learning libraries: the shift xi of RMSProp is inside the
average, and steps alpha_t carry the correction sqrt(1 - beta2^t)/(1 - beta1^t) only on request
(`corrected`). Where v = 0, so is g, and the coordinate stays.

`unweave.optimize.first_order_steps` gives steps with which RMSProp and ADAM provably reach a small gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput

Gradient = Callable[[Array], Array]
Step = float | Array
"""alpha: one for all, or (k, 1) for a stack (k, d) of points."""
StepRule = Callable[[int, Array], Step]
"""alpha_t from t = 1, 2, ... and the gradient."""


class FirstOrderMethod(Protocol):
    """A method: a state, and a step from it."""

    def begin(self, start: Array) -> State:
        """The state before the first step."""

    def step(self, state: State, gradient: Array) -> State:
        """The state after a step with the gradient at ``state.x``."""


@dataclass(frozen=True, eq=False)
class State:
    """Point and running averages of a method."""

    x: Array
    """(d,), or a stack (k, d) that goes on together."""
    first: Array
    """Of that shape: running mean of the gradients (ADAM's m, NAG's v)."""
    second: Array
    """Of that shape: running mean of their squares."""
    time: int = 0
    """Steps taken."""


class _FromRest:
    """A method that begins with all averages at zero."""

    def begin(self, start: Array) -> State:
        """The state before the first step, in the precision of ``start`` if that is a float32."""
        single = isinstance(start, np.ndarray) and start.dtype == np.float32
        kind: Any = np.float32 if single else np.float64
        x: Array = np.array(start, dtype=kind)
        if x.ndim not in (1, 2) or not np.isfinite(x).all():
            raise _bad_start(x)
        return State(x, np.zeros_like(x), np.zeros_like(x))


@dataclass(frozen=True)
class NesterovGradient(_FromRest):
    """NAG with step alpha and momentum mu."""

    step_size: Step
    momentum: float = 0.9

    def __post_init__(self) -> None:
        _check_positive(self.step_size, "step_size")
        _check_share(self.momentum, "momentum")

    def step(self, state: State, gradient: Array) -> State:
        """One step."""
        velocity = self.momentum * state.first + gradient
        x = state.x - self.step_size * (gradient + self.momentum * velocity)
        return replace(state, x=x, first=velocity, time=state.time + 1)


@dataclass(frozen=True)
class HeavyBall(_FromRest):
    """Gradient descent with step alpha and momentum mu, taken along the running sum."""

    step_size: Step
    momentum: float = 0.9

    def __post_init__(self) -> None:
        _check_positive(self.step_size, "step_size")
        _check_share(self.momentum, "momentum")

    def step(self, state: State, gradient: Array) -> State:
        """One step."""
        velocity = self.momentum * state.first + gradient
        return replace(state, x=state.x - self.step_size * velocity, first=velocity, time=state.time + 1)


@dataclass(frozen=True)
class RMSProp(_FromRest):
    """RMSProp with step alpha_t, average beta2 and shift xi (inside the average)."""

    step_size: Step | StepRule
    beta2: float = 0.9
    shift: float = 1e-10

    def __post_init__(self) -> None:
        _check_step(self.step_size)
        _check_share(self.beta2, "beta2")
        _check_shift(self.shift)

    def step(self, state: State, gradient: Array) -> State:
        """One step."""
        time = state.time + 1
        second = self.beta2 * state.second + (1 - self.beta2) * (gradient**2 + self.shift)
        with np.errstate(divide="ignore", invalid="ignore"):
            direction = np.where(second > 0, gradient / np.sqrt(second), 0.0)
        x = state.x - _size(self.step_size, time, gradient) * direction
        return State(x, state.first, second, time)


@dataclass(frozen=True)
class Adam(_FromRest):
    """ADAM with step alpha_t, averages beta1 and beta2, and shift xi (beside the root)."""

    step_size: Step | StepRule
    beta1: float = 0.9
    beta2: float = 0.999
    shift: float = 1e-8

    def __post_init__(self) -> None:
        _check_step(self.step_size)
        _check_share(self.beta1, "beta1")
        _check_share(self.beta2, "beta2")
        _check_shift(self.shift)

    def step(self, state: State, gradient: Array) -> State:
        """One step."""
        time = state.time + 1
        first = self.beta1 * state.first + (1 - self.beta1) * gradient
        second = self.beta2 * state.second + (1 - self.beta2) * gradient**2
        scale = np.sqrt(second) + self.shift
        with np.errstate(divide="ignore", invalid="ignore"):
            direction = np.where(scale > 0, first / scale, 0.0)
        x = state.x - _size(self.step_size, time, gradient) * direction
        return State(x, first, second, time)


def corrected(step_size: Step, beta1: float, beta2: float) -> StepRule:
    """alpha_t = alpha sqrt(1 - beta2^t)/(1 - beta1^t): ADAM's usual correction of the averages' start."""
    _check_positive(step_size, "step_size")

    def rule(time: int, gradient: Array) -> Step:
        return step_size * float(np.sqrt(1 - beta2**time)) / (1 - beta1**time)

    return rule


@dataclass(frozen=True, eq=False)
class Descent:
    """End point of a method."""

    x: Array
    """The last point."""
    best: Array
    """The point with the least gradient."""
    norms: Array
    """(T,) |grad f| at every point at which it was taken."""
    reached: int | None
    """Number of the first point with |grad f| <= tolerance, from 1; None if there was none."""

    @property
    def least(self) -> float:
        """The least |grad f| met."""
        return float(self.norms.min())


def descend(
    gradient: Gradient,
    start: Array,
    method: FirstOrderMethod,
    steps: int,
    tolerance: float = 0.0,
    on_step: Callable[[State, float], None] | None = None,
) -> Descent:
    """Take at most ``steps`` steps, stopping at |grad f| <= tolerance.

    ``on_step`` is called with the state and |grad f| at every point, before the step from there.

    Example:
        >>> found = descend(lambda x: 2 * x, np.ones(2), NesterovGradient(0.1), 200, 1e-9)
        >>> bool(found.least <= 1e-9), found.reached is not None
        (True, True)
    """
    if steps < 1:
        raise InvalidInput(f"steps must be at least 1. Got {steps} instead. Give a number of steps.")
    state = method.begin(start)
    if state.x.ndim != 1:
        raise _bad_start(state.x)
    norms: list[float] = []
    best, least, reached = state.x, np.inf, None
    for _ in range(steps):
        slope = np.asarray(gradient(state.x), dtype=np.float64)
        if slope.shape != state.x.shape:
            raise InvalidInput(
                f"gradient must return shape {state.x.shape}. Got {slope.shape} instead. Flatten it."
            )
        norm = float(np.linalg.norm(slope))
        if not np.isfinite(norm):
            raise InvalidInput(
                f"step_size must keep the gradient finite. Got {norm} after {state.time} steps instead. Take "
                f"a smaller one; see certified_step."
            )
        norms.append(norm)
        if norm < least:
            best, least = state.x, norm
        if on_step is not None:
            on_step(state, norm)
        if norm <= tolerance:
            reached = len(norms)
            break
        state = method.step(state, slope)
    return Descent(state.x, best, np.array(norms), reached)


def _bad_start(x: Array) -> InvalidInput:
    return InvalidInput(
        f"start must be a finite vector (d,), for a method alone also a stack (k, d). Got shape {x.shape} "
        "instead. Flatten the parameters."
    )


def _size(step_size: Step | StepRule, time: int, gradient: Array) -> Step:
    return step_size(time, gradient) if callable(step_size) else step_size


def _check_step(value: Step | StepRule) -> None:
    if not callable(value):
        _check_positive(value, "step_size")


def _check_positive(value: Step, name: str) -> None:
    if not np.all(np.isfinite(value) & (np.asarray(value) > 0)):
        raise InvalidInput(
            f"{name} must be a finite number above 0. Got {value!r} instead. certified_step gives safe ones."
        )


def _check_share(value: float, name: str) -> None:
    if not 0 <= value < 1:
        raise InvalidInput(
            f"{name} must be at least 0 and below 1. Got {value!r} instead. It is the weight of the past."
        )


def _check_shift(value: float) -> None:
    if not (np.isfinite(value) and value >= 0):
        raise InvalidInput(f"shift must be finite and at least 0. Got {value!r} instead. It is xi.")
