"""All ways in which a hyperplane can divide given points.

    { ( 1[a . x_1 + b > 0], ..., 1[a . x_N + b > 0] ) :  a in R^d, b in R, no point on the hyperplane }

Points in general position have 2 sum_{i <= d} C(N - 1, i) of them (Cover [dichotomies]; the figure 2 C(N, d)
that is sometimes quoted is too small). A hyperplane without points on it can be moved, without crossing one,
until the points on it span it. So every dichotomy is: a hyperplane H spanned by points, the sides of the
points off H, and a dichotomy, within H, of the points on H. In general position the last are the 2^d choices
of sides for d points; otherwise they are found by recursion, one dimension lower. Nothing is solved, and
grids, duplicates and collinear points come out right.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unweave.arrays import Array, BoolArray
from unweave.errors import InvalidInput
from unweave.exact.data import affine_coordinates, checked_points

_ON_PLANE_DISTANCE = 1e-11  # in standard deviations of the points: nearer ones lie on the hyperplane
_SIDES_PER_BLOCK = 4_000_000  # sides computed at once: 32 MB of distances
_MAX_PACKED_BYTES = 2_000_000_000  # 2 GB of packed dichotomies before duplicates are dropped
_DEPENDENT_POINTS = 1e-10  # smallest over largest singular value: below, the points span no hyperplane

Packed = NDArray[np.uint8]


def cover_count(points: int, dimension: int) -> int:
    """2 sum_{i=0}^{d} C(N - 1, i): dichotomies of N points in general position in R^d.

    Example:
        >>> cover_count(100, 2), cover_count(4, 5)
        (9902, 16)
    """
    if points < 1 or dimension < 0:
        raise InvalidInput(
            f"points must be at least 1 and dimension at least 0. Got {points} and {dimension} instead. "
            f"Count the points first."
        )
    return 2 * sum(comb(points - 1, i) for i in range(dimension + 1))


def hyperplane_dichotomies(x: ArrayLike) -> BoolArray:
    """Enumerate the dichotomies (M, N) of the points x (N, d) by hyperplanes, in lexicographic order.

    The first is all False, the last all True. Equal points are never separated. Cost: C(N, r) hyperplanes
    times 2^(r+1) N bits, r the dimension of the points' affine hull; r = 1 is a sort.

    Example:
        >>> hyperplane_dichotomies([[0.0], [2.0], [1.0]]).astype(int)
        array([[0, 0, 0],
               [0, 1, 0],
               [0, 1, 1],
               [1, 0, 0],
               [1, 0, 1],
               [1, 1, 1]])
    """
    points = checked_points(x)
    distinct, inverse = np.unique(points, axis=0, return_inverse=True)
    coordinates = affine_coordinates(distinct)
    check_size(len(distinct), coordinates.basis.shape[1])
    patterns = _dichotomies(coordinates(distinct))[:, inverse.reshape(-1)]
    return _unpacked(_unique(np.packbits(patterns, axis=1)), len(points))


def check_size(points: int, dimension: int) -> None:
    """Refuse what would not fit into memory before any work is done."""
    rows = 2 * points if dimension <= 1 else comb(points, dimension) * 2 ** (dimension + 1)
    if rows * ((points + 7) // 8) > _MAX_PACKED_BYTES:
        raise InvalidInput(
            f"x must have few enough points for its dimension: {points} distinct points that span "
            f"{dimension} dimensions have {cover_count(points, dimension):,} dichotomies. "
            f"Got more than {_MAX_PACKED_BYTES / 1e9:.0f} GB of them instead. Use fewer points or inputs."
        )


def _dichotomies(points: Array) -> BoolArray:
    """Dichotomies (M, N) of distinct points (N, r) of unit variance that span R^r."""
    count, dimension = points.shape
    if dimension == 0:
        return np.array([[False], [True]])
    if dimension == 1:
        return _sorted_cuts(points[:, 0])
    z = np.column_stack([points, np.ones(count)])
    constant = np.packbits(np.array([[False] * count, [True] * count]), axis=1)
    found, done = [constant], set[bytes]()
    for subsets in _blocks(
        itertools.combinations(range(count), dimension), max(1, _SIDES_PER_BLOCK // count)
    ):
        normals, spanning = _normals(z[subsets])
        subsets, normals = subsets[spanning], normals[spanning]
        distances = normals @ z.T
        on = np.abs(distances) <= _ON_PLANE_DISTANCE
        np.put_along_axis(on, subsets, True, axis=1)
        general = on.sum(axis=1) == dimension
        found.append(_all_sides(distances[general] > 0, subsets[general]))
        for row in np.flatnonzero(~general):  # more points than needed: one dimension lower
            key = np.packbits(on[row]).tobytes()
            if key not in done:
                done.add(key)
                found.append(_sides_within(distances[row] > 0, on[row], points))
    return _unpacked(_unique(np.vstack(found)), count)


def _sorted_cuts(x: Array) -> BoolArray:
    order = np.argsort(x, kind="stable")
    rank = np.empty(len(x), dtype=np.int64)
    rank[order] = np.arange(len(x))
    below = rank[None, :] < np.arange(len(x) + 1)[:, None]
    return np.unique(np.vstack([below, ~below]), axis=0)


def _blocks(items: Iterator[tuple[int, ...]], size: int) -> Iterator[NDArray[np.int64]]:
    while block := list(itertools.islice(items, size)):
        yield np.array(block, dtype=np.int64)


def _normals(z: Array) -> tuple[Array, BoolArray]:
    """Hyperplanes (K, r+1) through the points z (K, r, r+1), unit normal vectors; which are well defined."""
    _, extents, directions = np.linalg.svd(z)
    planes = directions[:, -1, :]
    slope = np.linalg.norm(planes[:, :-1], axis=1)
    spanning = (extents[:, -1] > _DEPENDENT_POINTS * extents[:, 0]) & (slope > _DEPENDENT_POINTS)
    return planes / np.where(slope > 0, slope, 1.0)[:, None], spanning


def _all_sides(sides: BoolArray, subsets: NDArray[np.int64]) -> Packed:
    """The sides (K, N) with all choices for the points in the subsets (K, r), both orientations."""
    found = []
    for choice in itertools.product((False, True), repeat=subsets.shape[1]):
        np.put_along_axis(sides, subsets, np.array(choice)[None, :], axis=1)
        found += [np.packbits(sides, axis=1), np.packbits(~sides, axis=1)]
    return np.vstack(found)


def _sides_within(sides: BoolArray, on: BoolArray, points: Array) -> Packed:
    """The sides (N,) with all dichotomies, within the hyperplane, of the points on it."""
    inner = hyperplane_dichotomies(points[on])
    full = np.tile(sides, (len(inner), 1))
    full[:, on] = inner
    return np.vstack([np.packbits(full, axis=1), np.packbits(~full, axis=1)])


def _unique(packed: Packed) -> Packed:
    """Distinct rows in lexicographic order; as opaque bytes, which sort many times faster than rows."""
    rows = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).reshape(-1)
    return np.unique(rows).view(np.uint8).reshape(-1, packed.shape[1])


def _unpacked(packed: Packed, count: int) -> BoolArray:
    return np.unpackbits(packed, axis=1, count=count).astype(np.bool_)
