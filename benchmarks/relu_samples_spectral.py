"""ReLU networks with one hidden layer from their Hermite coefficients: exact ones, then ones from samples.

**Exact coefficients** (closed form): directions by Jennrich as published (Algorithms 1, 4 and 6) or by one
pencil for at most as many units as inputs, by Jennrich on orders 5 and 6 or the power method on orders 4 and
5 for twice as many. The width is not told. Odd seeds have units with biases 0 and 1, which order 3 and
order 4 do not see. The parameter error includes signs and output weights; beside it stands the largest
condition number of the weights, which multiplies rounding.

**Samples**: standard Gaussian inputs, 10 of them, 5 units, the width told. The direction error is |w - w~| up
to sign; *median* over units and seeds, *worst unit* the median over seeds of the worst one. The slope of the
median in N is expected at -1/2. Ways: raw moments; with a quadratic fitted off the labels first; Jennrich in
place of the pencil; in the span of T_2; and fitted to all the coefficients at once, weighed by their noise,
which is the library's default. The last way is shown for further sizes too, at the smallest N, the last one
with more units than inputs. A row counts as recovered if all units are within 0.3 radians and have the right
signs: a start that a later fit can be trusted with. For more units than inputs signs are not asked for, only
directions. Samples are generated again in every pass, which the seconds include.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

import unweave
from harness import Row, Run, parser, peak_rss_mb, say, search_seed, seeds_of, summarise, tell, unasked
from unweave.arrays import Array
from unweave.numerics.hermite.estimated_coefficients import Batches, EstimateOptions
from unweave.published.relu.gaussian_samples import GaussianSampleOptions, recover_from_gaussian_samples
from unweave.published.relu.relu_units import ReLUUnits, hermite_coefficients
from unweave.published.relu.spectral_recovery import DirectionMethod, recover_from_coefficients

EXACT = ((10, 5), (10, 10), (20, 10), (20, 20), (8, 16), (10, 20))
QUICK_EXACT = ((6, 3), (6, 9))
SAMPLED = (10, 5)
FURTHER = ((20, 10), (10, 10), (100, 5), (8, 16))
SAMPLES = (100_000, 1_000_000)
QUICK_SAMPLES = (10_000, 40_000)
WAYS = {
    "raw": GaussianSampleOptions(fit=False, project=False, estimate=EstimateOptions(degree=None)),
    "residual": GaussianSampleOptions(fit=False, project=False),
    "jennrich": GaussianSampleOptions(fit=False, project=False, directions="published"),
    "span": GaussianSampleOptions(fit=False),
    "fitted": GaussianSampleOptions(),
}
CLOSE = 0.3
"""Radians within which a direction is a start that a fit can be trusted with."""
PER_CONDITION = 1e-9
"""Parameter error allowed per condition number of the weights."""
_SAMPLE_STREAM = 104_729  # second word of the seed of samples, so that they share nothing with the network
_BATCH = 20_000
COLUMNS = {
    "condition": "largest condition number",
    "direction_error": "median direction error",
    "worst_unit": "worst unit",
    "signs_wrong": "signs wrong",
    "slope": "slope in N",
}


@dataclass(frozen=True)
class Exact:
    """One setting with exact coefficients."""

    dimension: int
    width: int
    directions: DirectionMethod

    @property
    def order(self) -> int:
        return 1 if self.width <= self.dimension else 2

    @property
    def label(self) -> str:
        return f"exact, d={self.dimension}, m={self.width}, {self.directions}"


def planted_units(dimension: int, width: int, seed: int, special: bool) -> ReLUUnits:
    """Random directions, biases in [-1, 1], output weights in +-[0.5, 1.5]; ``special``: biases 0 and 1
    first."""
    rng = np.random.default_rng(seed)
    outer = rng.choice([-1.0, 1.0], width) * rng.uniform(0.5, 1.5, width)
    units = ReLUUnits.normalised(rng.standard_normal((dimension, width)), rng.uniform(-1, 1, width), outer)
    if not special:
        return units
    return ReLUUnits(units.weights, np.concatenate([[0.0, 1.0], units.biases[2:]]), units.outer)


def batches_of(units: ReLUUnits, samples: int, seed: int) -> Batches:
    """Gaussian samples of the units' function, the same in every pass."""

    def batches() -> Iterator[tuple[Array, Array]]:
        rng = np.random.default_rng([seed, _SAMPLE_STREAM])
        for start in range(0, samples, _BATCH):
            x = rng.standard_normal((min(_BATCH, samples - start), units.dimension))
            yield x, units(x)

    return batches


