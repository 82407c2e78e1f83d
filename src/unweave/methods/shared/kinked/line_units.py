"""Kinked units from the breakpoints on a line.

On x0 + t u a layer of (leaky) ReLU units is piecewise linear, and the gradients of two neighbouring
segments differ by what happens at the breakpoint p between them:

    g_{i+1} - g_i  =  +- 2 w_i h_i^T        (d, K), rank one,        b_i = -w_i . p

with the unit's normal w_i, |w_i| = 1, and half the jump h_i of the slope across its hyperplane: the unit
h_i |w_i . x + b_i| of an `AbsoluteForm`. The gradient of a segment takes d + 2 rows, and one of them is a
check: u . g must be the slope along the line, which says that no step has crossed another unit.

One line crosses every hyperplane that it is not parallel to: (m + 1)(d + 2) rows for m (d + K) parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.shared.kinked.line_kinks import Precision
from unweave.targets.region import Region

Ask = Callable[[Array], Array]
"""(n, d) -> (n, K)"""

_EPS = float(np.finfo(np.float64).eps)
_STEP = 1e-2  # of the segment's length
_SMALLER = 0.1  # factor for the step after a check has failed
_TRIES = 4
_CHORD = 0.3  # of the segment's length, from its middle: where the slope along the line is taken
_CHECK_ERRORS = 50.0  # errors of a difference quotient by which the check may be off
_END_SHARE, _LEAST_END = 0.2, 1.0  # how far beyond the outer kinks gradients are taken
_RANK_ONE = 1e-3  # second over first singular value of a jump
_SAME_DIRECTION = 1e-6  # of 1 - |cos|
_SAME_BIAS = 1e-4  # relative to 1 + |b|
_SAME_PLACE = 1e-5  # relative to 1 + |t|: where a known unit explains a kink
_CORNER = 0.1  # lines in a box end within this part of its half-width from a corner
_ROWS_AT_ONCE = 2_000_000  # numbers
_STREAM = 0x6C696E65  # keeps the lines' random numbers apart from all others

REACH = 1e5
"""Half length of a line without a box, in normalised inputs: units with |b| <= 100 |w| are hardly missed."""


@dataclass(frozen=True, eq=False)
class Line:
    """x0 + t u for low <= t <= high, |u| = 1, in normalised inputs."""

    start: Array
    direction: Array
    low: float
    high: float

    def points(self, t: Array) -> Array:
        """(n, d) at t (n,)."""
        return np.asarray(self.start + t[:, None] * self.direction)


@dataclass(frozen=True, eq=False)
class Units:
    """Units h |w . x + b| found so far."""

    weights: Array
    """(d, m), columns of length one."""
    biases: Array
    """(m,)"""
    heights: Array
    """(m, K)"""
    clearance: Array
    """(m,) room to the next unit where it was measured: what its error is inversely proportional to."""
    seen: Array
    """(m,) lines on which it was found."""
    refined: BoolArray
    """(m,) whether it was measured again on its own hyperplane."""

    @classmethod
    def none(cls, n_inputs: int, n_outputs: int) -> Units:
        """No units."""
        empty = np.zeros(0)
        return cls(
            np.zeros((n_inputs, 0)), empty, np.zeros((0, n_outputs)), empty, empty, np.zeros(0, dtype=bool)
        )

    @property
    def width(self) -> int:
        """m"""
        return len(self.biases)

    def keep(self, chosen: BoolArray) -> Units:
        """Only some of them."""
        return Units(
            self.weights[:, chosen],
            self.biases[chosen],
            self.heights[chosen],
            self.clearance[chosen],
            self.seen[chosen],
            self.refined[chosen],
        )

    def crossings(self, line: Line) -> Array:
        """(m,) where the line crosses each unit's hyperplane; infinite if it does not."""
        speed = line.direction @ self.weights
        height = line.start @ self.weights + self.biases
        return np.asarray(np.divide(-height, speed, out=np.full_like(height, np.inf), where=speed != 0))


@dataclass(frozen=True, eq=False)
class Jump:
    """What the gradient does at a kink of a line."""

    position: float
    """t"""
    normal: Array
    """(d,) of length one, up to its sign."""
    height: Array
    """(K,) half the jump along the normal."""
    clearance: float
    """Length of the shorter segment beside the kink."""
    error: float
    """Estimated error of the normal."""


