"""How precise the answers are: repeat, look for a decimal grid, look for float32, difference tables.

An answer is f(x) + e. The standard deviation sigma of e decides step sizes, thresholds and what can be
recovered at all. Four kinds of e are told apart: the rounding of a float64 or float32 evaluation, answers
rounded to decimals, and noise proper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.targets.region import NormalisedQueries

NoiseKind = Literal["float64", "float32", "rounded", "noisy"]

_NOISY_REPEAT_CALLS = 10  # calls from which sigma of a noisy target is taken: 4 points x 10 = 40 answers
_TABLE_POINTS = 8  # equispaced points per difference table
_FINE_SPACINGS: dict[str, tuple[float, ...]] = {
    "float64": (1e-2, 1e-3, 1e-4, 1e-5),
    "float32": (3e-2, 1e-2, 3e-3, 1e-3),  # finer steps would fall between neighboring float32 inputs
}
_PLATEAU_FACTOR = 4.0  # three successive orders within this factor are the noise, not the function
_SAME_LEVEL_FACTOR = 10.0  # tables above the smallest level by more saw the function, not the noise
_NOT_REPEATING_EPS = 16.0  # of |f|: less is the order of summation, which may change between calls
_BEYOND_ROUNDING_EPS = 1e4  # of |f|: no evaluation of a network loses this much by rounding
# A decimal grid must be this many times coarser than the number format to be seen: then a number is on it by
# chance with probability 1/4, and all of the about 70 that are looked at never are.
_GRID_CLEARANCE = 32
_DECIMALS = range(-9, 16)
_MOST_COARSE_BITS = 16  # significant bits that a coarse format keeps: one float32 in 256 needs no more
_FEWEST_BINARY = 8  # distinct values that show such a format
_BINARY_FORMATS = {11: "float16", 8: "bfloat16"}
_FEWEST_MULTIPLES = 4  # distinct values that make "rounded to tens" more likely than a few labels


@dataclass(frozen=True, kw_only=True)
class NoiseRows:
    """Rows from which the error of the answers is estimated."""

    points: int = 4
    """Points asked again and again."""
    calls: int = 6
    """Calls that decide whether the target repeats itself."""
    lines: int = 8
    """Lines with a difference table that every target gets."""
    spacing: float = 0.1
    """Between the points of such a table, in normalised inputs."""
    fine_lines: int = 5
    """Lines per finer spacing, for targets that repeat themselves."""
    format_floor: float = 0.25
    """Least sigma in eps |f|: rounding errs by ulp/sqrt(12), and an ulp is eps/2 to eps of the value."""


MANY_NOISE_ROWS = NoiseRows()
FEW_NOISE_ROWS = NoiseRows(points=3, calls=2, lines=1, spacing=3e-5, fine_lines=0, format_floor=0.5)
"""For a small budget: 14 rows. One table may see too little of the rounding: half an eps |f| is assumed."""


@dataclass(frozen=True, eq=False)
class Noise:
    """What is known about the error of one answer.

    ``sigma_per_output`` (m,) is its standard deviation, ``sigma`` the largest of these; ``scale`` the
    root mean square spread of the answers over the region and ``relative`` = sigma / scale (infinite
    for a constant function). ``decimals`` is set for answers rounded to decimals; ``repeatable`` says
    whether the same row always got the same answer; ``format`` names a grid whose steps grow with the answer.
    """

    kind: NoiseKind
    sigma: float
    sigma_per_output: Array
    decimals: int | None
    scale: float
    relative: float
    repeatable: bool
    format: str | None = None

    @property
    def number_format(self) -> np.finfo[Any] | None:
        """The format whose rounding is all the error of an answer; None for coarser answers."""
        return np.finfo(self.kind) if self.kind in ("float64", "float32") else None

    @property
    def edge_sigma(self) -> float:
        """How near to an end of its range an answer is still exact: zero for floating-point answers."""
        return 0.0 if self.number_format is not None else self.sigma


def estimate_noise(
    queries: NormalisedQueries, rng: np.random.Generator, wanted: NoiseRows = MANY_NOISE_ROWS
) -> Noise:
    """Classify the error of the answers and estimate its standard deviation, in at most 250 queries.

    1. The same few points in separate calls: answers that differ are noisy, and sigma is their
       spread over ten calls. (Repeats within one call would show the edges of matrix kernels instead.)
    2. All answers multiples of 10**-d: rounded, sigma = 10**-d / sqrt(12). All of few significant digits or
       bits, as float16 has: as coarse as noise, with the sigma of the larger answers.
    3. All answers float32 numbers: float32, otherwise float64; sigma from difference tables: with
       e independent along equispaced points, E (D^k e)^2 = (2k)!/(k!)^2 sigma^2 for every order k,
       while the differences D^k f of the function itself die out.

    Example: ``estimate_noise(view, np.random.default_rng(0)).kind``
    """
    points = queries.region.sample(wanted.points, rng)
    repeats = np.stack([queries(points, fresh=True) for _ in range(wanted.calls)])  # (calls, points, m)
    coarse = _tables(queries, rng, wanted.lines, wanted.spacing)  # (lines, 8, m)
    seen = np.concatenate([repeats[0], coarse.reshape(-1, coarse.shape[-1])])
    unit = _power_of_two(seen)  # squares of answers in these units neither overflow nor vanish
    size = unit * _rms(seen / unit)  # (m,)
    single = bool(np.array_equal(seen, _as_float32(seen)))
    eps = float(np.finfo(np.float32 if single else np.float64).eps)
    decimals, grid_sigma, name = _grid(seen, eps)
    spread = unit * _repeat_spread(repeats / unit)
    kind: NoiseKind
    if (spread > _NOT_REPEATING_EPS * eps * size).any():
        more = [queries(points, fresh=True) for _ in range(_NOISY_REPEAT_CALLS - wanted.calls)]
        spread = unit * _repeat_spread(np.concatenate([repeats, np.stack(more)]) / unit)
        kind, decimals, sigma = "noisy", None, np.hypot(spread, grid_sigma)
    elif grid_sigma.any():
        kind, sigma = "noisy" if decimals is None else "rounded", grid_sigma
    else:
        kind = "float32" if single else "float64"
        finer = _FINE_SPACINGS[kind] if wanted.fine_lines else ()
        tables = [coarse] + [_tables(queries, rng, wanted.fine_lines, h) for h in finer]
        sigma = np.maximum(unit * difference_noise([table / unit for table in tables]), spread)
        if (sigma > _BEYOND_ROUNDING_EPS * eps * size).any():
            kind = "noisy"  # a fixed function of the input, but as rough as noise
    sigma = np.maximum(sigma, np.maximum(wanted.format_floor * eps * size, np.finfo(np.float64).tiny))
    scattered = np.concatenate([repeats[0], coarse[:, 0]])
    varies = np.ptp(scattered, axis=0) > 0  # the mean of equal numbers may be rounded, hence their deviation
    deviation = np.where(varies, unit * np.std(scattered / unit, axis=0), 0.0)
    scale = _norm(deviation) / math.sqrt(unit.size)
    largest = float(sigma.max())
    relative = largest / scale if scale > 0 else math.inf
    return Noise(kind, largest, sigma, decimals, scale, relative, not spread.any(), name)


def _grid(answers: Array, eps: float) -> tuple[int | None, Array, str | None]:
    """Return ``(decimals, sigma, name)`` of rounded ``answers`` (n, m); sigma (m,) is 0 without a grid.

    If the larger answers lie on a coarser grid than the smaller ones, significant digits or bits were kept,
    not decimals: there is no common grid then, and sigma is that of the larger answers.
    """
    outputs = answers.shape[1]
    decimals = decimal_grid(answers, eps)
    if decimals is None:
        bits = significant_bits(answers)
        if bits is None:
            return None, np.zeros(outputs), None
        step = np.exp2(np.frexp(np.abs(answers).max(axis=0))[1] - float(bits))  # of the largest answers
        return None, step / math.sqrt(12.0), _BINARY_FORMATS.get(bits, f"{bits} significant bits")
    values = np.unique(np.abs(answers))
    of_larger = decimal_grid(values[values.size // 2 :], eps)
    if of_larger is not None and of_larger < decimals:
        digits = of_larger + 1 + math.floor(math.log10(values[-1]))
        name = f"{digits} significant digits"
        return None, np.full(outputs, 10.0**-of_larger / math.sqrt(12.0)), name
    return decimals, np.full(outputs, 10.0**-decimals / math.sqrt(12.0)), None


def significant_bits(answers: Array) -> int | None:
    """Return how many significant bits all ``answers`` (n, m) need, None if more than a coarse format has."""
    fractions = np.frexp(np.unique(np.abs(answers[answers != 0])))[0]
    if fractions.size < _FEWEST_BINARY:
        return None
    for bits in range(1, _MOST_COARSE_BITS + 1):
        scaled = fractions * 2.0**bits
        if np.array_equal(scaled, np.round(scaled)):
            return bits
    return None


def decimal_grid(answers: Array, eps: float) -> int | None:
    """Return the smallest d such that all ``answers`` (n, m) are multiples of 10**-d, or None.

    Multiples up to a few roundings of relative size ``eps``; the grid must be clearly coarser than those.
    Fewer than two distinct values say nothing about a grid.
    """
    values = np.unique(answers)
    if values.size < 2:
        return None
    largest = float(np.abs(values).max())
    for d in _DECIMALS:
        if 10.0**-d < _GRID_CLEARANCE * eps * largest:
            return None
        if d < 0 and values.size < _FEWEST_MULTIPLES:
            continue
        grid = np.round(values * 10.0**d) / 10.0**d if d <= 0 else np.round(values, d)
        if (np.abs(values - grid) <= 4 * eps * np.abs(values)).all():
            return d
    return None


def difference_noise(tables: list[Array]) -> Array:
    """Estimate sigma (m,) from difference tables: a list, one per spacing, of (lines, 8, m) answers.

    For each table sigma_k^2 = (k!)^2/(2k)! mean (D^k f)^2, and the first order k at which sigma_k,
    sigma_{k+1}, sigma_{k+2} agree within a factor 4 and D^k f changes sign gives the estimate. Tables that
    mostly repeat the same answer (a flat piece, or steps finer than a grid) say nothing. The result is
    the median over the tables on the lowest level; 0 where no table says anything.
    """
    estimates = [_table_noise(table) for table in tables]  # each (lines, m), NaN where nothing was found
    levels = np.stack([_median_of_most(estimate) for estimate in estimates])  # (spacings, m)
    lowest = np.nanmin(np.where(np.isnan(levels), np.inf, levels), axis=0)
    pooled = np.concatenate(estimates)
    pooled = np.where(pooled <= _SAME_LEVEL_FACTOR * lowest, pooled, np.nan)
    found = np.isfinite(lowest)
    result = np.zeros(lowest.size)
    if found.any():
        result[found] = np.nanmedian(pooled[:, found], axis=0)
    if not found.all():
        result[~found] = _least_rough(tables)[~found]
    return result


def _table_noise(table: Array) -> Array:
    """Return the plateau of sigma_k for each line and output, NaN where there is none. Shape (lines, m)."""
    sigmas, signs = _orders(table)
    estimate = np.full(sigmas.shape[1:], np.nan)
    for k in range(sigmas.shape[0] - 3, -1, -1):  # downwards, so that the lowest order wins
        three = sigmas[k : k + 3]
        flat = (three.max(axis=0) <= _PLATEAU_FACTOR * three.min(axis=0)) & (three.min(axis=0) > 0) & signs[k]
        estimate = np.where(flat, sigmas[k], estimate)
    return np.where(_stuck(table), np.nan, estimate)


def _orders(table: Array) -> tuple[Array, BoolArray]:
    """Return sigma_k and whether D^k f changes sign, for k = 1.. Shapes (orders, lines, m)."""
    sigmas, signs = [], []
    difference = table
    for k in range(1, table.shape[1]):
        difference = np.diff(difference, axis=1)
        factor = math.factorial(k) ** 2 / math.factorial(2 * k)
        sigmas.append(np.sqrt(factor * np.mean(difference**2, axis=1)))
        signs.append((difference.min(axis=1) < 0) & (difference.max(axis=1) > 0))
    return np.stack(sigmas), np.stack(signs)


def _stuck(table: Array) -> BoolArray:
    """Return the tables in which at least half of the neighbours are equal. Shape (lines, m)."""
    stuck: BoolArray = np.mean(np.diff(table, axis=1) == 0, axis=1) >= 0.5
    return stuck


def _median_of_most(estimate: Array) -> Array:
    """Return the median over lines (m,), NaN unless at least half of the lines have an estimate."""
    level = np.full(estimate.shape[1], np.nan)
    most = np.mean(np.isfinite(estimate), axis=0) >= 0.5
    if most.any():
        level[most] = np.nanmedian(estimate[:, most], axis=0)
    return level


def _least_rough(tables: list[Array]) -> Array:
    """Return the smallest sigma_k that a spacing shows in the middle of its lines: an upper bound. (m,).

    For a function that is affine along the lines this is its rounding; for one too rough for a plateau it
    is the best that the tables can say.
    """
    middles = []
    for table in tables:
        sigmas, _ = _orders(table)
        middles.append(np.where(_stuck(table).all(axis=0), np.inf, np.median(sigmas.min(axis=0), axis=0)))
    least = np.min(np.stack(middles), axis=0)
    return np.where(np.isfinite(least), least, 0.0)


def _tables(queries: NormalisedQueries, rng: np.random.Generator, n_lines: int, spacing: float) -> Array:
    """Ask ``n_lines`` x 8 equispaced points along random unit directions. Shape (lines, 8, m)."""
    region = queries.region
    bounds = region.normalised_bounds
    if bounds is not None:  # the whole table, 7 spacings long, fits into a quarter of the narrowest side
        spacing = min(spacing, float((bounds[1] - bounds[0]).min()) / (4 * _TABLE_POINTS))
    reach = spacing * (_TABLE_POINTS - 1) / 2
    centers = region.sample(n_lines, rng, margin=reach)
    directions = rng.standard_normal(centers.shape)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    steps = spacing * (np.arange(_TABLE_POINTS) - (_TABLE_POINTS - 1) / 2)
    points = centers[:, None, :] + steps[:, None] * directions[:, None, :]
    return queries(points.reshape(-1, region.n_inputs)).reshape(n_lines, _TABLE_POINTS, -1)


def _repeat_spread(repeats: Array) -> Array:
    """Return the pooled standard deviation (m,) of repeated answers (calls, points, m)."""
    equal = repeats.min(axis=0) == repeats.max(axis=0)
    variance = np.where(equal, 0.0, repeats.var(axis=0, ddof=1))  # the mean of equal numbers may be rounded
    spread: Array = np.sqrt(variance.mean(axis=0))
    return spread


def _power_of_two(answers: Array) -> Array:
    """Return per output the power of two next to the largest |answer| (n, m), 1 if all are zero. (m,)."""
    largest = np.abs(answers).max(axis=0)
    unit: Array = np.where(largest > 0, np.exp2(np.floor(np.log2(np.where(largest > 0, largest, 1.0)))), 1.0)
    return unit


def _rms(answers: Array) -> Array:
    """Return the root mean square of ``answers`` (n, m) over rows. Shape (m,)."""
    rms: Array = np.sqrt(np.mean(answers**2, axis=0))
    return rms


def _norm(vector: Array) -> float:
    """Return the Euclidean norm of ``vector`` without overflow."""
    largest = float(np.abs(vector).max())
    return largest * float(np.linalg.norm(vector / largest)) if largest > 0 else 0.0


def _as_float32(answers: Array) -> Array:
    """Return ``answers`` rounded to float32 and back; what overflows becomes infinite, hence different."""
    with np.errstate(over="ignore", under="ignore"):
        return answers.astype(np.float32).astype(np.float64)
