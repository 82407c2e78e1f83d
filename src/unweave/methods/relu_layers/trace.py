"""Follow the surface of one unknown unit behind known layers until nothing of it is open.

Walks stay on the part of the surface that is determined: from where it was seen, and from zeros of what is
known of the unit (Newton's method), along the surface and over crossings behind which it is determined as
well, to a known unit behind which it is open. There one more equation is measured (`crossing`). A look as far
behind as known surfaces allow tells a unit of the next layer from a deeper one, whose surface bends at units
that are not known yet (`flatness`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.methods.shared.surfaces.crossing import Crossed, CrossingOptions, Meeting, cross
from unweave.methods.shared.surfaces.flatness import Flatness, FlatnessOptions
from unweave.methods.shared.surfaces.lifted import LiftedLayers
from unweave.methods.shared.surfaces.probe import Probe
from unweave.methods.shared.surfaces.sight import Sight
from unweave.methods.shared.surfaces.surface import Place, Surface
from unweave.methods.shared.surfaces.walk import WalkOptions, is_determined, meetings_from
from unweave.numerics.clock import check


@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """Where surfaces are crossed, and when one is given up."""

    crossing: CrossingOptions = field(default_factory=CrossingOptions)
    walk: WalkOptions = field(default_factory=WalkOptions)
    flatness: FlatnessOptions = field(default_factory=FlatnessOptions)
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
    old_places: int = 24
    """Places where the surface was seen that walks start from."""
    preferred: float = 3.0
    """Factor on the usefulness of meetings with units that are wanted most."""
    as_good: float = 0.3
    """Room of a meeting, relative to that of the last one, at which it is crossed without another search."""
    dry_walks: int = 3
    """Searches without a meeting after which what is open stays open."""
    most_crossings: int = 400
    """Crossings after which a surface is given up."""


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


class Tracer:
    """Follows surfaces."""

    def __init__(self, probe: Probe, rng: np.random.Generator, options: TraceOptions) -> None:
        self._probe, self._rng, self._options = probe, rng, options
        self.flatness = Flatness(probe, rng, options.flatness)

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
            surface, _, kinks = sight.absorb_possible(surface, kinks)
        failures = successes = seen = missed = dry = 0
        meetings: list[Meeting] = []
        while surface.open:
            check()
            if stop is not None and stop(surface):
                return surface, Verdict.STOPPED
            # Meetings that were found beside the best one serve as well, as long as it is open behind them.
            least = options.as_good * meetings[0].room if meetings else 0.0
            meetings = [
                meeting
                for meeting in meetings[1:]
                if meeting.room >= least and surface.normal(meeting.behind) is None
            ]
            if not meetings:
                meetings = self.meetings(surface, None if prefer is None else prefer(surface))
            if not meetings:
                dry += 1
                if dry >= options.dry_walks:
                    return surface, Verdict.NO_MEETING
                continue
            crossed = cross(self._probe, surface, meetings[0], self._rng, options.crossing)
            if crossed is None:
                failures, meetings = failures + 1, []
                if failures > 1 + successes / 3:
                    return surface, Verdict.LOST
                continue
            successes, dry = successes + 1, 0
            far = self._is_far(crossed, meetings[0]) if look_far else None
            seen, missed = seen + (far is True), missed + (far is False)
            if missed > 1 + seen / 2:
                return surface, Verdict.BENT
            surface = crossed.surface
            if kinks:
                surface, _, kinks = sight.absorb_possible(surface, kinks)
            if successes > options.most_crossings:
                return surface, Verdict.LOST
        return surface, Verdict.COMPLETE

    def _is_far(self, crossed: Crossed, meeting: Meeting) -> bool | None:
        """Return whether the facet behind a meeting is still there far away; None if unknown."""
        known, least = crossed.surface.known, 2 * crossed.height
        return self.flatness.is_far(known, crossed.point, meeting.behind, crossed.normal, least)

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
            gradients = known.gradients(np.where(heights >= 0, 1.0, -1.0), alpha)
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
        points = self.zeros(surface.known, surface.representative, around)
        if len(points):
            points = points[surface.hold(points) & is_determined(surface, points, self._options.walk)]
        return [Place(point, surface.known.pattern(point)) for point in points]

    def meetings(self, surface: Surface, preferred: IntArray | None = None) -> list[Meeting]:
        """Find known surfaces behind which the surface is open, the most useful meeting first."""
        options = self._options
        order = self._rng.permutation(len(surface.places))[: options.old_places]
        starts = [surface.places[index] for index in order]
        found: list[Meeting] = []
        for more in (False, True):
            if more:
                starts = self.determined_zeros(surface, options.starts)
            if starts:
                points = np.stack([place.point for place in starts])
                found = meetings_from(surface, points, preferred, self._rng, options.walk)
            if found:
                break
        favoured = set() if preferred is None else set(preferred.tolist())

        def usefulness(meeting: Meeting) -> float:
            factor = options.preferred if meeting.unit in favoured else 1.0
            return factor * meeting.usefulness(options.crossing.longest)

        return sorted(found, key=usefulness, reverse=True)