def line_stream(rng: np.random.Generator) -> np.random.Generator:
    """Random numbers for lines alone, the same for all methods of one run.

    A method that takes over from another then asks along the same lines, whose answers are in the ledger.
    """
    seeds = rng.bit_generator.seed_seq
    entropy = seeds.entropy if isinstance(seeds, np.random.SeedSequence) else 0
    return np.random.default_rng([*np.ravel(np.asarray(entropy, dtype=object)).tolist(), _STREAM])


def random_line(region: Region, reach: float, rng: np.random.Generator) -> Line:
    """A line through a point of the region, |t| <= reach; in a box, from one corner to another.

    Corners see most of the box's hyperplanes: a uniform point hardly leaves the middle of a box.
    """
    bounds = region.normalised_bounds
    if bounds is None:
        direction = rng.standard_normal(region.n_inputs)
        return Line(region.sample(1, rng)[0], direction / np.linalg.norm(direction), -reach, reach)
    middle, half = (bounds[0] + bounds[1]) / 2, (bounds[1] - bounds[0]) / 2
    shape = (2, region.n_inputs)
    ends = middle + half * rng.choice([-1.0, 1.0], shape) * (1 - _CORNER * rng.random(shape))
    length = float(np.linalg.norm(ends[1] - ends[0]))
    return Line(ends.mean(axis=0), (ends[1] - ends[0]) / length, -length / 2, length / 2)


def units_at_kinks(
    ask: Ask, region: Region, line: Line, kinks: Array, known: Units, precision: Precision
) -> tuple[Units, int]:
    """The units behind the kinks (n,) of a line that no known unit explains, and how many kinks stay open."""
    new = unexplained(kinks, known.crossings(line))
    jumps = jumps_at_kinks(ask, region, line, kinks, new, precision)
    if not jumps:
        return Units.none(region.n_inputs, known.heights.shape[1]), len(new)
    weights = np.stack([jump.normal for jump in jumps], axis=1)
    places = line.points(np.array([jump.position for jump in jumps]))
    units = Units(
        weights,
        -np.einsum("nd,dn->n", places, weights),
        # A kink's normal may point either way, the jump along +normal is the same: h is that of |z|.
        np.stack([_height(jump.height, jump.normal, line) for jump in jumps]),
        np.array([jump.clearance for jump in jumps]),
        np.ones(len(jumps)),
        np.zeros(len(jumps), dtype=bool),
    )
    return units, len(new) - len(jumps)


def unexplained(kinks: Array, predicted: Array) -> IntArray:
    """Numbers of the kinks (n,) of a line that are at none of the predicted places (k,)."""
    if not len(predicted):
        return np.arange(len(kinks))
    apart = np.abs(kinks[:, None] - predicted).min(axis=1)
    return np.flatnonzero(apart > _SAME_PLACE * (1 + np.abs(kinks)))


def jumps_at_kinks(
    ask: Ask, region: Region, line: Line, kinks: Array, wanted: IntArray, precision: Precision
) -> list[Jump]:
    """The gradient's jump at the kinks numbered ``wanted``; those that fail their check are left out."""
    if len(wanted) == 0:
        return []
    beyond = max(_LEAST_END, _END_SHARE * float(kinks[-1] - kinks[0]))
    ends = np.concatenate([[max(line.low, kinks[0] - beyond)], kinks, [min(line.high, kinks[-1] + beyond)]])
    beside = np.unique(np.concatenate([wanted, wanted + 1]))
    gradients, good, errors = _Segments(ask, region, line, ends, precision).gradients(beside)
    index = {segment: row for row, segment in enumerate(beside)}
    found = []
    for kink in wanted:
        before, after = index[kink], index[kink + 1]
        left, values, right = np.linalg.svd(gradients[after] - gradients[before], full_matrices=False)
        rank_one = len(values) < 2 or values[1] <= _RANK_ONE * values[0]
        if not (good[before] and good[after] and rank_one and values[0] > 0):
            continue
        clearance = min(ends[kink + 1] - ends[kink], ends[kink + 2] - ends[kink + 1])
        error = float(np.hypot(errors[before], errors[after])) * np.sqrt(len(left)) / values[0]
        height = values[0] * right[0] / 2
        found.append(Jump(float(kinks[kink]), left[:, 0], height, float(clearance), float(error)))
    return found


