"""Find one more equation for a unit, where its surface crosses that of a known unit.

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
from unweave.methods.relu_deep.probe import Probe
from unweave.methods.relu_deep.surface import Surface
from unweave.networks.lifted_layers import LiftedLayers
from unweave.numerics.clock import check


@dataclass(frozen=True, kw_only=True)
class CrossingOptions:
    """Where surfaces are crossed, and what counts as having found the other side."""

    starts: int = 40
    """Starts of Newton's method per known unit."""
    spreads: tuple[float, ...] = (0.0, 0.3, 1.0, 3.0, 10.0)
    """Standard deviations of the starts around what is known of the surface, in turn."""
    newton_steps: int = 15
    """Steps after which a start is given up."""
    converged: float = 1e-12
    """Distance to both surfaces, relative to 1 + |x|, at which they meet."""
    farthest: float = 200.0
    """Distance from the origin, over sqrt(d), beyond which a place is of no use."""
    wanted: int = 3
    """Places of which the best is taken."""
    least_room: float = 1e-3
    """Room to other known surfaces that a place needs, in normalised inputs."""
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
    before: Array
    """Pattern on the side where the surface is known."""
    behind: Array
    """Pattern on the other side."""
    normal: Array
    """(d,) of the surface, before."""
    room: float


def find_meeting(
    surface: Surface, unit: int, rng: np.random.Generator, options: CrossingOptions = DEFAULT_CROSSING_OPTIONS
) -> Meeting | None:
    """Find the best of a few places where the known part of the surface meets a unit; ask nothing."""
    known = surface.known
    alpha = surface.representative
    heights = known.preactivations(np.stack([place.point for place in surface.places]))[:, unit]
    nearest = np.argsort(np.abs(heights))
    side = float(surface.places[nearest[0]].pattern[unit])
    found: list[Meeting] = []
    for number in range(options.starts):
        check()
        rounds, turn = divmod(number, len(options.spreads))
        origin = surface.places[nearest[rounds % len(nearest)]].point
        if number % 3 == 2:
            origin = np.zeros_like(origin)
        start = origin + options.spreads[turn] * rng.standard_normal(len(origin))
        point = _newton(known, alpha, unit, side, start, options)
        meeting = None if point is None else _as_meeting(surface, unit, side, point, options.least_room)
        if meeting is not None:
            found.append(meeting)
        if len(found) >= options.wanted:
            break

    def usefulness(meeting: Meeting) -> float:
        return min(meeting.room, options.longest) / (1 + float(np.abs(meeting.point).max()))

    return max(found, key=usefulness, default=None)


def _newton(
    known: LiftedLayers, alpha: Array, unit: int, side: float, point: Array, options: CrossingOptions
) -> Array | None:
    """Find a common zero of a known unit, taken to be on ``side``, and of alpha . phi."""
    for _ in range(options.newton_steps):
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
        if distance <= options.converged * (1 + float(np.abs(point).max())):
            return point
        point = point - np.linalg.lstsq(system / lengths[:, None], values / lengths, rcond=1e-10)[0]
        if not np.linalg.norm(point) < options.farthest * np.sqrt(len(point)):
            return None
    return None


def _as_meeting(surface: Surface, unit: int, side: float, point: Array, least_room: float) -> Meeting | None:
    """Return the place, if the surface is known before it and open behind it."""
    known = surface.known
    before = known.pattern(point)
    before[unit] = side
    behind = before.copy()
    behind[unit] = -side
    normal = surface.normal(before)
    if normal is None or surface.normal(behind) is not None or not surface.holds(point):
        return None
    room = min(known.room(point, before, unit), known.room(point, behind, unit))
    return Meeting(point, unit, before, behind, normal, room) if room > least_room else None


def cross(
    probe: Probe,
    surface: Surface,
    meeting: Meeting,
    rng: np.random.Generator,
    options: CrossingOptions = DEFAULT_CROSSING_OPTIONS,
) -> Surface | None:
    """Add points from behind the meeting to the surface; return None if it was not seen there."""
    known, behind = surface.known, meeting.behind
    across = known.jacobian(behind)[1][meeting.unit] * behind[meeting.unit]  # into the new region
    across /= np.linalg.norm(across)
    along = meeting.normal - across * (meeting.normal @ across)
    if np.linalg.norm(along) < options.least_angle:
        return None
    along /= np.linalg.norm(along)
    for share, width in options.heights:
        height = share * min(meeting.room, options.longest)
        start = meeting.point + height * across
        ends = []
        for sign in (-1.0, 1.0):
            limit = known.first_crossing(start, sign * along, behind, skip=meeting.unit).distance
            ends.append(sign * min(width * height, 0.98 * limit))  # not up to the next known surface
        kinks, _ = probe.kinks_near(start, along, *ends)
        for t in sorted(kinks, key=abs)[: options.hypotheses]:
            point = start + t * along
            second = _second_point(probe, known, meeting, point, across, height, rng, options)
            if second is not None:
                grown = surface.with_point(point, behind).with_point(second, behind)
                # Two points must have told one unknown, and the surface must be known where they are.
                told = grown.rank == surface.rank + 1 and grown.normal(behind) is not None
                return grown if told else None
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
