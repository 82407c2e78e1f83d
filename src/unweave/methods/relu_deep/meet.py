"""Find where the known part of a surface meets that of a known unit, without asking.

Newton's method on z_i(x) = 0 and alpha . phi(x) = 0 from many starts at once, unit i taken to be on the side
where the surface was seen nearest to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.surfaces.crossing import CrossingOptions, Meeting, meeting_at
from unweave.methods.shared.surfaces.lifted import LiftedLayers
from unweave.methods.shared.surfaces.surface import Surface
from unweave.numerics.clock import check


@dataclass(frozen=True, kw_only=True)
class MeetingOptions:
    """Where meetings are looked for."""

    crossing: CrossingOptions = field(default_factory=CrossingOptions)
    starts: int = 40
    """Starts of Newton's method per known unit."""
    spreads: tuple[float, ...] = (0.0, 0.3, 1.0, 3.0, 10.0)
    """Standard deviations of the starts around what is known of the surface, in turn."""
    newton_steps: int = 15
    """Steps after which a start is given up."""
    converged: float = 1e-12
    """Distance to both surfaces, relative to 1 + |x|, at which they meet."""
    least_angle: float = 1e-8
    """Sine of the angle between both surfaces below which they do not meet."""
    farthest: float = 200.0
    """Distance from the origin, over sqrt(d), beyond which a place is of no use."""
    wanted: int = 3
    """Places of which the best is taken."""


DEFAULT_MEETING_OPTIONS = MeetingOptions()


def find_meeting(
    surface: Surface, unit: int, rng: np.random.Generator, options: MeetingOptions = DEFAULT_MEETING_OPTIONS
) -> Meeting | None:
    """Find the best of a few places where the known part of the surface meets a unit; ask nothing."""
    check()
    known, seen = surface.known, np.stack([place.point for place in surface.places])
    nearest = np.argsort(np.abs(known.preactivations(seen)[:, unit]))
    side = float(surface.places[nearest[0]].pattern[unit])
    rounds, turns = np.divmod(np.arange(options.starts), len(options.spreads))
    starts = seen[nearest[rounds % len(nearest)]]
    starts[2::3] = 0.0
    starts += np.array(options.spreads)[turns][:, None] * rng.standard_normal(starts.shape)
    points = common_zeros(known, surface.representative, unit, side, starts, options)
    found: list[Meeting] = []
    for point in points[surface.hold(points)]:
        before = known.pattern(point)
        before[unit] = side
        meeting = meeting_at(surface, point, before, unit, options.crossing)
        if meeting is not None:
            found.append(meeting)
        if len(found) >= options.wanted:
            break
    longest = options.crossing.longest
    return max(found, key=lambda meeting: meeting.usefulness(longest), default=None)


def common_zeros(
    known: LiftedLayers, alpha: Array, unit: int, side: float, points: Array, options: MeetingOptions
) -> Array:
    """Return the common zeros (k, d) of a unit, taken to be on ``side``, and of alpha . phi from starts."""
    number, found = np.arange(len(points)), []
    farthest = options.farthest * np.sqrt(points.shape[1])
    for _ in range(options.newton_steps):
        phi, heights = known.forward(points)
        patterns = np.where(heights >= 0, 1.0, -1.0)
        patterns[:, unit] = side
        pairs = np.stack([known.unit_gradients(patterns, unit), known.gradients(patterns, alpha)], axis=1)
        lengths = np.linalg.norm(pairs, axis=2)
        pairs = pairs / np.where(lengths > 0, lengths, 1.0)[:, :, None]
        away = np.stack([heights[:, unit], phi @ alpha], axis=1) / np.where(lengths > 0, lengths, 1.0)
        size = 1 + np.abs(points).max(axis=1)
        there = (np.abs(away).max(axis=1) <= options.converged * size) & (lengths > 0).all(axis=1)
        found += list(zip(number[there], points[there], strict=True))
        cosine = np.einsum("nd,nd->n", pairs[:, 0], pairs[:, 1])
        square = 1 - cosine**2
        going = ~there & (lengths > 0).all(axis=1) & (square > options.least_angle**2)
        steps = (away - cosine[:, None] * away[:, ::-1]) / np.where(going, square, 1.0)[:, None]
        points = points - np.einsum("nk,nkd->nd", steps, pairs)
        going &= np.linalg.norm(points, axis=1) < farthest
        if not going.any():
            break
        points, number = points[going], number[going]
    found.sort(key=lambda pair: int(pair[0]))
    return np.stack([point for _, point in found]) if found else points[:0]
