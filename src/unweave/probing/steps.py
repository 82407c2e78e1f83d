"""Whether a target answers in steps at thresholds of single inputs: a tree, a forest, boosting.

Such answers are exactly constant nearly everywhere along a line, change at once from one number to the next,
and where they do, one input alone is to blame: the step stays where it is when all others move a little.
Roundings of a smooth function and labels of a network are constant in between as well, but their steps move.
"""

from __future__ import annotations

import math

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.probing.lines import Lines
from unweave.probing.noise import Noise
from unweave.targets.region import NormalisedQueries

_EQUAL_SHARE = 0.6  # of the shortest ways along lines, over which answers must be exactly the same
_WAYS = 6  # ways over which the answer changes that are looked at
_HALVINGS = (10, 24)  # after the first of these, a smooth function changes by a thousandth
_LEAST_JUMP = 0.05  # of the change over the whole way that must be left, of most ways
_NUDGE = 1e-3  # by which the other inputs are moved, in normalised inputs
_NUDGES = 3  # times that they are
_STAY = 0.75  # of the steps that must stay where they are
_SLOPE = 10.0  # steepest slope over the usual one, from end to end of a line
_MOVED_DIGITS = 20.0  # units of the last digit over which a rounded smooth function is not constant
_ONE_DIGIT = 1.5  # units of the last digit: what answers rounded to decimals change by at once
_STREAM = 0x73746570  # seeds the rows of this test
_MAGNITUDE_ROWS = 32  # rows of any size, where the standard region shows nothing
_MAGNITUDES = (-4.0, 4.0)  # their powers of ten


def answers_in_steps(view: NormalisedQueries, lines: Lines, noise: Noise, anywhere: bool) -> bool:
    """Whether all that changes are steps across single inputs.

    ``anywhere`` allows rows of any size where answers on the lines never change. Costs nothing for most
    targets; else 100 to 250 rows.
    """
    if not noise.repeatable or not _is_flat(lines):
        return False
    rng = np.random.default_rng(_STREAM)  # of its own: whether steps are looked for changes nothing else
    first, last = _ways(lines)
    if not len(first) and anywhere and not view.region.has_box:
        first, last = _ways_anywhere(view, rng)
    if not len(first):
        return False
    first, last, size, change = _halved(view, first, last, _HALVINGS[0], None)
    if np.mean(change >= _LEAST_JUMP * size) < 0.5:
        return False
    first, last, _, change = _halved(view, first, last, _HALVINGS[1] - _HALVINGS[0], size)
    jumps = change >= _LEAST_JUMP * size
    if np.mean(jumps) < 0.5:
        return False
    first, last, change = first[jumps], last[jumps], change[jumps]
    inputs = _to_blame(view, first, last)
    stays = _stay(view, first, last, inputs, rng)
    if stays.mean() < _STAY:
        return False
    if noise.kind == "rounded" and noise.decimals is not None and len(np.unique(inputs)) == 1:
        # One input whose function is rounded has steps of one digit.
        return bool(change.max() > _ONE_DIGIT * 10.0**-noise.decimals)
    return True


def _is_flat(lines: Lines) -> bool:
    """Whether answers a short way from the centers of the lines are exactly those at the centers."""
    beside = np.stack([lines.plus[:, 0], lines.minus[:, 0]], axis=1)
    equal = (beside == lines.center[:, None]).all(axis=2)
    return bool(equal.mean() >= _EQUAL_SHARE)


def is_piecewise_constant(lines: Lines, noise: Noise) -> bool:
    """Whether answers stay exactly the same over ways on which a smooth function, even rounded, would not.

    Where they change over the shortest way, it must be by more than a slope would explain: ReLU networks are
    constant where no unit is active, and slope elsewhere. Asks nothing.
    """
    if not noise.repeatable:
        return False
    moves = lines.steps * noise.scale > _MOVED_DIGITS * math.sqrt(12.0) * noise.sigma
    both = np.stack([lines.plus, lines.minus], axis=2)
    changes = np.abs(both - lines.center[:, None, None]).max(axis=3)
    share = (changes == 0).mean(axis=(0, 2))
    sloping = _SLOPE * lines.steps[0] / lines.steps[-1] * changes.max()
    slopes = ((changes[:, 0] > 0) & (changes[:, 0] <= sloping)).any()
    return bool((share[moves] >= _EQUAL_SHARE).any()) and not slopes


