"""Functions that deep networks hold in few gates and shallow ones cannot, with their numbers of pieces.

**Sawtooth** ([mathematics] Def. 5, Thms. 2.3.1 and 2.3.2). For 0 < a_1 < ... < a_p < M, the function h_a is 0
for x <= 0, M (i mod 2) at a_i, M - h_a(a_p) at M, linear between and beyond: w = p + 1 pieces on [0, M], each
onto [0, M]. A composition of k of them has w^k pieces there and takes w k gates in k hidden layers; a network
of k' hidden layers takes at least `bounds.min_size(w^k, k' + 1)`.

**Zonotope** (Thm. 2.3.10). gamma(r) = sum_i |<r, b_i>|, i = 1..m, is linear on the cones into which the
hyperplanes <r, b_i> = 0 divide R^n: for generators in general position

    2 sum_{i=0}^{n-1} C(m-1, i)

of them (the source lacks the factor 2; one generator in one dimension already has two). Composed with a
sawtooth, every cone holds w^k pieces where gamma < M, in 2 m + w k gates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from math import comb, prod
from typing import Any

import numpy as np

from unweave.construct.algebra import IDENTITY, RELU, compose
from unweave.construct.exactness import Number, array, is_exact, number, numbers, zeros
from unweave.construct.pwl import pwl1d_to_relu
from unweave.errors import InvalidInput
from unweave.networks.network import Network


def sawtooth(break_lists: Iterable[Sequence[Any]], height: Any = 1, exact: bool | None = None) -> Network:
    """h_{a^k} o ... o h_{a^1} for ``break_lists`` = [a^1, ..., a^k] and M = ``height``.

    Example:
        >>> net = sawtooth([[Fraction(1, 3), Fraction(2, 3)]] * 4)
        >>> net.hidden, sawtooth_pieces([3] * 4), net([Fraction(1, 81)])[0]
        ((3, 3, 3, 3), 81, Fraction(1, 1))
    """
    lists = [list(breaks) for breaks in break_lists]
    if not lists:
        raise InvalidInput("break_lists must hold at least one list. It is empty. For example [[0.5]].")
    exact = is_exact(exact, *lists, [height])
    top = number(height, exact, "height")
    if not top > 0:
        raise InvalidInput(f"height must be positive. Got {height} instead. It is the interval's length too.")
    teeth = [_teeth(numbers(breaks, exact, "break_lists"), top, exact) for breaks in lists]
    return reduce(lambda inner, outer: compose(outer, inner), teeth)


def even_sawtooth(width: int, layers: int, exact: bool = True) -> Network:
    """The sawtooth on [0, 1] with breaks 1/w, ..., (w-1)/w in each of ``layers`` layers: w^k equal sides."""
    if width < 2 or layers < 1:
        raise InvalidInput(
            f"width must be at least 2 and layers at least 1. Got {width} and {layers} instead. "
            f"For example even_sawtooth(2, 5)."
        )
    breaks = [Fraction(i, width) for i in range(1, width)]
    return sawtooth([breaks] * layers, exact=exact)


def sawtooth_pieces(widths: Sequence[int]) -> int:
    """Pieces on (0, M) of a sawtooth whose layers have these widths: their product."""
    return prod(widths)


def sawtooth_pieces_in_all(widths: Sequence[int]) -> int:
    """Pieces on the whole line: one more to the left of 0, and perhaps one to the right of M.

    Past M each layer goes on along its last side. That one rises for an odd width and leads past M in the
    next layer too; for an even width it falls below 0, where the next layer, if there is one, is flat.
    """
    return sawtooth_pieces(widths) + (2 if any(width % 2 == 0 for width in widths[:-1]) else 1)


def support_function(generators: Any, exact: bool | None = None) -> Network:
    """gamma(r) = sum_i |<r, b_i>| for ``generators`` (m, n), rows b_i: one hidden layer of 2 m gates."""
    exact = is_exact(exact, generators)
    rows = array(generators, exact, "generators")
    if rows.ndim != 2 or not rows.size:
        raise InvalidInput(f"generators must be of shape (m, n). Got {rows.shape} instead. One row each.")
    m = rows.shape[0]
    inner = np.concatenate([rows.T, -rows.T], axis=1)
    outer = zeros((2 * m, 1), exact) + 1
    return Network([inner, outer], [zeros(2 * m, exact), zeros(1, exact)], [RELU, IDENTITY])


def zonotope(
    generators: Any, break_lists: Iterable[Sequence[Any]], height: Any = 1, exact: bool | None = None
) -> Network:
    """The sawtooth of ``break_lists`` and ``height`` of the support function of ``generators`` (m, n).

    Size 2 m + w k in k + 1 hidden layers; `zonotope_pieces` pieces where gamma < height.
    """
    lists = [list(breaks) for breaks in break_lists]
    exact = is_exact(exact, generators, *lists, [height])
    return compose(sawtooth(lists, height, exact), support_function(generators, exact))


def zonotope_cones(n: int, m: int) -> int:
    """2 sum_{i<n} C(m-1, i): cones of m hyperplanes through 0 in R^n, in general position; vertices too."""
    if n < 1 or m < 1:
        raise InvalidInput(f"n and m must be positive. Got {n} and {m} instead. For example n=2, m=4.")
    return 2 * sum(comb(m - 1, i) for i in range(n))


def zonotope_pieces(n: int, m: int, widths: Sequence[int]) -> int:
    """Pieces of `zonotope` where gamma < height, generators in general position."""
    return zonotope_cones(n, m) * sawtooth_pieces(widths)


def zonotope_pieces_on_line(m: int, widths: Sequence[int]) -> int:
    """2 prod(w) + m - 1: most pieces of `zonotope` along a line where gamma < height, m generators.

    Along a line gamma is convex with a kink per generator. It falls through all w^k sides of the sawtooth and
    rises through them again; near the origin the kinks lie below the first break and add m - 1 pieces.
    """
    return 2 * sawtooth_pieces(widths) + m - 1


def _teeth(breaks: list[Number], top: Number, exact: bool) -> Network:
    """h_a of one list of breaks, w gates."""
    zero = number(0, exact, "zero")
    points = [zero, *breaks, top]
    if not breaks or any(not a < b for a, b in pairwise(points)):
        raise InvalidInput(
            f"break_lists must hold increasing numbers between 0 and the height {top}, both excluded. Got "
            f"{[str(b) for b in breaks]} instead. Sort them."
        )
    heights = [top if i % 2 else zero for i in range(len(points))]  # 0, M, 0, M, ... up to M itself
    slope = (heights[-1] - heights[-2]) / (points[-1] - points[-2])
    return pwl1d_to_relu(zero, slope, points[:-1], heights[:-1], exact)
