"""Find a unit of the next layer as a whole, from one of its kinks.

1. other kinks that were seen and fit are its own (`Surface.with_kink`), at no cost;
2. where its surface crosses that of a known unit beyond which it is open, one more point is measured
   (`cross`); after each, kinks are looked through again;
3. what a surface that never crosses unit i leaves open is what the unit reads of i: it is chosen such that
   the unit does not change its sign beyond, and noted as *unread*;
4. the lines that were searched must show a kink wherever the unit crosses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_deep.cross import CrossingOptions, cross, find_meeting
from unweave.methods.relu_deep.probe import Kink, Probe, ScannedLine
from unweave.methods.relu_deep.surface import Surface
from unweave.networks.lifted_layers import LiftedLayers
from unweave.numerics.clock import check


@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """When a surface is given up, and what its unit must explain."""

    crossing: CrossingOptions = field(default_factory=CrossingOptions)
    failures: int = 6
    """Crossings that failed, more than succeeded, after which a surface is given up."""
    same_place: float = 1e-6
    """Distance between a predicted and a measured kink, relative to (1 + |t|) sqrt(d)."""
    least_confirmed: float = 0.8
    """Share of the crossings with lines that must be kinks."""
    flat_points: int = 6
    """Points that are tested for whether a surface is flat."""
    flat_seen: int = 4
    """Number of them that must show a kink."""
    flat_share: float = 0.9
    """Share of the way to the next known surface at which they are."""
    farthest_flat: float = 3.0
    """Their distance from the kink at most, in normalised inputs."""
    flat_step: float = 1e-3
    """Step across the surface, as a share of that distance."""
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
    pool: Sequence[Kink],
    lines: Sequence[ScannedLine],
    rng: np.random.Generator,
    options: TraceOptions = DEFAULT_TRACE_OPTIONS,
) -> Unit | None:
    """Find the unit behind a surface; return None if it cannot be followed or the lines deny it."""
    surface = _absorb(surface, pool)
    tried: set[int] = set()
    failures = successes = 0
    while surface.open:
        check()
        targets = [unit for unit in _targets(surface) if unit not in tried]
        if not targets:
            break
        meeting = None
        for unit in rng.permutation(targets):
            meeting = find_meeting(surface, int(unit), rng, options.crossing)
            if meeting is not None:
                break
            tried.add(int(unit))
        if meeting is None:
            break
        crossed = cross(probe, surface, meeting, rng, options.crossing)
        if crossed is None:
            failures += 1
            if failures > max(options.failures, successes):
                return None
            continue
        successes += 1
        tried.clear()
        surface = _absorb(crossed, pool)
    return _finished(surface, lines, options)


def is_flat(
    probe: Probe,
    known: LiftedLayers,
    kink: Kink,
    rng: np.random.Generator,
    options: TraceOptions = DEFAULT_TRACE_OPTIONS,
) -> bool:
    """Return whether the surface through a kink is flat as far as the known units go.

    That of a unit of the next layer is; that of a deeper one bends at surfaces that are not known yet.
    """
    pattern = known.pattern(kink.point)
    directions = rng.standard_normal((options.flat_points, known.n_inputs))
    directions -= np.outer(directions @ kink.normal, kink.normal)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    limits = [known.first_crossing(kink.point, way, pattern).distance for way in directions]
    ways = np.minimum(options.flat_share * np.array(limits), options.farthest_flat)
    normals = np.repeat(kink.normal[None], options.flat_points, axis=0)
    seen = probe.have_kinks(kink.point + ways[:, None] * directions, normals, options.flat_step * ways)
    return int(seen.sum()) >= options.flat_seen


def _absorb(surface: Surface, pool: Sequence[Kink]) -> Surface:
    """Add all kinks of the pool that are the surface's own."""
    while True:
        joined = False
        for kink in pool:
            check()
            if surface.holds(kink.point):
                continue
            larger = surface.with_kink(kink)
            if larger is not None:
                surface, joined = larger, True
        if not joined:
            return surface


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
    if known.signed:
        return vector if side < 0 and known.slope == 0 else None
    last = known.layers[-1]
    if known.narrow:
        vector[last.width + index] = -side
    else:
        vector[last.width :] -= side * np.append(last.weights[:, index], last.biases[index])
    return vector


def _finished(surface: Surface, lines: Sequence[ScannedLine], options: TraceOptions) -> Unit | None:
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
    seen, confirmed, denied = [first.point[None]], 0, 0
    for scanned in lines:
        zeros = known.zeros_on(scanned.line, alpha)
        if not len(zeros) or not len(scanned.positions):
            denied += len(zeros) if scanned.complete else 0
            continue
        nearest = np.abs(zeros[:, None] - scanned.positions).argmin(axis=1)
        places = scanned.positions[nearest]
        allowed = options.same_place * (1 + np.abs(zeros)) * np.sqrt(known.n_inputs)
        agree = np.abs(zeros - places) <= allowed
        confirmed += int(agree.sum())
        denied += int((~agree).sum()) if scanned.complete else 0
        seen.append(scanned.line.points(places[agree]))
    if confirmed == 0 or confirmed < options.least_confirmed * (confirmed + denied):
        return None
    if not unread:
        fitted = surface.fitted(np.concatenate(seen)).null[:, 0]
        alpha = fitted / np.linalg.norm(fitted @ known.jacobian(first.pattern)[0])
    return Unit(alpha, unread, confirmed, denied)


def _sign_beyond(surface: Surface, alpha: Array, unit: int, side_points: int) -> float:
    """Return the sign of alpha . phi on the surface of a known unit that it is never zero on."""
    known, points = surface.known, []
    for place in surface.places[:side_points]:
        heights = known.preactivations(place.point[None])[0]
        gradient = known.jacobian(place.pattern)[1][unit]
        points.append(place.point - heights[unit] * gradient / (gradient @ gradient))
    return 1.0 if np.median(known.values(np.stack(points)) @ alpha) >= 0 else -1.0
