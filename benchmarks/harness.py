"""What all benchmarks share: one run of a recovery, a row per setting, a table, the command line.

A *run* is one recovery of one planted network, measured against the truth. A *row* gathers the runs of
one setting over the seeds; every row holds the keys of `COMMON`, and a script may add its own. Errors on
fresh points are computed from the planted network itself, after the recovery and outside its counter.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import unweave
from unweave.arrays import Array

Row = dict[str, Any]

COMMON = {
    "setting": "setting",
    "seeds": "seeds",
    "recovered": "recovered",
    "wrong": "recovered but wrong",
    "worst_parameter_error": "worst parameter error",
    "median_parameter_error": "median parameter error",
    "worst_fresh_error": "worst error on fresh points",
    "queries_per_parameter": "queries per parameter",
    "queries": "queries",
    "seconds": "seconds",
    "cpu_seconds": "CPU s",
    "stage_seconds": "seconds per stage",
    "peak_rss_mb": "peak MB",
}
"""Keys that every row holds, with their column titles. What a benchmark does not measure is None."""

FRESH_POINTS = 10_000
_BLOCK = 10_000  # rows evaluated at once: a 1000 wide network then needs 80 MB
SEARCH_SEED = 1_000_003
"""Added to a setting's seed to seed the recovery. With one seed for both, the random numbers of the search
would be those the network was planted with: its starts could be the answer itself."""
_FRESH_STREAM = 7_919  # second word of the seed of fresh points, so that they share nothing with the run


@dataclass(frozen=True)
class Run:
    """One run of one setting; nan where a figure does not apply."""

    seed: int
    recovered: bool
    parameter_error: float = math.nan
    fresh_error: float = math.nan
    queries_per_parameter: float = math.nan
    queries: float = math.nan
    seconds: float = math.nan
    cpu_seconds: float = math.nan
    stages: dict[str, float] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    same: bool = True
    """Whether `unweave.compare` calls the result the planted network."""
    peak_rss_mb: float = math.nan
    """Taken before the fresh points, which are the benchmark's own."""


def run_recovery(
    truth: unweave.Network,
    seed: int,
    *,
    target: Callable[[Array], Array] | None = None,
    undo: Callable[[unweave.Network], unweave.Network] | None = None,
    fresh_points: int = FRESH_POINTS,
    extra: Callable[[unweave.Recovery], dict[str, Any]] | None = None,
    **arguments: Any,
) -> Run:
    """Recover ``truth`` and measure the result against it.

    Parameters
    ----------
    target
        What is asked instead of the planted network itself, if it sits behind something.
    undo
        Takes the recovered network back into the coordinates of ``truth``.
    fresh_points
        Number of Gaussian points (in the coordinates of ``truth``) of the error on fresh points.
    extra
        More figures from the result, kept in ``Run.extra``.
    arguments
        Passed on to `unweave.recover`.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        result = unweave.recover(truth if target is None else target, seed=search_seed(seed), **arguments)
    except unweave.UnweaveError as error:  # one failure must not lose the hours before it
        say(f"  seed {seed}: {type(error).__name__}: {error}")
        return Run(seed, False, math.inf, math.inf, same=False)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = peak_rss_mb()
    network = result.network
    if network is not None and undo is not None:
        network = undo(network)
    comparison = None if network is None else unweave.compare(truth, network)
    run = Run(
        seed=seed,
        recovered=result.status is unweave.Status.RECOVERED,
        parameter_error=math.inf if comparison is None else comparison.parameter_error,
        fresh_error=math.inf if network is None else fresh_error(truth, network, seed, fresh_points),
        queries_per_parameter=result.queries_per_parameter,
        queries=result.queries,
        seconds=wall,
        cpu_seconds=cpu,
        stages=_stage_seconds(result),
        extra={} if extra is None else extra(result),
        same=comparison is not None and comparison.is_same,
        peak_rss_mb=peak,
    )
    say(
        f"  seed {seed}: {result.status.name}, parameter error {run.parameter_error:.2g}, "
        f"{result.queries} queries, {wall:.1f} s"
    )
    return run


def timed(run: Callable[[int], Run], seed: int) -> Run:
    """``run(seed)``, with its time and the memory it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = run(seed)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return replace(found, seconds=wall, cpu_seconds=cpu, peak_rss_mb=peak_rss_mb())


def search_seed(seed: int) -> int:
    """The seed of the search for what was planted with ``seed``."""
    return SEARCH_SEED + seed


def fresh_error(
    truth: Callable[[Array], Array], network: unweave.Network, seed: int, points: int = FRESH_POINTS
) -> float:
    """max |network(x) - truth(x)| / max |truth(x)| over ``points`` Gaussian x, in blocks."""
    rng = np.random.default_rng([seed, _FRESH_STREAM])
    difference = size = 0.0
    for start in range(0, points, _BLOCK):
        x = rng.standard_normal((min(_BLOCK, points - start), network.n_inputs))
        expected = truth(x)
        difference = max(difference, float(np.abs(network(x) - expected).max()))
        size = max(size, float(np.abs(expected).max()))
    return difference / size if size > 0 else math.inf