def merge(known: Units, new: Units) -> Units:
    """Known and new units together; of two sightings of one unit the one with more room is kept."""
    joined = known
    for unit in range(new.width):
        one = new.keep(np.arange(new.width) == unit)
        twin = _twin(joined, one)
        if twin is None:
            joined = _concatenate(joined, one)
            continue
        seen = joined.seen.copy()
        seen[twin] += 1
        joined = Units(joined.weights, joined.biases, joined.heights, joined.clearance, seen, joined.refined)
        if one.clearance[0] > joined.clearance[twin]:
            others = np.arange(joined.width) != twin
            one = Units(one.weights, one.biases, one.heights, one.clearance, seen[[twin]], one.refined)
            joined = _concatenate(joined.keep(others), one)
    return joined


def _twin(units: Units, one: Units) -> int | None:
    """The unit with the same hyperplane as ``one``."""
    if units.width == 0:
        return None
    cosine = one.weights[:, 0] @ units.weights
    same = 1 - np.abs(cosine) < _SAME_DIRECTION
    same &= np.abs(units.biases - np.sign(cosine) * one.biases) < _SAME_BIAS * (1 + np.abs(units.biases))
    return int(np.argmax(same)) if same.any() else None


def _concatenate(first: Units, second: Units) -> Units:
    return Units(
        np.hstack([first.weights, second.weights]),
        np.concatenate([first.biases, second.biases]),
        np.vstack([first.heights, second.heights]),
        np.concatenate([first.clearance, second.clearance]),
        np.concatenate([first.seen, second.seen]),
        np.concatenate([first.refined, second.refined]),
    )


def _height(height: Array, normal: Array, line: Line) -> Array:
    """Half the jump of the slope along +w: across the line it is met in the direction of u."""
    return height if normal @ line.direction > 0 else -height


class _Segments:
    """Gradients between neighbouring kinks of a line."""

    def __init__(self, ask: Ask, region: Region, line: Line, ends: Array, precision: Precision) -> None:
        self._ask = ask
        self._line = line
        self._precision = precision
        self._length = np.diff(ends)
        self._middle = (ends[1:] + ends[:-1]) / 2
        bounds = region.normalised_bounds
        self._centre = None if bounds is None else (bounds[0] + bounds[1]) / 2

    def gradients(self, wanted: IntArray) -> tuple[Array, BoolArray, Array]:
        """(n, d, K) for the segments ``wanted`` (n,), whether each passed the check, and its error (n,)."""
        middle, length = self._middle[wanted], self._length[wanted]
        base = self._line.points(middle)
        values = self._ask(base)
        ahead = self._ask(self._line.points(middle + _CHORD * length))
        slope = (ahead - values) / (_CHORD * length)[:, None]
        error = self._precision(middle)
        result = np.zeros((len(wanted), base.shape[1], values.shape[1]))
        good = np.zeros(len(wanted), dtype=bool)
        steps = _STEP * length
        for _ in range(_TRIES):
            missing = np.flatnonzero(~good)
            at_once = max(1, _ROWS_AT_ONCE // base.shape[1] ** 2)
            for start in range(0, len(missing), at_once):
                rows = missing[start : start + at_once]
                result[rows] = self._differences(base[rows], values[rows], steps[rows])
                along = np.einsum("d,ndk->nk", self._line.direction, result[rows])
                # Quotients err by error/h each, and u . g is their average with weights of length one.
                allowed = _CHECK_ERRORS * error[rows] / steps[rows]
                good[rows] = np.abs(along - slope[rows]).max(axis=1) <= allowed
            if good.all():
                break
            steps[~good] *= _SMALLER
        return result, good, error / steps

    def _differences(self, base: Array, values: Array, steps: Array) -> Array:
        """Forward differences (n, d, K), towards the middle of the box where there is one."""
        n, d = base.shape
        signs = np.ones((n, d)) if self._centre is None else np.where(base < self._centre, 1.0, -1.0)
        signed = signs * steps[:, None]
        moved = base[:, None, :] + signed[:, :, None] * np.eye(d)
        taken = np.einsum("njj->nj", moved) - base  # what is left of the step after rounding
        answers = self._ask(moved.reshape(n * d, d)).reshape(n, d, -1)
        return np.asarray((answers - values[:, None, :]) / taken[:, :, None])
