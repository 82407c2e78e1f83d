"""The power method alone: how many starts it takes to find all m rank-one members of an exact span.

100 seeds of D = 20, m = 160 random unit directions; the subspace is the exact span of their squares, so
there are no queries and no error of differences. The parameter error is the distance of a planted
direction to the nearest one found, up to sign. Uniform starts would need Theta(m log m) of them (the
coupon collector's count is in the table for comparison).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from harness import Row, Run, parser, peak_rss_mb, say, search_seed, seeds_of, summarise, tell, unasked
from planted import FOUND, exact_span, planted_directions
from unweave.experiments.planted import distances
from unweave.subspace import subspace_power_method

SETTING = (20, 160)
QUICK = (15, 60)
COLUMNS = {
    "average_restarts": "average restarts / m",
    "worst_restarts": "worst restarts / m",
    "missed": "directions missed",
    "spurious": "spurious directions",
    "coupon_collector": "coupon collector / m",
}


def search(dimension: int, width: int, seed: int) -> Run:
    """One search of one planted span."""
    planted = planted_directions(dimension, width, seed)
    space = exact_span(planted)
    wall, cpu = time.perf_counter(), time.process_time()
    result = subspace_power_method(space, np.random.default_rng(search_seed(seed)))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    errors = distances(planted, result.directions)
    missed = int((errors > FOUND).sum())
    spurious = int((distances(result.directions, planted) > FOUND).sum())
    say(f"  seed {seed}: {result.restarts} restarts, {missed} missed, {wall:.2f} s")
    return Run(
        seed,
        recovered=missed == 0 and spurious == 0,
        parameter_error=float(errors.max()),
        seconds=wall,
        cpu_seconds=cpu,
        stages={"power method": wall},
        extra={"restarts": result.restarts / width, "missed": missed, "spurious": spurious},
        peak_rss_mb=peak_rss_mb(),
    )


def measure(dimension: int, width: int, seeds: range) -> Row:
    """The row of one setting."""
    say(f"restarts: D = {dimension}, m = {width}")
    runs = [search(dimension, width, seed) for seed in seeds]
    ratios = [run.extra["restarts"] for run in runs]
    return summarise(
        f"D={dimension}, m={width}",
        runs,
        average_restarts=float(np.mean(ratios)),
        worst_restarts=float(np.max(ratios)),
        missed=sum(run.extra["missed"] for run in runs),
        spurious=sum(run.extra["spurious"] for run in runs),
        coupon_collector=float((1 / np.arange(1, width + 1)).sum()),
    )


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    arguments = parser(__doc__, "0:100", f"D, m = {QUICK}, 5 seeds").parse_args(argv)
    rows = [measure(*(QUICK if arguments.quick else SETTING), seeds_of(arguments, 100, 5))]
    tell(rows, {**unasked("worst_fresh_error", "wrong"), **COLUMNS}, arguments.json)
    return rows


if __name__ == "__main__":
    main()
