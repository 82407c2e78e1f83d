"""One more equation for a unit, where its surface crosses that of a known unit.

In a region where alpha is determined the surface is known without asking, so the places xc where it meets
the surface of a known unit i are too: Newton's method on z_i(x) = 0, alpha . phi(x) = 0. Behind, its normal
is n + tau nu, with the normal nu of unit i and one unknown tau. All kinks of the line

    xc + o nu + t m,        m in span(n, nu), orthogonal to nu,

are possible points of it, whatever tau is; the right one is told by a kink at a second point of the facet
that it predicts. Both are measured: their difference holds tau however far the known part has drifted from
the truth. Cost: about 10 rows for the line and 6 for the second point.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_deep.lifted import LiftedLayers
from unweave.methods.relu_deep.probing import Probe
from unweave.methods.relu_deep.surface import Surface

_NEWTON_STEPS = 15
_STARTS = 40
_SPREADS = (0.0, 0.3, 1.0, 3.0, 10.0)
_CONVERGED = 1e-12  # distance to both surfaces, relative to 1 + |x|
_FARTHEST = 200.0  # typical radii: places beyond are of no use
_WANTED = 3  # places that the best is taken from
_LEAST_ROOM = 1e-3
_LONGEST = 0.5
_HEIGHTS = ((0.3, 3.0), (0.06, 8.0), (0.01, 30.0))  # o in units of the room, half the line in units of o
_INSIDE = 0.98  # share of the way to the next known surface that a line may take
_LEAST_ANGLE = 1e-3  # sine between the two normals
_MOST_HYPOTHESES = 5
_TRIES = 8  # for a second point inside the region
_WINDOW = 0.02  # of the height, across the predicted facet: where the second point is looked for
_DRIFT = 2e-3  # of the height: by how much it may be off


@dataclass(frozen=True, eq=False)
class Meeting:
    """Where a surface meets that of known unit ``unit``."""

    point: Array
    unit: int
    before: Array
    """Pattern on the side where the surface is known."""
    behind: Array
    """Pattern on the other side."""
    normal: Array
    """(d,) of the surface, before."""
    room: float


def find_meeting(surface: Surface, unit: int, rng: np.random.Generator) -> Meeting | None:
    """The best of a few places where the known part of the surface meets a unit; nothing is asked."""
    known = surface.known
    alpha = surface.representative
    heights = known.preactivations(np.stack([place.point for place in surface.places]))[:, unit]
    nearest = np.argsort(np.abs(heights))
    side = float(surface.places[nearest[0]].pattern[unit])
    found: list[Meeting] = []
    for number in range(_STARTS):
        spread = _SPREADS[number % len(_SPREADS)]
        origin = surface.places[nearest[(number // len(_SPREADS)) % len(nearest)]].point
        if number % 3 == 2:
            origin = np.zeros_like(origin)
        start = origin + spread * rng.standard_normal(len(origin))
        point = _newton(known, alpha, unit, side, start)
        meeting = None if point is None else _as_meeting(surface, unit, side, point)
        if meeting is not None:
            found.append(meeting)
        if len(found) >= _WANTED:
            break
    return max(found, key=_usefulness, default=None)


def _usefulness(meeting: Meeting) -> float:
    return min(meeting.room, _LONGEST) / (1 + float(np.abs(meeting.point).max()))


def _newton(known: LiftedLayers, alpha: Array, unit: int, side: float, point: Array) -> Array | None:
    """A common zero of a known unit and alpha . phi, the unit being taken to be on ``side``."""
    for _ in range(_NEWTON_STEPS):
        heights = known.preactivations(point[None])[0]
        pattern = np.where(heights >= 0, 1.0, -1.0)
        pattern[unit] = side
        jacobian, gradients = known.jacobian(pattern)
        system = np.stack([gradients[unit], alpha @ jacobian])
        values = np.array([heights[unit], known.values(point[None])[0] @ alpha])
        lengths = np.linalg.norm(system, axis=1)
        if not (lengths > 0).all():
            return None
        distance = float((np.abs(values) / lengths).max())
        if distance <= _CONVERGED * (1 + float(np.abs(point).max())):
            return point
        point = point - np.linalg.lstsq(system / lengths[:, None], values / lengths, rcond=1e-10)[0]
        if not np.linalg.norm(point) < _FARTHEST * np.sqrt(len(point)):
            return None
    return None


def _as_meeting(surface: Surface, unit: int, side: float, point: Array) -> Meeting | None:
    """The place, if the surface is known before it and open behind it."""
    known = surface.known
    before = known.pattern(point)
    before[unit] = side
    behind = before.copy()
    behind[unit] = -side
    normal = surface.normal(before)
    if normal is None or surface.normal(behind) is not None or not surface.holds(point):
        return None
    room = min(known.room(point, before, unit), known.room(point, behind, unit))
    return Meeting(point, unit, before, behind, normal, room) if room > _LEAST_ROOM else None


def cross(probe: Probe, surface: Surface, meeting: Meeting, rng: np.random.Generator) -> Surface | None:
    """The surface with a point from behind the meeting; None if it was not seen there."""
    known, behind = surface.known, meeting.behind
    across = known.jacobian(behind)[1][meeting.unit] * behind[meeting.unit]  # into the new region
    across /= np.linalg.norm(across)
    along = meeting.normal - across * (meeting.normal @ across)
    if np.linalg.norm(along) < _LEAST_ANGLE:
        return None
    along /= np.linalg.norm(along)
    for share, width in _HEIGHTS:
        height = share * min(meeting.room, _LONGEST)
        start = meeting.point + height * across
        ends = []
        for sign in (-1.0, 1.0):
            limit = known.first_crossing(start, sign * along, behind, skip=meeting.unit).distance
            ends.append(sign * min(width * height, _INSIDE * limit))
        kinks, _ = probe.kinks_near(start, along, *ends)
        for t in sorted(kinks, key=abs)[:_MOST_HYPOTHESES]:
            point = start + t * along
            second = _second_point(probe, known, meeting, point, across, height, rng)
            if second is not None:
                grown = surface.with_point(point, behind).with_point(second, behind)
                return _checked(grown, surface.rank, behind)
    return None


def _second_point(
    probe: Probe,
    known: LiftedLayers,
    meeting: Meeting,
    point: Array,
    across: Array,
    height: float,
    rng: np.random.Generator,
) -> Array | None:
    """Another point of the facet through the meeting and ``point``; None if there is no kink."""
    step = point - meeting.point
    normal = meeting.normal - (meeting.normal @ step) / (across @ step) * across
    normal /= np.linalg.norm(normal)
    for number in range(_TRIES):
        upwards = across - normal * (normal @ across)
        upwards *= (1.2 if 2 * number < _TRIES else 0.4) / np.linalg.norm(upwards)
        aside = rng.standard_normal(len(point))
        aside -= normal * (normal @ aside)
        second = point + height * (upwards + 0.3 * aside / np.linalg.norm(aside))
        if (known.pattern(second) == meeting.behind).all():
            break
    else:
        return None
    kinks, told_apart = probe.kinks_near(second, normal, -_WINDOW * height, _WINDOW * height)
    if not told_apart or len(kinks) != 1 or abs(kinks[0]) > _DRIFT * height:
        return None
    return np.asarray(second + kinks[0] * normal)


def _checked(surface: Surface, rank: int, behind: Array) -> Surface | None:
    """The surface, if two points have told one unknown and it is known now where they were found."""
    return surface if surface.rank == rank + 1 and surface.normal(behind) is not None else None
