"""Tell surfaces of the next layer from deeper ones: those are flat as far as the known units go.

A deeper one bends at surfaces that are not known yet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.methods.shared.surfaces.lifted import LiftedLayers
from unweave.methods.shared.surfaces.probe import Kink, Probe
from unweave.numerics.clock import check


@dataclass(frozen=True, kw_only=True)
class FlatnessOptions:
    """Where a piece of surface is looked at, and what it must show."""

    far_share: float = 0.9
    """Share of the way to the next known surface at which a facet is looked at again."""
    farthest_look: float = 3.0
    """Length of that way at most, in normalised inputs."""
    look_step: float = 1e-3
    """Step across the surface, as a share of that way."""
    plane_looks: int = 12
    """Looks behind units of the first layer at a plane that may be one of them."""
    plane_seen: int = 5
    """Number of them that must show a kink."""
    plane_missed: float = 0.25
    """Share of them without a kink beyond which it is none; units show up to 0.1, deeper ones from 0.4."""
    least_room: float = 1e-3
    """Room between known surfaces that a look needs, in normalised inputs."""
    flat_points: int = 6
    """Points of the short test, two thirds of which must show a kink."""
    flat_hits: int = 6
    """Kinks at which the long test calls a piece flat."""
    flat_misses: int = 2
    """Points without one at which it does not."""
    flat_dull: int = 8
    """Points that show nothing at which it gives up."""
    flat_directions: int = 8
    """Directions of which the long test takes the longest way."""


class Flatness:
    """Looks at pieces of surfaces where known units end them."""

    def __init__(self, probe: Probe, rng: np.random.Generator, options: FlatnessOptions) -> None:
        self._probe, self._rng, self._options = probe, rng, options

    def is_far(
        self, known: LiftedLayers, point: Array, pattern: Array, normal: Array, least: float
    ) -> bool | None:
        """Return whether a facet is still there as far away as known surfaces allow; None if unknown.

        A way that is not longer than ``least`` tells nothing.
        """
        way, length = self._long_way(known, point, pattern, normal, 4)
        if length <= least:
            return None
        step = np.array([self._options.look_step * length])
        sighting = self._probe.have_kinks((point + length * way)[None], normal[None], step)
        return None if sighting.dull[0] else bool(sighting.seen[0])

    def is_flat(self, known: LiftedLayers, kink: Kink) -> bool:
        """Return whether the surface through a kink seems flat as far as the known units go."""
        options, pattern = self._options, known.pattern(kink.point)
        ways = [
            self._long_way(known, kink.point, pattern, kink.normal, 1) for _ in range(options.flat_points)
        ]
        lengths = np.maximum([length for _, length in ways], 1e-9)
        points = kink.point + lengths[:, None] * np.stack([way for way, _ in ways])
        normals = np.repeat(kink.normal[None], len(ways), axis=0)
        sightings = self._probe.have_kinks(points, normals, options.look_step * lengths)
        told = int((~sightings.dull).sum())
        return int(sightings.seen.sum()) >= max(2, 2 / 3 * told)

    def are_planes(self, first: LiftedLayers, kinks: list[Kink]) -> BoolArray:
        """Return (n,) which of the kinks lie on planes that run straight on behind units of the first layer.

        That tells units of the first layer from deeper ones, which bend there, also where what reads them is
        off nearly everywhere.
        """
        options, found = self._options, np.zeros(len(kinks), dtype=bool)
        for number, kink in enumerate(kinks):
            seen, missed = self._behind(first.stages[0].matrix, kink)
            found[number] = seen >= options.plane_seen and seen >= 2 * missed
        return found

    def bent_planes(self, matrix: Array, kinks: list[Kink]) -> BoolArray:
        """Return (m,) which planes (m, d + 1), of which kinks are known, bend behind the others."""
        options, found = self._options, np.zeros(len(kinks), dtype=bool)
        for number, kink in enumerate(kinks):
            seen, missed = self._behind(np.delete(matrix, number, axis=0), kink)
            found[number] = missed > options.plane_missed * (seen + missed)
        return found

    def _behind(self, matrix: Array, kink: Kink) -> tuple[int, int]:
        """Count where a plane is seen and where it is not, behind the nearest of other planes (m, d + 1)."""
        check()
        options, gradients = self._options, matrix[:, :-1]
        heights = gradients @ kink.point + matrix[:, -1]
        ways = self._rng.standard_normal((options.plane_looks, len(kink.point)))
        ways -= np.outer(ways @ kink.normal, kink.normal)
        ways /= np.linalg.norm(ways, axis=1, keepdims=True)
        crossings = -heights / (ways @ gradients.T)
        crossings = np.sort(np.where(crossings > 0, crossings, np.inf), axis=1)
        crossings = np.pad(crossings, ((0, 0), (0, 2)), constant_values=np.inf)  # one unit has no next
        met = np.isfinite(crossings[:, 0])
        ways, near, far = ways[met], crossings[met, 0], np.minimum(crossings[met, 1], 2 * crossings[met, 0])
        usable = far - near > options.least_room
        lengths = ((near + far) / 2)[usable]
        steps = options.look_step * (far - near)[usable]
        points = kink.point + lengths[:, None] * ways[usable]
        sightings = self._probe.have_kinks(points, np.repeat(kink.normal[None], len(points), 0), steps)
        return int(sightings.seen.sum()), int(sightings.missed.sum())

    def are_flat(self, known: LiftedLayers, kinks: list[Kink]) -> BoolArray:
        """Return (n,) which of the kinks lie on pieces that are flat as far as the known units go.

        That of a unit of the next layer is; that of a deeper one bends at surfaces that are not known yet.
        """
        options, count = self._options, len(kinks)
        hits, misses, dull = np.zeros(count, int), np.zeros(count, int), np.zeros(count, int)
        patterns = [known.pattern(kink.point) for kink in kinks]
        while True:
            check()
            undecided = (
                (hits < options.flat_hits) & (misses < options.flat_misses) & (dull < options.flat_dull)
            )
            rows = np.flatnonzero(undecided)
            if not len(rows):
                return hits >= options.flat_hits
            points, steps = [], []
            for row in rows:
                kink = kinks[row]
                way, length = self._long_way(
                    known, kink.point, patterns[row], kink.normal, options.flat_directions
                )
                length = max(length, 1e-6)
                points.append(kink.point + length * way)
                steps.append(options.look_step * length)
            normals = np.stack([kinks[row].normal for row in rows])
            sightings = self._probe.have_kinks(np.stack(points), normals, np.array(steps))
            hits[rows] += sightings.seen
            misses[rows] += sightings.missed
            dull[rows] += sightings.dull

    def _long_way(
        self, known: LiftedLayers, point: Array, pattern: Array, normal: Array, count: int
    ) -> tuple[Array, float]:
        """Return the direction along a facet, of ``count`` random ones, with the longest way; its length."""
        ways = self._rng.standard_normal((count, len(point)))
        ways -= np.outer(ways @ normal, normal)
        ways /= np.linalg.norm(ways, axis=1, keepdims=True)
        options = self._options
        lengths = np.minimum(
            options.far_share * known.first_crossings(point, ways, pattern)[0], options.farthest_look
        )
        best = int(np.argmax(lengths))
        return ways[best], float(lengths[best])
