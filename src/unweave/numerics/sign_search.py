"""Signs xi in {-1, 1}^m with M xi = r, where M (q, m) has fewer independent rows than columns.

From certain to hopeful:

- `meet_in_the_middle`: all 2^m patterns, at the price of 2^(m/2): every solution is found.
- `decoded_signs` (`sign_decoding`): the center of the box with M xi = r guesses most signs, and equations
  that are left over correct the others.
- `box_point`: a linear program over the box |xi_i| <= 1. For generic M the box meets {M xi = r} in the one
  wanted corner as soon as q > m/2. Around that threshold little of the box is left: `longest_point` walks to
  its longest vector, which is a corner, `narrowed_signs` finds signs whose opposite no point of it has, and
  `branch_and_bound` what remains.
- `lattice_search`: the wanted pattern is an unusually short vector of a lattice (`sign_lattice`), as long as
  the equations carry about twice as many bits as there are signs, or more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.numerics.clock import out_of_time, remaining_seconds
from unweave.numerics.sign_lattice import LatticeSearch, search_sign_lattice

WIDEST_ENUMERATION = 40
"""Units up to which all patterns are gone through: two tables of 2^20 sums."""
_MOST_HALF_PATTERN_PAIRS = 4_000_000  # looked at; with more, the equations are too coarse to tell any apart
_PATTERNS_PER_PRODUCT = 1 << 16  # checked against all equations at once: a few MB
_CORNER_DISTANCE = 1e-6  # from -1 or 1: such a coordinate of a linear program's solution is at its corner
_BRANCHING_MISFIT = 1e-9  # branch and bound allows each equation this; its solver's own tolerance is 1e-6
_SHORTEST_SECONDS = 0.01  # of a linear program: solvers read 0 as no limit
_MILP_INFEASIBLE = 2  # status of scipy.optimize.milp


@dataclass(frozen=True, kw_only=True)
class SignOptions:
    """How much effort signs are worth, and when a pattern is the only one."""

    easy_enumeration: int = 26
    """Units up to which all patterns are gone through first: it takes milliseconds."""
    fast_enumeration: int = 34
    """Units up to which that takes less than a lattice reduction."""
    widest_branching: float = 2.4
    """Unknowns per equation up to which linear programs and branch and bound are tried."""
    decoding_tries: int = 60
    """Centers of the box from which signs are decoded first; each takes some 20 milliseconds."""
    walks: int = 5
    """Walks to the longest point of the box, from different ends; each takes about six linear programs."""
    guess_points: int = 7
    """Random points of the box that guess which signs are settled."""
    settled_at_once: int = 5
    """Signs settled after which these points are drawn anew, because the box has shrunk."""
    programs_per_unknown: int = 2
    """Linear programs after which narrowing is given up."""
    branching_seconds: float = 4.0
    """Seconds after which branch and bound is given up."""
    widest_lattice: int = 260
    """Units up to which a lattice is reduced; beyond, that takes minutes."""
    lattice_seconds: float = 10.0
    """Seconds of computing time after which a lattice is given up."""
    largest_block: int = 40
    """Vectors of a lattice's basis that are reduced together at most; with 2 of them it is LLL reduction."""
    equation_error: float = 1e-13
    """Standard error of an equation relative to |M|, where the caller knows none."""
    rank: float = 1e-8
    """Singular values of M, relative to the largest one, below which they are zero."""
    as_good: float = 30.0
    """Factor on the best misfit within which another pattern is as good."""
    rounding: float = 1e-11
    """Relative misfit that is rounding, whatever the best one is."""
    accidents: float = 1e-6
    """Expected number of patterns that fit by accident, below which one that fits is none."""


DEFAULT_SIGN_OPTIONS = SignOptions()


