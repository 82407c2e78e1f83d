"""Write any small ReLU network as signed maxima, and as a network of the least general depth.

**Difference of maxima.** Every unit is max P - max Q, where P and Q are finite sets of affine functions:
sums of units are Minkowski sums of such sets, and

    relu(max P - max Q) = max(P u Q) - max Q.

A line that is nowhere above the others is dropped: it lies below a convex combination of at most n + 1 of
them, which is found by linear programming in floats and checked in fractions.

**At most n + 1 lines per maximum** ([mathematics] Thm. 2.2.1, after [wang2005]). The slopes of n + 2 affine
functions of n variables have an affine dependence, so that sum_I p_i l_i = sum_J q_j l_j + c with positive
p, q of equal sum and disjoint I, J; exchange I and J if c < 0. A mean of l_I is then at least a mean of l_J:

    min_J l <= max_I l <= m := max_K l,       K all other lines.

The maximum over J of numbers that are cut off below at m is an alternating sum over the subsets of J, and so
is their minimum, which is m. Solved for the largest subset,

    max(K u J) = (-1)^(|J|+1) [ max K - sum over S in J, neither empty nor all, of (-1)^(|S|+1) max(K u S) ],

which has fewer lines in every maximum. Equal sets are added up as they appear.

All of it is done in fractions; every float is one. The number of lines may grow exponentially with the size
of the network: there is a limit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from itertools import chain, combinations

import numpy as np
from scipy.optimize import linprog

from unweave.construct.algebra import IDENTITY, RELU, stack
from unweave.construct.exactness import as_exact, as_float
from unweave.construct.pieces import pieces_1d, require_relu
from unweave.construct.pwl import pwl1d_to_relu, pwl_to_relu
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.numerics.clock import check

Line = tuple[Fraction, ...]
"""Slopes (n,), then the offset."""
Lines = frozenset[Line]
Term = tuple[Fraction, list[tuple[list[Fraction], Fraction]]]
"""A coefficient, and the lines (slopes, offset) of which the largest is taken: what `pwl_to_relu` reads."""


def flatten(network: Network, max_lines: int = 2000) -> Network:
    """The same function with ceil(log2(n + 1)) hidden layers or fewer, n being the number of inputs.

    A network that is as flat already comes back as it is. One input: one hidden layer with as many gates as
    pieces, or one less. A network of fractions stays exact; one of floats is flattened exactly and then
    rounded. ``max_lines`` limits the work: a network may have as many lines as it has patterns of active
    units.

    Example:
        >>> from unweave.construct import hard, size
        >>> deep = hard.sawtooth([[Fraction(1, 2)]] * 3)      # 3 hidden layers of 2 gates
        >>> shallow = flatten(deep)
        >>> shallow.hidden, all(shallow([[x]]) == deep([[x]]) for x in (Fraction(1, 3), Fraction(3, 7)))
        ((9,), True)
    """
    require_relu(network)
    if network.n_inputs > 1 and len(network.hidden) <= network.n_inputs.bit_length():
        return network  # ceil(log2(n + 1)) is the number of binary digits of n
    outputs = [_single_output(as_exact(network), k) for k in range(network.n_outputs)]
    flat = [
        _flat_line(one) if one.n_inputs == 1 else pwl_to_relu(signed_maxima(one, max_lines))
        for one in outputs
    ]
    joined = stack(*flat)
    return joined if network.is_exact else as_float(joined)


def signed_maxima(network: Network, max_lines: int = 2000) -> list[Term]:
    """f(x) = sum_j s_j max_i (<a_i, x> + b_i) of a network with one output: [(s_j, [(a_i, b_i), ...]), ...].

    At most n + 1 lines per maximum; fractions, whatever the network holds.

    Example:
        >>> from unweave.construct import max_net
        >>> terms = signed_maxima(max_net(3))
        >>> sum(s * max(3 * a[0] + 5 * a[1] + 4 * a[2] + b for a, b in lines) for s, lines in terms)
        Fraction(5, 1)
    """
    return maxima_of_difference(*difference_of_maxima(network, max_lines), max_lines)


def maxima_of_difference(upper: Lines, lower: Lines, max_lines: int = 2000) -> list[Term]:
    """max P - max Q as in `signed_maxima`; lines of P and Q are (slopes..., offset)."""
    width = len(next(iter(upper)))
    total: defaultdict[Lines, Fraction] = defaultdict(Fraction)
    for sign, lines in ((1, upper), (-1, lower)):
        for part, coefficient in _small_maxima(lines, width, max_lines).items():
            total[part] += sign * coefficient
    zero = frozenset([(Fraction(0),) * width])
    kept = {lines: s for lines, s in total.items() if s and lines != zero} or {zero: Fraction(1)}
    return [(s, [(list(line[:-1]), line[-1]) for line in sorted(lines)]) for lines, s in kept.items()]


def difference_of_maxima(network: Network, max_lines: int = 2000) -> tuple[Lines, Lines]:
    """P and Q with f = max P - max Q, for a network with one output; lines are (slopes..., offset)."""
    require_relu(network)
    if network.n_outputs != 1:
        raise InvalidInput(
            f"network must have one output. Got {network.n_outputs} instead. Use flatten, which takes all."
        )
    exact = as_exact(network)
    n = exact.n_inputs
    nothing: Lines = frozenset([(Fraction(0),) * (n + 1)])
    units = [(frozenset([tuple(Fraction(int(i == k)) for i in range(n + 1))]), nothing) for k in range(n)]
    for layer, (weight, bias) in enumerate(zip(exact.weights, exact.biases, strict=True)):
        following = []
        for column, offset in zip(weight.T, bias, strict=True):
            terms = [(w, *pair) for w, pair in zip(column, units, strict=True) if w]
            if layer == len(exact.weights) - 1 and exact.skip is not None:
                shown = exact.skip[:, 0]
                terms.append((Fraction(1), frozenset([(*shown, Fraction(0))]), nothing))
            upper = _sum([(abs(w), p if w > 0 else q) for w, p, q in terms], n, max_lines)
            lower = _sum([(abs(w), q if w > 0 else p) for w, p, q in terms], n, max_lines)
            upper = frozenset((*line[:-1], line[-1] + offset) for line in upper)
            if exact.activations[layer] == RELU:
                upper = _essential(upper | lower, max_lines)
            following.append((upper, lower))
        units = following
    return units[0]


def _sum(terms: Iterable[tuple[Fraction, Lines]], n: int, max_lines: int) -> Lines:
    """Lines of sum_i c_i max P_i, c_i > 0."""
    total: Lines = frozenset([(Fraction(0),) * (n + 1)])
    for factor, lines in terms:
        scaled = [tuple(factor * entry for entry in line) for line in lines]
        sums = {tuple(a + b for a, b in zip(one, other, strict=True)) for one in total for other in scaled}
        total = _essential(frozenset(sums), max_lines)
    return total


def _essential(lines: Lines, max_lines: int) -> Lines:
    """The lines that are the largest somewhere; some that are largest at single points may stay."""
    highest: dict[Line, Fraction] = {}
    for line in lines:
        slopes = line[:-1]
        highest[slopes] = max(line[-1], highest.get(slopes, line[-1]))
    kept = sorted((*slopes, offset) for slopes, offset in highest.items())
    if len(kept) > max_lines:
        raise InvalidInput(
            f"network must have at most max_lines={max_lines} lines in a unit. Got {len(kept)} instead. "
            f"Their number grows with the pieces of the function; take a smaller network, or raise max_lines."
        )
    for line in list(kept):
        check()
        others = [other for other in kept if other is not line]
        if len(others) and _lies_below(line, others):
            kept = others
    return frozenset(kept)


def _lies_below(line: Line, others: list[Line]) -> bool:
    """Whether a convex combination of other lines has the same slopes and is nowhere lower, exactly."""
    table = np.array([[float(entry) for entry in other] for other in others])
    wanted = np.array([float(entry) for entry in line])
    conditions = np.vstack([table[:, :-1].T, np.ones(len(others))])
    answer = linprog(-table[:, -1], A_eq=conditions, b_eq=np.append(wanted[:-1], 1.0), method="highs-ds")
    if answer.status != 0:
        return False
    support = [others[i] for i in np.flatnonzero(answer.x > 0)]
    if len(support) > len(line):
        return False
    weights = _solution([[*other[:-1], Fraction(1)] for other in support], [*line[:-1], Fraction(1)])
    if weights is None or min(weights) < 0:
        return False
    return sum(w * other[-1] for w, other in zip(weights, support, strict=True)) >= line[-1]


def _small_maxima(lines: Lines, most: int, max_terms: int) -> dict[Lines, Fraction]:
    """Coefficients of maxima of at most ``most`` lines that add up to the maximum of ``lines``."""
    open_sets: dict[Lines, Fraction] = {lines: Fraction(1)}
    done: defaultdict[Lines, Fraction] = defaultdict(Fraction)
    while open_sets:
        check()
        # Largest first: its parts meet others of their size, and are added up before they are divided.
        largest = max(open_sets, key=len)
        coefficient = open_sets.pop(largest)
        if not coefficient:
            continue
        if len(largest) <= most:
            done[largest] += coefficient
            continue
        dropped = _outdone(largest, most)
        rest, whole = largest - dropped, (-1) ** (len(dropped) + 1)
        for chosen in chain.from_iterable(combinations(sorted(dropped), r) for r in range(len(dropped))):
            part = rest | frozenset(chosen)
            sign = whole if not chosen else -whole * (-1) ** (len(chosen) + 1)
            open_sets[part] = open_sets.get(part, Fraction(0)) + sign * coefficient
        if len(open_sets) + len(done) > max_terms:
            raise InvalidInput(
                f"network must be a sum of at most max_lines={max_terms} maxima. It needs more. Take a "
                f"smaller network, or raise max_lines."
            )
    return dict(done)


def _outdone(lines: Lines, most: int) -> Lines:
    """Lines J, the least of which is nowhere above the largest of the rest; from the first n + 2."""
    chosen = sorted(lines)[: most + 1]
    columns = [[*line[:-1], Fraction(1)] for line in chosen]
    # The first column that depends on those before it; n + 2 columns of n + 1 entries hold one.
    found = (_solution(columns[:last], columns[last]) for last in range(1, len(columns)))
    dependence = [*next(one for one in found if one is not None), Fraction(-1)]
    surplus = sum(p * line[-1] for p, line in zip(dependence, chosen, strict=False))
    sides: tuple[Lines, Lines] = (
        frozenset(line for p, line in zip(dependence, chosen, strict=False) if p < 0),
        frozenset(line for p, line in zip(dependence, chosen, strict=False) if p > 0),
    )
    if surplus == 0:
        return min(sides, key=len)
    return sides[0] if surplus > 0 else sides[1]


def _solution(columns: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """c with sum_i c_i columns_i = right, of independent columns; None if there is none."""
    rows = [[*(column[k] for column in columns), right[k]] for k in range(len(right))]
    width = len(columns)
    for k in range(width):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        scale = rows[k][k]
        rows[k] = [entry / scale for entry in rows[k]]
        for i in range(len(rows)):
            if i != k and rows[i][k]:
                factor = rows[i][k]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    if any(row[width] for row in rows[width:]):
        return None
    return [rows[k][width] for k in range(width)]


def _single_output(network: Network, k: int) -> Network:
    skip = None if network.skip is None else network.skip[:, k : k + 1]
    weights = [*network.weights[:-1], network.weights[-1][:, k : k + 1]]
    biases = [*network.biases[:-1], network.biases[-1][k : k + 1]]
    return Network(weights, biases, [*network.activations[:-1], IDENTITY], skip)


def _flat_line(network: Network) -> Network:
    """One hidden layer for a function of one variable, from its pieces."""
    pieces = pieces_1d(network)
    slopes, intercepts = ([getattr(p, name)[0] for p in pieces] for name in ("slopes", "intercepts"))
    breaks = [p.right for p in pieces[:-1] if p.right is not None]
    if not breaks:
        return pwl1d_to_relu(slopes[0], slopes[0], [Fraction(0)], intercepts)
    values = [s * t + c for s, c, t in zip(slopes, intercepts, breaks, strict=False)]
    return pwl1d_to_relu(slopes[0], slopes[-1], breaks, values)
