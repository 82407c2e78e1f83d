"""Steps with which a first-order method provably meets a gradient of norm at most eps.

f is L-smooth, |grad f| <= sigma, Delta = f(x_1) - min f; the bound T counts gradients. Every line follows
from f(x') <= f(x) - alpha <g, p> + L alpha^2 |p|^2/2 for a step x' = x - alpha p.

| method | alpha_t | T |
|---|---|---|
| gradient descent | 1/L | 2 L Delta/eps^2 |
| RMSProp, published ([mathematics] Thm. 5.4.1) | (1-b2) xi/(L s) | 2 L s^2 Delta/((1-b2) xi eps^2) |
| RMSProp, sharper | sqrt(1-b2^t) xi/(L s) | 2 L s^2 Delta/(xi eps^2) |
| RMSProp without shift | sqrt(2 (1-b2) Delta/(L d T)) | 2 L d sigma^2 Delta/((1-b2) eps^4) |
| the same, falling step (Thm. 5.4.2) | sqrt((1-b2) R/(L d t)) | 4 L d sigma^2 R/((1-b2) eps^4) |
| stochastic RMSProp (Thm. 5.3.3) | sqrt(2 xi (1-b2) Delta/(L T))/sigma | RMSProp's times sigma^2/eps^2 |
| ADAM, published (Thm. 5.4.3) | 4 eps |g|^2/(3 L (1-b1^t)^2 e^2) | (9/2) L e^4 Delta/eps^6 |
| ADAM, sharper | c xi^2 |g|^2/(L (1-b1^t)^2 sigma^2) | 2 L sigma^2 Delta/(c^2 xi^2 eps^4) |

s^2 = sigma^2 + xi, e = eps + 2 sigma. The published ADAM has b1 = eps/e and xi = 2 sigma; its T is corrected
(the printed 9 L sigma^2 Delta/eps^6 lost a square). The sharper one holds for every b1 and xi with

    c = (1-b1)/(sigma + xi) - b1 sigma/(xi eps) > 0,

since <g, P m> >= (1-b1)|g|^2/(sigma + xi) - b1 |g| sigma/xi >= c |g|^2 as long as |g| >= eps, and
|P m| <= (1-b1^t) sigma/xi, P = 1/(sqrt(v) + xi). At the published b1 and xi, c = 1/(6 e): eps^-4 and not
eps^-6.
The sharper RMSProp uses (1-b2^t) xi <= v <= (1-b2^t) s^2, which is ADAM's correction of v: 1/(1-b2) times
fewer steps. The stochastic line needs all component gradients in one orthant at every point, |g| <= sigma
for each, and bounds the expectation of |grad f|.

The falling step a / sqrt(t) of Thm. 5.4.2 needs no T in advance, but a range R = sup f - inf f. With inf f
= 0, sum_t (sqrt(t)/a)(f_t - f_{t+1}) <= R sqrt(T)/a, and the second sum is at most
L d a sqrt(T)/(1-b2), so that min |grad f|^2 <= sigma (R/a + L d a/(1-b2)) / sqrt(T); a balances the two. (The
printed bound has (sqrt(T) - 2)/2 in place of 2 (sqrt(T) - 1), and constants B_l, B_u that need not vanish.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.optimize.first_order import Adam, NesterovGradient, RMSProp, StepRule

StepKind = Literal[
    "gradient descent",
    "rmsprop",
    "rmsprop without shift",
    "rmsprop with falling step",
    "stochastic rmsprop",
    "adam",
]


@dataclass(frozen=True)
class CertifiedStep:
    """A step and the number of gradients after which |grad f| <= eps was met."""

    kind: StepKind
    step: float | StepRule
    steps: float
    """T, a bound."""
    beta1: float
    beta2: float
    shift: float

    def method(self) -> NesterovGradient | RMSProp | Adam:
        """The method with this step; gradient descent is NAG without momentum."""
        if self.kind == "adam":
            return Adam(self.step, self.beta1, self.beta2, self.shift)
        if not callable(self.step) and self.kind == "gradient descent":
            return NesterovGradient(self.step, 0.0)
        return RMSProp(self.step, self.beta2, self.shift)


def certified_step(
    kind: StepKind,
    smoothness: float,
    gradient_bound: float,
    gap: float,
    accuracy: float,
    *,
    beta2: float | None = None,
    shift: float | None = None,
    beta1: float | None = None,
    dimension: int | None = None,
    sharper: bool = True,
) -> CertifiedStep:
    """The step of the module's table, and its T.

    Args:
        kind: the method.
        smoothness: L.
        gradient_bound: sigma.
        gap: Delta, or a bound on it; for a falling step the range sup f - inf f.
        accuracy: eps.
        beta2: 0.9 for RMSProp and 0.999 for ADAM unless given.
        shift: xi; for ADAM 2 sigma unless given, for RMSProp sigma^2, with which T is twice the least one.
        beta1: of ADAM; eps/(eps + 2 sigma) unless given.
        dimension: d, for RMSProp without shift and with a falling step.
        sharper: whether to take the sharper line where there are two.

    Example:
        >>> found = certified_step("rmsprop", 2.0, 1.0, 3.0, 0.1, beta2=0.9, shift=1.0)
        >>> published = certified_step("rmsprop", 2.0, 1.0, 3.0, 0.1, beta2=0.9, shift=1.0, sharper=False)
        >>> round(found.steps), round(published.steps)
        (2400, 24000)
    """
    if kind not in get_args(StepKind):
        raise InvalidInput(f"kind must be one of {get_args(StepKind)}. Got {kind!r} instead. Choose one.")
    values = {"smoothness": smoothness, "gradient_bound": gradient_bound, "gap": gap, "accuracy": accuracy}
    for name, value in values.items():
        if not (np.isfinite(value) and value > 0):
            raise InvalidInput(
                f"{name} must be a finite number above 0. Got {value!r} instead. The bound is for smooth "
                f"functions with bounded gradients that have a minimum."
            )
    if kind == "gradient descent":
        return CertifiedStep(kind, 1 / smoothness, 2 * smoothness * gap / accuracy**2, 0.0, 0.0, 0.0)
    if kind == "adam":
        return _adam(smoothness, gradient_bound, gap, accuracy, beta1, beta2, shift, sharper)
    beta2 = 0.9 if beta2 is None else beta2
    if kind in ("rmsprop without shift", "rmsprop with falling step"):
        return _unshifted(kind, smoothness, gradient_bound, gap, accuracy, beta2, dimension)
    shift = gradient_bound**2 if shift is None else shift
    if not (np.isfinite(shift) and shift > 0):
        raise InvalidInput(
            f"shift must be finite and above 0 for {kind}. Got {shift!r} instead. Without one, take "
            f"'rmsprop without shift'."
        )
    bound = gradient_bound**2 + shift
    if kind == "stochastic rmsprop":
        steps = 2 * smoothness * gradient_bound**2 * bound * gap / ((1 - beta2) * shift * accuracy**4)
        step = math.sqrt(2 * shift * (1 - beta2) * gap / (gradient_bound**2 * smoothness * steps))
        return CertifiedStep(kind, step, steps, 0.0, beta2, shift)
    longest = shift / (smoothness * math.sqrt(bound))
    steps = 2 * smoothness * bound * gap / (shift * accuracy**2)
    if not sharper:
        return CertifiedStep(kind, (1 - beta2) * longest, steps / (1 - beta2), 0.0, beta2, shift)

    def rule(time: int, gradient: Array) -> float:
        return longest * math.sqrt(1 - beta2**time)

    return CertifiedStep(kind, rule, steps, 0.0, beta2, shift)


def _unshifted(
    kind: StepKind,
    smoothness: float,
    sigma: float,
    gap: float,
    accuracy: float,
    beta2: float,
    dimension: int | None,
) -> CertifiedStep:
    """|g/sqrt(v)|^2 <= d/(1 - beta2) and <g, g/sqrt(v)> >= |g|^2/sigma; alpha balances the two sums."""
    if dimension is None or dimension < 1:
        raise InvalidInput(
            f"dimension must be given for RMSProp without shift. Got {dimension!r} instead. It is the length "
            f"of x."
        )
    steps = 2 * smoothness * dimension * sigma**2 * gap / ((1 - beta2) * accuracy**4)
    if kind == "rmsprop with falling step":
        first = math.sqrt((1 - beta2) * gap / (smoothness * dimension))
        return CertifiedStep(kind, lambda time, gradient: first / math.sqrt(time), 2 * steps, 0.0, beta2, 0.0)
    step = math.sqrt(2 * (1 - beta2) * gap / (smoothness * dimension * steps))
    return CertifiedStep(kind, step, steps, 0.0, beta2, 0.0)


def _adam(
    smoothness: float,
    sigma: float,
    gap: float,
    accuracy: float,
    beta1: float | None,
    beta2: float | None,
    shift: float | None,
    sharper: bool,
) -> CertifiedStep:
    edge = accuracy + 2 * sigma
    beta2 = 0.999 if beta2 is None else beta2
    if not sharper:
        if beta1 is not None or shift is not None:
            raise InvalidInput(
                "beta1 and shift must be left out for the published step of ADAM. They are "
                "eps/(eps + 2 sigma) and 2 sigma there; sharper=True allows others."
            )
        beta1, shift = accuracy / edge, 2 * sigma
        scale = 4 * accuracy / (3 * smoothness * edge**2)
        steps = 4.5 * smoothness * edge**4 * gap / accuracy**6
    else:
        beta1 = accuracy / edge if beta1 is None else beta1
        shift = 2 * sigma if shift is None else shift
        if not (0 <= beta1 < 1 and np.isfinite(shift) and shift > 0):
            raise InvalidInput(
                f"beta1 must be at least 0 and below 1, and shift above 0. Got {beta1!r} and {shift!r} "
                f"instead. Leave them out for safe ones."
            )
        rate = (1 - beta1) / (sigma + shift) - beta1 * sigma / (shift * accuracy)
        if rate <= 0:
            raise InvalidInput(
                f"beta1 must be below eps/(eps + sigma) = {accuracy / (accuracy + sigma):g}, and shift large "
                f"enough for it. Got {beta1:g} and {shift:g} instead. Lower the one or raise the other."
            )
        scale = rate * shift**2 / (smoothness * sigma**2)
        steps = 2 * smoothness * sigma**2 * gap / (rate**2 * shift**2 * accuracy**4)
    memory = beta1

    def rule(time: int, gradient: Array) -> float:
        return scale * float(gradient @ gradient) / (1 - memory**time) ** 2

    return CertifiedStep("adam", rule, steps, beta1, beta2, shift)
