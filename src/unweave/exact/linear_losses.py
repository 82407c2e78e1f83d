"""Convex losses that are the largest of a few straight lines.

    l(f, y) = g(u),     g(u) = max_k  s_k u + c_k  >= 0,

u being the residual f - y or, for labels -1 and 1, the margin y f. Between its corners b_i the slope of g
jumps by d_i > 0, so that

    g(u) = linear + sum_i d_i |u - b_i| / 2,      g*(w) = max_i  w b_i - g(b_i)    for w between the slopes.

Programs with such a loss are linear ones: their bounds are sharp, whatever the corners.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.errors import InvalidInput

_KINK_DISTANCE = 1e-6  # distance from a corner below which the weight of an absolute value stops growing


@dataclass(frozen=True)
class PiecewiseLinear:
    """max_k (slopes[k] u + offsets[k]), u = f - y, or u = y f where ``of_margin``.

    Lines that are nowhere the largest change nothing. The loss must bend somewhere, must not be negative, and
    must not fall for ever: one slope is at most 0, one at least 0.

    Example:
        >>> check = PiecewiseLinear((-0.9, 0.1), (0.0, 0.0))     # its optimum is the quantile 0.9
        >>> check.value(np.array([1.0, 1.0]), np.array([0.0, 2.0])).tolist()
        [0.1, 0.9]
    """

    slopes: tuple[float, ...]
    offsets: tuple[float, ...]
    of_margin: bool = False
    strictly_convex: bool = False

    def __post_init__(self) -> None:
        lines = np.array([*self.slopes, *self.offsets])
        if len(self.slopes) != len(self.offsets) or not self.slopes or not np.isfinite(lines).all():
            raise InvalidInput(
                f"slopes and offsets must be equally many finite numbers, at least one. Got {self.slopes!r} "
                f"and {self.offsets!r} instead. The absolute loss has (-1, 1) and (0, 0)."
            )
        corners = self._shape[0]
        falls_for_ever = min(self.slopes) > 0 or max(self.slopes) < 0 or not len(corners)
        if falls_for_ever or self._largest_line(corners).min() < 0:
            raise InvalidInput(
                f"the largest of the lines must bend, and have a least value that is not below 0. Got slopes "
                f"{self.slopes!r} and offsets {self.offsets!r} instead. Add a line of slope 0, or raise the "
                f"offsets."
            )

    @cached_property
    def _shape(self) -> tuple[Array, Array, float]:
        """Corners b (c,) in order, jumps d (c,) and the slope to their left."""
        order = np.lexsort((self.offsets, self.slopes))
        kept: list[tuple[float, float]] = []  # lines of the upper envelope, from the left
        corners: list[float] = []
        for slope, offset in ((self.slopes[k], self.offsets[k]) for k in order):
            if kept and slope == kept[-1][0]:  # parallel and higher
                kept.pop()
                if corners:
                    corners.pop()
            while kept:
                crossing = (kept[-1][1] - offset) / (slope - kept[-1][0])
                if not corners or crossing > corners[-1]:
                    corners.append(crossing)
                    break
                kept.pop()
                corners.pop()
            kept.append((slope, offset))
        jumps = np.diff([slope for slope, _ in kept])
        return np.array(corners), jumps, kept[0][0]

    def _largest_line(self, u: Array) -> Array:
        lines = (s * u + c for s, c in zip(self.slopes, self.offsets, strict=True))
        return np.asarray(np.maximum.reduce(list(lines)))

    def _argument(self, f: Array, y: Array) -> Array:
        return np.asarray(y * f if self.of_margin else f - y)

    def value(self, f: Array, y: Array) -> Array:
        """g(u)."""
        return np.maximum(self._largest_line(self._argument(f, y)), 0.0)

    def derivative(self, f: Array, y: Array) -> Array:
        """dl/df; at a corner, the mean of both sides."""
        corners, jumps, left = self._shape
        u = self._argument(f, y)
        slope = left + np.heaviside(u[..., None] - corners, 0.5) @ jumps
        return np.asarray(y * slope if self.of_margin else slope)

    def curvature(self, f: Array, y: Array) -> Array:
        """0."""
        return np.zeros(np.broadcast(f, y).shape)

    def weight(self, f: Array, y: Array) -> Array:
        """sum_i d_i / (2 |u - b_i|)."""
        corners, jumps, _ = self._shape
        distance = np.abs(self._argument(f, y)[..., None] - corners)
        return np.asarray((1 / np.maximum(distance, _KINK_DISTANCE)) @ (jumps / 2))

    def conjugate(self, v: Array, y: Array) -> Array:
        """g*(v) + v y for a residual, g*(v y) for a margin."""
        corners, _, _ = self._shape
        w = v * y if self.of_margin else v
        highest = np.max(w[..., None] * corners - self._largest_line(corners), axis=-1)
        return np.asarray(highest if self.of_margin else highest + v * y)

    def dual_range(self, y: Array) -> tuple[Array, Array]:
        """From the least slope to the greatest, turned around by the label of a margin."""
        low, high = np.full(y.shape, min(self.slopes)), np.full(y.shape, max(self.slopes))
        if not self.of_margin:
            return low, high
        turned: BoolArray = y < 0
        return np.where(turned, -high, low), np.where(turned, -low, high)

    def check_labels(self, y: Array) -> None:
        """Margins need labels -1 and 1; residuals any."""
        if self.of_margin and not np.isin(y, (-1.0, 1.0)).all():
            raise InvalidInput(
                f"y must hold only -1 and 1 for a loss of the margin y f. Got {np.unique(y)[:5]} instead. "
                f"Classes 0 and 1 become these by 2 * y - 1."
            )

    def lines(self, y: Array) -> tuple[Array, Array]:
        """Slopes and offsets (K, n) in the prediction: l(f_j, y_j) = max_k slopes_kj f_j + offsets_kj."""
        slopes, offsets = np.array(self.slopes)[:, None], np.array(self.offsets)[:, None]
        if self.of_margin:
            return slopes * y, np.repeat(offsets, len(y), axis=1)
        return np.repeat(slopes, len(y), axis=1), offsets - slopes * y


@dataclass(frozen=True)
class Absolute(PiecewiseLinear):
    """|f - y|."""

    slopes: tuple[float, ...] = (-1.0, 1.0)
    offsets: tuple[float, ...] = (0.0, 0.0)


@dataclass(frozen=True)
class Hinge(PiecewiseLinear):
    """max(0, 1 - y f) with labels -1 and 1."""

    slopes: tuple[float, ...] = (-1.0, 0.0)
    offsets: tuple[float, ...] = (1.0, 0.0)
    of_margin: bool = True