def meet_in_the_middle(matrix: Array, right: Array, allowed: float) -> Array | None:
    """Return all xi (n, m) with |M xi - r| <= ``allowed``, for M (q, m); None if there are too many.

    None, too, where the time ends before all have been gone through.
    """
    width = matrix.shape[1]
    if width > WIDEST_ENUMERATION:
        return None
    # One random combination of the equations sorts out nearly everything, a second one most of what it leaves
    # for the price of a look-up; the rest is checked in full.
    mixtures = np.random.default_rng(0).standard_normal((2, len(matrix)))
    mixtures /= np.linalg.norm(mixtures, axis=1, keepdims=True)
    left, other = np.array_split(mixtures @ matrix, 2, axis=1)
    wanted, also_wanted = mixtures @ right
    left_sums, other_sums = _signed_sums(left[0]), _signed_sums(other[0])
    also_left, also_other = _signed_sums(left[1]), _signed_sums(other[1])
    order, left_order = np.argsort(other_sums), np.argsort(-left_sums)
    ordered, missing = other_sums[order], wanted - left_sums[left_order]  # both ascending: fast to look up
    first = np.searchsorted(ordered, missing - allowed)
    counts = np.searchsorted(ordered, missing + allowed, side="right") - first
    if int(counts.sum()) > _MOST_HALF_PATTERN_PAIRS:
        return None
    found = [np.zeros((0, width))]
    hits = np.flatnonzero(counts)
    blocks = np.cumsum(counts[hits]) // _PATTERNS_PER_PRODUCT
    for rows in np.split(hits, np.flatnonzero(np.diff(blocks)) + 1):
        if out_of_time():
            return None
        lefts = left_order[np.repeat(rows, counts[rows])]
        steps = np.arange(len(lefts)) - np.repeat(np.cumsum(counts[rows]) - counts[rows], counts[rows])
        others = order[np.repeat(first[rows], counts[rows]) + steps]
        near = np.abs(also_left[lefts] + also_other[others] - also_wanted) <= allowed
        lefts, others = lefts[near], others[near]
        patterns = np.hstack([_patterns(lefts, left.shape[1]), _patterns(others, other.shape[1])])
        misfit = np.linalg.norm(patterns @ matrix.T - right, axis=1)
        found.append(patterns[misfit <= allowed])
    return np.concatenate(found)


def box_point(matrix: Array, right: Array, away_from: Array | None = None) -> Array | None:
    """Return a point (m,) of the box with M z = r, farthest against ``away_from`` (m,); None if none."""
    cost = np.zeros(matrix.shape[1]) if away_from is None else away_from
    from scipy.optimize import linprog  # here: slow to import, seldom needed

    solved = linprog(cost, A_eq=matrix, b_eq=right, bounds=(-1, 1), method="highs-ds", options=_until_late())
    return None if solved.x is None else np.asarray(solved.x)


def _until_late(seconds: float = np.inf) -> dict[str, float]:
    """Return the option of a program that ends it after ``seconds`` or when the time is over."""
    seconds = min(seconds, max(remaining_seconds(), _SHORTEST_SECONDS))
    return {} if seconds == np.inf else {"time_limit": seconds}


def corner_of(point: Array | None) -> Array | None:
    """Return the pattern that a point of the box is, or None."""
    if point is None or np.abs(np.abs(point) - 1).max() > _CORNER_DISTANCE:
        return None
    return np.where(point > 0, 1.0, -1.0)


def longest_point(
    matrix: Array,
    right: Array,
    start: Array,
    rng: np.random.Generator,
    options: SignOptions = DEFAULT_SIGN_OPTIONS,
) -> Array | None:
    """Find the pattern (m,) at which |z|^2 is largest among the z of the box with M z = r, or return None.

    From ``start`` and then from ends of random linear programs: z moves to the point of the box that is
    farthest in its own direction until that is itself. Each step is a linear program and lengthens z, and
    no z of the box is longer than a pattern. Few vertices are left around q = m/2, so that few walks do.
    """
    if matrix.shape[1] > options.widest_branching * len(matrix):
        return None
    point: Array | None = start
    for _ in range(options.walks):
        if out_of_time():
            return None
        length = 0.0
        while point is not None and float(point @ point) > (1 + _CORNER_DISTANCE) * length:
            corner = corner_of(point)
            if corner is not None:
                return corner
            length = float(point @ point)
            point = box_point(matrix, right, away_from=-point)
        point = box_point(matrix, right, away_from=rng.standard_normal(len(start)))
    return None


