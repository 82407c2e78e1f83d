"""Convex losses l(f, y) >= 0 of a prediction f: derivative, weights, conjugate.

    l*(v, y) = sup_f  v f - l(f, y)

turns any vector v with A^T v = 0 into a lower bound of min_c sum_j l((A c)_j, y_j): -sum_j l*(v_j, y_j).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit, xlogy

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.exact.linear_losses import Absolute, Hinge

_FLAT_LOG_ODDS = 1e-3  # |f| below which the logistic weight equals its limit to 1e-7
_DUAL_MULTIPLES = (0.5, 0.8, 0.95, 1.0)  # t tried, over the largest admissible t, or for v itself


class ConvexLoss(Protocol):
    """A loss, elementwise on arrays; all methods broadcast predictions (..., n) against labels (n,)."""

    @property
    def strictly_convex(self) -> bool:
        """Whether optimal predictions are unique for given patterns and signs."""

    def value(self, f: Array, y: Array) -> Array:
        """l(f, y), never negative."""

    def derivative(self, f: Array, y: Array) -> Array:
        """dl/df."""

    def curvature(self, f: Array, y: Array) -> Array:
        """d^2l/df^2 where it exists, not negative."""

    def weight(self, f: Array, y: Array) -> Array:
        """Curvature of a parabola that touches l at f and lies above it; positive."""

    def conjugate(self, v: Array, y: Array) -> Array:
        """l*(v, y) for v within `dual_range`."""

    def dual_range(self, y: Array) -> tuple[Array, Array]:
        """Least and greatest v (n,) with finite l*(v, y); 0 lies between them."""

    def check_labels(self, y: Array) -> None:
        """Raise `InvalidInput` for labels without meaning."""


class _Regression:
    """Losses of the residual f - y."""

    def check_labels(self, y: Array) -> None:
        """Any real labels will do."""


@dataclass(frozen=True)
class Squared(_Regression):
    """(f - y)^2."""

    strictly_convex: bool = True

    def value(self, f: Array, y: Array) -> Array:
        """(f - y)^2."""
        return np.asarray((f - y) ** 2)

    def derivative(self, f: Array, y: Array) -> Array:
        """2 (f - y)."""
        return np.asarray(2 * (f - y))

    def curvature(self, f: Array, y: Array) -> Array:
        """2."""
        return np.full(np.broadcast(f, y).shape, 2.0)

    weight = curvature

    def conjugate(self, v: Array, y: Array) -> Array:
        """v y + v^2 / 4."""
        return np.asarray(v * y + v**2 / 4)

    def dual_range(self, y: Array) -> tuple[Array, Array]:
        """Everything."""
        return np.full(y.shape, -np.inf), np.full(y.shape, np.inf)


@dataclass(frozen=True)
class Huber(_Regression):
    """r^2 / 2 for |r| <= threshold, growing linearly beyond; r = f - y."""

    threshold: float = 1.0
    strictly_convex: bool = False

    def __post_init__(self) -> None:
        if not (self.threshold > 0 and np.isfinite(self.threshold)):
            raise InvalidInput(
                f"threshold must be positive and finite. Got {self.threshold!r} instead. "
                f"It is the residual beyond which the loss grows linearly."
            )

    def value(self, f: Array, y: Array) -> Array:
        """Huber's function of f - y."""
        clipped = self.derivative(f, y)
        return np.asarray(clipped * (f - y) - clipped**2 / 2)

    def derivative(self, f: Array, y: Array) -> Array:
        """The residual, clipped."""
        return np.clip(f - y, -self.threshold, self.threshold)

    def curvature(self, f: Array, y: Array) -> Array:
        """1 within the threshold, else 0."""
        return np.asarray((np.abs(f - y) <= self.threshold).astype(np.float64))

    def weight(self, f: Array, y: Array) -> Array:
        """min(1, threshold / |f - y|)."""
        return np.asarray(self.threshold / np.maximum(np.abs(f - y), self.threshold))

    def conjugate(self, v: Array, y: Array) -> Array:
        """v y + v^2 / 2."""
        return np.asarray(v * y + v**2 / 2)

    def dual_range(self, y: Array) -> tuple[Array, Array]:
        """From -threshold to threshold."""
        return np.full(y.shape, -self.threshold), np.full(y.shape, self.threshold)


