"""A target on random slices of its input space, how large a slice a width needs, and the step there.

With Q orthogonal and E its first d columns, y -> f(E y) is a network of the same width, biases and outgoing
weights, its weights being E^T w_k: whatever finds a network finds this one, at the price of d inputs instead
of D. A random slice keeps the m directions apart as long as they are determined at all, m < d(d-1)/2.
Slices are nested: the first d columns of Q are part of the first d + 1.

The step of third differences follows from how fast third derivatives change. Mirrored third differences of
step h along directions in which a unit's weight is v are off by (h v)^2 g^(5)/g^(3) through truncation and by
sigma/(h v)^3 through rounding: the best h v is a constant, three times the one at which both are alike,
because truncation is predicted and taken away afterwards (`unweave.derivatives.truncation`), rounding is not.
What v is shows in the ratio of fifth to third derivatives along a few short lines,

    sharpness = sqrt(|f^(5)| / |f^(3)|)  ~  v,

each line taking six rows: steps of one, two and three to both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.derivatives.lattice_jets import lattice_rows
from unweave.targets.region import Region

SATURATION = 0.8
"""Units that a slice is trusted to show, as a share of d(d-1)/2."""
SURPLUS = 1.1
"""Members of the span per unit, and equations per parameter."""
FEWEST_SITES = 3
"""Lattices at least: every unit's profile is read off them."""
SMALLEST = 6
"""Directions at least: in fewer, spans end by accident."""

_SHRINK = 0.8  # factor by which points are drawn towards the centre until they lie in the box


def most_units(d: int) -> int:
    """Units that a slice of ``d`` directions is trusted to show."""
    return int(SATURATION * d * (d - 1) / 2)


def smallest_slice(inputs: int, width: int) -> int | None:
    """The fewest directions that show ``width`` units, where a search that does not know the width ends."""
    return next((d for d in range(min(SMALLEST, inputs), inputs + 1) if width <= most_units(d)), None)


