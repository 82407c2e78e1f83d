"""Surfaces of the second layer, grown across the hyperplanes of the first.

A unit of the second layer switches where something affine in (relu(-s_i z_i), x) vanishes, s_i being the side
of hyperplane i on which its first kink p lies. There the first m features are zero, and the surface is the
plane n . (x - p) = 0; every hyperplane that is crossed bends it by one unknown number c_i:

    alpha . phi(x) = 0,    phi = (relu(-s z(x)), Q^T (x - p), 1),    alpha = (c, n, beta),

Q an orthonormal basis of what the first layer reads. So a surface is a hyperplane in phi, grown as those of
the first layer are (`planes`): positions of kinks are rows of a ridge regression, whose covariance says where
the next kink must be. Beyond a hyperplane that was never crossed c_i is anything, which matters little just
behind it. What is asked next is the farthest point at which the kink is still expected on a short segment.
The bend of the slope there is predicted as well, so that another unit's kink is not taken for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.methods.relu_pairs.crossing import Located, Read, locate
from unweave.methods.relu_pairs.features import FirstUnits
from unweave.methods.relu_pairs.planes import Kink
from unweave.numerics.clock import check
from unweave.targets.region import Region


@dataclass(frozen=True, kw_only=True)
class BentOptions:
    """How surfaces are grown, and when they count."""

    bend: float = 3.0
    """Standard deviation of what a crossing adds to the normal, in lengths of the first one."""
    rays: int = 16
    """Directions in which a surface is continued, of which ..."""
    at_once: int = 4
    """... so many are asked together."""
    rounds: int = 40
    """Times that points are asked at most."""
    spreads: tuple[float, ...] = (1.0, 2.0, 4.0)
    """Factors on the region, in turn, without a box: where directions lead."""
    halvings: int = 14
    """Of the way to a point, until a kink is expected on a short segment."""
    predicted: float = 6.0
    """Half length of a segment, in standard errors of the prediction."""
    least_half: float = 1e-3
    """The same at least, relative to 1 + |x|."""
    most_half: float = 0.02
    """The same at most: longer ones meet kinks of other units by chance."""
    errors_per_half: float = 60.0
    """Errors of a kink's position that half a segment must be long."""
    steepest: float = 0.3
    """Share of the normal that a segment beside a hyperplane must keep."""
    news: float = 10.0
    """Errors of a kink's position in that of its prediction at which it is worth asking."""
    bend_errors: float = 6.0
    """Standard errors by which the bend of a kink may differ from what is predicted, ..."""
    bend_share: float = 5e-3
    """... and share of it that may be added."""
    accepted: int = 8
    """Kinks that make it a surface."""
    doubts: tuple[float, float] = (4.0, 0.3)
    """Places without a kink at which it is none: so many, and so many more for each kink."""
    finest: float = 1e-9
    """Error of a position, relative to 1 + |x|, below which none is believed: inverses keep their digits."""
    known: float = 0.01
    """Standard error of a surface's position, relative to 1 + |x|, up to which it explains kinks."""
    explained: float = 10.0
    """Standard errors within which it does, ..."""
    same_place: float = 3e-4
    """... and distance relative to 1 + |x| that is added."""


