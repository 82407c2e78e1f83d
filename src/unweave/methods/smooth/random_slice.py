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

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.derivatives.lattice_jets import lattice_rows
from unweave.networks.value_fit import MANY_OUTPUTS
from unweave.targets.region import Region

_DRAW_INWARD = 0.8  # factor by which points are drawn toward the center until they lie in the box
ROWS_PER_LINE = 6
"""Rows of a line that shows a sharpness."""


@dataclass(frozen=True)
class SliceCost:
    """Rows that a search through a slice of ``dimension`` directions is expected to take."""

    dimension: int
    lattice: int
    values: int
    other_inputs: int

    @property
    def rows(self) -> int:
        """All of them."""
        return self.lattice + self.values + self.other_inputs


@dataclass(frozen=True, kw_only=True)
class SliceOptions:
    """How large a slice is, how many rows are asked there, and with which step."""

    saturation: float = 0.8
    """Units that a slice of d directions is trusted to show, as a share of d(d-1)/2, ..."""
    saturation_of_all: float = 0.9
    """... and the same where the slice is all inputs, so that none shows more."""
    surplus: float = 1.1
    """Members of the span per unit, and equations per parameter."""
    largest_value_fit: int = 6000
    """Number of parameters beyond which values and slopes are fitted, without a matrix, instead of values."""
    star_surplus: float = 1.6
    """Equations per parameter of values and slopes."""
    star_shift: float = 1e-2
    """Step of these slopes, times sqrt(D): it moves a unit of norm one by this."""
    star_spread: float = 2.0
    """How far out they are taken, in spreads of the region: where units bend more, fewer steps of conjugate
    gradients tell them apart."""
    fewest_sites: int = 3
    """Lattices at least: every unit's profile is read off them."""
    fewest_directions: int = 6
    """Directions at least: in fewer, spans end by accident."""
    lines: int = 12
    """Lines that show how sharply the target bends."""
    line_step: float = 0.05
    """Step on such a line, times sqrt(D): it moves a unit of norm one by this."""
    bend_per_step: float = 1.2e-2
    """Step of a lattice times sharpness, the best one for answers in float64."""
    one_sided_bend: float = 2.4e-3
    """The same for lattices on one side that show the units of a large layer: their span must end above the
    truncation, which is of first order in the step."""
    typical_sharpness: float = 8.0
    """Sharpness times sqrt(D) of tanh units of norm one."""
    step_range: tuple[float, float] = (0.25, 6.0)
    """Shortest and longest step of a lattice, in steps for the typical sharpness."""

    @property
    def longest_step(self) -> float:
        """Longest step of a lattice, times sqrt(D)."""
        return self.step_range[1] * self.bend_per_step / self.typical_sharpness

    def most_units(self, d: int, inputs: int) -> int:
        """Return the number of units that a slice of ``d`` of the inputs is trusted to show."""
        share = self.saturation if d < inputs else self.saturation_of_all
        return int(share * d * (d - 1) / 2)

    def dimensions(self, inputs: int, width: int) -> Iterator[int]:
        """Yield the numbers of directions that show ``width`` units, ascending."""
        smallest = min(self.fewest_directions, inputs)
        return (d for d in range(smallest, inputs + 1) if width <= self.most_units(d, inputs))

    def lattices_needed(self, width: int, d: int, outputs: int) -> int:
        """Return the number of sites whose lattices show ``width`` units in ``d`` directions."""
        members = int(np.ceil(self.surplus * width)) + 2
        return max(self.fewest_sites, -(-members // ((d + 1) * outputs)))

    def values_needed(self, width: int, d: int, outputs: int, skip: bool = False) -> int:
        """Return the number of random points that fit a network of ``width`` units in ``d`` directions.

        A point shows no more than ``width`` numbers about incoming weights, however many outputs there are.
        """
        parameters = slice_parameters(width, d, outputs) + skip * d * outputs
        equations = parameters + width * (d + 1) * max(outputs / width - 1, 0)
        return -(-int(np.ceil(self.surplus * equations)) // outputs) + 1

    def fits_slopes(self, width: int, d: int, outputs: int) -> bool:
        """Return whether values and slopes are fitted; of many outputs, values alone show enough."""
        large = slice_parameters(width, d, outputs) > self.largest_value_fit
        return large and outputs < MANY_OUTPUTS * width

    def stars_needed(self, width: int, d: int, outputs: int, skip: bool = False) -> int:
        """Return the number of sites whose values and slopes fit such a network."""
        parameters = slice_parameters(width, d, outputs) + skip * d * outputs
        return -(-int(np.ceil(self.star_surplus * parameters)) // (outputs * (d + 1))) + 1

    def star_step(self, inputs: int) -> float:
        """Return the step of slopes."""
        return self.star_shift * float(np.sqrt(inputs))

    def sites_beside(self, width: int, outputs: int) -> int:
        """Return the number of sites at which every direction outside the slice is asked once."""
        return -(-int(np.ceil(self.surplus * (width + outputs))) // outputs) + 1

    def cost(self, inputs: int, width: int, outputs: int, d: int, mirrored: bool) -> SliceCost:
        """Return the cost for a known width in ``d`` directions."""
        rows = 2 * lattice_rows(d) - 1 if mirrored else lattice_rows(d)
        values = self.values_needed(width, d, outputs)
        if self.fits_slopes(width, d, outputs):
            values = self.stars_needed(width, d, outputs) * (d + 1)
        beside = self.sites_beside(width, outputs) * (inputs - d)
        return SliceCost(d, self.lattices_needed(width, d, outputs) * rows, values, beside)

    def cheapest(self, inputs: int, width: int, outputs: int) -> SliceCost | None:
        """Return the cheapest slice that shows ``width`` units; None if not even all inputs show them."""
        costs = (self.cost(inputs, width, outputs, d, False) for d in self.dimensions(inputs, width))
        return min(costs, key=lambda cost: cost.rows, default=None)


def slice_parameters(width: int, d: int, outputs: int) -> int:
    """Count the parameters of a network of ``width`` units in a slice."""
    return width * (d + 1 + outputs) + outputs


class RandomSlice:
    """Nested random slices of a target in normalised inputs.

    Points are given by their first d coordinates y in the frame, (n, d) for any d; the others are zero.
    """

    def __init__(
        self, ask: Callable[[Array], Array], region: Region, reach: float, rng: np.random.Generator
    ) -> None:
        self._ask, self._region, self._rng = ask, region, rng
        inputs = region.n_inputs
        self.frame: Array = scipy.linalg.qr(rng.standard_normal((inputs, inputs)), check_finite=False)[0]
        """Q (D, D)."""
        self.least_margin = reach * float(np.abs(self.frame).max())
        """How far an input moves when a point is moved by ``reach`` along a column of the frame."""

    def ask(self, points: Array) -> Array:
        """Ask for answers (n, K) at slice coordinates (n, d)."""
        return self._ask(points @ self.frame[:, : points.shape[1]].T)

    def ask_beside(self, points: Array, step: float) -> Array:
        """Ask for answers (n, D - d, K) at points (n, d) moved by ``step`` along each direction outside."""
        d, inputs = points.shape[1], len(self.frame)
        centers = points @ self.frame[:, :d].T
        outside = step * self.frame[:, d:].T
        answers = [self._ask(center + outside) for center in centers]
        return np.stack(answers).reshape(len(points), inputs - d, -1)

    def length_scale(self, d: int) -> float:
        """Return the length at which a unit varies in ``d`` directions as much as in all inputs."""
        return float(np.sqrt(len(self.frame) / d))

    def margin(self, reach: float, d: int) -> float:
        """Return how far an input moves at most along a path of length ``reach`` in ``d`` directions."""
        return reach * float(np.linalg.norm(self.frame[:, :d], axis=1).max())

    def has_room(self, margin: float) -> bool:
        """Return whether all inputs may be moved by ``margin`` from the center of the region."""
        around = np.full((2, len(self.frame)), margin)
        around[1] *= -1
        return bool(self._region.contains(around).all())

    def draw(self, count: int, d: int, margin: float | None = None, spread: float = 1.0) -> Array:
        """Draw points (count, d), ``spread`` times as far out as those of the region if there is room.

        If there is a box, they lie in it and stay there when every input is moved by ``margin``. Its default
        allows for moves along a column of the frame by the ``reach`` of all slices.
        """
        margin = self.least_margin if margin is None else margin
        points = spread * self.length_scale(d) * self._rng.standard_normal((count, d))
        while self._region.has_box:
            inputs = points @ self.frame[:, :d].T
            inside = self._region.contains(inputs + margin) & self._region.contains(inputs - margin)
            if inside.all():
                break
            points[~inside] *= _DRAW_INWARD
        return points


def lattice_step(slices: RandomSlice, d: int, rng: np.random.Generator, options: SliceOptions) -> float:
    """Choose the step for lattices in ``d`` directions of a slice."""
    root = float(np.sqrt(len(slices.frame)))
    length = options.line_step * root
    typical = options.bend_per_step / options.typical_sharpness * root
    margin = slices.margin(3 * length, d)
    if not slices.has_room(margin):
        return typical
    centers = slices.draw(options.lines, d, margin)
    directions = rng.standard_normal((options.lines, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    factors = length * np.array([1, 2, 3, -1, -2, -3])
    points = centers + factors[:, None, None] * directions
    answers = slices.ask(points.reshape(-1, d)).reshape(len(factors), options.lines, -1)
    sharpness = _sharpness(answers[:3] - answers[3:], length)
    if not (np.isfinite(sharpness) and sharpness > 0):
        return typical
    shortest, longest = options.step_range
    return float(np.clip(options.bend_per_step / sharpness, shortest * typical, longest * typical))


def _sharpness(odd: Array, step: float) -> float:
    """Estimate the sharpness from f(x + k h e) - f(x - k h e), k = 1, 2, 3, an array (3, lines, K)."""
    third = (odd[1] - 2 * odd[0]) / (2 * step**3)
    fifth = (odd[2] - 4 * odd[1] + 5 * odd[0]) / (2 * step**5)
    size = float(np.sqrt(np.mean(third**2)))
    return float(np.sqrt(np.sqrt(np.mean(fifth**2)) / size)) if size > 0 else np.inf
