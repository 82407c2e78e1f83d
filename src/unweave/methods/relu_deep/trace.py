"""Find a unit of the next layer as a whole, from one of its kinks.

1. other kinks that were seen and fit are its own (`Surface.with_kink`), at no cost;
2. where its surface crosses that of a known unit beyond which it is open, one more point is measured
   (`cross`); after each, kinks are looked through again;
3. what a surface that never crosses unit i leaves open is what the unit reads of i: it is chosen such that
   the unit does not change its sign beyond, and noted as *unread*;
4. the lines that were searched must show a kink wherever the unit crosses them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_deep.meet import MeetingOptions, find_meeting
from unweave.methods.shared.surfaces.crossing import Meeting, cross
from unweave.methods.shared.surfaces.lifted import LiftedLayers
from unweave.methods.shared.surfaces.probe import Probe
from unweave.methods.shared.surfaces.sight import Sight
from unweave.methods.shared.surfaces.surface import Surface
from unweave.methods.shared.surfaces.walk import WalkOptions, meetings_from
from unweave.numerics.clock import check


@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """When a surface is given up, and what its unit must explain."""

    meeting: MeetingOptions = field(default_factory=MeetingOptions)
    walk: WalkOptions = field(default_factory=WalkOptions)
    walkers: int = 24
    """Places where the surface was seen that walks start from."""
    failures: int = 6
    """Crossings that failed, more than succeeded, after which a surface is given up."""
    least_confirmed: float = 0.8
    """Share of the crossings with lines that must be kinks."""
    beyond: float = 4.0
    """How clearly a unit keeps its sign where it was never seen, in units of its gradient."""
    side_points: int = 30
    """Points of a surface that never crosses a unit at which the sign beyond is taken."""


DEFAULT_TRACE_OPTIONS = TraceOptions()


@dataclass(frozen=True, eq=False)
class Unit:
    """alpha of a unit of the next layer, up to a factor."""

    alpha: Array
    """(F,), with a gradient of length one where it was first seen"""
    unread: tuple[int, ...]
    """Units of the last known layer that the surface never crosses: alpha is open there."""
    confirmed: int
    """Kinks on lines that it explains."""
    denied: int
    """Crossings with lines where there is no kink."""


def trace(
    probe: Probe,
    surface: Surface,
    sight: Sight,
    kinks: list[int],
    rng: np.random.Generator,
    options: TraceOptions = DEFAULT_TRACE_OPTIONS,
) -> Unit | None:
    """Find the unit behind a surface; return None if it cannot be followed or the lines deny it.

    ``kinks`` of the pool that fit are the surface's own.
    """
    surface, _, kinks = sight.absorb_possible(surface, kinks)
    tried: set[int] = set()
    failures = successes = 0
    walks: list[Meeting] = []
    while surface.open:
        check()
        # Meetings that were found beside the best one serve as well, as long as it is open behind them.
        walks = [meeting for meeting in walks[1:] if surface.normal(meeting.behind) is None]
        walks = walks or _by_walks(surface, rng, options)
        meeting = walks[0] if walks else None
        targets = [unit for unit in _targets(surface) if unit not in tried]
        for unit in rng.permutation(targets) if meeting is None else ():
            meeting = find_meeting(surface, int(unit), rng, options.meeting)
            if meeting is not None:
                break
            tried.add(int(unit))
        if meeting is None:
            break
        crossed = cross(probe, surface, meeting, rng, options.meeting.crossing)
        if crossed is None:
            failures += 1
            if failures > max(options.failures, successes):
                return None
            continue
        successes += 1
        tried.clear()
        surface, _, kinks = sight.absorb_possible(crossed.surface, kinks)
    return _finished(surface, sight, options)


def _by_walks(surface: Surface, rng: np.random.Generator, options: TraceOptions) -> list[Meeting]:
    """Return meetings that walks from where the surface was seen lead to."""
    order = rng.permutation(len(surface.places))[: options.walkers]
    points = np.stack([surface.places[index].point for index in order])
    return meetings_from(surface, points, surface.open_units, rng, options.walk)


def _targets(surface: Surface) -> list[int]:
    """Return the units of the last known layer behind whose surface alpha may be open."""
    never_crossed = _never_crossed(surface)
    if len(never_crossed) == surface.open:
        return never_crossed
    # More units act here than there are inputs: to lose any of them tells something, too.
    return list(range(surface.known.n_units)[surface.known.top])


def _never_crossed(surface: Surface) -> list[int]:
    """Return the units that the surface was seen on one side of, so that alpha is open on the other."""
    known, pattern = surface.known, surface.places[0].pattern
    vectors = [
        (unit, vanishing(known, unit, float(pattern[unit]))) for unit in range(known.n_units)[known.top]
    ]
    return [unit for unit, vector in vectors if vector is not None and surface.is_free(vector)]


def vanishing(known: LiftedLayers, unit: int, side: float) -> Array | None:
    """Return the vector (F,) whose product with phi is zero where the unit is on ``side``, and only there."""
    index = unit - known.top.start
    vector = np.zeros(known.dimension)
    vector[index] = 1.0
    last = known.stages[-1]
    if last.signed:
        return vector if side < 0 and known.slope == 0 else None
    vector[last.width :] -= side * last.matrix[index]
    return vector


def _finished(surface: Surface, sight: Sight, options: TraceOptions) -> Unit | None:
    known, unread = surface.known, tuple(_never_crossed(surface)) if surface.open else ()
    if surface.open != len(unread):
        return None
    alpha = surface.representative
    first = surface.places[0]
    alpha = alpha / np.linalg.norm(alpha @ known.jacobian(first.pattern)[0])
    for unit in unread:
        side = float(first.pattern[unit])
        vector = vanishing(known, unit, side)
        assert vector is not None
        size = np.linalg.norm(known.jacobian(first.pattern)[1][unit])
        alpha = alpha - vector * (vector @ alpha) / (vector @ vector)
        sign = _sign_beyond(surface, alpha, unit, options.side_points)
        alpha = alpha + sign * options.beyond / size * vector
    counts, seen = sight.verified(alpha)
    if counts.confirmed == 0 or counts.share < options.least_confirmed:
        return None
    if not unread:
        fitted = surface.fitted(np.vstack([first.point, seen])).null[:, 0]
        alpha = fitted / np.linalg.norm(fitted @ known.jacobian(first.pattern)[0])
    return Unit(alpha, unread, counts.confirmed, counts.denied)


def _sign_beyond(surface: Surface, alpha: Array, unit: int, side_points: int) -> float:
    """Return the sign of alpha . phi on the surface of a known unit that it is never zero on."""
    known, points = surface.known, []
    for place in surface.places[:side_points]:
        heights = known.preactivations(place.point[None])[0]
        gradient = known.jacobian(place.pattern)[1][unit]
        points.append(place.point - heights[unit] * gradient / (gradient @ gradient))
    return 1.0 if np.median(known.values(np.stack(points)) @ alpha) >= 0 else -1.0
