"""Follow the surface of one unknown unit behind known layers until nothing of it is open.

Walks stay on the part of the surface that is determined: from where it was seen, and from zeros of what is
known of the unit (Newton's method), along the surface and over crossings behind which it is determined as
well, to a known unit behind which it is open. There one more equation is measured. With the surface's
normal n before the meeting xc and the normal nu of the known unit, the normal behind is n + tau nu with one
unknown tau. All kinks of the line

    xc + o nu + t m,        m in span(n, nu), orthogonal to nu,

are possible points of it, whatever tau is; the right one is told by a kink at a second point of the facet
that it predicts. Both are measured: their difference holds tau however far the known part has drifted from
the truth. Cost: about 10 rows for the line and 6 for the second point. A look as far behind as known
surfaces allow tells a unit of the next layer from a deeper one, whose surface bends at units that are not
known yet.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.relu_layers.lifted import LiftedLayers
from unweave.methods.relu_layers.probe import Kink, Probe
from unweave.methods.relu_layers.sight import Sight
from unweave.methods.relu_layers.surface import Place, Surface
from unweave.numerics.clock import check


@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """Where surfaces are crossed, and when one is given up."""

    starts: int = 24
    """Zeros that a walk may start from, beside places where the surface was seen."""
    start_spreads: tuple[float, ...] = (0.3, 1.0, 3.0, 10.0)
    """Standard deviations of the starts of Newton's method, in turn."""
    newton_steps: int = 12
    """Steps of Newton's method."""
    newton_error: float = 1e-11
    """Distance to the surface, relative to 1 + |x|, of a zero."""
    far: float = 3.0
    """Coordinates beyond which ways and spreads grow with the distance from the origin."""
    farthest: float = 1000.0
    """Largest coordinate of a zero."""
    old_places: int = 8
    """Places where the surface was seen that a walk starts from."""
    hops: int = 8
    """Crossings that a walk goes over."""
    longest_way: float = 50.0
    """Way to a crossing, in normalised inputs, beyond which it is of no use."""
    wanted: int = 3
    """Meetings of which the best is taken."""
    preferred: float = 3.0
    """Factor on the usefulness of meetings with units that are wanted most."""
    least_room: float = 1e-3
    """Room to other known surfaces that a meeting needs, in normalised inputs."""
    longest: float = 0.5
    """Room beyond which more is not better."""
    heights: tuple[tuple[float, float], ...] = ((0.3, 3.0), (0.06, 8.0), (0.01, 30.0))
    """Lines behind the meeting: o in units of the room, and half the line's length in units of o."""
    least_angle: float = 1e-3
    """Sine of the angle between the two normals below which they do not tell where to look."""
    hypotheses: int = 5
    """Kinks of a line, the nearest first, that are tried as points of the surface."""
    tries: int = 8
    """Tries for a second point inside the region."""
    window: float = 0.02
    """Distance across the predicted facet, in units of o, within which the second point is looked for."""
    drift: float = 2e-3
    """Distance, in units of o, by which it may be off."""
    far_share: float = 0.9
    """Share of the way to the next known surface at which a facet is looked at again."""
    farthest_look: float = 3.0
    """Length of that way at most, in normalised inputs."""
    look_step: float = 1e-3
    """Step across the surface, as a share of that way."""
    dry_walks: int = 3
    """Searches without a meeting after which what is open stays open."""
    most_crossings: int = 400
    """Crossings after which a surface is given up."""
    plane_looks: int = 12
    """Looks behind units of the first layer at a plane that may be one of them."""
    plane_seen: int = 5
    """Number of them that must show a kink."""
    flat_points: int = 6
    """Points of the short test for flatness, two thirds of which must show a kink."""
    flat_hits: int = 6
    """Kinks at which the long test calls a piece flat."""
    flat_misses: int = 2
    """Points without one at which it does not."""
    flat_dull: int = 8
    """Points that show nothing at which it gives up."""
    flat_directions: int = 8
    """Directions of which the long test takes the longest way."""


