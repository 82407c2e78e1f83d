"""Hyperplanes of the first hidden layer, from kinks on lines.

A kink belongs to the first layer if its surface is a whole hyperplane. That of a deeper unit bends where it
meets another. So a hyperplane through a kink is *grown*: kinks are located at points of it farther and
farther away from the first, and all of them together determine it better and better:

    (n0 + delta) . (q_i - p) + beta = 0  to within the error of q_i,        |delta| about the error of n0,

a ridge regression whose covariance predicts where the next kink must be. One that is not there speaks against
it. What is left after growing are positions spread over the whole region, good to the rounding of an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_pairs.crossing import Read, locate
from unweave.numerics.clock import check
from unweave.targets.region import Region


@dataclass(frozen=True, kw_only=True)
class PlaneOptions:
    """How hyperplanes are grown, and when they count."""

    stages: tuple[tuple[float, int], ...] = ((0.04, 3), (0.12, 3), (0.35, 4))
    """Share of the way to points all over the region, and points of each stage, before the whole way."""
    spreads: tuple[float, ...] = (1.0, 2.0, 4.0)
    """Factors on the region, in turn, without a box: the points of the whole way."""
    at_once: int = 4
    """Points of the whole way that are asked together."""
    most: tuple[int, float] = (80, 3.0)
    """Points of the whole way at most, and at most per input, whichever is more."""
    accepted: int = 8
    """Kinks on the whole way that make it a hyperplane."""
    doubts: tuple[float, float] = (4.0, 0.4)
    """Places without a kink at which it is none: so many, and so many more for each kink."""
    predicted: float = 6.0
    """Half length of a segment, in standard errors of the prediction."""
    least_half: float = 2e-3
    """The same at least, in normalised inputs: shorter segments show nothing between other kinks."""
    most_half: float = 0.02
    """The same at most, relative to 1 + |x|, or twice what errors of positions ask for: longer ones meet
    kinks of other units by chance."""
    errors_per_half: float = 60.0
    """Errors of a kink's position that half a segment must be long."""
    precise: float = 3.0
    """Errors of a kink's position, typical over the region, at which a hyperplane is known well enough."""
    same: float = 10.0
    """Standard errors by which two sightings of one hyperplane differ."""
    least_apart: float = 3e-3
    """Distance between hyperplanes, in normalised inputs, below which they are one."""


@dataclass(frozen=True, eq=False)
class Kink:
    """A kink on a line, and its normal from the gradients beside it."""

    point: Array
    """(d,)"""
    normal: Array
    """(d,) of length one."""
    error: float
    """Of the normal."""
    position: float
    """Error of the point along the normal."""
    bend: Array
    """(K,) jump of the slope along the normal."""


@dataclass(eq=False)
class Plane:
    """n . x + b = 0 as far as it is known."""

    anchor: Array
    """p (d,)"""
    first_normal: Array
    """n0 (d,)"""
    gram: Array
    """(d + 1, d + 1) inverse covariance of (delta, beta)"""
    right: Array
    """(d + 1,)"""
    jump: float
    """Jump of the slope at the first kink."""
    hits: int = 0
    misses: int = 0
    located: int = 0
    solution: Array = field(default_factory=lambda: np.zeros(0))
    covariance: Array = field(default_factory=lambda: np.zeros((0, 0)))

    @classmethod
    def through(cls, kink: Kink) -> Plane:
        """Return what one kink says."""
        d = len(kink.point)
        errors = np.append(np.full(d, max(kink.error, 1e-12)), max(kink.position, 1e-14))
        plane = cls(
            kink.point, kink.normal, np.diag(errors**-2.0), np.zeros(d + 1), float(np.abs(kink.bend).max())
        )
        plane.solve()
        return plane

    def add(self, points: Array, errors: Array) -> None:
        """Add kinks at points (n, d)."""
        steps = points - self.anchor
        rows = np.hstack([steps, np.ones((len(points), 1))]) / errors[:, None]
        self.gram += rows.T @ rows
        self.right -= rows.T @ (steps @ self.first_normal / errors)
        self.located += len(points)
        self.solve()

    def solve(self) -> None:
        """Bring solution and covariance up to date."""
        self.covariance = np.asarray(np.linalg.pinv(self.gram, hermitian=True, rcond=1e-15), dtype=np.float64)
        self.solution = self.covariance @ self.right

    @property
    def unit(self) -> tuple[Array, float]:
        """n (d,) of length one, and b."""
        normal = self.first_normal + self.solution[:-1]
        length = float(np.linalg.norm(normal))
        return normal / length, float(self.solution[-1] - normal @ self.anchor) / length

    def onto(self, points: Array) -> tuple[Array, Array]:
        """Return points (n, d) moved onto it, and the standard error (n,) of where it is there."""
        normal, bias = self.unit
        moved = points - np.outer(points @ normal + bias, normal)
        rows = np.hstack([moved - self.anchor, np.ones((len(points), 1))])
        return moved, np.sqrt(((rows @ self.covariance) * rows).sum(axis=1))


