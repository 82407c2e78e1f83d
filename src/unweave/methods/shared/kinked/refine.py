"""Measure every unit again at the best place of its own hyperplane.

Approximate units tell the room around any point without asking: from x, unit k is |z_k(x)| / |w_kj| away
along coordinate j. For every unit i, take the one of many points p of its hyperplane that is farthest from
all other units. Gradients at p + delta w_i and p - delta w_i, with coordinate steps of half the room, give

    g+ - g-  =  2 w_i h_i^T,      and the hyperplane where the two affine pieces meet,

to within the rounding of an answer over a step that is no longer limited by the neighbours on some line.
Cost: 2 (d + 1) rows per unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray, RealArray
from unweave.methods.shared.kinked.lines import Ask
from unweave.methods.shared.kinked.units import Units
from unweave.numerics.axis_moves import answers_along_axes, one_call_is_enough
from unweave.numerics.clock import check
from unweave.targets.region import Region


@dataclass(frozen=True, kw_only=True)
class RefinementOptions:
    """Where units are measured again, and what counts as having found them."""

    places: int = 1000
    """Points of the region that are moved onto each hyperplane; the one with most room is taken."""
    far_places: float = 10.0
    """Factor on as many more points, where not all are usable."""
    tried_places: int = 30
    """Points with most room of which the first is taken whose whole surroundings are usable."""
    room_share: float = 0.5
    """Share of the room around a point that a step may take."""
    longest_step: float = 2.0
    """Longest step, in normalised inputs: rounding grows beyond."""
    least_room: float = 1e-9
    """Room, in normalised inputs, below which a unit stays as it is."""
    rank_one: float = 1e-4
    """Second over first singular value of a jump up to which it is that of one unit."""
    same_unit: float = 1e-2
    """Sine of the angle between a unit and what was measured in its place."""
    asked_at_once: int = 200_000
    """Numbers in the rows around several units that are asked at once: 1.6 MB stay in a processor's cache."""


DEFAULT_REFINEMENT_OPTIONS = RefinementOptions()


@dataclass(frozen=True, eq=False)
class Refined:
    """Units after refinement."""

    units: Units
    error: Array
    """(m,) estimated error of each unit's parameters; infinite where it was not refined now."""
    points: Array
    """(n, d) rows that were asked, on both sides of every unit."""
    answers: Array
    """(n, K)"""


def refine_units(
    ask: Ask,
    region: Region,
    units: Units,
    rounding: float,
    rng: np.random.Generator,
    keep_rows: bool = True,
    options: RefinementOptions = DEFAULT_REFINEMENT_OPTIONS,
    usable: Callable[[Array], BoolArray] | None = None,
) -> Refined:
    """Measure every unit that was not refined before; those whose hyperplane has no room stay as they are.

    ``rounding`` is the error of an answer relative to the size of the terms it is summed from. With
    ``keep_rows`` all rows are handed back, otherwise only the two base points of every unit. Units are
    measured at points that are ``usable``.
    """
    samples = region.sample(options.places, rng)
    if usable is not None and not region.has_box:  # where units are seen may be farther out
        samples = np.concatenate([samples, options.far_places * region.sample(options.places, rng)])
    heights = (samples @ units.weights + units.biases).astype(np.float32)
    gram = units.weights.T @ units.weights
    sizes = np.einsum("nd,nd->n", samples, samples)
    weights, biases, outer = units.weights.copy(), units.biases.copy(), units.heights.copy()
    clearance, refined = units.clearance.copy(), units.refined.copy()
    error = np.full(units.width, np.inf)
    rows, answered = [np.zeros((0, region.n_inputs))], [np.zeros((0, outer.shape[1]))]

    def places() -> Iterator[_Place]:
        for unit in (int(index) for index in np.flatnonzero(~units.refined)):
            check()
            found = _best_place(unit, samples, sizes, heights, gram, units, region, options, usable)
            if found is not None:
                yield found

    for around in _asked_around(ask, places(), region.n_inputs, keep_rows, options):
        rows.append(around.kept_points)
        answered.append(around.kept_answers)
        unit, steps = around.place.unit, np.abs(around.place.steps)
        found = _unit_between(around, units.weights[:, unit], options)
        if found is None:
            continue
        weights[:, unit], biases[unit], outer[unit] = found
        size = float(np.abs(around.answers).max()) + float(around.farthest * np.abs(outer[unit]).max())
        error[unit] = rounding * size / (float(np.median(steps)) * float(np.linalg.norm(outer[unit])))
        clearance[unit], refined[unit] = float(steps.min()) / options.room_share, True
    better = replace(
        units, weights=weights, biases=biases, heights=outer, clearance=clearance, refined=refined
    )
    return Refined(better, error, np.concatenate(rows), np.concatenate(answered))