@dataclass(frozen=True)
class Logistic:
    """log(1 + exp(-y f)) with labels -1 and 1: the network's output is the log-odds of the label 1."""

    strictly_convex: bool = True

    def value(self, f: Array, y: Array) -> Array:
        """log(1 + exp(-y f))."""
        return np.logaddexp(0.0, -y * f)

    def derivative(self, f: Array, y: Array) -> Array:
        """-y / (1 + exp(y f))."""
        return np.asarray(-y * expit(-y * f))

    def curvature(self, f: Array, y: Array) -> Array:
        """p (1 - p)."""
        return np.asarray(expit(y * f) * expit(-y * f))

    def weight(self, f: Array, y: Array) -> Array:
        """tanh(f/2) / (2 f)."""
        size = np.maximum(np.abs(f), _FLAT_LOG_ODDS)
        return np.asarray(np.tanh(size / 2) / (2 * size)) + np.zeros(y.shape)

    def conjugate(self, v: Array, y: Array) -> Array:
        """u log u + (1 - u) log(1 - u), u = -v y."""
        u = np.clip(-v * y, 0.0, 1.0)
        return np.asarray(xlogy(u, u) + xlogy(1 - u, 1 - u))

    def dual_range(self, y: Array) -> tuple[Array, Array]:
        """From 0 to -y."""
        return np.minimum(-y, 0.0), np.maximum(-y, 0.0)

    def check_labels(self, y: Array) -> None:
        """Labels are -1 or 1."""
        if not np.isin(y, (-1.0, 1.0)).all():
            raise InvalidInput(
                f"y must hold only -1 and 1 for the logistic loss. Got {np.unique(y)[:5]} instead. "
                f"Classes 0 and 1 become these by 2 * y - 1."
            )


_NAMED: dict[str, ConvexLoss] = {
    "squared": Squared(),
    "absolute": Absolute(),
    "hinge": Hinge(),
    "huber": Huber(),
    "logistic": Logistic(),
}


def loss_named(loss: str | ConvexLoss) -> ConvexLoss:
    """The loss of a name, or the loss itself."""
    if not isinstance(loss, str):
        return loss
    if loss not in _NAMED:
        raise InvalidInput(
            f"loss must be one of {', '.join(_NAMED)} or a ConvexLoss. Got {loss!r} instead. "
            f"Huber(threshold) sets the threshold, PiecewiseLinear takes any lines."
        )
    return _NAMED[loss]


def dual_bounds(loss: ConvexLoss, v: Array, y: Array) -> tuple[Array, Array]:
    """Largest bounds (K,) over a few multiples t v of v (K, n), and these t (K,).

    If A^T v = C^T lambda with lambda >= 0, so it is for t v and t lambda, t >= 0, and no c with C c >= 0 has

        sum_j l((A c)_j, y_j)  <  - sum_j l*(t v_j, y_j).

    The bound is concave in t; a few values of t come close enough to the best.
    """
    low, high = loss.dual_range(y)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        room = np.where(v > 0, high / v, np.where(v < 0, low / v, np.inf))
    most = np.min(room, axis=1, initial=np.inf)
    best, multiple = np.zeros(len(v)), np.zeros(len(v))
    bounded = bool(np.isfinite(most).any())
    for part in _DUAL_MULTIPLES if bounded else (1.0,):
        for t in (part * most, np.minimum(part, most)) if bounded else (most,):
            # An unbounded domain admits any multiple: there v itself is the natural one.
            t = np.where(np.isfinite(t), t, part)
            inside = np.clip(t[:, None] * v, low, high)  # rounding may carry t v over the edge
            bound = -np.sum(loss.conjugate(inside, y), axis=1)
            better = bound > best
            best, multiple = np.where(better, bound, best), np.where(better, t, multiple)
    return best, multiple