def summarise(setting: str, runs: Sequence[Run], **more: Any) -> Row:
    """One row: worst and median over the runs, medians of cost; ``more`` is added as it is.

    The peak memory is the high-water mark of the whole process so far: run from small to large.
    """
    errors = [run.parameter_error for run in runs]
    names = dict.fromkeys(name for run in runs for name in run.stages)
    return {
        "setting": setting,
        "seeds": len(runs),
        "recovered": sum(run.recovered for run in runs),
        "wrong": sum(run.recovered and not run.same for run in runs),
        "worst_parameter_error": _or_none(max(errors)),
        "median_parameter_error": _or_none(float(np.median(errors))),
        "worst_fresh_error": _or_none(max(run.fresh_error for run in runs)),
        "queries_per_parameter": _median(run.queries_per_parameter for run in runs),
        "queries": _median(run.queries for run in runs),
        "seconds": _median(run.seconds for run in runs),
        "cpu_seconds": _median(run.cpu_seconds for run in runs),
        "stage_seconds": {name: _median(run.stages.get(name, 0.0) for run in runs) for name in names},
        "peak_rss_mb": max((run.peak_rss_mb for run in runs if run.peak_rss_mb > 0), default=None),
        "not_recovered": [run.seed for run in runs if not run.recovered],
        **more,
    }


def peak_rss_mb() -> float:
    """Largest resident memory of this process so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 if platform.system() == "Darwin" else 1024  # bytes there, kilobytes elsewhere
    return peak * unit / 1e6


def parser(description: str | None, seeds: str, quick: str) -> argparse.ArgumentParser:
    """The options that all scripts share; ``seeds`` and ``quick`` describe the script's own defaults."""
    result = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    result.add_argument("--seeds", type=seed_range, default=None, metavar="A:B", help=f"A to B - 1 ({seeds})")
    result.add_argument("--quick", action="store_true", help=quick)
    result.add_argument("--json", type=Path, default=None, metavar="FILE", help="write the rows here")
    return result


def seed_range(text: str) -> range:
    """Read ``A:B`` as the seeds A, ..., B - 1."""
    first, _, end = text.partition(":")
    try:
        seeds = range(int(first), int(end))
    except ValueError:
        seeds = range(0)
    if not seeds or seeds[0] < 0:
        raise argparse.ArgumentTypeError(
            f"seeds must be A:B with 0 <= A < B. Got {text!r} instead. For example 0:10."
        )
    return seeds


def seeds_of(arguments: argparse.Namespace, full: int, quick: int) -> range:
    """The seeds asked for, else the first ``full``, or ``quick`` with --quick."""
    if arguments.seeds is not None:
        return arguments.seeds
    return range(quick if arguments.quick else full)


def tell(rows: Sequence[Row], columns: dict[str, str] | None = None, file: Path | None = None) -> None:
    """Print the table (``columns``: key to title; default the common ones) and write the rows."""
    print(markdown(rows, columns or COMMON))
    print()
    print(environment())
    if file is not None:
        write_rows(rows, file)


def unasked(*dropped: str) -> dict[str, str]:
    """The common columns but for ``dropped`` and those that mean nothing where no target is asked."""
    unused = ("queries_per_parameter", "queries", "stage_seconds", *dropped)
    return {key: title for key, title in COMMON.items() if key not in unused}


def markdown(rows: Iterable[Row], columns: dict[str, str]) -> str:
    """The rows as a Markdown table."""
    lines = ["| " + " | ".join(columns.values()) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_shown(row.get(key)) for key in columns) + " |" for row in rows]
    return "\n".join(lines)


def write_rows(rows: Sequence[Row], file: Path) -> None:
    """Write the rows as a JSON list; a reader sees the old file or the new one, never half of it."""
    partial = file.with_name(file.name + ".partial")
    partial.write_text(json.dumps(rows, indent=1, allow_nan=False) + "\n")
    partial.replace(file)


def environment() -> str:
    """The machine in a line: seconds mean nothing without it."""
    threads = os.environ.get("OMP_NUM_THREADS") or "default"
    return (
        f"unweave {unweave.__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"{platform.machine()} with {os.cpu_count()} cores, OMP_NUM_THREADS {threads}"
    )


def say(line: str) -> None:
    """A line of progress, to stderr."""
    print(line, file=sys.stderr, flush=True)


def _stage_seconds(result: unweave.Recovery) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for stage in result.stages:
        seconds[stage.name] = seconds.get(stage.name, 0.0) + stage.seconds
    return seconds


def _median(values: Iterable[float]) -> float | None:
    known = [value for value in values if math.isfinite(value)]
    return float(np.median(known)) if known else None


def _or_none(value: float) -> float | None:
    """Infinity and nan have no place in JSON."""
    return value if math.isfinite(value) else None


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool | str | int):
        return f"{value:,}" if type(value) is int else str(value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(entry)}" for name, entry in value.items()) or "-"
    if isinstance(value, list | tuple):
        return ", ".join(_shown(entry) for entry in value) or "-"
    if value and not 1e-3 <= abs(value) < 1e4:
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.1e}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
