"""A unit of the next layer as a whole, from one of its kinks.

1. other kinks that were seen and fit are its own (`Surface.with_kink`), at no cost;
2. where its surface crosses that of a known unit beyond which it is open, one more point is measured
   (`crossing`); after each, kinks are looked through again;
3. what a surface that never crosses unit i leaves open is what the unit reads of i: it is chosen such that
   the unit does not change its sign beyond, and noted as *unread*;
4. the lines that were searched must show a kink wherever the unit crosses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_deep.crossing import cross, find_meeting
from unweave.methods.relu_deep.lifted import LiftedLayers
from unweave.methods.relu_deep.probing import Kink, Probe, ScannedLine
from unweave.methods.relu_deep.surface import Surface

_FAILURES = 6  # crossings that failed, more than succeeded, after which a surface is given up
_SAME_PLACE = 1e-6  # relative to 1 + |t|
_LEAST_CONFIRMED = 0.8  # share of the crossings with lines that must be kinks
_FLAT_POINTS, _FLAT_SEEN = 6, 4  # points of a flat surface, and how many of them must show it
_FLAT_SHARE, _FARTHEST_FLAT = 0.9, 3.0  # of the way to the next known surface, and in normalised inputs
_FLAT_STEP = 1e-3  # of the distance from the kink
_BEYOND = 4.0  # how clearly a unit keeps its sign where it was never seen, in units of its gradient
_SIDES = 30  # points of a surface that is not crossed, where the unit's sign is taken


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
) -> Unit | None:
    """The unit behind a surface, or None if it could not be followed or the lines deny it."""
    surface = _absorb(surface, pool)
    tried: set[int] = set()
    failures = successes = 0
    while surface.open:
        targets = [unit for unit in _targets(surface) if unit not in tried]
        if not targets:
            break
        meeting = None
        for unit in rng.permutation(targets):
            meeting = find_meeting(surface, int(unit), rng)
            if meeting is not None:
                break
            tried.add(int(unit))
        if meeting is None:
            break
        crossed = cross(probe, surface, meeting, rng)
        if crossed is None:
            failures += 1
            if failures > max(_FAILURES, successes):
                return None
            continue
        successes += 1
        tried.clear()
        surface = _absorb(crossed, pool)
    return _finished(surface, lines)


def is_flat(probe: Probe, known: LiftedLayers, kink: Kink, rng: np.random.Generator) -> bool:
    """Whether the surface through a kink is flat as far as the known units go.

    That of a unit of the next layer is; that of a deeper one bends at surfaces that are not known yet.
    """
    pattern = known.pattern(kink.point)
    directions = rng.standard_normal((_FLAT_POINTS, known.n_inputs))
    directions -= np.outer(directions @ kink.normal, kink.normal)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    limits = [known.first_crossing(kink.point, way, pattern).distance for way in directions]
    ways = np.minimum(_FLAT_SHARE * np.array(limits), _FARTHEST_FLAT)
    normals = np.repeat(kink.normal[None], _FLAT_POINTS, axis=0)
    seen = probe.have_kinks(kink.point + ways[:, None] * directions, normals, _FLAT_STEP * ways)
    return int(seen.sum()) >= _FLAT_SEEN


def _absorb(surface: Surface, pool: Sequence[Kink]) -> Surface:
    """The surface with all kinks of the pool that are its own."""
    while True:
        joined = False
        for kink in pool:
            if surface.holds(kink.point):
                continue
            larger = surface.with_kink(kink)
            if larger is not None:
                surface, joined = larger, True
        if not joined:
            return surface


def _targets(surface: Surface) -> list[int]:
    """Units of the last known layer behind whose surface alpha may be open."""
    never_crossed = _never_crossed(surface)
    if len(never_crossed) == surface.open:
        return never_crossed
    # More units act here than there are inputs: to lose any of them tells something, too.
    return list(range(surface.known.n_units)[surface.known.top])


def _never_crossed(surface: Surface) -> list[int]:
    """Units on one side of which alpha was seen, and on whose other side it is open for that reason."""
    known, pattern = surface.known, surface.places[0].pattern
    vectors = [
        (unit, vanishing(known, unit, float(pattern[unit]))) for unit in range(known.n_units)[known.top]
    ]
    return [unit for unit, vector in vectors if vector is not None and surface.is_free(vector)]


def vanishing(known: LiftedLayers, unit: int, side: float) -> Array | None:
    """The vector (F,) whose product with phi is zero wherever the unit is on ``side``, and only there."""
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


def _finished(surface: Surface, lines: Sequence[ScannedLine]) -> Unit | None:
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
        alpha = alpha + _sign_beyond(surface, alpha, unit) * _BEYOND / size * vector
    seen, confirmed, denied = [first.point[None]], 0, 0
    for scanned in lines:
        zeros = known.zeros_on(scanned.line, alpha)
        if not len(zeros) or not len(scanned.positions):
            denied += len(zeros) if scanned.complete else 0
            continue
        nearest = np.abs(zeros[:, None] - scanned.positions).argmin(axis=1)
        places = scanned.positions[nearest]
        agree = np.abs(zeros - places) <= _SAME_PLACE * (1 + np.abs(zeros)) * np.sqrt(known.n_inputs)
        confirmed += int(agree.sum())
        denied += int((~agree).sum()) if scanned.complete else 0
        seen.append(scanned.line.points(places[agree]))
    if confirmed == 0 or confirmed < _LEAST_CONFIRMED * (confirmed + denied):
        return None
    if not unread:
        fitted = surface.fitted(np.concatenate(seen)).null[:, 0]
        alpha = fitted / np.linalg.norm(fitted @ known.jacobian(first.pattern)[0])
    return Unit(alpha, unread, confirmed, denied)


def _sign_beyond(surface: Surface, alpha: Array, unit: int) -> float:
    """Sign of alpha . phi on the surface of a known unit that it is never zero on."""
    known, points = surface.known, []
    for place in surface.places[:_SIDES]:
        heights = known.preactivations(place.point[None])[0]
        gradient = known.jacobian(place.pattern)[1][unit]
        points.append(place.point - heights[unit] * gradient / (gradient @ gradient))
    return 1.0 if np.median(known.values(np.stack(points)) @ alpha) >= 0 else -1.0