def run_exact(setting: Exact, seed: int) -> Run:
    """One network from its exact coefficients."""
    units = planted_units(setting.dimension, setting.width, seed, special=seed % 2 == 1)
    coefficients = hermite_coefficients(units, 2 * setting.order + 2)
    wall, cpu = time.perf_counter(), time.process_time()
    rng = np.random.default_rng(search_seed(seed))
    found = recover_from_coefficients(coefficients, rng, order=setting.order, directions=setting.directions)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    comparison = unweave.compare(units.to_network(), found.to_network())
    condition = float(np.linalg.cond(units.weights))
    say(f"  seed {seed}: parameter error {comparison.parameter_error:.1e}, condition {condition:.0f}")
    return Run(
        seed,
        recovered=found.signs_known and comparison.parameter_error <= PER_CONDITION * condition,
        parameter_error=comparison.parameter_error,
        fresh_error=comparison.function_error,
        seconds=wall,
        cpu_seconds=cpu,
        stages={"coefficients to network": wall},
        extra={"condition": condition},
        same=comparison.is_same,
        peak_rss_mb=peak_rss_mb(),
    )


def run_sampled(options: GaussianSampleOptions, dimension: int, width: int, samples: int, seed: int) -> Run:
    """One network from samples."""
    units = planted_units(dimension, width, seed, special=False)
    wall, cpu = time.perf_counter(), time.process_time()
    rng = np.random.default_rng(search_seed(seed))
    found = recover_from_gaussian_samples(batches_of(units, samples, seed), rng, width, options)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    signed = options.order == 1
    weights = found.recovery.units.weights
    overlaps = units.weights.T @ weights if weights.shape[1] else np.zeros((width, 1))
    nearest = np.argmax(np.abs(overlaps), axis=1)
    chosen = overlaps[np.arange(width), nearest]
    errors = np.sqrt(np.maximum(2 - 2 * np.abs(chosen), 0))
    signs_wrong = int((chosen < 0).sum()) if signed else 0
    say(f"  seed {seed}: directions {np.median(errors):.3f}, worst {errors.max():.3f}, {wall:.1f} s")
    return Run(
        seed,
        recovered=bool(errors.max() < CLOSE and signs_wrong == 0),
        parameter_error=float(errors.max()),
        seconds=wall,
        cpu_seconds=cpu,
        stages={"samples to network": wall},
        extra={"errors": errors.tolist(), "signs_wrong": signs_wrong},
        peak_rss_mb=peak_rss_mb(),
    )


def measure_exact(setting: Exact, seeds: range) -> Row:
    """The row of one setting with exact coefficients."""
    say(setting.label)
    runs = [run_exact(setting, seed) for seed in seeds]
    return summarise(setting.label, runs, condition=max(run.extra["condition"] for run in runs))


def measure_sampled(way: str, sizes: Sequence[int], seeds: range, inputs_units: tuple[int, int]) -> list[Row]:
    """The rows of one way of using samples, smallest size first; each with the slope from the one before."""
    dimension, width = inputs_units
    options = replace(WAYS[way], order=1 if width <= dimension else 2)
    rows: list[Row] = []
    for samples in sizes:
        label = f"d={dimension}, m={width}, N={samples:,}, {way}"
        say(label)
        runs = [run_sampled(options, dimension, width, samples, seed) for seed in seeds]
        errors = np.array([run.extra["errors"] for run in runs])
        row = summarise(
            label,
            runs,
            samples=samples,
            direction_error=float(np.median(errors)),
            worst_unit=float(np.median(errors.max(axis=1))),
            signs_wrong=sum(run.extra["signs_wrong"] for run in runs),
            slope=None,
        )
        if rows:
            fall = math.log(row["direction_error"] / rows[-1]["direction_error"])
            row["slope"] = fall / math.log(samples / rows[-1]["samples"])
        rows.append(row)
    return rows


def settings_of(pairs: Sequence[tuple[int, int]]) -> list[Exact]:
    """Both ways to the directions of every pair (inputs, units)."""
    ways: dict[bool, tuple[DirectionMethod, ...]] = {
        True: ("pencil", "published"),
        False: ("power", "published"),
    }
    return [Exact(d, m, directions) for d, m in pairs for directions in ways[m <= d]]


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    options = parser(__doc__, "0:10 exact, 0:5 sampled", "small networks, few samples, 2 seeds")
    options.add_argument(
        "--samples", type=lambda text: [int(float(n)) for n in text.split(",")], metavar="N,N,.."
    )
    options.add_argument("--ways", choices=[*WAYS, "none"], nargs="+", default=list(WAYS))
    options.add_argument("--no-exact", action="store_true", help="samples only")
    arguments = options.parse_args(argv)
    pairs = () if arguments.no_exact else QUICK_EXACT if arguments.quick else EXACT
    rows = [measure_exact(setting, seeds_of(arguments, 10, 2)) for setting in settings_of(pairs)]
    sizes = arguments.samples or (QUICK_SAMPLES if arguments.quick else SAMPLES)
    for way in arguments.ways:
        if way != "none":
            rows += measure_sampled(way, sizes, seeds_of(arguments, 5, 2), SAMPLED)
    if "fitted" in arguments.ways and not arguments.quick and arguments.samples is None:
        for pair in FURTHER:
            rows += measure_sampled("fitted", sizes[:1], seeds_of(arguments, 5, 2), pair)
    tell(rows, {**unasked("wrong"), **COLUMNS}, arguments.json)
    return rows


if __name__ == "__main__":
    main()
