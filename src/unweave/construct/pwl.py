"""Piecewise linear functions as ReLU networks, exactly.

**One variable** ([mathematics] Thm. 2.2.2): breakpoints a_1 < ... < a_{m-1}, values b_i there, a slope to the
left and one to the right: m pieces. Each kink is a *flap*, relu(x - a_i) or relu(a_i - x), weighted by the
jump of the slope. Around any breakpoint a_s

    f(x) = b_s + r relu(x - a_s) + sum_{i>s} d_i relu(x - a_i)
               - l relu(a_s - x) + sum_{i<s} d_i relu(a_i - x),

l and r being the slopes next to a_s and d_i the jumps: m gates for m pieces. With one gate per kink, m - 1,

    f(x) = c + sum_{i not in L} d_i relu(x - a_i) + sum_{i in L} d_i relu(a_i - x)

has the left slope -sum_L d_i: it is possible if and only if some subset L of the jumps sums to minus the
left slope, and m - 1 is least because every kink needs a gate. A flat end is the empty or the full subset; in
exact arithmetic the other subsets are searched too, as long as that is cheap.

**Several variables** (Thm. 2.2.1): f = sum_j s_j max_{i in S_j} (<a_i, x> + b_i) with s_j = +-1, as a sum
of trees of maxima, of ceil(log2 max |S_j|) hidden layers. Every continuous piecewise linear function on R^n
has such a form with |S_j| <= n + 1; `construct.flatten` finds it for a network.

**Maximum** of n numbers: ceil(log2 n) hidden layers (Lemma 2.A.4). One maximum of two takes three gates,

    max(x, y) = relu(x) - relu(-x) + relu(y - x),

where the source takes four, max(x, y) = (relu(x+y) - relu(-x-y) + relu(x-y) + relu(y-x)) / 2; a number
without a partner is passed on by two. Every pair removes one number, so that there are n - 1 pairs in all:
3 (n - 1) + 2 (numbers passed on) gates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from unweave.arrays import AnyArray
from unweave.construct.algebra import IDENTITY, RELU, add, affine_network, compose
from unweave.construct.exactness import Number, array, identity, is_exact, number, numbers, zeros
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.networks.rationals import sparse_product

_QUOTIENT_ROUNDING = 4 * float(np.finfo(np.float64).eps)  # relative rounding of the operands of a quotient

Flap = tuple[int, Number, Number]  # orientation +1 or -1, kink, coefficient
_PAIR: dict[int, tuple[tuple[tuple[int, int], Fraction | int], ...]] = {
    3: (((1, 0), 1), ((-1, 0), -1), ((-1, 1), 1)),
    4: (
        ((1, 1), Fraction(1, 2)),
        ((-1, -1), Fraction(-1, 2)),
        ((1, -1), Fraction(1, 2)),
        ((-1, 1), Fraction(1, 2)),
    ),
}
"""Gates of a pair (x, y): the weights of x and y, and the weight in the sum."""
_SINGLE = ((1, 1), (-1, -1))  # gates of a number passed on: its weight, and the weight in the sum


def pwl1d_to_relu(
    left_slope: Any,
    right_slope: Any,
    breakpoints: Any,
    values: Any,
    exact: bool | None = None,
    max_subset_kinks: int = 28,
) -> Network:
    """The function with these slopes at its ends and ``values`` at ``breakpoints``, linear between.

    Args:
        left_slope: slope to the left of the first breakpoint.
        right_slope: slope to the right of the last one.
        breakpoints: a_1 < ... < a_{m-1}, at least one. Where the slope does not change, none is counted.
        values: b_1, ..., b_{m-1}.
        exact: in fractions or in floats; None: fractions if one of the numbers is a `fractions.Fraction`.
        max_subset_kinks: kinks up to which subsets of jumps are searched; 28 kinks take 2 * 2^14 sums.

    Size: m - 1 where an end is flat (or, exact, where some subset of the jumps allows it), else m. An affine
    function is a network without gates. In floats the error at x is about eps sum_i |d_i| |x - a_i|; the
    flaps are taken around the middle breakpoint, which halves it. Cost: O(m).

    Example:
        >>> hat = pwl1d_to_relu(0, 0, [0, 1, 2], [0, Fraction(1, 3), 0])
        >>> hat.hidden, hat([Fraction(1, 2)])[0]
        ((3,), Fraction(1, 6))
    """
    exact = is_exact(exact, [left_slope, right_slope], list(breakpoints), list(values))
    left, right = number(left_slope, exact, "left_slope"), number(right_slope, exact, "right_slope")
    kinks, heights = _checked_points(breakpoints, values, exact)
    kinks, heights = _true_kinks(kinks, heights, left, right)
    slopes = [left, *_slopes(kinks, heights), right]
    jumps = [after - before for before, after in pairwise(slopes)]
    if len(kinks) == 1 and not jumps[0]:
        return affine_network([[left]], [heights[0] - left * kinks[0]], exact)
    searched = exact and len(jumps) <= max_subset_kinks
    turned = _turned_flaps(jumps, left, right, searched)
    if turned is None:
        flaps, constant = _around_middle(kinks, heights, slopes, jumps)
    else:
        flaps = [(-1 if i in turned else 1, a, d) for i, (a, d) in enumerate(zip(kinks, jumps, strict=True))]
        # At the first kink all flaps to the right vanish; at the last one, all those to the left.
        constant = heights[-1]
        if len(turned) < len(kinks):
            constant = heights[0] - sum(jumps[i] * (kinks[i] - kinks[0]) for i in turned)
    return _flap_network([flap for flap in flaps if flap[2]], constant, exact)


def pwl_to_relu(terms: Iterable[tuple[Any, Sequence[Any]]], exact: bool | None = None) -> Network:
    """f(x) = sum_j s_j max_i (<a_i, x> + b_i), given as [(s_j, [(a_i, b_i), ...]), ...]; a_i of shape (n,).

    Coefficients s_j may be any numbers. Size: that of the trees, plus 2 gates for every layer that one of
    them is shallower than the deepest; hidden layers ceil(log2 max |S_j|).

    Example:
        >>> hinge = pwl_to_relu([(1, [([1, 0], 0), ([0, 1], 0), ([0, 0], 0)])])    # max(0, x1, x2)
        >>> len(hinge.hidden), hinge([[-2.0, -1.0], [3.0, 5.0]]).ravel().tolist()
        (2, [0.0, 5.0])
    """
    listed = [(sign, list(pieces)) for sign, pieces in terms]
    if not listed or any(not pieces for _, pieces in listed):
        raise InvalidInput(
            "terms must be at least one (sign, [(a, b), ...]), each with one affine function or more. Got an "
            "empty list instead. The zero function is [(1, [([0, ...], 0)])]."
        )
    exact = is_exact(
        exact, [s for s, _ in listed], *(part for _, pieces in listed for a, b in pieces for part in (a, [b]))
    )
    trees = []
    for _, pieces in listed:
        matrix = array([list(a) for a, _ in pieces], exact, "a").T
        affine = affine_network(matrix, [number(b, exact, "b") for _, b in pieces], exact)
        trees.append(compose(max_net(len(pieces), exact=exact), affine))
    return add(*trees, coefficients=[number(s, exact, "sign") for s, _ in listed])


def _checked_points(breakpoints: Any, values: Any, exact: bool) -> tuple[list[Number], list[Number]]:
    kinks, heights = numbers(breakpoints, exact, "breakpoints"), numbers(values, exact, "values")
    if not kinks or len(kinks) != len(heights):
        raise InvalidInput(
            f"breakpoints and values must be equally many, at least one. Got {len(kinks)} and {len(heights)} "
            f"instead. An affine function has one breakpoint and equal slopes."
        )
    for i, (a, b) in enumerate(pairwise(kinks)):
        if not a < b:
            raise InvalidInput(
                f"breakpoints must increase strictly. Got breakpoints[{i}] = {a} and breakpoints[{i + 1}] = "
                f"{b} instead. Sort them with their values, and merge equal ones."
            )
    return kinks, heights


def _slopes(kinks: Sequence[Number], heights: Sequence[Number]) -> list[Number]:
    rises = [after - before for before, after in pairwise(heights)]
    return [rise / (b - a) for rise, (a, b) in zip(rises, pairwise(kinks), strict=True)]


def _true_kinks(
    kinks: list[Number], heights: list[Number], left: Number, right: Number
) -> tuple[list[Number], list[Number]]:
    """Without the breakpoints where the slope changes by no more than its rounding; one is always kept."""
    slopes = [left, *_slopes(kinks, heights), right]
    errors = [0.0, *(_slope_error(kinks, heights, i) for i in range(len(kinks) - 1)), 0.0]
    kept = [i for i in range(len(kinks)) if abs(slopes[i + 1] - slopes[i]) > errors[i] + errors[i + 1]] or [0]
    return [kinks[i] for i in kept], [heights[i] for i in kept]


def _slope_error(kinks: list[Number], heights: list[Number], i: int) -> float:
    a, b, low, high = kinks[i], kinks[i + 1], heights[i], heights[i + 1]
    if isinstance(a, Fraction):
        return 0.0
    slope = abs((high - low) / (b - a))
    return _QUOTIENT_ROUNDING * float((abs(low) + abs(high) + slope * (abs(a) + abs(b))) / (b - a))


def _turned_flaps(jumps: list[Number], left: Number, right: Number, search: bool) -> frozenset[int] | None:
    """Indices of jumps that sum to minus the left slope; None if there are none, or without ``search``."""
    if left == 0:
        return frozenset()
    if right == 0:  # all jumps sum to right - left
        return frozenset(range(len(jumps)))
    if not search:
        return None
    half = len(jumps) // 2
    first, second = _subset_sums(jumps, range(half)), _subset_sums(jumps, range(half, len(jumps)))
    for total, chosen in first.items():
        rest = second.get(-left - total)
        if rest is not None:
            return frozenset(i for i in range(len(jumps)) if (chosen | rest) >> i & 1)
    return None


def _subset_sums(jumps: list[Number], indices: range) -> dict[Number, int]:
    sums: dict[Number, int] = {Fraction(0): 0}
    for i in indices:
        sums = {**{total + jumps[i]: chosen | 1 << i for total, chosen in sums.items()}, **sums}
    return sums


def _around_middle(
    kinks: list[Number], heights: list[Number], slopes: list[Number], jumps: list[Number]
) -> tuple[list[Flap], Number]:
    middle = len(kinks) // 2
    flaps: list[Flap] = [(-1, kinks[i], jumps[i]) for i in range(middle)]
    flaps += [(-1, kinks[middle], -slopes[middle]), (1, kinks[middle], slopes[middle + 1])]
    flaps += [(1, kinks[i], jumps[i]) for i in range(middle + 1, len(kinks))]
    return flaps, heights[middle]


def _flap_network(flaps: list[Flap], constant: Number, exact: bool) -> Network:
    inner = array([[orientation for orientation, _, _ in flaps]], exact)
    shifts = array([0 - orientation * kink for orientation, kink, _ in flaps], exact)  # 0, never -0.0
    outer = array([[coefficient] for _, _, coefficient in flaps], exact)
    return Network([inner, outer], [shifts, array([constant], exact)], [RELU, IDENTITY])


def max_net(n: int, gates: int = 3, exact: bool = False) -> Network:
    """x (n,) -> max_i x_i: `max_net_size` gates in ceil(log2 n) hidden layers, ``gates`` (3, 4) per pair.

    Four gates per pair are the source's. In floats the error is a few roundings of the largest |x_i|.

    Example:
        >>> net = max_net(5)
        >>> net, float(net([3.0, 1.0, 4.0, 1.0, 5.0])[0])
        (Network(5-8-5-3-1, relu, identity output, 115 parameters), 5.0)
    """
    _check(n, gates)
    weights, biases = [], []
    sums = identity(n, exact)  # what the numbers still in the race are, in terms of the last gates
    while sums.shape[1] > 1:
        into, out = _round_of_pairs(sums.shape[1], gates, exact)
        weights.append(sparse_product(sums, into) if exact else sums @ into)
        biases.append(zeros(into.shape[1], exact))
        sums = out
    weights.append(sums)
    biases.append(zeros(1, exact))
    return Network(weights, biases, [RELU] * (len(weights) - 1) + [IDENTITY])


def max_net_size(n: int, gates: int = 3) -> int:
    """Number of gates of `max_net`: gates (n - 1) + 2 (numbers passed on)."""
    _check(n, gates)
    total, left = gates * (n - 1), n
    while left > 1:
        total += 2 * (left % 2)
        left = (left + 1) // 2
    return total


def _round_of_pairs(count: int, gates: int, exact: bool) -> tuple[AnyArray, AnyArray]:
    """Weights (count, gates) into one layer of the tree, and (gates, ceil(count/2)) out of it."""
    pairs, left_over = divmod(count, 2)
    into = zeros((count, gates * pairs + 2 * left_over), exact)
    out = zeros((into.shape[1], pairs + left_over), exact)
    gate = 0
    for pair in range(pairs):
        for (first, second), weight in _PAIR[gates]:
            into[2 * pair, gate], into[2 * pair + 1, gate], out[gate, pair] = first, second, weight
            gate += 1
    if left_over:
        for sign, weight in _SINGLE:
            into[-1, gate], out[gate, -1] = sign, weight
            gate += 1
    if exact:  # small integers were written into arrays of fractions
        into, out = into + Fraction(0), out + Fraction(0)
    return into, out


def _check(n: int, gates: int) -> None:
    if not isinstance(n, int) or n < 1 or gates not in _PAIR:
        raise InvalidInput(
            f"n must be a positive integer and gates 3 or 4. Got n={n!r}, gates={gates!r} instead. "
            f"For example max_net(5)."
        )