def _ways(lines: Lines) -> tuple[Array, Array]:
    """Return neighbouring points ((n, D), (n, D)) with different answers, one of every line first."""
    t = np.concatenate([-lines.steps[::-1], [0.0], lines.steps])
    answers = np.concatenate([lines.minus[:, ::-1], lines.center[:, None], lines.plus], axis=1)
    line, at = np.nonzero((np.diff(answers, axis=1) != 0).any(axis=2))
    turn = np.concatenate([np.arange(count) for count in np.bincount(line)] or [np.empty(0, dtype=np.int64)])
    chosen = np.argsort(turn, kind="stable")[:_WAYS]
    line, at = line[chosen], at[chosen]
    centers, directions = lines.centers[line], lines.directions[line]
    return centers + t[at, None] * directions, centers + t[at + 1, None] * directions


def _ways_anywhere(view: NormalisedQueries, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return pairs of points with inputs of all magnitudes and different answers."""
    shape = _MAGNITUDE_ROWS, view.n_inputs
    rows = rng.choice([-1.0, 1.0], shape) * 10.0 ** rng.uniform(*_MAGNITUDES, shape)
    answers = view(rows)
    at = np.flatnonzero((np.diff(answers, axis=0) != 0).any(axis=1))[:_WAYS]
    return rows[at], rows[at + 1]


def _halved(
    view: NormalisedQueries, first: Array, last: Array, times: int, size: Array | None
) -> tuple[Array, Array, Array, Array]:
    """Halve ways, always towards the larger change; return them, and the changes before and after."""
    one, other = view(first), view(last)
    before = np.abs(other - one).max(axis=1) if size is None else size
    for _ in range(times):
        middle = (first + last) / 2
        seen = view(middle)
        left = np.abs(seen - one).max(axis=1) >= np.abs(other - seen).max(axis=1)
        last, other = np.where(left[:, None], middle, last), np.where(left[:, None], seen, other)
        first, one = np.where(left[:, None], first, middle), np.where(left[:, None], one, seen)
    return first, last, before, np.abs(other - one).max(axis=1)


def _to_blame(view: NormalisedQueries, first: Array, last: Array) -> IntArray:
    """Return an input (n,) that makes each answer leave that at ``first``, by halving the set of them."""
    n, inputs = first.shape
    own = view(first)
    low, high = np.zeros(n, dtype=np.int64), np.full(n, inputs)
    while (rows := np.flatnonzero(high - low > 1)).size:
        middle = (low[rows] + high[rows]) // 2
        mixed = np.where(np.arange(inputs) < middle[:, None], last[rows], first[rows])
        moved = (view(mixed) != own[rows]).any(axis=1)
        high[rows[moved]], low[rows[~moved]] = middle[moved], middle[~moved]
    return low


def _stay(
    view: NormalisedQueries, first: Array, last: Array, inputs: IntArray, rng: np.random.Generator
) -> BoolArray:
    """Return whether the steps are still there when all other inputs are nudged. Shape (3 n,)."""
    which = np.repeat(np.arange(len(first)), _NUDGES)
    moved = first[which] + _NUDGE * rng.standard_normal((len(which), first.shape[1]))
    bounds = view.region.normalised_bounds
    if bounds is not None:
        moved = np.clip(moved, *bounds)
    below, above, every = moved.copy(), moved.copy(), np.arange(len(which))
    at = inputs[which]
    below[every, at], above[every, at] = first[which, at], last[which, at]
    answers = view(np.concatenate([below, above]))
    return np.asarray((answers[: len(which)] != answers[len(which) :]).any(axis=1))