def narrowed_signs(
    matrix: Array, right: Array, rng: np.random.Generator, options: SignOptions = DEFAULT_SIGN_OPTIONS
) -> Array:
    """Return signs (m,): +-1 where every pattern has that sign, 0 where both are left.

    A linear program tells how far z_i can go against its guessed sign; if not to the other end, the sign is
    settled, and what remains of the box shrinks. If a pattern is met on the way, all its signs are returned.
    """
    signs, programs = np.zeros(matrix.shape[1]), 0
    if matrix.shape[1] > options.widest_branching * len(matrix):
        return signs
    while programs < options.programs_per_unknown * len(signs) and not out_of_time():
        free = np.flatnonzero(signs == 0)
        part, rest = matrix[:, free], right - matrix @ signs
        ends = rng.standard_normal((options.guess_points, len(free)))
        points = [point for end in ends if (point := box_point(part, rest, away_from=end)) is not None]
        programs += options.guess_points
        if len(points) < options.guess_points:
            break  # rounding has closed what is left of the box
        settled = 0
        for i in np.argsort(-np.abs(np.mean(points, axis=0))):
            towards = np.sign(np.mean([point[i] for point in points]))
            if min(towards * point[i] for point in points) <= _CORNER_DISTANCE - 1:
                continue  # both ends are reached
            point = box_point(part, rest, away_from=towards * np.eye(len(free))[i])
            programs += 1
            if point is None:
                return signs
            corner = corner_of(point)
            if corner is not None:
                signs[free] = corner
                return signs
            points.append(point)
            if towards * point[i] > _CORNER_DISTANCE - 1:
                signs[free[i]] = towards
                settled += 1
                if settled == options.settled_at_once:
                    break
        if not settled:
            break
    return signs


def branch_and_bound(
    matrix: Array,
    right: Array,
    excluded: list[Array],
    known: Array | None = None,
    nodes: int | None = None,
    options: SignOptions = DEFAULT_SIGN_OPTIONS,
) -> tuple[Array | None, bool]:
    """Find a pattern (m,) with M xi = r that is not ``excluded``; say whether the search came to its end.

    ``known`` (m,) holds signs that it has, 0 where they are open; at most ``nodes`` are looked at.
    """
    if matrix.shape[1] > options.widest_branching * len(matrix):
        return None, False  # too few equations for bounds to prune
    # xi = 2 x - 1 with x in {0, 1}; a pattern agrees with an excluded one in m places, all others in fewer.
    from scipy.optimize import LinearConstraint, milp  # here: slow to import, seldom needed

    shifted = right + matrix.sum(axis=1)
    rules = [LinearConstraint(2 * matrix, shifted - _BRANCHING_MISFIT, shifted + _BRANCHING_MISFIT)]
    for signs in excluded:
        rules.append(LinearConstraint(2 * signs[None], -np.inf, len(signs) - 2 + signs.sum()))
    ones = np.ones(matrix.shape[1])
    bounds = (0, 1) if known is None else (np.maximum(known, 0), 1 + np.minimum(known, 0))
    # The limit decides whether the search is given up, never which pattern it finds.
    limit = _until_late(options.branching_seconds) | ({} if nodes is None else {"node_limit": nodes})
    solved = milp(0 * ones, integrality=ones, bounds=bounds, constraints=rules, options=limit)
    if solved.x is None:
        return None, solved.status == _MILP_INFEASIBLE
    return np.where(solved.x > 0.5, 1.0, -1.0), True


def lattice_search(
    matrix: Array, right: Array, error: float, options: SignOptions = DEFAULT_SIGN_OPTIONS
) -> LatticeSearch:
    """Search the lattice of M (q, m) and r, whose entries have standard ``error``.

    Nothing is found where the lattice is too large or time too short.
    """
    equations, width = matrix.shape
    if width > options.widest_lattice or equations == 0 or out_of_time():
        return LatticeSearch()
    seconds, block = options.lattice_seconds, options.largest_block
    return search_sign_lattice(matrix / error, right / error, seconds, block)


def _signed_sums(terms: Array) -> Array:
    """Return sums (2^n,) of +- terms (n,): entry i takes the signs of `_patterns`."""
    sums = np.zeros(1)
    for term in terms:
        sums = np.concatenate([sums - term, sums + term])
    return sums


def _patterns(index: IntArray, width: int) -> Array:
    """Return signs (n, width) of the entries of `_signed_sums`: bit j of the index is sign j."""
    return np.where(index[:, None] >> np.arange(width) & 1, 1.0, -1.0)