class Verdict(Enum):
    """How the following of a surface ended."""

    COMPLETE = "nothing is open"
    NO_MEETING = "no way leads to where it is open"
    LOST = "it was not found behind crossings"
    BENT = "its facets end before known surfaces do"
    STOPPED = "enough is known"

    @property
    def is_whole(self) -> bool:
        """Whether all that can be seen of the surface is known."""
        return self in (Verdict.COMPLETE, Verdict.NO_MEETING)


@dataclass(frozen=True, eq=False)
class Meeting:
    """Where a surface meets that of known unit ``unit``."""

    point: Array
    unit: int
    behind: Array
    """Pattern on the side where the surface is open."""
    normal: Array
    """(d,) of the surface, on the other side."""
    room: float
    usefulness: float


class Tracer:
    """Follows surfaces."""

    def __init__(self, probe: Probe, rng: np.random.Generator, options: TraceOptions) -> None:
        self._probe, self._rng, self._options = probe, rng, options

    def follow(
        self,
        surface: Surface,
        sight: Sight,
        kinks: Collection[int] = (),
        prefer: Callable[[Surface], IntArray] | None = None,
        stop: Callable[[Surface], bool] | None = None,
        look_far: bool = True,
    ) -> tuple[Surface, Verdict]:
        """Cross known surfaces until nothing is open; ``kinks`` of the pool that fit are added on the way.

        ``look_far`` looks at every facet once more where it ends, for deeper units.
        """
        options = self._options
        if kinks:
            surface, _ = sight.absorb(surface, kinks)
        failures = successes = seen = missed = dry = 0
        while surface.open:
            check()
            if stop is not None and stop(surface):
                return surface, Verdict.STOPPED
            meetings = self.meetings(surface, None if prefer is None else prefer(surface))
            if not meetings:
                dry += 1
                if dry >= options.dry_walks:
                    return surface, Verdict.NO_MEETING
                continue
            larger, far = self.cross(surface, meetings[0], look_far)
            if larger is None:
                failures += 1
                if failures > 1 + successes / 3:
                    return surface, Verdict.LOST
                continue
            successes, dry = successes + 1, 0
            seen, missed = seen + (far is True), missed + (far is False)
            if missed > 1 + seen / 2:
                return surface, Verdict.BENT
            surface = larger
            if kinks:
                surface, _ = sight.absorb(surface, kinks)
            if successes > options.most_crossings:
                return surface, Verdict.LOST
        return surface, Verdict.COMPLETE

    # -- walking ------------------------------------------------------------------------------------------

    def zeros(self, known: LiftedLayers, alpha: Array, around: Array) -> Array:
        """Return zeros (k, d) of alpha . phi, by Newton's method from near and far of points (n, d)."""
        options, (count, inputs) = self._options, around.shape
        spreads = np.array(options.start_spreads)[np.arange(count) % len(options.start_spreads)]
        far = np.maximum(1.0, np.linalg.norm(around, axis=1) / np.sqrt(inputs) / options.far)
        points = np.where((np.arange(count) % 3 == 2)[:, None], 0.0, around)
        points = points + (far * spreads)[:, None] * self._rng.standard_normal((count, inputs))
        for step in range(options.newton_steps + 1):
            phi, heights = known.forward(points)
            gradients = alpha @ known.jacobians(np.where(heights >= 0, 1.0, -1.0))
            values, squares = phi @ alpha, np.maximum((gradients**2).sum(axis=1), 1e-24)
            if step == options.newton_steps:
                break
            points = points - (values / squares)[:, None] * gradients
            points = np.where((np.abs(points).max(axis=1) < options.farthest)[:, None], points, 0.0)
        allowed = options.newton_error * (1 + np.abs(points).max(axis=1)) * np.sqrt(squares)
        return np.asarray(points[np.abs(values) <= allowed])

    def determined_zeros(self, surface: Surface, count: int) -> list[Place]:
        """Return places on the determined part of a surface, near and far."""
        chosen = self._rng.integers(len(surface.places), size=count)
        around = np.stack([surface.places[index].point for index in chosen])
        found = []
        for point in self.zeros(surface.known, surface.representative, around):
            pattern = surface.known.pattern(point)
            if surface.normal(pattern) is not None and surface.holds(point):
                found.append(Place(point, pattern))
        return found

    def meetings(self, surface: Surface, preferred: IntArray | None = None) -> list[Meeting]:
        """Find known surfaces behind which the surface is open, the most useful meeting first."""
        options = self._options
        order = self._rng.permutation(len(surface.places))[: options.old_places]
        starts = [surface.places[index] for index in order]
        found: list[Meeting] = []
        for more in (False, True):
            if more:
                starts = self.determined_zeros(surface, options.starts)
            for place in starts:
                check()
                self._walk(surface, place, preferred, found)
                if len(found) >= options.wanted:
                    break
            if found:
                break
        return sorted(found, key=lambda meeting: -meeting.usefulness)

    def _walk(self, surface: Surface, place: Place, preferred: IntArray | None, found: list[Meeting]) -> None:
        """Walk on the surface from a place; add the meetings on the way."""
        options, known = self._options, surface.known
        point, pattern = place.point, place.pattern
        for _ in range(options.hops):
            normal = surface.normal(pattern)
            if normal is None:
                return
            directions = self._directions(known, point, pattern, normal, preferred)
            longest = options.longest_way * max(1.0, float(np.abs(point).max()) / options.far)
            distances, units = known.first_crossings(point, directions, pattern)
            hop = None
            for direction, distance, unit in zip(directions, distances, units.tolist(), strict=True):
                if distance > longest:
                    continue
                meeting, behind = point + distance * direction, pattern.copy()
                behind[unit] = -pattern[unit]
                if surface.normal(behind) is not None:
                    hop = meeting, behind, direction, unit
                    continue
                room = min(known.room(meeting, pattern, unit), known.room(meeting, behind, unit))
                if room > options.least_room:
                    useful = min(room, options.longest) / (1 + float(np.abs(meeting).max()))
                    useful *= options.preferred if preferred is not None and unit in preferred else 1.0
                    found.append(Meeting(meeting, unit, behind, normal, room, useful))
            if hop is None or len(found) >= options.wanted:
                return
            meeting, behind, direction, unit = hop
            turned = surface.normal(behind)
            assert turned is not None
            direction = direction - turned * (direction @ turned)
            length = float(np.linalg.norm(direction))
            if length < 1e-6 or known.jacobian(behind)[1][unit] @ direction * behind[unit] <= 0:
                return  # the walk would leave the surface, or turn back
            direction = direction / length
            limit = known.first_crossing(meeting, direction, behind, unit).distance
            point = meeting + min(0.5 * limit, max(1.0, longest / options.longest_way)) * direction
            pattern = known.pattern(point)
            if (pattern != behind).any():
                return

    def _directions(
        self, known: LiftedLayers, point: Array, pattern: Array, normal: Array, preferred: IntArray | None
    ) -> Array:
        """Return directions (k, d) along the surface: towards preferred units, and at random."""
        ways = [*self._rng.standard_normal((2, known.n_inputs))]
        if preferred is not None and len(preferred):
            heights = known.preactivations(point[None])[0]
            chosen = self._rng.permutation(preferred)[:3]
            gradients = known.jacobian(pattern)[1]
            ways += [-np.sign(heights[unit]) * gradients[unit] for unit in chosen]
        directions = np.stack(ways)
        directions -= np.outer(directions @ normal, normal)
        lengths = np.linalg.norm(directions, axis=1)
        keep = lengths > 1e-9
        return np.asarray(directions[keep] / lengths[keep, None])

    # -- crossing -----------------------------------------------------------------------------------------

    def cross(
        self, surface: Surface, meeting: Meeting, look_far: bool = True
    ) -> tuple[Surface | None, bool | None]:
        """Add points from behind a meeting; say whether the facet is seen far behind, None if unknown."""
        options, known, behind = self._options, surface.known, meeting.behind
        across = known.jacobian(behind)[1][meeting.unit] * behind[meeting.unit]  # into the new region
        across = across / np.linalg.norm(across)
        along = meeting.normal - across * (meeting.normal @ across)
        if np.linalg.norm(along) < options.least_angle:
            return None, None
        along /= np.linalg.norm(along)
        for share, width in options.heights:
            height = share * min(meeting.room, options.longest)
            start = meeting.point + height * across
            limits, _ = known.first_crossings(start, np.stack([-along, along]), behind, meeting.unit)
            low, high = np.minimum(width * height, 0.98 * limits) * [-1, 1]  # not up to the next surface
            if high - low < 1e-6:
                continue
            kinks, _ = self._probe.kinks_near(start, along, float(low), float(high))
            for t in sorted(kinks, key=abs)[: options.hypotheses]:
                point = start + t * along
                second = self._second_point(known, meeting, point, across, height)
                if second is None:
                    continue
                larger = surface.with_point(point, behind).with_point(second, behind)
                normal = larger.normal(behind)
                # Two points must have told one unknown, and the surface must be known where they are.
                if larger.rank != surface.rank + 1 or normal is None:
                    return None, None
                far = self._is_far(known, second, behind, normal, height) if look_far else None
                return larger, far
        return None, None

    def _second_point(
        self, known: LiftedLayers, meeting: Meeting, point: Array, across: Array, height: float
    ) -> Array | None:
        """Find another point of the facet through the meeting and ``point``; None if there is no kink."""
        options = self._options
        step = point - meeting.point
        normal = meeting.normal - (meeting.normal @ step) / (across @ step) * across
        normal /= np.linalg.norm(normal)
        for number in range(options.tries):
            upwards = across - normal * (normal @ across)
            upwards *= (1.2 if 2 * number < options.tries else 0.4) / np.linalg.norm(upwards)
            aside = self._rng.standard_normal(len(point))
            aside -= normal * (normal @ aside)
            second = point + height * (upwards + 0.3 * aside / np.linalg.norm(aside))
            if (known.pattern(second) == meeting.behind).all():
                break
        else:
            return None
        window = options.window * height
        kinks, told_apart = self._probe.kinks_near(second, normal, -window, window)
        if not told_apart or len(kinks) != 1 or abs(kinks[0]) > options.drift * height:
            return None
        return np.asarray(second + kinks[0] * normal)

    def _is_far(
        self, known: LiftedLayers, point: Array, pattern: Array, normal: Array, height: float
    ) -> bool | None:
        """Return whether a facet is still there as far away as known surfaces allow; None if unknown."""
        way, length = self._long_way(known, point, pattern, normal, 4)
        if length <= 2 * height:
            return None
        step = np.array([self._options.look_step * length])
        sighting = self._probe.have_kinks((point + length * way)[None], normal[None], step)
        return None if sighting.dull[0] else bool(sighting.seen[0])

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

    # -- flatness -----------------------------------------------------------------------------------------

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
            check()
            gradients, heights = first.stages[0].matrix[:, :-1], first.preactivations(kink.point[None])[0]
            ways = self._rng.standard_normal((options.plane_looks, len(kink.point)))
            ways -= np.outer(ways @ kink.normal, kink.normal)
            ways /= np.linalg.norm(ways, axis=1, keepdims=True)
            crossings = -heights[: len(gradients)] / (ways @ gradients.T)
            crossings = np.sort(np.where(crossings > 0, crossings, np.inf), axis=1)
            crossings = np.pad(crossings, ((0, 0), (0, 1)), constant_values=np.inf)  # one unit has no next
            near, far = crossings[:, 0], np.minimum(crossings[:, 1], 2 * crossings[:, 0])
            usable = np.isfinite(near) & (far - near > options.least_room)
            lengths = ((near + far) / 2)[usable]
            steps = options.look_step * (far - near)[usable]
            points = kink.point + lengths[:, None] * ways[usable]
            sightings = self._probe.have_kinks(points, np.repeat(kink.normal[None], len(points), 0), steps)
            seen, missed = int(sightings.seen.sum()), int(sightings.missed.sum())
            found[number] = seen >= options.plane_seen and seen >= 2 * missed
        return found

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