@dataclass(frozen=True, eq=False)
class _Place:
    """Where a unit is measured again."""

    unit: int
    bases: Array
    """(2, d) a point on either side."""
    steps: Array
    """(2, d) from each of them along every axis."""


def _best_place(
    unit: int,
    samples: Array,
    sizes: Array,
    heights: RealArray,
    gram: Array,
    units: Units,
    region: Region,
    options: RefinementOptions,
    usable: Callable[[Array], BoolArray] | None,
) -> _Place | None:
    """Return where the unit has most room, or None if it has none.

    ``sizes`` (n,) are squared lengths of the ``samples`` (n, d), ``heights`` (n, m) what units read there:
    single precision suffices to choose among them.
    """
    normal, bounds = units.weights[:, unit], region.normalised_bounds
    moves = samples @ normal + units.biases[unit]

    def nearest(among: IntArray, read: RealArray) -> Array:
        """Room (k,) at the samples ``among`` moved onto the hyperplane, by what units ``read`` there."""
        room = moves[among].astype(read.dtype)[:, None] * gram[unit].astype(read.dtype)
        np.abs(np.subtract(read, room, out=room), out=room)
        room[:, unit] = np.inf
        least = np.minimum(room.min(axis=1), options.longest_step, dtype=np.float64)
        if bounds is not None:
            feet = samples[among] - moves[among, None] * normal
            return np.asarray(np.minimum(least, np.minimum(feet - bounds[0], bounds[1] - feet).min(axis=1)))
        # Far out everything is far apart, but rounding grows as well.
        squares = sizes[among] - moves[among] * (moves[among] - 2 * units.biases[unit])
        return np.asarray(least / (1 + np.sqrt(np.maximum(squares, 0.0) / len(normal))))

    roughly = nearest(np.arange(len(samples)), heights)
    if usable is not None:
        roughly = np.where(usable(samples - moves[:, None] * normal), roughly, 0.0)
    few = np.argsort(-roughly)[: options.tried_places]
    few = few[roughly[few] > 0]
    exactly = nearest(few, samples[few] @ units.weights + units.biases)
    order = np.argsort(-exactly)[: 1 if usable is None else None]
    for best, room in zip(few[order], exactly[order], strict=True):
        if room < options.least_room:
            break
        foot = samples[best] - moves[best] * normal
        foot = foot - (foot @ normal + units.biases[unit]) * normal
        with np.errstate(divide="ignore"):
            along = np.abs(foot @ units.weights + units.biases) / np.abs(gram[unit])
        along[unit] = np.inf
        aside = min(options.room_share * float(along.min()), options.longest_step)
        if bounds is not None:
            room_in_box = np.minimum(foot - bounds[0], bounds[1] - foot)
            aside = min(aside, options.room_share * float(room_in_box.min()))
        bases = np.stack([foot + sign * aside * normal for sign in (1.0, -1.0)])
        steps = np.stack([_steps(base, units, bounds, options) for base in bases])
        if usable is None or usable(_rows_around(bases, steps)).all():
            return _Place(unit, bases, steps)
    return None


def _rows_around(bases: Array, steps: Array) -> Array:
    """Return points (2, d) and one step (2, d) from each along each axis as rows (2 (1 + d), d)."""
    d = bases.shape[1]
    rows = np.repeat(bases, 1 + d, axis=0)
    for first, taken in zip((1, d + 2), steps, strict=True):
        rows[first : first + d].flat[:: d + 1] += taken
    return rows