class Bent:
    """One surface of the second layer, as far as it is known."""

    def __init__(
        self, layer: FirstUnits, errors: Array, basis: Array, kink: Kink, options: BentOptions
    ) -> None:
        self.layer, self.basis, self._options = layer, basis, options
        self._errors = errors  # (m,) of the hyperplanes, relative to 1 + |x|
        self.anchor, self.jump = kink.point, kink.bend
        self.sides = np.where(kink.point @ layer.weights + layer.biases > 0, 1.0, -1.0)
        normal = basis.T @ kink.normal
        self._first = np.concatenate([np.zeros(layer.width), normal / np.linalg.norm(normal), [0.0]])
        sizes = [
            np.full(layer.width, options.bend),
            np.full(len(normal), max(kink.error, options.finest)),
            np.array([max(kink.position, options.finest)]),
        ]
        self._gram = np.diag(np.concatenate(sizes) ** -2.0)
        self._right = np.zeros(len(self._gram))
        self._turned = -self.sides * (basis.T @ layer.weights)  # (q, m): what crossing adds to the normal
        self.hits = self.misses = 0
        self.places = kink.point[None]
        self._solve()

    def _solve(self) -> None:
        scale = 1 / np.sqrt(np.diag(self._gram))
        self.covariance = np.linalg.inv(self._gram * np.outer(scale, scale)) * np.outer(scale, scale)
        self.alpha = self._first + self.covariance @ self._right

    @property
    def bend_errors(self) -> Array:
        """(m,) standard errors of c."""
        return np.asarray(np.sqrt(np.diag(self.covariance)[: self.layer.width]))

    def absolute(self) -> tuple[Array, Array, float]:
        """Return V (m,), U (d,) and e with alpha . phi(x) = V . |z| + U . x + e."""
        width = self.layer.width
        heights = self.alpha[:width] / 2
        turned = self.sides * heights  # relu(-s z) = (|z| - s z) / 2
        slope = self.basis @ self.alpha[width:-1]
        offset = self.alpha[-1] - slope @ self.anchor - turned @ self.layer.biases
        return heights, slope - self.layer.weights @ turned, float(offset)

    def features(self, points: Array) -> Array:
        """Return phi (n, F) at points (n, d)."""
        z = points @ self.layer.weights + self.layer.biases
        inside = (points - self.anchor) @ self.basis
        return np.hstack([np.maximum(-self.sides * z, 0), inside, np.ones((len(points), 1))])

    def at(self, points: Array) -> tuple[Array, Array, BoolArray]:
        """Return phi (n, F), gradients (n, q) and what is crossed (n, m) at points (n, d)."""
        phi, width = self.features(points), self.layer.width
        crossed = phi[:, :width] > 0
        return phi, self.alpha[width:-1] + (crossed * self.alpha[:width]) @ self._turned.T, crossed

    def errors(self, points: Array, phi: Array, crossed: BoolArray) -> Array:
        """Return the standard errors (n,) of the heights."""
        variance = np.maximum(((phi @ self.covariance) * phi).sum(axis=1), 0.0)
        return np.asarray(np.hypot(np.sqrt(variance), self._of_planes(points, crossed)))

    def _of_planes(self, points: Array, crossed: BoolArray) -> Array:
        """Return the errors (n,) of the heights at points (n, d) that those of hyperplanes make."""
        made = np.sqrt((crossed * (self.alpha[: self.layer.width] * self._errors) ** 2).sum(axis=1))
        return np.asarray(made * (1 + np.abs(points).max(axis=1)))

    def gradients(self, points: Array) -> Array:
        """Return gradients (n, d) of the height at points (n, d)."""
        return np.asarray(self.at(points)[1] @ self.basis.T)

    def slope_error(self, points: Array, across: Array) -> Array:
        """Return the standard error (n,) of the slope at points (n, d) along directions (n, d)."""
        crossed = self.features(points)[:, : self.layer.width] > 0
        along = across @ self.basis
        rows = np.hstack([crossed * (along @ self._turned), along, np.zeros((len(points), 1))])
        return np.asarray(np.sqrt(np.maximum(((rows @ self.covariance) * rows).sum(axis=1), 0.0)))

    def onto(self, points: Array, steps: int) -> Array:
        """Return points (n, d) moved onto the surface, as far as it is known."""
        for _ in range(steps):
            phi, gradient, _ = self.at(points)
            size = np.maximum((gradient**2).sum(axis=1), 1e-6)
            points = points - (phi @ self.alpha / size)[:, None] * (gradient @ self.basis.T)
        return points

    def add(self, points: Array, errors: Array) -> None:
        """Add kinks at points (n, d), heights erring by ``errors`` (n,)."""
        phi = self.features(points)
        errors = np.hypot(errors, self._of_planes(points, phi[:, : self.layer.width] > 0))
        errors = np.maximum(errors, self._options.finest * (1 + np.abs(points).max(axis=1)))
        rows = phi / errors[:, None]
        self._gram += rows.T @ rows
        self._right -= rows.T @ (phi @ self._first / errors)
        self.places = np.concatenate([self.places, points])
        self._solve()

    def explains(self, points: Array) -> BoolArray:
        """Return which points (n, d) lie on it, as far as it is known there."""
        options = self._options
        phi, gradient, crossed = self.at(points)
        height, error = phi @ self.alpha, self.errors(points, phi, crossed)
        slope = np.maximum(np.linalg.norm(gradient, axis=1), 1e-9)
        size = 1 + np.abs(points).max(axis=1)
        allowed = options.explained * error / slope + options.same_place * size
        return np.asarray((np.abs(height) / slope <= allowed) & (error / slope <= options.known * size))

    def segments(
        self, region: Region, error: float, rng: np.random.Generator
    ) -> tuple[Array, Array, Array, Array]:
        """Return points (n, d), directions (n, d) and halves (n,) of segments, and what is new there (n,)."""
        options = self._options
        spread = 1.0 if region.has_box else options.spreads[int(rng.integers(len(options.spreads)))]
        far = spread * region.sample(options.rays, rng)
        start = self.places[rng.integers(len(self.places), size=options.rays)]
        if not region.has_box:  # a surface may lie far out only
            far[::2] *= np.maximum(1.0, np.sqrt((start[::2] ** 2).mean(axis=1)))[:, None]
        step = self.onto(far, 2) - start
        low, high = np.zeros(options.rays), np.ones(options.rays)
        share = high
        for _ in range(options.halvings):
            points = self.onto(start + share[:, None] * step, 1)
            near = self._expected(points, error)[1] <= options.most_half * (1 + np.abs(points).max(axis=1))
            low, high = np.where(near, share, low), np.where(near, high, share)
            share = (low + high) / 2
        points = self.onto(start + low[:, None] * step, 3)
        across, half, news = self._expected(points, error)
        size = 1 + np.abs(points).max(axis=1)
        usable = (half <= options.most_half * size) & np.isfinite(half)
        for side in (-1, 1):
            usable &= region.contains(points + side * half[:, None] * across)
        z = points @ self.layer.weights + self.layer.biases
        usable &= (np.abs(z) > 1.05 * half[:, None] * np.abs(across @ self.layer.weights)).all(axis=1)
        chosen = np.flatnonzero(usable & (news >= options.news))
        chosen = chosen[np.argsort(-news[chosen])][: options.at_once]
        return points[chosen], across[chosen], half[chosen], news[chosen]

    def _expected(self, points: Array, error: float) -> tuple[Array, Array, Array]:
        """Return directions (n, d) across the surface, half lengths (n,) of segments, and news (n,)."""
        options, weights = self._options, self.layer.weights
        phi, gradient, crossed = self.at(points)
        spread = self.errors(points, phi, crossed)
        full = gradient @ self.basis.T
        # Along the nearest hyperplane, so that the segment stays on one side of it.
        z = points @ weights + self.layer.biases
        nearest = weights[:, np.argmin(np.abs(z), axis=1)].T
        across = full - (full * nearest).sum(axis=1)[:, None] * nearest
        length = np.linalg.norm(across, axis=1)
        across = across / np.maximum(length, 1e-12)[:, None]
        slope = np.abs((full * across).sum(axis=1))
        slope = np.where(length >= options.steepest * np.linalg.norm(full, axis=1), slope, 1e-12)
        position = error / (slope * np.linalg.norm(self.jump))
        size = 1 + np.abs(points).max(axis=1)
        least = np.maximum(options.errors_per_half * position, options.least_half * size)
        half = np.maximum(options.predicted * spread / slope, least)
        return across, half, spread / slope / (4 * position)


