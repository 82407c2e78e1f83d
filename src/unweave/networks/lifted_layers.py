"""Known layers of kinked units as one piecewise linear map phi, in which the next layer is affine.

With g(z) = z for z > 0 and p z below, h_0 = x, z_l = h_{l-1} W_l + b_l and h_l = g(z_l), every unit of layer
l + 1 is alpha . phi(x) for one vector alpha, where

    phi = (h_l, 1)                   if the signs of layer l are known,
    phi = (|z_l|, h_{l-1}, 1)        if they are not: g(s z) = ((1-p) |z| + (1+p) s z) / 2 is affine in it,
    phi = (|z_l|, z_l, 1)            the same, *narrow*: where a layer is no wider than what it reads.

In a region where no known unit changes its sign (its *pattern*), phi is affine: phi(x + v) = phi(x) + G v.
Nothing here asks the target.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.networks.absolute_form import AbsoluteForm
from unweave.numerics.line_kinks import Line


@dataclass(frozen=True, eq=False)
class Layer:
    """z = h W + b."""

    weights: Array
    """(n_in, m)"""
    biases: Array
    """(m,)"""

    @property
    def width(self) -> int:
        """m"""
        return len(self.biases)


@dataclass(frozen=True, eq=False)
class Crossing:
    """Where a ray first meets the surface of a known unit."""

    distance: float
    """Infinite if it never does."""
    unit: int
    """Number of the unit among all known ones."""


@dataclass(frozen=True, eq=False)
class LiftedLayers:
    """Layers from the inputs on; of the last one the signs may be open."""

    n_inputs: int
    layers: tuple[Layer, ...] = ()
    signed: bool = True
    """Whether the signs of the last layer are known; those of the others always are."""
    slope: float = 0.0
    """p"""
    narrow: bool = False
    """Whether phi holds z_l in place of h_{l-1}; only where the signs are open."""

    @property
    def n_units(self) -> int:
        """Number of known units, all layers together."""
        return sum(layer.width for layer in self.layers)

    @property
    def top(self) -> slice:
        """The units of the last layer among all known ones."""
        return slice(self.n_units - (self.layers[-1].width if self.layers else 0), self.n_units)

    @property
    def dimension(self) -> int:
        """Length of phi."""
        if not self.layers:
            return self.n_inputs + 1
        last = self.layers[-1]
        if self.signed:
            return last.width + 1
        return last.width + 1 + (last.width if self.narrow else len(last.weights))

    def with_unsigned(self, layer: Layer, narrow: bool) -> LiftedLayers:
        """Add a layer whose signs are open; those of all before it must be known."""
        return replace(self, layers=(*self.layers, layer), signed=False, narrow=narrow)

    def with_signs(self, signs: Array, slope: float) -> LiftedLayers:
        """Give the last layer its signs (m,), and all layers the p for which they are right."""
        last = self.layers[-1]
        layer = Layer(last.weights * signs, last.biases * signs)
        return LiftedLayers(self.n_inputs, (*self.layers[:-1], layer), True, slope)

    def absolute_form(self, alphas: Array) -> AbsoluteForm:
        """Return alphas^T phi for alphas (F, K) in terms of |z_l| and h_{l-1}, where signs are open."""
        last = self.layers[-1]
        heights, slope, offset = alphas[: last.width], alphas[last.width : -1], alphas[-1]
        if self.narrow:
            offset = offset + last.biases @ slope
            slope = last.weights @ slope
        return AbsoluteForm(last.weights, last.biases, heights, slope, offset)

    def preactivations(self, points: Array) -> Array:
        """Return z (n, units) of all known units at points (n, d)."""
        return self._forward(points)[1]

    def values(self, points: Array) -> Array:
        """Return phi (n, dimension) at points (n, d)."""
        return self._forward(points)[0]

    def _forward(self, points: Array) -> tuple[Array, Array]:
        state, before = points, points
        found = [np.zeros((len(points), 0))]
        for layer in self.layers:
            z = state @ layer.weights + layer.biases
            found.append(z)
            before, state = state, np.where(z > 0, z, self.slope * z)
        ones = np.ones((len(points), 1))
        if self.signed:
            return np.hstack([state, ones]), np.hstack(found)
        parts = [np.abs(found[-1]), found[-1] if self.narrow else before, ones]
        return np.hstack(parts), np.hstack(found)

    def pattern(self, point: Array) -> Array:
        """Return the signs (units,) +-1 at one point (d,)."""
        return np.where(self.preactivations(point[None])[0] >= 0, 1.0, -1.0)

    def jacobian(self, pattern: Array) -> tuple[Array, Array]:
        """Return G (dimension, d) and the gradients (units, d) of known units in the region of a pattern."""
        state = before = np.eye(self.n_inputs)
        gradients, start = [np.zeros((0, self.n_inputs))], 0
        for layer in self.layers:
            gradient = layer.weights.T @ state
            signs = pattern[start : start + layer.width]
            start += layer.width
            gradients.append(gradient)
            before, state = state, np.where(signs > 0, 1.0, self.slope)[:, None] * gradient
        zero = np.zeros((1, self.n_inputs))
        if self.signed:
            return np.vstack([state, zero]), np.vstack(gradients)
        parts = [signs[:, None] * gradients[-1], gradients[-1] if self.narrow else before, zero]
        return np.vstack(parts), np.vstack(gradients)

    def first_crossing(
        self, point: Array, direction: Array, pattern: Array, skip: int | None = None
    ) -> Crossing:
        """Return the first known unit that ``direction`` from ``point`` meets in the region of a pattern."""
        if not self.n_units:
            return Crossing(np.inf, -1)
        heights = self.preactivations(point[None])[0]
        speeds = self.jacobian(pattern)[1] @ direction
        towards = pattern * speeds < 0
        distances = np.full(len(heights), np.inf)
        # Rounding may have put the point on the wrong side of a surface that it lies on.
        distances[towards] = np.maximum(-heights[towards] / speeds[towards], 0.0)
        if skip is not None:
            distances[skip] = np.inf
        unit = int(np.argmin(distances))
        return Crossing(float(distances[unit]), unit)

    def room(self, point: Array, pattern: Array, skip: int | None = None) -> float:
        """Return the distance to the nearest surface of a known unit, seen from inside the region."""
        if not self.n_units:
            return np.inf
        heights = np.abs(self.preactivations(point[None])[0])
        lengths = np.linalg.norm(self.jacobian(pattern)[1], axis=1)
        distances = np.divide(heights, lengths, out=np.full_like(heights, np.inf), where=lengths > 0)
        if skip is not None:
            distances[skip] = np.inf
        return float(distances.min())

    def places_on(self, line: Line) -> Array:
        """Return ascending t, ends of the line included, between which phi is affine."""
        places = np.array([line.low, line.high])
        for depth in range(1, len(self.layers) + 1):
            below = LiftedLayers(self.n_inputs, self.layers[:depth], True, self.slope)
            heights = below.preactivations(line.points(places))[:, below.top]
            places = np.unique(np.concatenate([places, zeros_between(places, heights)]))
        return places

    def zeros_on(self, line: Line, alpha: Array) -> Array:
        """Return ascending t where alpha . phi changes its sign on the line."""
        places = self.places_on(line)
        return np.sort(zeros_between(places, self.values(line.points(places)) @ alpha[:, None]))


def zeros_between(places: Array, heights: Array) -> Array:
    """Return where functions (n, k), linear between ascending places (n,), change their signs."""
    before, after = heights[:-1], heights[1:]
    interval, unit = np.nonzero(before * after < 0)
    first, second = before[interval, unit], after[interval, unit]
    share = first / (first - second)
    return np.asarray(places[interval] + share * (places[interval + 1] - places[interval]))
