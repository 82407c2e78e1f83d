"""The dichotomies of growing subsets of the points, as a tree.

With the points in a fixed order, the dichotomies of the first n points are the prefixes of length n of those
of all points (every dichotomy of a subset extends). Sorted lexicographically, the extensions of a prefix
are a contiguous range of the next level, so a level is its patterns and where the children of each begin.

A tuple of w patterns, one per unit, bounds all its descendants: the loss on the first n points, minimized
without further conditions, is at most the loss on all points of any network with one of these patterns.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from unweave.arrays import Array, BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Level:
    """Dichotomies of the first n points."""

    patterns: NDArray[np.uint8]
    """(M, n), 0 or 1, in lexicographic order."""
    z: Array
    """(n, q) the points, with a column of ones."""
    y: Array
    """(n,)."""
    first_child: IntArray
    """(M + 1,): the children of pattern i are first_child[i] to first_child[i+1] - 1 of the next level."""


@dataclass(frozen=True, eq=False)
class PatternTree:
    """Levels from few points to all; patterns without active points are left out of the last."""

    levels: tuple[Level, ...]
    width: int

    @property
    def last(self) -> Level:
        """The level of all points."""
        return self.levels[-1]

    @property
    def n_tuples(self) -> int:
        """Unordered tuples of patterns at the last level."""
        return _tuples(len(self.last.patterns), self.width)

    def roots(self) -> IntArray:
        """(K, w) all unordered tuples of patterns at the first level, indices not decreasing."""
        count = len(self.levels[0].patterns)
        tuples = np.arange(count, dtype=np.int64)[:, None]
        for _ in range(self.width - 1):
            repeats = count - tuples[:, -1]
            starts = np.repeat(tuples[:, -1] - np.cumsum(repeats) + repeats, repeats)
            tuples = np.column_stack([np.repeat(tuples, repeats, axis=0), starts + np.arange(len(starts))])
        return tuples

    def children(self, level: int, tuples: IntArray) -> tuple[IntArray, IntArray]:
        """Tuples (K', w) at ``level`` + 1 below the given ones (K, w), and the parent (K',) of each."""
        first = self.levels[level].first_child
        sizes = first[tuples + 1] - first[tuples]
        counts = np.prod(sizes, axis=1)
        parents = np.repeat(np.arange(len(tuples), dtype=np.int64), counts)
        number = np.arange(len(parents), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
        below = np.empty((len(parents), self.width), dtype=np.int64)
        for unit in reversed(range(self.width)):
            number, digit = np.divmod(number, sizes[parents, unit])
            below[:, unit] = first[tuples[parents, unit]] + digit
        # Units that share a parent would appear in both orders.
        ordered = np.all(below[:, 1:] >= below[:, :-1], axis=1)
        return below[ordered], parents[ordered]

    def n_children(self, level: int, tuples: IntArray) -> IntArray:
        """(K,) an upper bound of the number of children of each tuple."""
        first = self.levels[level].first_child
        return np.asarray(np.prod(first[tuples + 1] - first[tuples], axis=1))


def pattern_tree(
    patterns: BoolArray, z: Array, y: Array, order: IntArray, width: int, root_tuples: int = 40_000
) -> PatternTree:
    """Build the tree of dichotomies (M, N) of points z (N, q), with the points taken in ``order`` (N,).

    All tuples of the first level are bounded; ``root_tuples`` limits their number.
    """
    bits = patterns[:, order].astype(np.uint8)
    bits = bits[np.lexsort(bits.T[::-1])]
    bits = bits[bits.any(axis=1)]  # a unit that never acts is also one with weights zero
    total = len(order)
    # Where a prefix differs from the one before it: from this column on, the two are separate.
    differs = np.argmax(bits[1:] != bits[:-1], axis=1) if len(bits) > 1 else np.zeros(0, dtype=np.int64)
    counts = 1 + np.cumsum(np.bincount(differs, minlength=total))  # distinct prefixes of length 1, ..., N
    sizes = level_sizes(counts, width, root_tuples)
    starts = [np.concatenate([[0], 1 + np.flatnonzero(differs < size)]) for size in sizes]
    levels = []
    for number, size in enumerate(sizes):
        if number + 1 < len(sizes):
            first = np.searchsorted(starts[number + 1], starts[number])
            first = np.append(first, len(starts[number + 1]))
        else:
            first = np.zeros(0, dtype=np.int64)
        prefix = np.ascontiguousarray(bits[starts[number], :size])
        levels.append(Level(prefix, z[order[:size]], y[order[:size]], first.astype(np.int64)))
    return PatternTree(tuple(levels), width)


def level_sizes(
    counts: IntArray, width: int, root_tuples: int = 40_000, branching: float = 24.0
) -> list[int]:
    """Number of points of every level, given the number (N,) of dichotomies of the first 1, ..., N points.

    The first level has at most ``root_tuples`` tuples; each tuple has about ``branching`` children.
    """
    total = len(counts)
    fitting = [n for n in range(1, total + 1) if _tuples(int(counts[n - 1]), width) <= root_tuples]
    sizes = [max(fitting, default=1)]
    while sizes[-1] < total:
        most = counts[sizes[-1] - 1] * branching ** (1 / width)
        sizes.append(max(sizes[-1] + 1, int(np.searchsorted(counts, most, side="right"))))
    return sizes


def _tuples(count: int, width: int) -> int:
    return comb(count + width - 1, width)