def _steps(
    base: Array, units: Units, bounds: tuple[Array, Array] | None, options: RefinementOptions
) -> Array:
    """Return one step along each coordinate (d,) that stays on one side of every unit."""
    room = np.abs(base @ units.weights + units.biases)
    with np.errstate(divide="ignore"):
        steps = np.minimum(
            options.room_share * (room / np.abs(units.weights)).min(axis=1), options.longest_step
        )
    signs = np.ones(len(base))
    if bounds is not None:
        up, down = bounds[1] - base, base - bounds[0]
        signs = np.where(up >= down, 1.0, -1.0)
        steps = np.minimum(steps, options.room_share * np.maximum(up, down))
    return np.asarray(signs * steps)


@dataclass(frozen=True, eq=False)
class _Around:
    """Answers around the two points of a place."""

    place: _Place
    taken: Array
    """(2, d) steps without what rounding took."""
    answers: Array
    """(2, 1 + d, K), the base point's first."""
    farthest: float
    """Largest coordinate of a row."""
    kept_points: Array
    kept_answers: Array


def _asked_around(
    ask: Ask, places: Iterator[_Place], inputs: int, keep_rows: bool, options: RefinementOptions
) -> Iterator[_Around]:
    """Ask the base points and one step along each axis; hand back all rows, or these two.

    The rows of several places are asked at once, as far as they are few.
    """
    if not keep_rows and not one_call_is_enough(inputs):
        yield from (_asked_along_axes(ask, place) for place in places)
        return
    at_once = max(1, options.asked_at_once // (2 * (1 + inputs) * inputs))
    while group := list(islice(places, at_once)):
        points = np.stack([_rows_around(place.bases, place.steps) for place in group])
        answers = ask(points.reshape(-1, inputs)).reshape(*points.shape[:2], -1)
        for place, rows, values in zip(group, points, answers, strict=True):
            sides = rows.reshape(2, 1 + inputs, inputs)
            taken = np.einsum("sjj->sj", sides[:, 1:]) - sides[:, 0]
            kept = slice(None) if keep_rows else slice(None, None, 1 + inputs)
            farthest, own = float(np.abs(rows).max()), values.reshape(2, 1 + inputs, -1)
            yield _Around(place, taken, own, farthest, rows[kept].copy(), values[kept].copy())


def _asked_along_axes(ask: Ask, place: _Place) -> _Around:
    """Ask the rows around one place, never many of them at once."""
    bases = place.bases
    first = ask(bases)
    moved = [answers_along_axes(ask, base, step) for base, step in zip(bases, place.steps, strict=True)]
    answers = np.stack([np.vstack([own, each]) for own, (each, _) in zip(first, moved, strict=True)])
    taken = np.stack([each for _, each in moved])
    farthest = float((np.abs(bases) + np.abs(taken)).max())
    return _Around(place, taken, answers, farthest, bases, first)


def _unit_between(
    around: _Around, normal: Array, options: RefinementOptions
) -> tuple[Array, float, Array] | None:
    """Return normal (d,), bias and half jump (K,) from the two affine pieces; None if they do not fit."""
    bases = around.place.bases
    foot = (bases[0] + bases[1]) / 2  # on the hyperplane: to go there from either base loses no digits
    gradients, values = [], []
    for base, taken, answers in zip(bases, around.taken, around.answers, strict=True):
        gradients.append((answers[1:] - answers[0]) / taken[:, None])
        values.append(answers[0] + gradients[-1].T @ (foot - base))
    jump, apart = gradients[0] - gradients[1], values[0] - values[1]
    if not np.isfinite(jump).all():  # some rows are not usable after all
        return None
    left, sizes, right = np.linalg.svd(jump, full_matrices=False)
    if sizes[0] == 0 or (len(sizes) > 1 and sizes[1] > options.rank_one * sizes[0]):
        return None
    cosine = float(left[:, 0] @ normal)
    if 1 - cosine**2 > options.same_unit**2:
        return None
    sign = 1.0 if cosine > 0 else -1.0
    weight, height = sign * left[:, 0], sign * sizes[0] * right[0]
    # The pieces differ by height times w . x + b, wherever they are compared.
    return weight, float(apart @ height / (height @ height) - weight @ foot), height / 2
