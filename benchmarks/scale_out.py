"""What workers gain and what a log costs: wall and CPU seconds of the same recovery, done in several ways.

Generic tanh networks with nothing told. In this process; with two worker processes that share the
computation; with two that also ask the target, which here is slow on purpose (ten milliseconds per row, as
a remote one may be); with every answer logged to SQLite or to a directory; and resumed from a complete log.
The network must be the same in every way, bit for bit. Starting the workers is not counted: its seconds are a
column of their own. 3 seeds each.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import unweave
from harness import COMMON, Row, Run, parser, run_recovery, say, seeds_of, summarise, tell
from unweave.arrays import Array
from unweave.execution import DaskExecutor, SerialExecutor

COMPUTING = (25, 250)
"""Inputs and units of the network whose target is fast."""
ASKING = (12, 20)
"""Those of the one whose target is slow."""
WORKERS = 2
TARGET_ROWS = 16
"""Rows per call of the slow target, whoever asks."""
SECONDS_PER_ROW = 1e-2

COLUMNS = {
    **{key: COMMON[key] for key in ("setting", "seeds", "recovered", "wrong", "worst_parameter_error")},
    "queries": "queries",
    "seconds": "seconds",
    "cpu_seconds": "CPU s",
    "wall_ratio": "seconds / in process",
    "cpu_ratio": "CPU s / in process",
    "same": "same network",
    "start_seconds": "seconds to start workers",
}


class Slow:
    """The network, but every row takes its time."""

    def __init__(self, network: unweave.Network, seconds_per_row: float) -> None:
        self.network, self.seconds = network, seconds_per_row
        self.n_inputs = network.n_inputs

    def __call__(self, x: Array) -> Array:
        time.sleep(self.seconds * len(x))
        return self.network(x)


def truth_of(shape: tuple[int, int], seed: int) -> unweave.Network:
    return unweave.random_network([*shape, 1], seed=seed, outer="signed", norms=(0.5, 2), bias=1)


def run(shape: tuple[int, int], seed: int, slow: bool, prints: dict[int, bytes], **arguments: Any) -> Run:
    """One recovery; ``prints`` holds the first way's network per seed, with which the others are compared."""
    found: list[bytes] = []

    def fingerprint(result: unweave.Recovery) -> dict[str, Any]:
        network = result.network
        arrays = () if network is None else (*network.weights, *network.biases)
        found.append(b"".join(array.tobytes() for array in arrays))
        return {}

    truth = truth_of(shape, seed)
    target = Slow(truth, SECONDS_PER_ROW) if slow else None
    measured = run_recovery(truth, seed, target=target, extra=fingerprint, **arguments)
    expected = prints.setdefault(seed, found[-1] if found else b"")
    return replace(measured, extra={"identical": bool(found) and found[-1] == expected})


def row(setting: str, runs: list[Run], first: Row | None, **more: Any) -> Row:
    result = summarise(setting, runs, same=all(one.extra["identical"] for one in runs), **more)
    base = first or result
    result["wall_ratio"] = result["seconds"] / base["seconds"]
    result["cpu_ratio"] = result["cpu_seconds"] / base["cpu_seconds"]
    return result


def on_workers(
    one: Callable[[DaskExecutor, int], Run], seeds: range, asking: bool
) -> tuple[list[Run], float]:
    """Runs on a cluster, the workers' CPU seconds added, and the seconds it took to start."""
    began = time.perf_counter()
    with DaskExecutor(WORKERS, runs_target=asking, target_rows=TARGET_ROWS) as executor:
        list(executor.map(abs, range(4 * WORKERS)))
        started, runs = time.perf_counter() - began, []
        for seed in seeds:
            before = sum(executor._client.run(time.process_time).values())
            measured = one(executor, seed)
            used = sum(executor._client.run(time.process_time).values()) - before
            runs.append(replace(measured, cpu_seconds=measured.cpu_seconds + used))
    return runs, started


def computing(seeds: range) -> list[Row]:
    """In process, on workers, logged and resumed, with a fast target."""
    shape, name, prints = COMPUTING, f"{COMPUTING[0]}-{COMPUTING[1]}-1", dict[int, bytes]()
    say(f"scale_out: {name}, in this process")
    first = row(f"{name}, in process", [run(shape, seed, False, prints) for seed in seeds], None)
    say(f"scale_out: {name}, {WORKERS} workers")
    runs, started = on_workers(lambda e, seed: run(shape, seed, False, prints, executor=e), seeds, False)
    rows = [first, row(f"{name}, {WORKERS} workers", runs, first, start_seconds=started)]
    with tempfile.TemporaryDirectory() as folder:
        for ending, store in ((".sqlite", "SQLite"), ("", "directory")):
            paths = {seed: Path(folder) / f"{seed}{ending}" for seed in seeds}
            for what in ("logged to", "resumed from"):
                say(f"scale_out: {name}, {what} {store}")
                runs = [run(shape, seed, False, prints, checkpoint=paths[seed]) for seed in seeds]
                rows.append(row(f"{name}, {what} {store}", runs, first))
    return rows


def asking(seeds: range) -> list[Row]:
    """A slow target, asked here and by workers in calls of the same size."""
    shape, name, prints = ASKING, f"{ASKING[0]}-{ASKING[1]}-1 slow", dict[int, bytes]()
    say(f"scale_out: {name}, in this process")
    here = SerialExecutor(target_rows=TARGET_ROWS)
    first = row(f"{name}, in process", [run(shape, s, True, prints, executor=here) for s in seeds], None)
    say(f"scale_out: {name}, {WORKERS} workers ask")
    runs, started = on_workers(lambda e, seed: run(shape, seed, True, prints, executor=e), seeds, True)
    return [first, row(f"{name}, {WORKERS} workers ask", runs, first, start_seconds=started)]


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    arguments = parser(__doc__, "0:3", "1 seed").parse_args(argv)
    seeds = seeds_of(arguments, 3, 1)
    rows = [*computing(seeds), *asking(seeds)]
    tell(rows, COLUMNS, arguments.json)
    return rows


if __name__ == "__main__":
    main()
