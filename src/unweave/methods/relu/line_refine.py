"""Units measured again, each at the best place of its own hyperplane.

With approximate units at hand, the room around any point can be computed without asking: from x, unit k is
|z_k(x)| / |w_kj| steps away along coordinate j. For every unit i the one of many points p of its
hyperplane is taken that is farthest from all other units; gradients at p + delta w_i and p - delta w_i, with
coordinate steps of half the room, give

    g+ - g-  =  2 w_i h_i^T,      and the hyperplane where the two affine pieces meet,

to within the rounding of an answer over a step that is no longer limited by the neighbours on some line.
Cost: 2 (d + 1) rows per unit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.kinked.line_units import Ask, Units
from unweave.targets.region import Region

_CANDIDATES = 1000
_ROOM = 0.5  # share of the room that a step may take
_LONGEST = 2.0  # step, in normalised inputs
_LEAST_ROOM = 1e-9
_RANK_ONE = 1e-4  # second over first singular value of a jump
_SAME_UNIT = 1e-2  # sine of the angle between a unit and what was measured in its place


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
) -> Refined:
    """Measure every unit that was not refined before; those whose hyperplane has no room stay as they are.

    ``rounding`` is the error of an answer relative to the size of the terms it is summed from. With
    ``keep_rows`` all rows are handed back, otherwise only the two base points of every unit.
    """
    samples = region.sample(_CANDIDATES, rng)
    heights = samples @ units.weights + units.biases
    gram = units.weights.T @ units.weights
    weights, biases, outer = units.weights.copy(), units.biases.copy(), units.heights.copy()
    clearance, refined = units.clearance.copy(), units.refined.copy()
    error = np.full(units.width, np.inf)
    rows, answered = [np.zeros((0, region.n_inputs))], [np.zeros((0, outer.shape[1]))]
    for unit in (int(index) for index in np.flatnonzero(~units.refined)):
        place = _best_place(unit, samples, heights, gram, units, region)
        if place is None:
            continue
        points, steps = place
        answers = ask(points)
        kept = slice(None) if keep_rows else slice(None, None, region.n_inputs + 1)
        rows.append(points[kept].copy())
        answered.append(answers[kept].copy())
        found = _unit_between(points, answers, steps, units.weights[:, unit])
        if found is None:
            continue
        weights[:, unit], biases[unit], outer[unit] = found
        size = float(np.abs(answers).max()) + float(np.abs(points).max() * np.abs(outer[unit]).max())
        error[unit] = rounding * size / (float(np.median(steps)) * float(np.linalg.norm(outer[unit])))
        clearance[unit], refined[unit] = float(steps.min()) / _ROOM, True
    better = replace(
        units, weights=weights, biases=biases, heights=outer, clearance=clearance, refined=refined
    )
    return Refined(better, error, np.concatenate(rows), np.concatenate(answered))


def _best_place(
    unit: int, samples: Array, heights: Array, gram: Array, units: Units, region: Region
) -> tuple[Array, Array] | None:
    """Rows (2 (d + 1), d), base point first on either side, and their steps (2, d); None if no place."""
    normal = units.weights[:, unit]
    moves = heights[:, unit]
    room = np.abs(heights - moves[:, None] * gram[unit])  # |z_k| at the samples moved onto the hyperplane
    room[:, unit] = np.inf
    nearest = np.minimum(room.min(axis=1), _LONGEST)
    bounds = region.normalised_bounds
    if bounds is not None:
        feet = samples - moves[:, None] * normal
        nearest = np.minimum(nearest, np.minimum(feet - bounds[0], bounds[1] - feet).min(axis=1))
    else:  # far out everything is far apart, but rounding grows as well
        squares = np.einsum("nd,nd->n", samples, samples) - moves * (moves - 2 * units.biases[unit])
        nearest = nearest / (1 + np.sqrt(np.maximum(squares, 0.0) / len(normal)))
    best = int(np.argmax(nearest))
    if nearest[best] < _LEAST_ROOM:
        return None
    foot = samples[best] - moves[best] * normal
    foot = foot - (foot @ normal + units.biases[unit]) * normal
    with np.errstate(divide="ignore"):
        along = np.abs(foot @ units.weights + units.biases) / np.abs(gram[unit])
    along[unit] = np.inf
    aside = min(_ROOM * float(along.min()), _LONGEST)
    if bounds is not None:
        aside = min(aside, _ROOM * float(np.minimum(foot - bounds[0], bounds[1] - foot).min()))
    sides = [_cross(foot + sign * aside * normal, units, bounds) for sign in (1.0, -1.0)]
    return np.concatenate([points for points, _ in sides]), np.stack([steps for _, steps in sides])


def _cross(base: Array, units: Units, bounds: tuple[Array, Array] | None) -> tuple[Array, Array]:
    """Base point and one step along each coordinate (1 + d, d), with the steps' lengths (d,)."""
    room = np.abs(base @ units.weights + units.biases)
    with np.errstate(divide="ignore"):
        steps = np.minimum(_ROOM * (room / np.abs(units.weights)).min(axis=1), _LONGEST)
    signs = np.ones(len(base))
    if bounds is not None:
        up, down = bounds[1] - base, base - bounds[0]
        signs = np.where(up >= down, 1.0, -1.0)
        steps = np.minimum(steps, _ROOM * np.maximum(up, down))
    return np.vstack([base, base + np.diag(signs * steps)]), steps


def _unit_between(
    points: Array, answers: Array, steps: Array, normal: Array
) -> tuple[Array, float, Array] | None:
    """Normal (d,), bias and half jump (K,) from the two affine pieces, or None if they do not fit."""
    d = points.shape[1]
    foot = (points[0] + points[d + 1]) / 2  # on the hyperplane: to go there from either base loses no digits
    gradients, values = [], []
    for side in (0, d + 1):
        base = points[side]
        taken = points[side + 1 : side + d + 1].diagonal() - base
        gradients.append((answers[side + 1 : side + d + 1] - answers[side]) / taken[:, None])
        values.append(answers[side] + gradients[-1].T @ (foot - base))
    jump, apart = gradients[0] - gradients[1], values[0] - values[1]
    left, sizes, right = np.linalg.svd(jump, full_matrices=False)
    if sizes[0] == 0 or (len(sizes) > 1 and sizes[1] > _RANK_ONE * sizes[0]):
        return None
    cosine = float(left[:, 0] @ normal)
    if 1 - cosine**2 > _SAME_UNIT**2:
        return None
    sign = 1.0 if cosine > 0 else -1.0
    weight, height = sign * left[:, 0], sign * sizes[0] * right[0]
    # The pieces differ by height times w . x + b, wherever they are compared.
    return weight, float(apart @ height / (height @ height) - weight @ foot), height / 2
