"""Measure every unit again at the best place of its own hyperplane.

Approximate units tell the room around any point without asking: from x, unit k is |z_k(x)| / |w_kj| away
along coordinate j. For every unit i, take the one of many points p of its hyperplane that is farthest from
all other units. Gradients at p + delta w_i and p - delta w_i, with coordinate steps of half the room, give

    g+ - g-  =  2 w_i h_i^T,      and the hyperplane where the two affine pieces meet,

to within the rounding of an answer over a step that is no longer limited by the neighbours on some line.
Cost: 2 (d + 1) rows per unit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array, BoolArray
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
    heights = samples @ units.weights + units.biases
    gram = units.weights.T @ units.weights
    sizes = np.einsum("nd,nd->n", samples, samples)
    weights, biases, outer = units.weights.copy(), units.biases.copy(), units.heights.copy()
    clearance, refined = units.clearance.copy(), units.refined.copy()
    error = np.full(units.width, np.inf)
    rows, answered = [np.zeros((0, region.n_inputs))], [np.zeros((0, outer.shape[1]))]
    for unit in (int(index) for index in np.flatnonzero(~units.refined)):
        check()
        place = _best_place(unit, samples, sizes, heights, gram, units, region, options, usable)
        if place is None:
            continue
        around = _asked_around(ask, *place, keep_rows)
        answers, steps = around.answers, np.abs(place[1])
        rows.append(around.kept_points)
        answered.append(around.kept_answers)
        found = _unit_between(around, units.weights[:, unit], options)
        if found is None:
            continue
        weights[:, unit], biases[unit], outer[unit] = found
        size = float(np.abs(answers).max()) + float(around.farthest * np.abs(outer[unit]).max())
        error[unit] = rounding * size / (float(np.median(steps)) * float(np.linalg.norm(outer[unit])))
        clearance[unit], refined[unit] = float(steps.min()) / options.room_share, True
    better = replace(
        units, weights=weights, biases=biases, heights=outer, clearance=clearance, refined=refined
    )
    return Refined(better, error, np.concatenate(rows), np.concatenate(answered))


def _best_place(
    unit: int,
    samples: Array,
    sizes: Array,
    heights: Array,
    gram: Array,
    units: Units,
    region: Region,
    options: RefinementOptions,
    usable: Callable[[Array], BoolArray] | None,
) -> tuple[Array, Array] | None:
    """Return a base point on either side (2, d) and the steps along every axis (2, d); None if no place.

    ``sizes`` (n,) are squared lengths of the ``samples`` (n, d), ``heights`` (n, m) what units read there.
    """
    normal = units.weights[:, unit]
    moves = heights[:, unit]
    room = moves[:, None] * gram[unit]
    np.abs(np.subtract(heights, room, out=room), out=room)  # |z_k| at the samples moved onto the hyperplane
    room[:, unit] = np.inf
    nearest = np.minimum(room.min(axis=1), options.longest_step)
    bounds = region.normalised_bounds
    if bounds is not None:
        feet = samples - moves[:, None] * normal
        nearest = np.minimum(nearest, np.minimum(feet - bounds[0], bounds[1] - feet).min(axis=1))
    else:  # far out everything is far apart, but rounding grows as well
        squares = sizes - moves * (moves - 2 * units.biases[unit])
        nearest = nearest / (1 + np.sqrt(np.maximum(squares, 0.0) / len(normal)))
    if usable is not None:
        nearest = np.where(usable(samples - moves[:, None] * normal), nearest, 0.0)
    for best in np.argsort(-nearest)[: 1 if usable is None else options.tried_places]:
        if nearest[best] < options.least_room:
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
        if usable is None:
            return bases, steps
        rows = np.concatenate([_rows_around(*pair) for pair in zip(bases, steps, strict=True)])
        if usable(rows).all():
            return bases, steps
    return None


def _rows_around(base: Array, steps: Array) -> Array:
    """Return a point (d,) and one step (d,) from it along each axis as rows (1 + d, d)."""
    return np.vstack([base, base + np.diag(steps)])


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
    """Answers around a base point on either side of a unit."""

    bases: Array
    """(2, d)"""
    taken: Array
    """(2, d) steps without what rounding took."""
    answers: Array
    """(2, 1 + d, K), the base point's first."""
    farthest: float
    """Largest coordinate of a row."""
    kept_points: Array
    kept_answers: Array


def _asked_around(ask: Ask, bases: Array, steps: Array, keep_rows: bool) -> _Around:
    """Ask the base points (2, d) and one step (2, d) along each axis; hand back all rows, or these two."""
    d = bases.shape[1]
    if keep_rows or one_call_is_enough(d):
        points = np.concatenate([_rows_around(*pair) for pair in zip(bases, steps, strict=True)])
        answers = ask(points)
        taken = np.stack([points[side + 1 : side + d + 1].diagonal() - points[side] for side in (0, d + 1)])
        kept = slice(None) if keep_rows else slice(None, None, d + 1)
        farthest, rows = float(np.abs(points).max()), (points[kept].copy(), answers[kept].copy())
        return _Around(bases, taken, answers.reshape(2, d + 1, -1), farthest, *rows)
    first = ask(bases)
    moved = [answers_along_axes(ask, base, step) for base, step in zip(bases, steps, strict=True)]
    answers = np.stack([np.vstack([own, each]) for own, (each, _) in zip(first, moved, strict=True)])
    taken = np.stack([each for _, each in moved])
    farthest = float((np.abs(bases) + np.abs(taken)).max())
    return _Around(bases, taken, answers, farthest, bases, first)


def _unit_between(
    around: _Around, normal: Array, options: RefinementOptions
) -> tuple[Array, float, Array] | None:
    """Return normal (d,), bias and half jump (K,) from the two affine pieces; None if they do not fit."""
    foot = (
        around.bases[0] + around.bases[1]
    ) / 2  # on the hyperplane: to go there from either base loses no digits
    gradients, values = [], []
    for base, taken, answers in zip(around.bases, around.taken, around.answers, strict=True):
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
