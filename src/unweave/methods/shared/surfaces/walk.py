"""Find where the known part of a surface meets known units behind which it is open, without asking.

Many walkers move on the surface at once, each in the region of one pattern at a time: straight on to the
first known unit that they meet, over it if the surface is determined behind it as well, up to a unit behind
which it is open.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.shared.surfaces.crossing import CrossingOptions, Meeting
from unweave.methods.shared.surfaces.surface import Surface
from unweave.numerics.clock import check


@dataclass(frozen=True, kw_only=True)
class WalkOptions:
    """How far walkers go, and what they look for."""

    crossing: CrossingOptions = field(default_factory=CrossingOptions)
    hops: int = 12
    """Crossings that a walk goes over."""
    longest_way: float = 50.0
    """Way to a crossing, in normalised inputs, beyond which it is of no use."""
    far: float = 3.0
    """Coordinates beyond which ways grow with the distance from the origin."""
    wanted: int = 3
    """Units behind which the surface is open that end a search."""
    one_normal: float = 1e-5
    """What is open of a normal, relative to its size, where it is determined."""
    at_random: float = 0.4
    """Share of the walkers that go anywhere instead of to the nearest unit that is wanted."""


DEFAULT_WALK_OPTIONS = WalkOptions()


@dataclass(frozen=True, eq=False)
class _Walkers:
    """Where walkers are: regions, and what is affine there."""

    points: Array
    """(n, d)"""
    patterns: Array
    """(n, units)"""
    heights: Array
    """(n, units): preactivations"""
    derivatives: Array
    """G (n, F, d)"""
    gradients: Array
    """(n, units, d) of the known units"""

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, rows: BoolArray) -> _Walkers:
        return _Walkers(
            self.points[rows],
            self.patterns[rows],
            self.heights[rows],
            self.derivatives[rows],
            self.gradients[rows],
        )


class _Walk:
    """Walkers on one surface."""

    def __init__(
        self, surface: Surface, preferred: IntArray, rng: np.random.Generator, options: WalkOptions
    ) -> None:
        self._surface, self._known = surface, surface.known
        self._chosen, self._free = surface.representative, surface.open_directions
        self._preferred, self._rng, self._options = preferred, rng, options
        self.found: dict[int, Meeting] = {}
        """The best meeting with every unit."""

    def go(self, points: Array) -> None:
        """Walk from points (n, d) of the surface until enough meetings are found."""
        known, options = self._known, self._options
        heights = known.preactivations(points)
        patterns = np.where(heights >= 0, 1.0, -1.0)
        walkers = _Walkers(points, patterns, heights, *known.jacobians(patterns))
        normals, determined = self.normals(walkers.derivatives)
        walkers, normals = walkers[determined], normals[determined]
        for _ in range(options.hops):
            check()
            if not len(walkers):
                return
            walkers, normals = self._hop(walkers, normals)
            if len(self.found) >= options.wanted:
                return

    def normals(self, derivatives: Array) -> tuple[Array, BoolArray]:
        """Return normals (n, d) in regions, and whether they are determined there."""
        normals = np.swapaxes(derivatives, 1, 2) @ self._chosen
        lengths = np.linalg.norm(normals, axis=1)
        free = np.linalg.norm(np.swapaxes(derivatives, 1, 2) @ self._free, axis=(1, 2))
        seen = lengths > self._surface.options.rank
        determined = seen & (free <= self._options.one_normal * lengths)
        return normals / np.where(seen, lengths, 1.0)[:, None], np.asarray(determined)

    def _hop(self, walkers: _Walkers, normals: Array) -> tuple[_Walkers, Array]:
        """Move every walker over the first unit it meets; note where the surface is open behind it."""
        known, options = self._known, self._options
        directions = self._directions(walkers, normals)
        distances, units = _first(walkers, directions)
        scale = np.maximum(1.0, np.abs(walkers.points).max(axis=1) / options.far)
        near = (distances <= options.longest_way * scale) & (np.linalg.norm(directions, axis=1) > 0)
        walkers, directions, scale = walkers[near], directions[near], scale[near]
        distances, units = distances[near], units[near]
        if not len(walkers):
            return walkers, normals[near]
        rows = np.arange(len(walkers))
        meetings = walkers.points + distances[:, None] * directions
        behind = walkers.patterns.copy()
        behind[rows, units] *= -1
        heights = known.preactivations(meetings)
        after = _Walkers(meetings, behind, heights, *known.jacobians(behind))
        turned, determined = self.normals(after.derivatives)
        self._note(walkers, after, units, ~determined)
        across = after.gradients[rows, units] * behind[rows, units][:, None]
        onwards = directions - np.einsum("nd,nd->n", directions, turned)[:, None] * turned
        lengths = np.linalg.norm(onwards, axis=1)
        # Otherwise the walk would leave the surface, or turn back.
        goes = determined & (lengths > 1e-6) & (np.einsum("nd,nd->n", across, onwards) > 0)
        onwards = onwards / np.where(lengths > 0, lengths, 1.0)[:, None]
        limits, _ = _first(after, onwards, units)
        points = meetings + np.minimum(0.5 * limits, scale)[:, None] * onwards
        heights = known.preactivations(points)
        goes &= (np.where(heights >= 0, 1.0, -1.0) == behind).all(axis=1)
        moved = _Walkers(points, behind, heights, after.derivatives, after.gradients)
        return moved[goes], turned[goes]

    def _directions(self, walkers: _Walkers, normals: Array) -> Array:
        """Return directions (n, d) along the surface, of length one or zero."""
        count, preferred = len(walkers), self._preferred
        ways = self._rng.standard_normal(walkers.points.shape)
        if len(preferred):
            gradients, heights = walkers.gradients[:, preferred], walkers.heights[:, preferred]
            along = gradients - (gradients @ normals[:, :, None]) * normals[:, None, :]
            # How far units are along the surface, were nothing else in between, with some luck added.
            far = np.abs(heights) / np.maximum(np.linalg.norm(along, axis=2), 1e-12)
            chosen = np.argmin(far * self._rng.exponential(size=far.shape), axis=1)
            rows = np.arange(count)
            towards = -np.sign(heights[rows, chosen])[:, None] * along[rows, chosen]
            directed = self._rng.random(count) >= self._options.at_random
            ways = np.where(directed[:, None], towards, ways)
        ways = ways - np.einsum("nd,nd->n", ways, normals)[:, None] * normals
        lengths = np.linalg.norm(ways, axis=1, keepdims=True)
        return np.asarray(np.where(lengths > 1e-9, ways / np.where(lengths > 0, lengths, 1.0), 0.0))

    def _note(self, before: _Walkers, after: _Walkers, units: IntArray, is_open: BoolArray) -> None:
        """Keep the best of the meetings with each unit behind which the surface is open."""
        crossing, surface = self._options.crossing, self._surface
        rooms = np.minimum(
            _rooms(after.heights, before.gradients, units), _rooms(after.heights, after.gradients, units)
        )
        for row in np.flatnonzero(is_open & (rooms > crossing.least_room)):
            unit, pattern = int(units[row]), before.patterns[row]
            normal = surface.normal(pattern)
            if normal is None or surface.normal(after.patterns[row]) is not None:
                continue
            meeting = Meeting(after.points[row], unit, after.patterns[row], normal, float(rooms[row]))
            other = self.found.get(unit)
            longest = crossing.longest
            if other is None or meeting.usefulness(longest) > other.usefulness(longest):
                self.found[unit] = meeting


def meetings_from(
    surface: Surface,
    points: Array,
    preferred: IntArray | None,
    rng: np.random.Generator,
    options: WalkOptions = DEFAULT_WALK_OPTIONS,
) -> list[Meeting]:
    """Return meetings that walks from points (n, d) of a surface lead to, one per unit, the best first.

    ``preferred`` are the known units, by number among all of them, that walks look for.
    """
    nothing = np.zeros(0, dtype=int)
    walk = _Walk(surface, nothing if preferred is None else preferred, rng, options)
    walk.go(points)
    longest = options.crossing.longest
    return sorted(walk.found.values(), key=lambda meeting: meeting.usefulness(longest), reverse=True)


def is_determined(surface: Surface, points: Array, options: WalkOptions = DEFAULT_WALK_OPTIONS) -> BoolArray:
    """Return (n,) whether the normal of a surface is known at points (n, d)."""
    known = surface.known
    patterns = np.where(known.preactivations(points) >= 0, 1.0, -1.0)
    walk = _Walk(surface, np.zeros(0, dtype=int), np.random.default_rng(0), options)
    return walk.normals(known.jacobians(patterns)[0])[1]


def _first(walkers: _Walkers, directions: Array, skip: IntArray | None = None) -> tuple[Array, IntArray]:
    """Return distances (n,) to the first unit met in directions (n, d), and the units (n,)."""
    speeds = (walkers.gradients @ directions[:, :, None])[:, :, 0]
    distances = np.full(speeds.shape, np.inf)
    # Rounding may have put a point on the wrong side of a surface that it lies on.
    np.divide(-walkers.heights, speeds, out=distances, where=walkers.patterns * speeds < 0)
    distances = np.maximum(distances, 0.0)
    rows = np.arange(len(distances))
    if skip is not None:
        distances[rows, skip] = np.inf
    units = np.argmin(distances, axis=1)
    return distances[rows, units], units


def _rooms(heights: Array, gradients: Array, skip: IntArray) -> Array:
    """Return distances (n,) to the nearest known unit but those in ``skip`` (n,)."""
    lengths = np.linalg.norm(gradients, axis=2)
    distances = np.full(heights.shape, np.inf)
    np.divide(np.abs(heights), lengths, out=distances, where=lengths > 0)
    distances[np.arange(len(distances)), skip] = np.inf
    return np.asarray(distances.min(axis=1))