def grow(
    read: Read,
    region: Region,
    surfaces: Sequence[Bent],
    error: float,
    rng: np.random.Generator,
    options: BentOptions,
) -> list[Bent]:
    """Return those of the surfaces that go on wherever they are expected to."""
    left, done = list(surfaces), []
    for _ in range(options.rounds):
        check()
        asked = [surface.segments(region, error, rng) for surface in left]
        done += [surface for surface, (points, *_) in zip(left, asked, strict=True) if not len(points)]
        left = [surface for surface in left if surface not in done]
        asked = [each for each in asked if len(each[0])]
        if not left:
            break
        owner = np.repeat(np.arange(len(left)), [len(points) for points, *_ in asked])
        where, across, halves = (np.concatenate([each[i] for each in asked]) for i in range(3))
        located = locate(read, where, across, halves)
        for number, surface in enumerate(left):
            rows = owner == number
            _take(surface, where[rows], across[rows], located.at(rows), options)
        few, share = options.doubts
        left = [surface for surface in left if surface.misses < few + share * surface.hits]
    return [surface for surface in done + left if surface.hits >= options.accepted]


def _take(surface: Bent, where: Array, across: Array, located: Located, options: BentOptions) -> None:
    """Add what segments show to a surface."""
    surface.misses += int(located.straight.sum())
    found = located.found
    if not found.any():
        return
    where, across, located = where[found], across[found], located.at(found)
    kinks = where + located.positions[:, None] * across
    slope = np.abs((surface.gradients(where) * across).sum(axis=1))
    expected = slope[:, None] * surface.jump
    allowed = options.bend_errors * np.linalg.norm(surface.jump) * surface.slope_error(where, across)
    allowed += options.bend_errors * located.bend_errors
    allowed += options.bend_share * np.linalg.norm(expected, axis=1)
    same = np.abs(located.bends - expected).max(axis=1) <= allowed
    surface.hits += int(same.sum())
    if same.any():
        surface.add(kinks[same], (located.errors * slope)[same])
