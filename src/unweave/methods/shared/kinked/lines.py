"""Lines through a target with kinked units, and what its gradient does at the kinks on them.

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
from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.numerics.axis_moves import NUMBERS_PER_CALL, answers_along_axes, one_call_is_enough
from unweave.numerics.clock import check
from unweave.numerics.line_kinks import KinkOptions, Line, LineKinks, Precision, find_kinks
from unweave.targets.region import Region

Ask = Callable[[Array], Array]
"""(n, d) -> (n, K)"""
LINE_REACH = 1e5
"""Half length of a line without a box, in normalised inputs: units with |b| <= 100 |w| are hardly missed."""
_LINE_STREAM = 0x6C696E65  # added to the seed: keeps the lines' random numbers apart from all others


@dataclass(frozen=True, kw_only=True)
class LineOptions:
    """How kinks are found on a line, and the units behind them."""

    kinks: KinkOptions = field(default_factory=KinkOptions)
    precision: float = float(np.finfo(np.float64).eps)
    """Rounding of a number in the target."""
    rounding_errors: float = 32.0
    """Roundings of the terms that an answer is summed from by which it may be off."""
    least_growth: float = 0.0
    """Growth of the terms along a line, at least: on a line of equal answers they cancel."""
    noise_errors: float = 8.0
    """Standard deviations of the noise by which an answer may be off."""
    cuts: tuple[float, ...] = (-4.1, -0.6, 0.7, 3.7)
    """Places, in units of sqrt(d), at which a line is split first: w . u is about 1/sqrt(d), so most kinks
    lie there."""
    step: float = 1e-2
    """Step of a difference quotient, as a share of the segment between two kinks."""
    smaller: float = 0.1
    """Factor on the step after its check has failed."""
    tries: int = 4
    """Steps that are tried."""
    chord: float = 0.3
    """Share of a segment over which the slope along the line is taken for the check."""
    check_errors: float = 50.0
    """Errors of a difference quotient by which the check may be off."""
    end_share: float = 0.2
    """How far beyond the outer kinks gradients are taken, as a share of the stretch between them."""
    least_end: float = 1.0
    """The same at least, in normalised inputs."""
    rank_one: float = 1e-3
    """Second over first singular value of a jump up to which it is that of one unit."""
    same_direction: float = 1e-6
    """1 - |cos| between the normals of two sightings of one unit."""
    same_bias: float = 1e-4
    """Difference of their biases, relative to 1 + |b|."""
    same_place: float = 1e-5
    """Distance, relative to 1 + |t|, up to which a known unit explains a kink."""
    corner: float = 0.1
    """Lines in a box end within this share of its half width from a corner."""


DEFAULT_LINE_OPTIONS = LineOptions()


@dataclass(frozen=True, eq=False)
class LineNoise:
    """Standard deviation of the noise along a line: at some places, and the larger of two between them."""

    places: Array
    """t (n,), ascending."""
    sigma: Array
    """(n,)"""

    @classmethod
    def constant(cls, sigma: float) -> LineNoise:
        """Return noise that is the same everywhere."""
        return cls(np.zeros(1), np.array([sigma]))

    def __call__(self, t: Array) -> Array:
        """Return the standard deviation (k,) at t (k,)."""
        after = np.searchsorted(self.places, t)
        last = len(self.places) - 1
        return np.maximum(self.sigma[np.clip(after - 1, 0, last)], self.sigma[np.clip(after, 0, last)])


@dataclass(frozen=True, eq=False)
class LineError:
    """Error of an answer on a line: rounding grows with the terms that it is summed from."""

    start: float
    """Largest answer at t = 0."""
    growth: float
    """Largest answer elsewhere over max(|t|, 1)."""
    noise: LineNoise
    noise_errors: float
    """Standard deviations of the noise by which an answer may be off."""
    rounding: float
    """Relative rounding error."""

    def __call__(self, t: Array) -> Array:
        """Return the error (n,) at t (n,)."""
        rounding = self.rounding * self.start + self.rounding * self.growth * np.abs(t)
        return np.asarray(self.noise_errors * self.noise(t) + rounding)


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
    """Return random numbers for lines alone, the same for all methods of one run.

    A method that takes over from another then asks along the same lines, whose answers are in the ledger.
    """
    seeds = rng.bit_generator.seed_seq
    entropy = seeds.entropy if isinstance(seeds, np.random.SeedSequence) else 0
    return np.random.default_rng([*np.ravel(np.asarray(entropy, dtype=object)).tolist(), _LINE_STREAM])


def random_line(
    region: Region, reach: float, rng: np.random.Generator, corner: float = DEFAULT_LINE_OPTIONS.corner
) -> Line:
    """Draw a line through a point of the region, |t| <= reach; in a box, from one corner to another.

    Corners see most of the box's hyperplanes: a uniform point hardly leaves the middle of a box.
    """
    bounds = region.normalised_bounds
    if bounds is None:
        direction = rng.standard_normal(region.n_inputs)
        return Line(region.sample(1, rng)[0], direction / np.linalg.norm(direction), -reach, reach)
    middle, half = (bounds[0] + bounds[1]) / 2, (bounds[1] - bounds[0]) / 2
    shape = (2, region.n_inputs)
    ends = middle + half * rng.choice([-1.0, 1.0], shape) * (1 - corner * rng.random(shape))
    length = float(np.linalg.norm(ends[1] - ends[0]))
    return Line(ends.mean(axis=0), (ends[1] - ends[0]) / length, -length / 2, length / 2)


def scan(ask: Ask, line: Line, noise: LineNoise, options: LineOptions) -> tuple[LineKinks, LineError]:
    """Find the kinks of a line, given the noise along it."""
    ends = np.array([line.low, line.low / 2, 0.0, line.high / 2, line.high])
    answers = np.abs(ask(line.points(ends))).max(axis=1)
    growth = float((np.delete(answers, 2) / np.maximum(np.abs(np.delete(ends, 2)), 1.0)).max())
    growth = max(growth, options.least_growth)
    rounding = options.rounding_errors * options.precision
    error = LineError(float(answers[2]), growth, noise, options.noise_errors, rounding)
    cuts = np.sqrt(len(line.start)) * np.array(options.cuts)
    inside = tuple(float(cut) for cut in cuts if line.low < cut < line.high)
    return find_kinks(lambda t: ask(line.points(t)), line.low, line.high, error, inside, options.kinks), error


def unexplained(kinks: Array, predicted: Array, same_place: float) -> IntArray:
    """Return the numbers of the kinks (n,) of a line that are at none of the predicted places (k,)."""
    if not len(predicted):
        return np.arange(len(kinks))
    apart = np.abs(kinks[:, None] - predicted).min(axis=1)
    return np.flatnonzero(apart > same_place * (1 + np.abs(kinks)))


def jumps_at_kinks(
    ask: Ask,
    region: Region,
    line: Line,
    kinks: Array,
    wanted: IntArray,
    precision: Precision,
    options: LineOptions,
    asked: Array | None = None,
) -> list[Jump]:
    """Measure the gradient's jump at the kinks numbered ``wanted``; leave out those that fail their check.

    Values at ``asked`` (n,) on the line cost nothing more.
    """
    if len(wanted) == 0:
        return []
    beyond = max(options.least_end, options.end_share * float(kinks[-1] - kinks[0]))
    ends = np.concatenate([[max(line.low, kinks[0] - beyond)], kinks, [min(line.high, kinks[-1] + beyond)]])
    beside = np.unique(np.concatenate([wanted, wanted + 1]))
    gradients, good, errors = _Segments(ask, region, line, ends, precision, options, asked).gradients(beside)
    index = {segment: row for row, segment in enumerate(beside)}
    found = []
    for kink in wanted:
        before, after = index[kink], index[kink + 1]
        if not (good[before] and good[after]):
            continue
        left, values, right = np.linalg.svd(gradients[after] - gradients[before], full_matrices=False)
        if values[0] == 0 or (len(values) > 1 and values[1] > options.rank_one * values[0]):
            continue
        clearance = min(ends[kink + 1] - ends[kink], ends[kink + 2] - ends[kink + 1])
        error = float(np.hypot(errors[before], errors[after])) * np.sqrt(len(left)) / values[0]
        height = values[0] * right[0] / 2
        found.append(Jump(float(kinks[kink]), left[:, 0], height, float(clearance), float(error)))
    return found


def on_hyperplane(
    weights: Array, biases: Array, normal: Array, bias: float, options: LineOptions
) -> BoolArray:
    """Return which units (m,), of weights (d, m) of length one, switch where normal . x + bias = 0."""
    cosine = normal @ weights
    apart = np.abs(biases - np.sign(cosine) * bias)
    same = 1 - np.abs(cosine) < options.same_direction
    return np.asarray(same & (apart < options.same_bias * (1 + np.abs(biases))))


class _Segments:
    """Gradients between neighbouring kinks of a line."""

    def __init__(
        self,
        ask: Ask,
        region: Region,
        line: Line,
        ends: Array,
        precision: Precision,
        options: LineOptions,
        asked: Array | None = None,
    ) -> None:
        self._options = options
        self._ends, self._asked = ends, np.empty(0) if asked is None else asked
        self._ask = ask
        self._line = line
        self._precision = precision
        self._length = np.diff(ends)
        self._middle = (ends[1:] + ends[:-1]) / 2
        bounds = region.normalised_bounds
        self._centre = None if bounds is None else (bounds[0] + bounds[1]) / 2

    def gradients(self, wanted: IntArray) -> tuple[Array, BoolArray, Array]:
        """Return (n, d, K) for the segments ``wanted`` (n,), which pass the check, and their errors (n,)."""
        options = self._options
        middle, length = self._middle[wanted], self._length[wanted]
        base = self._line.points(middle)
        values = self._ask(base)
        chord = self._chords(wanted)
        ahead = self._ask(self._line.points(chord))
        slope = (ahead - values) / (chord - middle)[:, None]
        error = self._precision(middle)
        result = np.zeros((len(wanted), base.shape[1], values.shape[1]))
        good = np.zeros(len(wanted), dtype=bool)
        steps = options.step * length
        for _ in range(options.tries):
            check()
            missing = np.flatnonzero(~good)
            at_once = max(1, NUMBERS_PER_CALL // base.shape[1] ** 2)
            for start in range(0, len(missing), at_once):
                rows = missing[start : start + at_once]
                result[rows] = self._differences(base[rows], values[rows], steps[rows])
                along = np.einsum("d,ndk->nk", self._line.direction, result[rows])
                # Quotients err by error/h each, and u . g is their average with weights of length one.
                allowed = options.check_errors * error[rows] / steps[rows]
                good[rows] = np.abs(along - slope[rows]).max(axis=1) <= allowed
            if good.all():
                break
            steps[~good] *= options.smaller
        return result, good, error / steps

    def _chords(self, wanted: IntArray) -> Array:
        """Return other places (n,) on the segments: the farthest one that was asked, if it is far enough."""
        chord = self._options.chord * self._length
        places = self._middle + chord
        for segment in wanted if len(self._asked) else ():
            low, high = np.searchsorted(self._asked, self._ends[segment : segment + 2], side="right")
            inside = self._asked[low:high]
            inside = inside[inside < self._ends[segment + 1]]
            apart = np.abs(inside - self._middle[segment])
            if len(inside) and apart.max() >= chord[segment]:
                places[segment] = inside[int(np.argmax(apart))]
        return np.asarray(places[wanted])

    def _differences(self, base: Array, values: Array, steps: Array) -> Array:
        """Return forward differences (n, d, K), towards the middle of the box where there is one."""
        n, d = base.shape
        signs = np.ones((n, d)) if self._centre is None else np.where(base < self._centre, 1.0, -1.0)
        signed = signs * steps[:, None]
        if not one_call_is_enough(d):
            taken_by = [answers_along_axes(self._ask, *pair) for pair in zip(base, signed, strict=True)]
            rows = zip(taken_by, values, strict=True)
            return np.stack([(answers - value) / taken[:, None] for (answers, taken), value in rows])
        moved = base[:, None, :] + signed[:, :, None] * np.eye(d)
        taken = np.einsum("njj->nj", moved) - base  # what is left of the step after rounding
        answers = self._ask(moved.reshape(n * d, d)).reshape(n, d, -1)
        return np.asarray((answers - values[:, None, :]) / taken[:, :, None])
