"""A target on random slices of its input space, and how large a slice a width needs.

With Q orthogonal and E its first d columns, y -> f(E y) is a network of the same width, biases and outgoing
weights, its weights being E^T w_k: whatever finds a network finds this one, at the price of d inputs instead
of D. A random slice keeps the m directions apart as long as they are determined at all, m < d(d-1)/2.
Slices are nested: the first d columns of Q are part of the first d + 1.
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
"""Neurons that a slice is trusted to show, as a share of d(d-1)/2."""
SURPLUS = 1.1
"""Members of the span per neuron, and equations per parameter."""
FEWEST_SITES = 3
"""Lattices at least: every neuron's profile is read off them."""
SMALLEST = 6
"""Directions at least: in fewer, spans end by accident."""

_SHRINK = 0.8  # factor by which points are drawn towards the centre until they lie in the box


def most_neurons(d: int) -> int:
    """Neurons that a slice of ``d`` directions is trusted to show."""
    return int(SATURATION * d * (d - 1) / 2)


def smallest_slice(inputs: int, width: int) -> int | None:
    """The fewest directions that show ``width`` neurons, where a search that does not know the width ends."""
    return next((d for d in range(min(SMALLEST, inputs), inputs + 1) if width <= most_neurons(d)), None)


def lattices_needed(width: int, d: int, outputs: int) -> int:
    """Sites whose lattices show ``width`` neurons in ``d`` directions."""
    members = int(np.ceil(SURPLUS * width)) + 2
    return max(FEWEST_SITES, -(-members // ((d + 1) * outputs)))


def slice_parameters(width: int, d: int, outputs: int) -> int:
    """Parameters of a network of ``width`` neurons in a slice."""
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
    """The cheapest slice that shows ``width`` neurons, or None if not even all inputs do."""
    costs = [
        slice_cost(inputs, width, outputs, d, mirrored)
        for d in range(min(SMALLEST, inputs), inputs + 1)
        if width <= most_neurons(d)
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

    def unit(self, d: int) -> float:
        """Length at which a neuron of norm one varies in a slice of ``d`` directions as in all inputs."""
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
        points = self.unit(d) * self._rng.standard_normal((count, d))
        while self._region.has_box:
            inputs = points @ self.frame[:, :d].T
            inside = self._region.contains(inputs + margin) & self._region.contains(inputs - margin)
            if inside.all():
                break
            points[~inside] *= _SHRINK
        return points
