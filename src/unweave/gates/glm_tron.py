"""GLM-Tron: a monotone gate without its derivative ([mathematics] Alg. 4).

Labels y_i = s(w* . x_i) + xi_i with s non-decreasing and L-Lipschitz, L < 2, |x_i| <= C, |xi_i| <= theta;
from w = 0, one pass over all S samples per step:

    w <- w + (1/C^2) (1/S) sum_i (y_i - s(w . x_i)) x_i.

In the scaled inputs x/C (and W = C |w*|), with e = C |w - w*| and the effective loss
L~ = (1/S) sum_i (s(w . x_i) - s(w* . x_i))^2,

    e'^2 <= e^2 - (2/L - 1) L~ + theta^2 + 2 theta (L + 1) e,

so that some iterate among the first W^2/eps (not W/eps: the squared distance falls by eps) has

    L~ <= B = L/(2 - L) (eps + theta^2 + 2 theta (L + 1) W).

L~ cannot be seen. The iterate returned has the least empirical loss (1/S) sum (y_i - s(w . x_i))^2, for which
sqrt(L~) <= sqrt(B) + 2 theta, since empirical and effective root mean squares differ by at most theta. The
bound is on predictions; with theta > 0 measured losses are far below it.

Independent centered errors with variance v pull less than theta: only |(1/S) sum_i xi_i x_i| enters the
step, and with probability 1 - delta it is at most eta = (sqrt(v) + theta sqrt(2 log(1/delta))) / sqrt(S), in
place of theta (`benign_noise`). Thm. 3.5.3 keeps theta and bounds the expected empirical loss by v + B. Its
proof drops (2/S) sum_i E xi_i (s(w . x_i) - s(w* . x_i)), although w has seen the errors. That term is what
the fit gains by following them; where it is not negative, the statement stands.

Cost: 4 S n flops per pass; blocks of a pass may be given one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.gates.common import GateResult, checked_positive, checked_rows, checked_theta, checked_vector
from unweave.networks.activations import get_activation

LIPSCHITZ = {
    "relu": 1.0,
    "leaky_relu": 1.0,
    "identity": 1.0,
    "tanh": 1.0,
    "softplus": 1.0,
    "sigmoid": 0.25,
    "erf": 2 / math.sqrt(math.pi),
}
"""Lipschitz constants of the monotone activations."""
_RADIUS_ROUNDING = 1e-12  # relative excess of |x| over the radius: smaller ones are rounding


@dataclass(frozen=True, eq=False)
class GlmTronFit(GateResult):
    """The best iterate, with the loss that theory predicts."""

    weights: Array
    """(n,) the iterate with the least empirical loss."""
    last: Array
    """(n,) the last iterate."""
    passes: int
    """Steps taken."""
    loss: float
    """Empirical loss of ``weights``."""
    losses: Array
    """(passes,) empirical loss of every iterate, w = 0 first."""
    bound: float | None
    """Bound on the effective loss of ``weights`` after this many passes; None if |w*| is not known."""
    effective_losses: Array | None
    """(passes,) L~ of every iterate; None if w* is not known."""
    errors: Array | None
    """(passes,) |w - w*| of every iterate; None if w* is not known."""
    activation: str

    @property
    def effective_loss(self) -> float | None:
        """L~ of ``weights``; None if w* is not known."""
        return None if self.effective_losses is None else float(self.effective_losses[self.losses.argmin()])


class GlmTron:
    """GLM-Tron over blocks: `partial_fit` every block of a pass, then `end_pass`.

    Args:
        radius: C, a bound on |x| over all rows.
        activation: a monotone one: a name of `LIPSCHITZ`, or any non-decreasing function of arrays.
        theta: bound on the error of a label.
        norm: a bound on |w*|, for the predicted loss; that of ``truth`` if it is known.
        truth: w* (n,), to measure.
        lipschitz: constant of an activation that is given as a function, below 2.
    """

    def __init__(
        self,
        radius: float,
        activation: str | Callable[[Array], Array] = "relu",
        theta: float = 0.0,
        norm: float | None = None,
        truth: Any = None,
        lipschitz: float | None = None,
    ) -> None:
        self._radius = checked_positive(radius, "radius", "a bound on |x| over all rows")
        self._activation, self._name, self._lipschitz = _checked_gate(activation, lipschitz)
        self._theta = checked_theta(theta)
        self._truth = None if truth is None else checked_vector(truth, None, "truth")
        self._norm = None if norm is None else checked_positive(norm, "norm", "a bound on |w*|")
        if self._norm is None and self._truth is not None:
            self._norm = float(np.linalg.norm(self._truth))
        self._weights: Array | None = None
        self._best: tuple[float, Array] | None = None
        self._losses: list[float] = []
        self._effective: list[float] = []
        self._errors: list[float] = []
        self._sum = np.zeros(0)
        self._squares = self._effective_squares = 0.0
        self._rows = 0

    def partial_fit(self, x: Any, y: Any) -> GlmTron:
        """Add samples x (N, n), y (N,) to the pass under way."""
        known = self._weights if self._weights is not None else self._truth
        x, y = checked_rows(x, y, None if known is None else len(known))
        longest = float(np.sqrt(np.max(np.sum(x**2, axis=1), initial=0.0)))
        if longest > self._radius * (1 + _RADIUS_ROUNDING):
            raise InvalidInput(
                f"x must have rows no longer than the radius {self._radius:g}. Got one of length {longest:g} "
                f"instead. Give the largest length over all blocks as radius."
            )
        if self._weights is None:
            self._weights = self._sum = np.zeros(x.shape[1])
        values = self._activation(x @ self._weights)
        self._sum = self._sum + (y - values) @ x
        self._squares += float(np.sum((y - values) ** 2))
        if self._truth is not None:
            self._effective_squares += float(np.sum((values - self._activation(x @ self._truth)) ** 2))
        self._rows += len(x)
        return self

    def end_pass(self) -> GlmTron:
        """Step, after all blocks have been seen."""
        if self._weights is None or not self._rows:
            raise InvalidInput("partial_fit must be called with samples before end_pass.")
        loss = self._squares / self._rows
        self._losses.append(loss)
        if self._best is None or loss < self._best[0]:
            self._best = loss, self._weights
        if self._truth is not None:
            self._effective.append(self._effective_squares / self._rows)
            self._errors.append(float(np.linalg.norm(self._weights - self._truth)))
        self._weights = self._weights + self._sum / (self._rows * self._radius**2)
        self._clear()
        return self

    def fit(self) -> GlmTronFit:
        """The best iterate of the passes so far."""
        if self._best is None or self._weights is None:
            raise InvalidInput("end_pass must be called before fit.")
        known = self._truth is not None
        return GlmTronFit(
            weights=self._best[1].copy(),
            last=self._weights.copy(),
            passes=len(self._losses),
            loss=self._best[0],
            losses=np.array(self._losses),
            bound=self._bound(),
            effective_losses=np.array(self._effective) if known else None,
            errors=np.array(self._errors) if known else None,
            activation=self._name,
        )

    def _bound(self) -> float | None:
        """(sqrt(B) + 2 theta)^2 with eps = W^2/passes."""
        if self._norm is None:
            return None
        size, slope = self._radius * self._norm, self._lipschitz
        accuracy = size**2 / len(self._losses)
        level = slope / (2 - slope) * (accuracy + self._theta**2 + 2 * self._theta * (slope + 1) * size)
        return (math.sqrt(level) + 2 * self._theta) ** 2

    def _clear(self) -> None:
        self._sum = np.zeros_like(self._sum)
        self._squares = self._effective_squares = 0.0
        self._rows = 0


def _checked_gate(
    activation: str | Callable[[Array], Array], lipschitz: float | None
) -> tuple[Callable[[Array], Array], str, float]:
    """The gate, its name and its Lipschitz constant."""
    if isinstance(activation, str):
        known = get_activation(activation)
        if known.name not in LIPSCHITZ:
            raise InvalidInput(
                f"activation must be monotone with a Lipschitz constant below 2: {sorted(LIPSCHITZ)}. Got "
                f"{activation!r} instead. Choose one of these, or give a function and its constant."
            )
        return known, known.name, LIPSCHITZ[known.name]
    if lipschitz is None or not 0 < lipschitz < 2:
        raise InvalidInput(
            f"lipschitz must be given with a function, above 0 and below 2. Got {lipschitz!r} instead. Scale "
            f"the function and its labels if its constant is larger."
        )
    return activation, getattr(activation, "__name__", "function"), float(lipschitz)


@dataclass(frozen=True)
class BenignNoise:
    """What independent centered errors of labels leave, in place of adversarial ones."""

    pull: float
    """eta: bound on |(1/S) sum_i xi_i x_i| / C, with probability 1 - delta."""
    effective_loss: float
    """Bound on L~ of some iterate, with the same probability."""
    expected_loss: float
    """Bound on the expected empirical loss as printed in Thm. 3.5.3, which keeps theta."""


def benign_noise(
    size: float,
    passes: int,
    samples: int,
    variance: float,
    theta: float,
    lipschitz: float = 1.0,
    delta: float = 0.05,
) -> BenignNoise:
    """Bounds for errors |xi_i| <= theta that are independent, centered and of this variance.

    Args:
        size: W = C |w*|.
        delta: probability with which ``pull`` and ``effective_loss`` may fail.

    Where |xi_i| <= theta only holds for all samples with some probability, so do these bounds (Cor. 3.5.4).

    Example:
        >>> few, many = (benign_noise(2.0, 10_000, samples, 0.01, 0.2) for samples in (100, 10_000))
        >>> bool(many.effective_loss < few.effective_loss < few.expected_loss)
        True
    """
    if (
        passes < 1
        or samples < 1
        or not 0 < delta < 1
        or not 0 <= variance <= theta**2
        or not 0 < lipschitz < 2
    ):
        raise InvalidInput(
            f"passes and samples must be positive, delta between 0 and 1, variance at most theta^2 and "
            f"lipschitz below 2. Got {passes}, {samples}, {delta}, {variance}, {theta} and {lipschitz} "
            f"instead. Change those."
        )
    pull = min(theta, (math.sqrt(variance) + theta * math.sqrt(2 * math.log(1 / delta))) / math.sqrt(samples))

    def level(eta: float) -> float:
        return lipschitz / (2 - lipschitz) * (size**2 / passes + eta**2 + 2 * eta * (lipschitz + 1) * size)

    return BenignNoise(pull, level(pull), variance + level(theta))


def glm_tron(
    x: Any,
    y: Any,
    activation: str | Callable[[Array], Array] = "relu",
    *,
    passes: int = 1000,
    theta: float = 0.0,
    norm: float | None = None,
    truth: Any = None,
    lipschitz: float | None = None,
) -> GlmTronFit:
    """Run ``passes`` steps on samples x (S, n), y (S,). The other arguments are those of `GlmTron`.

    Example:
        >>> rng = np.random.default_rng(1000)
        >>> x = rng.standard_normal((200, 4))
        >>> found = glm_tron(x, np.maximum(x @ [1, 2, 0, -1], 0), truth=[1, 2, 0, -1])
        >>> bool(found.effective_loss <= found.bound), bool(found.effective_loss < 1e-6)
        (True, True)
    """
    x, y = checked_rows(x, y)
    if passes < 1 or not len(x):
        raise InvalidInput(
            f"passes and rows must be at least 1. Got {passes} passes over {len(x)} rows instead. Give both."
        )
    radius = float(np.sqrt(np.max(np.sum(x**2, axis=1))))
    learner = GlmTron(radius, activation, theta, norm, truth, lipschitz)
    for _ in range(passes):
        learner.partial_fit(x, y).end_pass()
    return learner.fit()
