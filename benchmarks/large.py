"""One large network: 50 inputs, 1000 tanh units with unit outer weights, 52 001 parameters.

Prints the row with its peak memory and its error on 100 000 fresh points, and the stages one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import unweave
from harness import COMMON, Row, markdown, parser, peak_rss_mb, run_recovery, say, seeds_of, summarise, tell

SETTING = (50, 1000)
QUICK = (20, 60)
FRESH_POINTS = 100_000


def stages_of(result: unweave.Recovery) -> dict[str, Any]:
    """Name, seconds and queries of every stage, in the order they ran."""
    stages = [
        {"stage": stage.name, "seconds": stage.seconds, "queries": stage.queries} for stage in result.stages
    ]
    return {"stages": stages}


def measure(inputs: int, width: int, seeds: range) -> Row:
    """The row of one network per seed; the stages are those of the first."""
    say(f"large: D = {inputs}, m = {width}")
    before = peak_rss_mb()
    runs = []
    for seed in seeds:
        truth = unweave.random_network([inputs, width, 1], seed=seed, outer="ones", bias=0.5)
        runs.append(
            run_recovery(
                truth,
                seed,
                hidden=[width],
                activation="tanh",
                fresh_points=FRESH_POINTS,
                extra=stages_of,
            )
        )
    row = summarise(f"D={inputs}, m={width}", runs, inputs=inputs, width=width, fresh_points=FRESH_POINTS)
    row["rss_before_mb"] = before
    row["stages"] = runs[0].extra.get("stages", [])
    return row


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its tables."""
    arguments = parser(__doc__, "0:1", f"D, m = {QUICK} instead").parse_args(argv)
    rows = [measure(*(QUICK if arguments.quick else SETTING), seeds_of(arguments, 1, 1))]
    columns = {key: title for key, title in COMMON.items() if key != "stage_seconds"}
    tell(rows, {**columns, "rss_before_mb": "MB before"}, arguments.json)
    print()
    print(markdown(rows[0]["stages"], {"stage": "stage", "seconds": "seconds", "queries": "queries"}))
    return rows


if __name__ == "__main__":
    main()