def grow(
    read: Read,
    region: Region,
    planes: Sequence[Plane],
    error: float,
    rng: np.random.Generator,
    options: PlaneOptions,
) -> list[Plane]:
    """Return those of the planes that are hyperplanes as a whole, well determined."""
    left = list(planes)
    for share, count in options.stages:
        _look(read, region, left, share, count, error, rng, options)
        left = [plane for plane in left if plane.located or plane.misses < options.doubts[0]]
    for plane in left:
        plane.hits = plane.misses = 0
    accepted: list[Plane] = []
    most, per_input = options.most
    for number in range(0, max(most, int(per_input * region.n_inputs)), options.at_once):
        if not left:
            break
        spread = options.spreads[(number // options.at_once) % len(options.spreads)]
        _look(read, region, left, 1.0, options.at_once, error, rng, options, spread)
        few, share = options.doubts
        left = [plane for plane in left if plane.misses < few + share * plane.hits]
        places = region.sample(16, rng)
        done = [
            plane
            for plane in left
            if plane.hits >= options.accepted
            and np.median(plane.onto(places)[1]) <= options.precise * 4 * error / plane.jump
        ]
        accepted += done
        left = [plane for plane in left if plane not in done]
    return accepted + [plane for plane in left if plane.hits >= options.accepted]


def _look(
    read: Read,
    region: Region,
    planes: Sequence[Plane],
    share: float,
    count: int,
    error: float,
    rng: np.random.Generator,
    options: PlaneOptions,
    spread: float = 1.0,
) -> None:
    """Locate kinks at points on each of the planes, a ``share`` of the way from the first to anywhere."""
    check()
    if not planes:
        return
    points, normals, halves, owners = [], [], [], []
    for number, plane in enumerate(planes):
        far = plane.onto(_sample(region, 8 * count, spread, rng))[0]
        moved, predicted = plane.onto(plane.anchor + share * (far - plane.anchor))
        normal = plane.unit[0]
        size = 1 + np.abs(moved).max(axis=1)
        least = np.maximum(options.errors_per_half * error / plane.jump, options.least_half * size)
        half = np.maximum(options.predicted * predicted, least)
        usable = half <= np.maximum(options.most_half * size, 2 * least)
        for side in (-1, 1):
            usable &= region.contains(moved + side * half[:, None] * normal)
        chosen = np.flatnonzero(usable)[:count]
        points.append(moved[chosen])
        normals.append(np.repeat(normal[None], len(chosen), axis=0))
        halves.append(half[chosen])
        owners.append(np.full(len(chosen), number))
    owner, where, across = np.concatenate(owners), np.concatenate(points), np.concatenate(normals)
    if not len(owner):
        return
    located = locate(read, where, across, np.concatenate(halves))
    for number, plane in enumerate(planes):
        found = np.flatnonzero((owner == number) & located.found)
        plane.hits += len(found)
        plane.misses += int((located.straight & (owner == number)).sum())
        if len(found):
            kinks = where[found] + located.positions[found, None] * across[found]
            plane.add(kinks, located.errors[found])


def _sample(region: Region, count: int, spread: float, rng: np.random.Generator) -> Array:
    points = region.sample(count, rng)
    return points if region.has_box else spread * points


def joined(
    known: list[Plane], new: Sequence[Plane], region: Region, rng: np.random.Generator, options: PlaneOptions
) -> list[Plane]:
    """Add planes to those known that are none of them."""
    result = list(known)
    places = region.sample(16, rng)
    for plane in sorted(new, key=lambda plane: float(np.median(plane.onto(places)[1]))):
        if not any(_are_same(plane, other, region, rng, options) for other in result):
            result.append(plane)
    return result


def _are_same(
    plane: Plane, other: Plane, region: Region, rng: np.random.Generator, options: PlaneOptions
) -> bool:
    normal, _ = plane.unit
    second, bias = other.unit
    if abs(normal @ second) < 0.9:
        return False
    places, errors = plane.onto(region.sample(16, rng))
    apart = np.abs(places @ second + bias)
    allowed = options.same * np.hypot(errors, other.onto(places)[1]) + options.least_apart
    return bool(np.median(apart / allowed) <= 1)
