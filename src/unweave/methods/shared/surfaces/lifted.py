"""Known layers of kinked units as one piecewise linear map phi, in which the next layer is affine.

With g(z) = z for z > 0 and p z below, phi_0 = (x, 1) and z_l = A_l phi_{l-1}, every unit of layer l + 1 is
alpha . phi_l for one vector alpha, where

    phi_l = (g(z_l), P_l phi_{l-1}, 1)      if the signs of layer l are known,
    phi_l = (|z_l|, phi_{l-1})              if not: g(s z) = ((1-p) |z| + (1+p) s z) / 2 is affine in it.

P_l holds *channels*: linear functions that pass a layer because its unit is active wherever it was asked.
In a region where no known unit changes its sign (its *pattern*), phi is affine: phi(x + v) = phi(x) + G v.
Nothing here asks the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.numerics.line_kinks import Line

_MOST_REGIONS = 4000  # whose derivatives are kept: some 10 MB for 30 units behind 30 inputs
_NO_ROW_SPACE = 1e-9  # singular values of G, relative to the largest one, that are zero


@dataclass(frozen=True, eq=False)
class Stage:
    """One layer."""

    matrix: Array
    """A (m, F), the constant last"""
    channels: Array
    """P (a, F)"""
    signed: bool

    @property
    def width(self) -> int:
        """m"""
        return len(self.matrix)


@dataclass(frozen=True, eq=False)
class Crossing:
    """Where a ray first meets the surface of a known unit."""

    distance: float
    """Infinite if it never does."""
    unit: int
    """Number of the unit among all known ones."""


class LiftedLayers:
    """Layers from the inputs on; of the last one the signs may be open."""

    def __init__(self, n_inputs: int, stages: Sequence[Stage] = (), slope: float = 0.0) -> None:
        self.n_inputs, self.stages = n_inputs, tuple(stages)
        self.slope = slope
        """p"""
        self.n_units = sum(stage.width for stage in self.stages)
        """Number of known units, all layers together."""
        self._derivatives: dict[bytes, tuple[Array, Array]] = {}
        self._bases: dict[bytes, Array] = {}

    @property
    def dimension(self) -> int:
        """Length of phi."""
        if not self.stages:
            return self.n_inputs + 1
        return self.stages[-1].width + len(self.stages[-1].channels) + 1

    @property
    def top(self) -> slice:
        """The units of the last layer among all known ones."""
        return slice(self.n_units - (self.stages[-1].width if self.stages else 0), self.n_units)

    def with_unsigned(self, matrix: Array) -> LiftedLayers:
        """Add a layer (m, F) whose signs are open; those of all before it must be known."""
        everything = np.eye(self.dimension)[:-1]
        return LiftedLayers(self.n_inputs, (*self.stages, Stage(matrix, everything, False)), self.slope)

    def with_signed(self, matrix: Array, channels: Array | None = None) -> LiftedLayers:
        """Add a layer (m, F) with its signs, and its channels (a, F)."""
        passed = np.zeros((0, self.dimension)) if channels is None else channels
        return LiftedLayers(self.n_inputs, (*self.stages, Stage(matrix, passed, True)), self.slope)

    def forward(self, points: Array) -> tuple[Array, Array]:
        """Return phi (n, dimension) and z (n, units) of all known units at points (n, d)."""
        one = np.ones((len(points), 1))
        phi, found = np.hstack([points, one]), [np.zeros((len(points), 0))]
        for stage in self.stages:
            z = phi @ stage.matrix.T
            found.append(z)
            states = np.where(z > 0, z, self.slope * z) if stage.signed else np.abs(z)
            passed = phi[:, :-1] if not stage.signed else phi @ stage.channels.T
            phi = np.hstack([states, passed, one])
        return phi, np.hstack(found)

    def values(self, points: Array) -> Array:
        """Return phi (n, dimension) at points (n, d)."""
        return self.forward(points)[0]

    def preactivations(self, points: Array) -> Array:
        """Return z (n, units) of all known units at points (n, d)."""
        return self.forward(points)[1]

    def pattern(self, point: Array) -> Array:
        """Return the signs (units,) +-1 at one point (d,)."""
        return np.where(self.preactivations(point[None])[0] >= 0, 1.0, -1.0)

    def jacobian(self, pattern: Array) -> tuple[Array, Array]:
        """Return G (dimension, d) and the gradients (units, d) of known units in the region of a pattern."""
        key = (pattern > 0).tobytes()
        known = self._derivatives.get(key)
        if known is not None:
            return known
        zero = np.zeros((1, self.n_inputs))
        derivative, gradients, start = np.vstack([np.eye(self.n_inputs), zero]), [zero[:0]], 0
        for stage in self.stages:
            gradient = stage.matrix @ derivative
            signs = pattern[start : start + stage.width]
            start += stage.width
            gradients.append(gradient)
            factor = np.where(signs > 0, 1.0, self.slope) if stage.signed else signs
            passed = derivative[:-1] if not stage.signed else stage.channels @ derivative
            derivative = np.vstack([factor[:, None] * gradient, passed, zero])
        if len(self._derivatives) >= _MOST_REGIONS:
            self._derivatives.clear()
        result = derivative, np.vstack(gradients)
        self._derivatives[key] = result
        return result

    def jacobians(self, patterns: Array) -> tuple[Array, Array]:
        """Return G (n, dimension, d) and gradients (n, units, d), as `jacobian`, for patterns (n, units)."""
        count, inputs = len(patterns), self.n_inputs
        zero = np.zeros((count, 1, inputs))
        derivative = np.concatenate([np.broadcast_to(np.eye(inputs), (count, inputs, inputs)), zero], axis=1)
        gradients, start = [np.zeros((count, 0, inputs))], 0
        for stage in self.stages:
            gradient = stage.matrix @ derivative
            signs = patterns[:, start : start + stage.width]
            start += stage.width
            gradients.append(gradient)
            factor = np.where(signs > 0, 1.0, self.slope) if stage.signed else signs
            passed = derivative[:, :-1] if not stage.signed else stage.channels @ derivative
            derivative = np.concatenate([factor[:, :, None] * gradient, passed, zero], axis=1)
        return derivative, np.concatenate(gradients, axis=1)

    def gradients(self, patterns: Array, alpha: Array) -> Array:
        """Return the gradients (n, d) of alpha . phi, alpha (F,), in the regions of patterns (n, units)."""
        return self.derivatives(patterns, alpha, 0)[:, :-1]

    def derivatives(self, patterns: Array, alpha: Array, depth: int) -> Array:
        """Return the derivatives (n, F) of alpha . phi by the phi of so many layers, in regions."""
        back, end = np.broadcast_to(alpha, (len(patterns), len(alpha))), self.n_units
        for stage in reversed(self.stages[depth:]):
            factor = self.slopes(stage, patterns[:, end - stage.width : end])
            end -= stage.width
            through, passed = (factor * back[:, : stage.width]) @ stage.matrix, back[:, stage.width : -1]
            if stage.signed:
                through += passed @ stage.channels
            else:
                through[:, :-1] += passed
            back = through
        return np.asarray(back)

    def slopes(self, stage: Stage, signs: Array) -> Array:
        """Return the derivatives of a layer's states by z where these have given signs."""
        return np.where(signs > 0, 1.0, self.slope) if stage.signed else signs

    def unit_gradients(self, patterns: Array, unit: int) -> Array:
        """Return the gradients (n, d) of a known unit, by its number among all of them, in regions."""
        start = 0
        for depth, stage in enumerate(self.stages):
            if unit < start + stage.width:
                below = LiftedLayers(self.n_inputs, self.stages[:depth], self.slope)
                return below.gradients(patterns[:, :start], stage.matrix[unit - start])
            start += stage.width
        raise IndexError(unit)

    def basis(self, pattern: Array) -> Array:
        """Return an orthonormal basis (d, r) of the gradients that anything behind can have in a region."""
        key = (pattern > 0).tobytes()
        if key not in self._bases:
            if len(self._bases) >= _MOST_REGIONS:
                self._bases.clear()
            _, values, right = np.linalg.svd(self.jacobian(pattern)[0], full_matrices=False)
            self._bases[key] = right[: int((values > _NO_ROW_SPACE * max(values[0], 1e-300)).sum())].T
        return self._bases[key]

    def first_crossing(
        self, point: Array, direction: Array, pattern: Array, skip: int | None = None
    ) -> Crossing:
        """Return the first known unit that ``direction`` from ``point`` meets in the region of a pattern."""
        if not self.n_units:
            return Crossing(np.inf, -1)
        distances, units = self.first_crossings(point, direction[None], pattern, skip)
        return Crossing(float(distances[0]), int(units[0]))

    def first_crossings(
        self, point: Array, directions: Array, pattern: Array, skip: int | None = None
    ) -> tuple[Array, IntArray]:
        """Return distances (k,) and units (k,) of the first crossings in directions (k, d)."""
        if not self.n_units:
            return np.full(len(directions), np.inf), np.full(len(directions), -1)
        heights = self.preactivations(point[None])[0]
        speeds = directions @ self.jacobian(pattern)[1].T
        towards = pattern * speeds < 0
        # Rounding may have put the point on the wrong side of a surface that it lies on.
        distances = np.full(speeds.shape, np.inf)
        np.divide(-heights, speeds, out=distances, where=towards)
        distances = np.maximum(distances, 0.0)
        if skip is not None:
            distances[:, skip] = np.inf
        units = np.argmin(distances, axis=1)
        return distances[np.arange(len(directions)), units], units

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
        places, start = np.array([line.low, line.high]), 0
        for depth, stage in enumerate(self.stages):
            below = LiftedLayers(self.n_inputs, self.stages[: depth + 1], self.slope)
            heights = below.preactivations(line.points(places))[:, start : start + stage.width]
            start += stage.width
            places = np.unique(np.concatenate([places, zeros_between(places, heights)]))
        return places

    def zeros_on(self, line: Line, alphas: Array) -> Array:
        """Return ascending t where one of alphas (F,) or (F, k) times phi changes its sign on the line."""
        places = self.places_on(line)
        heights = self.values(line.points(places)) @ alphas.reshape(self.dimension, -1)
        return np.sort(zeros_between(places, heights))


def zeros_between(places: Array, heights: Array) -> Array:
    """Return where functions (n, k), linear between ascending places (n,), change their signs."""
    before, after = heights[:-1], heights[1:]
    interval, unit = np.nonzero(before * after < 0)
    first, second = before[interval, unit], after[interval, unit]
    share = first / (first - second)
    return np.asarray(places[interval] + share * (places[interval + 1] - places[interval]))
