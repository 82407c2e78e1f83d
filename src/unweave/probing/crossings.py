"""The hyperplanes of a target's units, from where lines far away cross them.

Far from everything a unit sigma(w.x + b) is saturated except near its hyperplane w.x + b = 0. A line there
crosses the hyperplanes of the units one at a time: the gradient at a crossing is a multiple of w, the height
of the jump tells which multiple, and the point nearest to all the hyperplanes is where all units are alive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.targets.queries import Queries

_LINE_ANGLES = 40  # points on a line, equispaced in the angle at which they are seen from the location
_CROSSINGS_PER_LINE = 4  # drawn from the clear ones
_CLEAR_CHANGE = 0.02  # share of the largest change on any line that a crossing must exceed
_MOST_CROSSINGS = 150  # per round: each costs D + 16 queries
_CROSSING_HALVINGS = 20  # of the interval around a crossing, at most: a millionth of it is left
_WHOLE_JUMP = 0.9  # a half that keeps this share of the change still holds the whole crossing
_CROSSING_WIDTH = 2.83  # jump / slope is 2 for tanh and 4 for the logistic function: between the two
_FIRST_DISTANCE = 30.0  # of the lines in the first round, in rough scales, each several widths at least
_LEAST_DISTANCE_WIDTHS = 20.0  # widths of a crossing from everything else: nearer, crossings overlap
_MOST_DISTANCE_WIDTHS = 200.0  # widths at which a crossing seldom overlaps another
_SAME_PLANE = 0.99  # cosine of normals that belong to the same unit
_OPEN_DIRECTION = 0.03  # singular values below this share of the largest: no plane decides there
_REWEIGHTED_PASSES = 10  # of reweighted least squares, at most
_WEIGHT_EXCESS = 1.8  # factor by which weights come out too large: crossings seldom hit the steepest point


@dataclass(frozen=True)
class ScaledAnswers:
    """Answers in units of their range: ``weight`` (m,) is one over the range, ``error`` their sigma."""

    ledger: Queries
    weight: Array
    error: float

    def __call__(self, x: Array) -> Array:
        """Answer x (..., D) as (..., m), each output in units of its range."""
        flat = x.reshape(-1, x.shape[-1])
        return (self.ledger(flat) * self.weight).reshape(*x.shape[:-1], self.weight.size)


def locate_by_crossings(
    ask: ScaledAnswers, scale: Array, active: BoolArray, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return the location nearest to the hyperplanes of the units, and scales with unit weights. (D,), (D,).

    The first round starts from x = 0 and rough scales; the second, with the location and scales of the
    first, looks from a distance at which crossings are well apart but not farther.
    """
    location = np.zeros(scale.size)
    n_active = int(active.sum())
    # Normals are known to about sqrt(error), so a plane seen from Z widths away is off by Z sqrt(error).
    widths_away = float(np.clip(0.3 / np.sqrt(ask.error), _LEAST_DISTANCE_WIDTHS, _MOST_DISTANCE_WIDTHS))
    first = _FIRST_DISTANCE * widths_away / _MOST_DISTANCE_WIDTHS
    rounds = ((2 * n_active, first), (3 * n_active, widths_away * np.sqrt(n_active)))
    weights, levels = np.empty((0, scale.size)), np.empty(0)  # planes weights . x = levels, from both rounds
    for wanted, distance in rounds:
        n_lines = -(-min(wanted + 4, _MOST_CROSSINGS) // _CROSSINGS_PER_LINE)
        base, directions = _far_lines(n_lines, distance, active, rng)
        points, width, jump = _crossings(ask, location, scale, base, directions, distance, rng)
        slopes = _normals(ask, location, scale, points, width, active)
        good = slopes.any(axis=1) & np.isfinite(jump)
        new = slopes[good] * (_CROSSING_WIDTH / jump[good])[:, None] / scale
        weights = np.concatenate([weights, new])
        levels = np.concatenate([levels, np.sum(new * (location + scale * points[good]), axis=1)])
        if not levels.size:
            break
        size = np.linalg.norm(weights * scale, axis=1)
        normals = weights * scale / size[:, None]
        share = _rarity(normals)
        shift = _nearest_to_planes(normals, (levels - weights @ location) / size, share)
        location = location + np.where(active, scale * shift, 0.0)
        # Jumps of crossings that overlap come out too small, hence the median over the newest ones.
        common = np.median(size[size.size - new.shape[0] :]) if new.size else 1.0
        typical = common * np.sqrt(np.average(normals**2, axis=0, weights=share) * n_active)
        scale = np.where(typical > 0, scale / np.where(typical > 0, typical, 1.0), scale)
    return location, _WEIGHT_EXCESS * scale


def _far_lines(
    n_lines: int, distance: float, active: BoolArray, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return lines base + t direction (n, D each) that pass the origin at ``distance``; unit directions."""
    directions = np.where(active, rng.standard_normal((n_lines, active.size)), 0.0)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    base = np.where(active, rng.standard_normal((n_lines, active.size)), 0.0)
    return base * (distance / np.linalg.norm(base, axis=1, keepdims=True)), directions


def _crossings(
    ask: ScaledAnswers,
    location: Array,
    scale: Array,
    base: Array,
    directions: Array,
    distance: float,
    rng: np.random.Generator,
) -> tuple[Array, Array, Array]:
    """Return crossings on the lines: points (C, D) in scaled coordinates, widths (C,) and jumps (C,).

    A line is asked at equal angles as seen from the location, and an interval in which the answer changes
    clearly is halved towards the half that changes more. The change shrinks while crossings are shed,
    stays while one whole crossing is inside, and shrinks again inside it; the jump is its last stay, NaN
    if there was none.
    """
    angle = (np.arange(_LINE_ANGLES) + 0.5) / _LINE_ANGLES * np.pi - np.pi / 2
    grid = distance * np.tan(angle)
    values = ask(location + scale * (base[:, None, :] + grid[:, None] * directions[:, None, :]))
    change = np.linalg.norm(np.diff(values, axis=1), axis=-1)  # (lines, angles - 1)
    line, at = _clear_changes(change, ask.error, rng)
    base, directions = base[line], directions[line]
    low, high, value_low, value_high = grid[at], grid[at + 1], values[line, at], values[line, at + 1]
    size = change[line, at]
    jump, width = np.full(line.size, np.nan), high - low
    steepest = (low + high) / 2
    active = np.ones(line.size, dtype=np.bool_)
    for _ in range(_CROSSING_HALVINGS):
        middle = (low + high) / 2
        value = value_low.copy()
        ask_at = base[active] + middle[active, None] * directions[active]
        value[active] = ask(location + scale * ask_at)
        left = np.linalg.norm(value - value_low, axis=-1)
        right = np.linalg.norm(value_high - value, axis=-1)
        kept = np.maximum(left, right)
        whole = active & (kept >= _WHOLE_JUMP * size)
        jump, width = np.where(whole, size, jump), np.where(whole, (high - low) / 2, width)
        to_left = left >= right
        high, low = np.where(active & to_left, middle, high), np.where(active & ~to_left, middle, low)
        value_high = np.where((active & to_left)[:, None], value, value_high)
        value_low = np.where((active & ~to_left)[:, None], value, value_low)
        size = np.where(active, kept, size)
        steepest = (low + high) / 2
        # Well inside one crossing: an eighth of its width, or the rest is below the noise.
        active &= ~((high - low <= width / 8) & np.isfinite(jump)) & (size > 20 * ask.error)
        if not active.any():
            break
    return base + steepest[:, None] * directions, width, jump


def _clear_changes(change: Array, error: float, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return (line, interval) of a few intervals per line, drawn from all that change clearly.

    Drawn, not the largest: those would be crossings of the same few strong units on every line.
    """
    least = np.maximum(50 * error, _CLEAR_CHANGE * change.max())
    rank = np.where(change > least, rng.random(change.shape), -1.0)
    order = np.argsort(rank, axis=1)[:, ::-1][:, :_CROSSINGS_PER_LINE]
    line = np.repeat(np.arange(change.shape[0]), order.shape[1])
    at = order.ravel()
    clear = rank[line, at] >= 0
    return line[clear], at[clear]


def _rarity(normals: Array) -> Array:
    """Return one over the number of unit ``normals`` (C, D) that are parallel to each. Shape (C,)."""
    rarity: Array = 1.0 / (np.abs(normals @ normals.T) > _SAME_PLANE).sum(axis=1)
    return rarity


def _normals(
    ask: ScaledAnswers, location: Array, scale: Array, points: Array, width: Array, active: BoolArray
) -> Array:
    """Return the gradients (L, D) in scaled coordinates at ``points`` (L, D), by differences.

    Of several outputs the combination that changes most, the leading left singular vector, is taken.
    """
    step = width * np.clip(np.sqrt(ask.error), 1e-6, 0.3)  # balances noise against bending
    used = np.flatnonzero(active)
    center = ask(location + scale * points)  # (L, m)
    moved = np.repeat(points[:, None, :], used.size, axis=1)  # (L, used, D)
    moved[:, np.arange(used.size), used] += step[:, None]
    difference = (ask(location + scale * moved) - center[:, None, :]) / step[:, None, None]
    difference = np.where(np.abs(difference) * step[:, None, None] > 2 * ask.error, difference, 0.0)
    left, size, _ = np.linalg.svd(difference, full_matrices=False)
    normals = np.zeros(points.shape)
    normals[:, used] = left[:, :, 0] * size[:, :1]
    return normals


def _nearest_to_planes(normals: Array, offsets: Array, share: Array) -> Array:
    """Return y (D,) minimising sum_j share_j rho(n_j . y - c_j) for unit normals (C, D), offsets c (C,).

    rho is quadratic for small and linear for large misses (reweighted least squares): a crossing of two
    units at once belongs to no hyperplane and must not pull. Minimum norm where a direction is left open.
    """
    weight = np.sqrt(share)
    y = np.linalg.lstsq(weight[:, None] * normals, weight * offsets, rcond=_OPEN_DIRECTION)[0]
    for _ in range(_REWEIGHTED_PASSES):
        miss = np.abs(normals @ y - offsets)
        typical = np.median(miss)
        if typical == 0:
            break
        weight = np.sqrt(share / np.maximum(1.0, miss / (2 * typical)))
        y = np.linalg.lstsq(weight[:, None] * normals, weight * offsets, rcond=_OPEN_DIRECTION)[0]
    return np.asarray(y)
