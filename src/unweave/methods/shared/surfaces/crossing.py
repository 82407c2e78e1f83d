"""Find one more equation for a unit, where its surface crosses that of a known unit.

In a region where alpha is determined the surface is known without asking, so the places xc where it meets
the surface of a known unit are too. With the surface's normal n before the meeting and the normal nu of the
known unit, the normal behind is n + tau nu with one unknown tau. All kinks of the line

    xc + o nu + t m,        m in span(n, nu), orthogonal to nu,

are possible points of it, whatever tau is; the right one is told by a kink at a second point of the facet
that it predicts. Both are measured: their difference holds tau however far the known part has drifted from
the truth. Cost: about 10 rows for the line and 6 for the second point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.surfaces.lifted import LiftedLayers
from unweave.methods.shared.surfaces.probe import Probe
from unweave.methods.shared.surfaces.surface import Surface


@dataclass(frozen=True, kw_only=True)
class CrossingOptions:
    """What counts as a place to cross at, and as having found the other side."""

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


DEFAULT_CROSSING_OPTIONS = CrossingOptions()


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

    def usefulness(self, longest: float) -> float:
        """Return by what meetings are compared: much room, near the origin."""
        return min(self.room, longest) / (1 + float(np.abs(self.point).max()))


@dataclass(frozen=True, eq=False)
class Crossed:
    """A surface with what was seen of it behind a meeting."""

    surface: Surface
    point: Array
    """(d,) of the surface there"""
    normal: Array
    """(d,) there"""
    height: float
    """o"""


def meeting_at(
    surface: Surface, point: Array, before: Array, unit: int, options: CrossingOptions
) -> Meeting | None:
    """Return the meeting with a unit at a point, seen from the pattern ``before`` it.

    Return None if the surface is not known there, not open behind, or other surfaces are too near.
    """
    known, behind = surface.known, before.copy()
    behind[unit] = -before[unit]
    normal = surface.normal(before)
    if normal is None or surface.normal(behind) is not None:
        return None
    room = min(known.room(point, before, unit), known.room(point, behind, unit))
    return Meeting(point, unit, behind, normal, room) if room > options.least_room else None


def cross(
    probe: Probe,
    surface: Surface,
    meeting: Meeting,
    rng: np.random.Generator,
    options: CrossingOptions = DEFAULT_CROSSING_OPTIONS,
) -> Crossed | None:
    """Add points from behind the meeting to the surface; return None if it was not seen there."""
    known, behind = surface.known, meeting.behind
    across = known.jacobian(behind)[1][meeting.unit] * behind[meeting.unit]  # into the new region
    across = across / np.linalg.norm(across)
    along = meeting.normal - across * (meeting.normal @ across)
    if np.linalg.norm(along) < options.least_angle:
        return None
    along /= np.linalg.norm(along)
    for share, width in options.heights:
        height = share * min(meeting.room, options.longest)
        start = meeting.point + height * across
        limits, _ = known.first_crossings(start, np.stack([-along, along]), behind, meeting.unit)
        low, high = np.minimum(width * height, 0.98 * limits) * [-1, 1]  # not up to the next surface
        if high - low < 1e-6:
            continue
        kinks, _ = probe.kinks_near(start, along, float(low), float(high))
        for t in sorted(kinks, key=abs)[: options.hypotheses]:
            point = start + t * along
            second = _second_point(probe, known, meeting, point, across, height, rng, options)
            if second is None:
                continue
            larger = surface.with_point(point, behind).with_point(second, behind)
            normal = larger.normal(behind)
            # Two points must have told one unknown, and the surface must be known where they are.
            if larger.rank != surface.rank + 1 or normal is None:
                return None
            return Crossed(larger, second, normal, height)
    return None


def _second_point(
    probe: Probe,
    known: LiftedLayers,
    meeting: Meeting,
    point: Array,
    across: Array,
    height: float,
    rng: np.random.Generator,
    options: CrossingOptions,
) -> Array | None:
    """Find another point of the facet through the meeting and ``point``; None if there is no kink."""
    step = point - meeting.point
    normal = meeting.normal - (meeting.normal @ step) / (across @ step) * across
    normal /= np.linalg.norm(normal)
    for number in range(options.tries):
        upwards = across - normal * (normal @ across)
        upwards *= (1.2 if 2 * number < options.tries else 0.4) / np.linalg.norm(upwards)
        aside = rng.standard_normal(len(point))
        aside -= normal * (normal @ aside)
        second = point + height * (upwards + 0.3 * aside / np.linalg.norm(aside))
        if (known.pattern(second) == meeting.behind).all():
            break
    else:
        return None
    window = options.window * height
    kinks, told_apart = probe.kinks_near(second, normal, -window, window)
    if not told_apart or len(kinks) != 1 or abs(kinks[0]) > options.drift * height:
        return None
    return np.asarray(second + kinks[0] * normal)