def lattices_needed(width: int, d: int, outputs: int) -> int:
    """Sites whose lattices show ``width`` units in ``d`` directions."""
    members = int(np.ceil(SURPLUS * width)) + 2
    return max(FEWEST_SITES, -(-members // ((d + 1) * outputs)))


def slice_parameters(width: int, d: int, outputs: int) -> int:
    """Parameters of a network of ``width`` units in a slice."""
    return width * (d + 1 + outputs) + outputs


def values_needed(parameters: int, outputs: int) -> int:
    """Random points on which so many parameters are fitted."""
    return -(-int(np.ceil(SURPLUS * parameters)) // outputs) + 1


@dataclass(frozen=True)
class SliceCost:
    """Rows that a recovery through a slice of ``dimension`` directions is expected to take."""

    dimension: int
    lattice: int
    values: int
    other_inputs: int

    @property
    def rows(self) -> int:
        """All of them."""
        return self.lattice + self.values + self.other_inputs


def slice_cost(inputs: int, width: int, outputs: int, d: int, mirrored: bool) -> SliceCost:
    """The cost for a known width in ``d`` directions."""
    lattices = lattices_needed(width, d, outputs) * (2 * lattice_rows(d) - 1 if mirrored else lattice_rows(d))
    values = values_needed(slice_parameters(width, d, outputs), outputs)
    return SliceCost(d, lattices, values, sites_for_other_inputs(width, outputs) * (inputs - d))


def sites_for_other_inputs(width: int, outputs: int) -> int:
    """Sites at which every direction outside the slice is asked once."""
    return -(-int(np.ceil(SURPLUS * (width + outputs))) // outputs) + 1


def cheapest_slice(inputs: int, width: int, outputs: int, mirrored: bool = False) -> SliceCost | None:
    """The cheapest slice that shows ``width`` units, or None if not even all inputs do."""
    costs = [
        slice_cost(inputs, width, outputs, d, mirrored)
        for d in range(min(SMALLEST, inputs), inputs + 1)
        if width <= most_units(d)
    ]
    return min(costs, key=lambda cost: cost.rows, default=None)


class RandomSlice:
    """Nested random slices of a target in normalised inputs.

    Points are given by their coordinates y in the slice, as many as are not zero: (n, d) for any d.
    """

    def __init__(
        self, ask: Callable[[Array], Array], region: Region, reach: float, rng: np.random.Generator
    ) -> None:
        self._ask, self._region, self._rng = ask, region, rng
        inputs = region.n_inputs
        self.frame: Array = scipy.linalg.qr(rng.standard_normal((inputs, inputs)), check_finite=False)[0]
        """Q (D, D)"""
        self.least_margin = reach * float(np.abs(self.frame).max())
        """How far an input moves when a point is moved by ``reach`` along a column of the frame."""

    def ask(self, points: Array) -> Array:
        """Answers (n, K) at slice coordinates (n, d)."""
        return self._ask(points @ self.frame[:, : points.shape[1]].T)

    def ask_beside(self, points: Array, step: float) -> Array:
        """Answers (n, D - d, K) at points (n, d) moved by ``step`` along each direction outside the slice."""
        d, inputs = points.shape[1], len(self.frame)
        centres = points @ self.frame[:, :d].T
        outside = step * self.frame[:, d:].T
        answers = [self._ask(centre + outside) for centre in centres]
        return np.stack(answers).reshape(len(points), inputs - d, -1)

    def length_scale(self, d: int) -> float:
        """Length at which a unit of norm one varies in a slice of ``d`` directions as in all inputs."""
        return float(np.sqrt(len(self.frame) / d))

    def margin(self, reach: float, d: int) -> float:
        """How far an input moves at most on a way of length ``reach`` inside a slice of ``d`` directions."""
        return reach * float(np.linalg.norm(self.frame[:, :d], axis=1).max())

    def has_room(self, margin: float) -> bool:
        """Whether all inputs may be moved by ``margin`` from the centre of the region."""
        around = np.full((2, len(self.frame)), margin)
        around[1] *= -1
        return bool(self._region.contains(around).all())

    def draw(self, count: int, d: int, margin: float | None = None) -> Array:
        """Random points (count, d), as far out as those of the region, if there is room for the margin.

        If there is a box, they lie in it, and stay there when every input is moved by ``margin``; without one
        given, when they are moved along a column of the frame by the ``reach`` of all slices.
        """
        margin = self.least_margin if margin is None else margin
        points = self.length_scale(d) * self._rng.standard_normal((count, d))
        while self._region.has_box:
            inputs = points @ self.frame[:, :d].T
            inside = self._region.contains(inputs + margin) & self._region.contains(inputs - margin)
            if inside.all():
                break
            points[~inside] *= _SHRINK
        return points


LINES = 12
ROWS_PER_LINE = 6
LINE_STEP = 0.05
"""Times sqrt(D): it moves a unit of norm one by this."""

_BEST = 1.2e-2  # step times sharpness, for answers in float64
_TYPICAL_SHARPNESS = 8.0  # times 1/sqrt(D): tanh units of norm one
_LEAST, _MOST = 0.25, 6.0  # of the typical step
LONGEST_STEP = _MOST * _BEST / _TYPICAL_SHARPNESS
"""Times sqrt(D)."""


def lattice_step(slices: RandomSlice, d: int, rng: np.random.Generator) -> float:
    """The step for lattices in ``d`` directions of a slice."""
    root = float(np.sqrt(len(slices.frame)))
    length = LINE_STEP * root
    typical = _BEST / _TYPICAL_SHARPNESS * root
    margin = slices.margin(3 * length, d)
    if not slices.has_room(margin):
        return typical
    centres = slices.draw(LINES, d, margin)
    directions = rng.standard_normal((LINES, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    factors = length * np.array([1, 2, 3, -1, -2, -3])
    points = centres + factors[:, None, None] * directions
    answers = slices.ask(points.reshape(-1, d)).reshape(len(factors), LINES, -1)
    sharpness = _sharpness(answers[:3] - answers[3:], length)
    if not (np.isfinite(sharpness) and sharpness > 0):
        return typical
    return float(np.clip(_BEST / sharpness, _LEAST * typical, _MOST * typical))


def _sharpness(odd: Array, step: float) -> float:
    """From f(x + k h e) - f(x - k h e), k = 1, 2, 3: (3, lines, K)."""
    third = (odd[1] - 2 * odd[0]) / (2 * step**3)
    fifth = (odd[2] - 4 * odd[1] + 5 * odd[0]) / (2 * step**5)
    size = float(np.sqrt(np.mean(third**2)))
    return float(np.sqrt(np.sqrt(np.mean(fifth**2)) / size)) if size > 0 else np.inf
