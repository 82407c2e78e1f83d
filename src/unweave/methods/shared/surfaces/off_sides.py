"""Tell units of a first layer from deeper ones, and on which side they are off, by gradients.

If the weights w_1, ..., w_r of the first layer's ReLU units are independent, every gradient is

    g = sum_i c_i w_i,        c_i = 0 where unit i is off.

So on one side of a unit's hyperplane all gradients lie in r - 1 dimensions. On both sides of a plane that is
a piece of a deeper unit's surface they span all r, wherever they are looked at. In a basis of planes of which
some are not units, coordinates do not vanish on one side.

Nothing here asks the target. Leaky units are off nowhere, and layers wider than what acts have no such
coordinates: then nothing is said.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray


@dataclass(frozen=True, kw_only=True)
class OffSideOptions:
    """When a coordinate is zero, and how many sets of planes are looked at."""

    zero: float = 1e-6
    """Coordinate of a gradient, relative to its size, that is none."""
    errors: float = 30.0
    """The same in errors of the gradient, where these are larger ..."""
    clear: float = 30.0
    """... and the factor on both above which it is one for certain."""
    near: float = 1e-6
    """Distance to a plane, relative to 1 + |x|, within which a point is on neither side."""
    independent: float = 1e-3
    """Least singular value of planes, of normals of length one, that can be a basis."""
    spare: int = 2
    """Gradients that lie in one dimension less, beyond those that span it."""
    most_sets: int = 500
    """Sets of planes that are looked at."""


DEFAULT_OFF_SIDE_OPTIONS = OffSideOptions()


@dataclass(frozen=True, eq=False)
class Slope:
    """A gradient."""

    point: Array
    """(d,)"""
    gradient: Array
    """(d, K)"""
    error: float


@dataclass(frozen=True, eq=False)
class Slopes:
    """Gradients of length one, each output by itself."""

    points: Array
    """(n, d)"""
    gradients: Array
    """(n, d)"""
    allowed: Array
    """(n,) what counts as zero in them"""

    @classmethod
    def of(cls, slopes: Sequence[Slope], options: OffSideOptions = DEFAULT_OFF_SIDE_OPTIONS) -> Slopes:
        """Return those that are not zero."""
        points, gradients, allowed = [], [], []
        for slope in slopes:
            for gradient in slope.gradient.T:
                size = float(np.linalg.norm(gradient))
                if size > options.clear * options.errors * slope.error:
                    points.append(slope.point)
                    gradients.append(gradient / size)
                    allowed.append(max(options.zero, options.errors * slope.error / size))
        if not points:
            return cls(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0))
        return cls(np.stack(points), np.stack(gradients), np.array(allowed))

    def __len__(self) -> int:
        return len(self.points)

    def sides(self, matrix: Array, options: OffSideOptions) -> Array:
        """Return (n, m) the sides +-1 of planes (m, d + 1) on which the points are, 0 on the planes."""
        heights = self.points @ matrix[:, :-1].T + matrix[:, -1]
        near = options.near * (1 + np.abs(self.points).max(axis=1, keepdims=True))
        return np.where(np.abs(heights) > near, np.sign(heights), 0.0)


def active_sides_of(
    matrix: Array, slopes: Slopes, options: OffSideOptions = DEFAULT_OFF_SIDE_OPTIONS
) -> Array | None:
    """Return the side (m,) +-1 of planes (m, d + 1) on which their units are on, 0 where none is seen.

    Return None if the planes are not all of a layer's units.
    """
    normals = matrix[:, :-1].T
    if not len(slopes) or matrix.shape[0] > normals.shape[0]:
        return None
    left, values, right = np.linalg.svd(normals, full_matrices=False)
    if values[-1] < options.independent:
        return None
    rest = slopes.gradients - (slopes.gradients @ left) @ left.T
    if (np.linalg.norm(rest, axis=1) > options.clear * slopes.allowed).any():
        return None
    coordinates = np.abs(slopes.gradients @ (left / values) @ right)
    allowed = (slopes.allowed / values[-1])[:, None]
    sides = slopes.sides(matrix, options)
    on, off = coordinates > options.clear * allowed, coordinates <= allowed
    above, below = (on & (sides > 0)).any(axis=0), (on & (sides < 0)).any(axis=0)
    if (above & below).any():
        return None
    active = above.astype(float) - below
    return np.asarray(np.where((off & (sides == -active)).any(axis=0), active, 0.0))


def may_be_units(
    matrix: Array, slopes: Slopes, rank: int, options: OffSideOptions = DEFAULT_OFF_SIDE_OPTIONS
) -> BoolArray:
    """Return (m,) on one side of which of the planes (m, d + 1) gradients span less than ``rank``."""
    sides, found = slopes.sides(matrix, options), np.zeros(len(matrix), dtype=bool)
    for plane, side in itertools.product(range(len(matrix)), (1.0, -1.0)):
        rows = np.flatnonzero(sides[:, plane] == side)
        if len(rows) < rank - 1 + options.spare:
            found[plane] = True  # nothing speaks against it
            continue
        values = np.linalg.svd(slopes.gradients[rows], compute_uv=False)
        full = len(values) >= rank and values[rank - 1] > options.clear * slopes.allowed[rows].max()
        found[plane] |= not full
    return found


def choose_units(
    matrix: Array, slopes: Slopes, rank: int, options: OffSideOptions = DEFAULT_OFF_SIDE_OPTIONS
) -> Iterator[tuple[IntArray, Array]]:
    """Yield sets of ``rank`` of the planes (m, d + 1) that can be all units, and the sides these are on."""
    possible = np.flatnonzero(may_be_units(matrix, slopes, rank, options))
    if len(possible) < rank or math.comb(len(possible), rank) > options.most_sets:
        return
    for some in itertools.combinations(possible.tolist(), rank):
        chosen = np.array(some)
        active = active_sides_of(matrix[chosen], slopes, options)
        if active is not None and active.all():
            yield chosen, active
