"""Signs xi in {-1, 1}^m with M xi = r as a short vector of a lattice.

With M and r in units of their error, the lattice spanned by the rows of

    (2 e_i | 0 | 2 M_i),   (1 ... 1 | 1 | M 1 - r),        M_i the columns of M,

holds (xi | 1 | M xi - r), whose length is about sqrt(m + 1 + q). All its vectors have coordinates of one
parity, as xi has: without that the lattice would be twice as dense, and the wanted vector hide among others.

1. `lll`: bits of M are fed a few at a time, so that floating-point Gram-Schmidt vectors stay well
   conditioned. Coordinates are exact integers.
2. `bkz_tour`: the first vector of every block of consecutive ones becomes a shortest one of it, found level
   by level for all candidates at once.
3. `decoded`: the wanted vector is the only one as short in every projection onto the last Gram-Schmidt
   vectors as a random vector of its length; a search from the last one keeps what may still become it.

Larger blocks are tried until the vector appears or the effort is spent.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betaincinv

from unweave.arrays import Array, IntArray
from unweave.numerics.clock import out_of_time

_Over = Callable[[], bool]
_GUARD_BITS = 6  # of integers beyond the error: rounding of m of them stays below it
_MOST_BITS = 54  # of an integer, so that sums of many stay below 2^63
_FED_BITS = 12  # at a time: floating-point numbers stand the lengths that result; fastest
_FEED_DELTA, _LAST_DELTA = 0.9, 0.99  # of the Lovasz condition
_LLL_BLOCK = 20  # vectors reduced at once in lists: fastest
_BLOCKS = (12, 16, 20, 24, 28, 32, 32, 36, 36, 36, 40, 40)  # vectors per block, tour by tour
_MOST_CANDIDATES = 20_000  # per level of a block
_MOST_DECODED = 100_000  # per level of the whole basis: tens of MB
_WANTED_ERRORS = 10.0  # per equation up to which a pattern is the wanted one
_FEW_COORDINATES = 12  # in which the wanted vector may be as long as in this many
_HOPELESS = 300.0  # expected candidates per kept one from which decoding is not tried
_PROJECTION_QUANTILE = 0.98  # of the squared length of a projection of the wanted vector
_RADIUS = 1.1  # in expected shortest lengths: a block's vector is looked for up to this one
_LARGE_BLOCK = 20  # vectors from which that expectation is worth something


@dataclass(frozen=True, eq=False)
class LatticeSearch:
    """What a reduced lattice shows."""

    patterns: tuple[Array, ...] = ()
    """xi (m,), +-1, best first: M xi = r up to a few errors or, if seen while few bits were fed, more."""
    kernel: tuple[Array, ...] = ()
    """v (m,) in {-1, 0, 1} with M v = 0."""
    block: int = 0
    """Vectors per block of the last tour; 2 for LLL, 0 if nothing was reduced."""


def search_sign_lattice(
    matrix: Array, right: Array, seconds: float = np.inf, largest_block: int = _BLOCKS[-1]
) -> LatticeSearch:
    """Search for xi with M (q, m) xi = r (q,), both in units of their error.

    The search is given up after ``seconds`` of computing time or blocks of ``largest_block`` vectors.
    """
    late = time.process_time() + seconds

    def over() -> bool:
        return out_of_time() or time.process_time() > late

    def misfit(signs: Array) -> float:
        return float(np.linalg.norm(matrix @ signs - right))

    def best_first(found: LatticeSearch) -> LatticeSearch:
        return replace(found, patterns=tuple(sorted(found.patterns, key=misfit)))

    def is_wanted(found: LatticeSearch) -> bool:
        return min(map(misfit, found.patterns), default=np.inf) <= _WANTED_ERRORS * math.sqrt(len(matrix))

    basis, block = _Basis(matrix, right), 2
    chance: list[Array] = []
    for _ in basis.lll(over):
        found = basis.found(block)
        if is_wanted(found):
            return best_first(found)
        chance += found.patterns
    if over():
        return best_first(LatticeSearch(tuple(chance), block=block))
    wanted = np.asarray(_wanted_lengths(*basis.shape))
    for size in (0, *_BLOCKS):
        if size > largest_block or over():
            break
        if size:
            basis.bkz_tour(size, over)
            block = size
        found = basis.found(block)
        if is_wanted(found):
            return best_first(found)
        decoded = basis.decoded(wanted, over)
        if decoded is not None:
            return LatticeSearch((decoded,), found.kernel, block)
    found = basis.found(block)
    return best_first(replace(found, patterns=(*found.patterns, *chance)))


def _wanted_lengths(dimension: int, equations: int) -> list[float]:
    """Return squared lengths (n,) that projections onto the last 1, 2, ..., n vectors seldom exceed."""
    squared = dimension + equations + 4 * math.sqrt(2 * equations)
    # In few coordinates the wanted vector is an integer multiple of a length, not a random number.
    shares = [
        float(betaincinv(k / 2, (dimension - k) / 2, _PROJECTION_QUANTILE))
        for k in np.maximum(np.arange(1, dimension), min(_FEW_COORDINATES, dimension - 1))
    ]
    return [squared * share for share in (*shares, 1.0)]


class _Basis:
    """Rows of a basis: exact coordinates, and equations in integers of 2^-6 errors or coarser."""

    def __init__(self, matrix: Array, right: Array) -> None:
        width = matrix.shape[1]
        self.shape = width + 1, len(matrix)
        self._equations = np.vstack([matrix.T, -right])
        largest = float(np.abs(self._equations).max(initial=1.0))
        self._bits = min(_GUARD_BITS, _MOST_BITS - math.ceil(math.log2(largest)))  # of the last feeding
        self._first = -math.floor(math.log2(largest)) + _GUARD_BITS + _FED_BITS
        self._rows = np.zeros((width + 1, width + 1), dtype=np.int64)
        self._rows[:width, :width] = 2 * np.eye(width, dtype=np.int64)
        self._rows[width] = 1
        self._fed = 0

    def lll(self, over: _Over) -> Iterator[None]:
        """Reduce the basis while more and more bits of the equations are looked at, until time ends."""
        for bits in [*range(min(self._first, self._bits), self._bits, _FED_BITS), self._bits]:
            self._feed(bits)
            if not self._reduce(_LAST_DELTA if bits == self._bits else _FEED_DELTA, over):
                return
            yield

    def _feed(self, bits: int) -> None:
        """Look at the equations in units of 2^-bits errors."""
        dimension = self.shape[0]
        coordinates = self._rows[:, :dimension]
        scaled = np.rint(np.ldexp(self._equations, bits)).astype(np.int64)
        # Sums wrap around and come back: the vectors themselves are short.
        self._rows = np.hstack([coordinates, coordinates @ scaled])
        self._fed = bits

    def _triangle(self) -> Array:
        """Return R (n, n), upper triangular with positive diagonal: column i is row i of the basis."""
        vectors = self._rows.T.astype(np.float64)
        vectors[self.shape[0] :] *= 2.0**-_GUARD_BITS
        triangle = np.linalg.qr(vectors, mode="r")
        return np.asarray(triangle * np.where(np.diag(triangle) < 0, -1.0, 1.0)[:, None])

    def _reduce(self, delta: float, over: _Over) -> bool:
        """Reduce overlapping blocks until none of them changes; return False if time ended before."""
        dimension, swapped = self.shape[0], True
        while swapped:
            triangle, swapped = self._triangle(), False
            self._shorten(triangle, 1, dimension)
            for first in range(0, dimension - 1, _LLL_BLOCK // 2):
                if over():
                    return False
                last = min(first + _LLL_BLOCK, dimension)
                moves, swaps = _lll_moves(triangle[first:last, first:last], delta)
                if swaps:
                    swapped = True
                    self._move(triangle, first, last, moves)
                    self._shorten(triangle, first, last)
                if last == dimension:
                    break
        return True

    def _move(self, triangle: Array, first: int, last: int, moves: IntArray) -> None:
        """Replace rows first ... last - 1 by their combinations ``moves`` (one per column)."""
        self._rows[first:last] = moves.T @ self._rows[first:last]
        triangle[:last, first:last] = triangle[:last, first:last] @ moves
        rotation, block = np.linalg.qr(triangle[first:last, first:last])
        signs = np.where(np.diag(block) < 0, -1.0, 1.0)
        triangle[first:last, first:last] = np.triu(block * signs[:, None])
        triangle[first:last, last:] = (rotation * signs).T @ triangle[first:last, last:]

    def _shorten(self, triangle: Array, first: int, last: int) -> None:
        """Subtract earlier rows from rows first ... last - 1, which makes these as short as that can."""
        for i in range(last - 2, -1, -1):
            start = max(i + 1, first)
            times = np.rint(triangle[i, start:last] / triangle[i, i])
            changed = np.flatnonzero(times)
            if len(changed):
                times, changed = times[changed], start + changed
                triangle[: i + 1, changed] -= np.outer(triangle[: i + 1, i], times)
                self._rows[changed] -= np.outer(times.astype(np.int64), self._rows[i])

    def bkz_tour(self, size: int, over: _Over) -> None:
        """Put a shortest vector of every block of ``size`` vectors first in it."""
        dimension, triangle = self.shape[0], self._triangle()
        self._shorten(triangle, 1, dimension)
        for first in range(dimension - 2):
            if over():
                return
            last = min(first + size, dimension)
            short = _shortest(triangle[first:last, first:last])
            if short is None:
                continue
            self._move(triangle, first, last, _insertion(short))
            self._shorten(triangle, first, last)
            self._move(triangle, first, last, _lll_moves(triangle[first:last, first:last], _LAST_DELTA)[0])
            self._shorten(triangle, first, last)
        self._reduce(_LAST_DELTA, over)

    def found(self, block: int) -> LatticeSearch:
        """Return what the rows show."""
        dimension = self.shape[0]
        rows = self._rows[:, :dimension]
        sizes, last = np.abs(rows), rows[:, -1]
        patterns = rows[(sizes == 1).all(axis=1)]
        kernel = rows[(last == 0) & (sizes.max(axis=1) == 2)] // 2
        return LatticeSearch(
            tuple((patterns[:, :-1] * patterns[:, -1:]).astype(np.float64)),
            tuple(kernel[:, :-1].astype(np.float64)),
            block,
        )

    def decoded(self, wanted: Array, over: _Over) -> Array | None:
        """Return the pattern (m,) whose projections stay within ``wanted`` squared lengths (n,), or None."""
        triangle = self._triangle()
        if _expected_candidates(np.diag(triangle), wanted) > _HOPELESS * _MOST_DECODED or over():
            return None
        coefficients, _ = _combinations(triangle, wanted, _MOST_DECODED, over)
        if over():
            return None
        vectors = coefficients.astype(np.int64) @ self._rows[:, : self.shape[0]]
        patterns = vectors[(np.abs(vectors) == 1).all(axis=1)]
        return None if not len(patterns) else (patterns[0, :-1] * patterns[0, -1]).astype(np.float64)


def _lll_moves(triangle: Array, delta: float) -> tuple[IntArray, int]:
    """Return U (n, n), integer of determinant +-1, for which R U is LLL reduced, and how many swaps it took.

    In lists: for so few vectors every array operation costs more than the loop inside it.
    """
    n, lengths = len(triangle), np.diag(triangle)
    shares = (triangle / lengths[:, None]).T.tolist()  # [i][j]: of vector j in vector i, j < i
    squares = (lengths**2).tolist()
    moves = np.eye(n, dtype=np.int64).tolist()
    k, swaps = 1, 0
    while k < n:
        own, before = shares[k], shares[k - 1]
        _subtract(shares, moves, k, k - 1)
        share, above = own[k - 1], squares[k - 1]
        new = squares[k] + share * share * above
        if new >= delta * above:
            for j in range(k - 2, -1, -1):
                _subtract(shares, moves, k, j)
            k += 1
            continue
        swaps += 1
        other = share * above / new
        squares[k], squares[k - 1] = above * squares[k] / new, new
        moves[k], moves[k - 1] = moves[k - 1], moves[k]
        own[: k - 1], before[: k - 1] = before[: k - 1], own[: k - 1]
        own[k - 1] = other
        for later in shares[k + 1 :]:
            first = later[k]
            rest = later[k - 1] - share * first
            later[k], later[k - 1] = rest, first + other * rest
        k = max(k - 1, 1)
    return np.array(moves, dtype=np.int64).T, swaps


def _subtract(shares: list[list[float]], moves: list[list[int]], k: int, j: int) -> None:
    """Subtract vector j from vector k as often as makes its share smallest."""
    times = round(shares[k][j])
    if times:
        row, other = shares[k], shares[j]
        for i in range(j):
            row[i] -= times * other[i]
        row[j] -= times
        moves[k] = [a - times * b for a, b in zip(moves[k], moves[j], strict=True)]


def _shortest(block: Array) -> IntArray | None:
    """Return coefficients (k,) of a vector shorter than the first of the block, one of them +-1, or None."""
    size, lengths = len(block), np.diag(block)
    radius = 0.99 * float(lengths[0]) ** 2
    if size >= _LARGE_BLOCK:
        ball = math.lgamma(size / 2 + 1) / size - math.log(math.pi) / 2
        radius = min(radius, (_RADIUS * math.exp(float(np.log(lengths).mean()) + ball)) ** 2)
    # Linear pruning: few short vectors are long in a projection.
    bounds = radius * np.minimum(1.0, 0.15 + 1.1 * np.arange(1, size + 1) / size)
    coefficients, squares = _combinations(block, bounds, _MOST_CANDIDATES)
    usable = (squares > 0) & (squares < radius) & (np.abs(coefficients) == 1).any(axis=1)
    if not usable.any():
        return None
    best = coefficients[usable][np.argmin(squares[usable])]
    return np.asarray(best.astype(np.int64))


def _combinations(
    triangle: Array, bounds: Array, most: int, over: _Over = out_of_time
) -> tuple[Array, Array]:
    """Return coefficients (c, n) and squared lengths of vectors R c within bounds in every projection.

    ``bounds`` (n,) hold for the squared lengths in the last 1, 2, ..., n coordinates. Of c and -c one is
    returned, and the ``most`` shortest projections are followed at each level; none when time is ``over``.
    """
    n = len(triangle)
    chosen, squares = np.zeros((1, 0)), np.zeros(1)
    for i in range(n - 1, -1, -1):
        if over():
            return np.zeros((0, n)), np.zeros(0)
        step = triangle[i, i]
        centers = -(chosen @ triangle[i, i + 1 :]) / step
        reach = np.sqrt(np.maximum(bounds[n - 1 - i] - squares, 0.0)) / step
        lowest = np.where(squares == 0, 0.0, np.ceil(centers - reach))
        counts = np.maximum(np.floor(centers + reach) - lowest + 1, 0).astype(np.int64)
        parents = np.repeat(np.arange(len(counts)), counts)
        values = lowest[parents] + np.arange(len(parents)) - np.repeat(np.cumsum(counts) - counts, counts)
        lengths = squares[parents] + ((values - centers[parents]) * step) ** 2
        if len(parents) > most:
            kept = np.argpartition(lengths, most)[:most]
            parents, values, lengths = parents[kept], values[kept], lengths[kept]
        chosen, squares = np.hstack([values[:, None], chosen[parents]]), lengths
    return chosen, squares


def _expected_candidates(lengths: Array, bounds: Array) -> float:
    """Return how many vectors the fullest level of `_combinations` is expected to have."""
    k = np.arange(1, len(lengths) + 1)
    balls = k / 2 * np.log(math.pi) - np.array([math.lgamma(each / 2 + 1) for each in k])
    volumes = balls + k / 2 * np.log(bounds) - np.cumsum(np.log(lengths[::-1]))
    return float(np.exp(min(volumes.max(), 700.0))) / 2


def _insertion(coefficients: IntArray) -> IntArray:
    """Return moves (n, n) that put this combination first and leave out a vector that it holds once."""
    n = len(coefficients)
    left_out = int(np.flatnonzero(np.abs(coefficients) == 1)[-1])
    others = np.delete(np.eye(n, dtype=np.int64), left_out, axis=1)
    return np.column_stack([coefficients, others])
