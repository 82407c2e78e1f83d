"""How near networks with few pieces come to a function, from above and from below.

**From above** ([mathematics] Thm. 2.2.3). On the grid h Z^n, divided into simplices by the hyperplanes
x_i = h k and x_i - x_j = h k,

    hat(x) = relu(1 - max(0, x_1, .., x_n) + min(0, x_1, .., x_n))

is 1 at 0, 0 at the other points of Z^n and linear on every simplex, so that sum_j f(h j) hat(x/h - j)
interpolates f. A hat has ceil(log2(n + 1)) hidden layers once it is flattened, and so has the sum; on a line,
p pieces take p gates. Interpolants converge in L^q for q < infinity. For q = infinity, which the source
includes, they do not: a function that jumps by d is at least d/2 away from every continuous one.

**From below** (Thm. 2.3.6). The even sawtooth with q sides has floor(q/2) triangles. A function with p pieces
is affine on all but p - 1 of them, and on each of those it misses the triangle by 1/(2 q) at least:

    integral over [0, 1] of |s_q - g|  >=  1/4 - (2 p - 1)/(4 q).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss

from unweave.arrays import Array, real_numbers
from unweave.construct.algebra import IDENTITY, RELU, add
from unweave.construct.exactness import as_float
from unweave.construct.flatten import maxima_of_difference
from unweave.construct.pieces import pieces_on_line
from unweave.construct.pwl import pwl1d_to_relu, pwl_to_relu
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.numerics.memory import require

Function = Callable[[Array], Array]
"""Rows x (N, n) to values (N,)."""


def interpolant(function: Function, low: Any, high: Any, cells: int) -> Network:
    """The network that equals ``function`` at the grid points of a box, linear between, zero outside.

    Args:
        function: rows (N, n) to values (N,), or (N, 1).
        low, high: corners (n,) of the box.
        cells: cells along every side. Outside the box the network falls to zero within one cell.

    Hidden layers: ceil(log2(n + 1)). Gates: ``cells`` + 3 at most for n = 1, else (cells + 1)^n hats.

    Example:
        >>> net = interpolant(lambda x: x[:, 0] ** 2, [0.0], [1.0], 4)
        >>> net.hidden, net([[0.5], [0.625], [2.0]]).ravel().tolist()
        ((6,), [0.25, 0.40625, 0.0])
    """
    lower, upper = _corners(low, high)
    if cells < 1:
        raise InvalidInput(f"cells must be at least 1. Got {cells} instead. More of them come nearer.")
    n = len(lower)
    steps = np.array(list(product(range(cells + 1), repeat=n)), dtype=np.float64)
    values = np.asarray(function(lower + steps * (upper - lower) / cells), dtype=np.float64).reshape(-1)
    if len(values) != len(steps) or not np.isfinite(values).all():
        raise InvalidInput(
            f"function must give one finite value for each of {len(steps)} rows. Got {len(values)} values "
            f"instead, or some that are not finite. Cut poles off first."
        )
    if n == 1:
        width = (upper[0] - lower[0]) / cells
        nodes = [lower[0] - width, *(lower[0] + width * steps[:, 0]), upper[0] + width]
        return pwl1d_to_relu(0.0, 0.0, nodes, [0.0, *values, 0.0])
    return _sum_of_hats(steps, values, lower, (upper - lower) / cells)


@cache
def hat(n: int) -> Network:
    """max(M, 1) - M, M = max_ij (x_i - x_j) with x_0 = 0: the hat of the module's text, in fractions, flat.

    Example:
        >>> hat(1).hidden, len(hat(2).hidden), hat(2)([[Fraction(1, 2), Fraction(1, 4)]])[0, 0]
        ((3,), 2, Fraction(1, 2))
    """
    unit = [[0] * n, *([int(i == k) for i in range(n)] for k in range(n))]
    spread = {tuple(Fraction(a - b) for a, b in zip(*pair, strict=True)) for pair in permutations(unit, 2)}
    lower = frozenset((*slopes, Fraction(0)) for slopes in spread)
    if n == 1:
        return pwl1d_to_relu(0, 0, [-1, 0, 1], [0, Fraction(1), 0])
    top = frozenset([(*[Fraction(0)] * n, Fraction(1))])
    return pwl_to_relu(maxima_of_difference(lower | top, lower))


def _sum_of_hats(steps: Array, values: Array, origin: Array, width: Array) -> Network:
    """sum_j values_j hat((x - origin)/width - steps_j), the hats side by side."""
    n = steps.shape[1]
    one = as_float(hat(n))
    kept = np.flatnonzero(values)
    if not len(kept):
        return Network([np.zeros((n, 1)), np.zeros((1, 1))], [np.zeros(1), np.zeros(1)], [RELU, IDENTITY])
    require(len(kept) ** 2 * sum(a * b for a, b in pairwise(one.hidden)), "weights of the hats")
    first = np.tile(one.weights[0] / width[:, None], len(kept))
    offsets = [one.biases[0] - (steps[j] + origin / width) @ one.weights[0] for j in kept]
    middle = [np.kron(np.eye(len(kept)), weight) for weight in one.weights[1:-1]]
    last = np.concatenate([values[j] * one.weights[-1] for j in kept])
    biases = [np.concatenate(offsets), *(np.tile(b, len(kept)) for b in one.biases[1:-1])]
    constant = one.biases[-1] * values.sum()
    return Network([first, *middle, last], [*biases, constant], one.activations)


def lq_distance(
    function: Function, network: Network, low: Any, high: Any, q: float, cells: int = 64, nodes: int = 4
) -> float:
    """(integral over the box of |function - network|^q)^(1/q), by Gauss's rule in each of cells^n cells.

    ``q`` is finite, 1 or more. A jump inside a cell costs accuracy: choose ``cells`` so that jumps and kinks
    lie on their sides. Cost: (cells nodes)^n values.

    Example:
        >>> net = interpolant(lambda x: np.abs(x[:, 0]), [-1.0], [1.0], 2)
        >>> lq_distance(lambda x: np.abs(x[:, 0]), net, [-1.0], [1.0], 2.0) < 1e-15
        True
    """
    lower, upper = _corners(low, high)
    if not 1 <= q < np.inf:
        raise InvalidInput(f"q must be a finite number of at least 1. Got {q} instead. For example 2.")
    points, weights = leggauss(nodes)
    at = ((np.arange(cells)[:, None] + (points + 1) / 2) / cells).reshape(-1)
    share = np.tile(weights / 2 / cells, cells)
    n = len(lower)
    require((n + 2) * len(at) ** n, "nodes of the quadrature")
    x = np.stack(np.meshgrid(*[at] * n, indexing="ij"), axis=-1).reshape(-1, n)
    weight = np.prod(np.stack(np.meshgrid(*[share] * n, indexing="ij"), axis=-1).reshape(-1, n), axis=1)
    x = lower + x * (upper - lower)
    gap = np.abs(np.asarray(function(x)).reshape(-1) - network(x)[:, 0])
    return float((np.prod(upper - lower) * np.sum(weight * gap**q)) ** (1 / q))


def mean_distance(one: Network, other: Network, low: Any = 0, high: Any = 1) -> Fraction:
    """Integral of |one - other| from ``low`` to ``high``, of networks with one input and output, exactly.

    Example:
        >>> from unweave.construct import affine_network, hard
        >>> mean_distance(hard.even_sawtooth(2, 3), affine_network([[0]], [Fraction(1, 2)]))
        Fraction(1, 4)
    """
    difference = add(one, other, coefficients=[1, -1])
    total = Fraction(0)
    for piece in pieces_on_line(difference, [0], [1], low, high):
        left = Fraction(low) if piece.left is None else piece.left
        right = Fraction(high) if piece.right is None else piece.right
        slope, start = piece.slopes[0], piece.intercepts[0]
        ends = [left, right]
        if slope and left < -start / slope < right:
            ends.insert(1, -start / slope)
        for a, b in pairwise(ends):
            total += abs(slope * (a + b) / 2 + start) * (b - a)
    return total


def sawtooth_distance(sides: int, pieces: int) -> Fraction:
    """1/4 - (2 p - 1)/(4 q), or 0: every function with p ``pieces`` is as far from the even sawtooth.

    Example:
        >>> sawtooth_distance(1024, 100)
        Fraction(825, 4096)
    """
    if sides < 1 or pieces < 1:
        raise InvalidInput(f"sides and pieces must be positive. Got {sides} and {pieces} instead.")
    return max(Fraction(0), Fraction(1, 4) - Fraction(2 * pieces - 1, 4 * sides))


def _corners(low: Any, high: Any) -> tuple[Array, Array]:
    lower, upper = real_numbers(low, "low"), real_numbers(high, "high")
    if lower.ndim != 1 or lower.shape != upper.shape or not len(lower) or not (lower < upper).all():
        raise InvalidInput(
            f"low and high must be of shape (n,), low below high. Got {low} and {high} instead. For a line, "
            f"[0.0] and [1.0]."
        )
    return lower, upper
