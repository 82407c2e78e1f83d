"""Seconds over the grid D = 20, 25, ..., 50 and m = ceil(2/5 D^beta), beside the published ones.

The published seconds (Table 3.2 of the dissertation) cover weight recovery and initialisation on a P100
GPU and are followed there by up to 180 s of gradient descent; ours cover the whole of `unweave.recover`,
queries, final fit and verification included. Widths below D take the way through the active subspace.

With --json the file is written after every cell, and cells that it already holds are not run again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import unweave
from harness import COMMON, Row, markdown, parser, run_recovery, say, seeds_of, summarise, tell, write_rows

BETAS = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 15 / 8, 31 / 16, 2.0)

PUBLISHED_SECONDS = {
    20: (4.58, 4.53, 4.75, 4.76, 5.25, 5.89, 6.33, 6.6, 7.63),
    25: (5.7, 5.67, 5.75, 6.19, 7.02, 8.38, 9.52, 10.3, 11.4),
    30: (6.77, 6.87, 6.93, 7.44, 8.53, 10.6, 12.6, 14.7, 17.4),
    35: (8.35, 8.41, 8.49, 9.3, 10.6, 13.8, 18.3, 22.1, 27.5),
    40: (9.89, 9.95, 10.3, 11.1, 12.8, 18.2, 26.5, 33.0, 43.1),
    45: (12.3, 12.4, 12.9, 13.6, 16.0, 25.1, 38.4, 50.7, 70.8),
    50: (15.0, 15.2, 15.7, 16.7, 19.9, 34.1, 57.2, 79.8, 113.0),
}
"""Table 3.2: by D, in the order of `BETAS`."""

_SLACK = 1e-9  # 2/5 D^beta is often whole, and must not be rounded up for the rounding of the power


def width_of(inputs: int, beta: float) -> int:
    """m = ceil(2/5 D^beta)."""
    return math.ceil(2 * inputs**beta / 5 - _SLACK)


def measure(inputs: int, beta: float, seeds: range) -> Row:
    """The row of one cell."""
    width = width_of(inputs, beta)
    say(f"dissertation_grid: D = {inputs}, beta = {beta:.4g}, m = {width}")
    runs = []
    for seed in seeds:
        truth = unweave.random_network([inputs, width, 1], seed=seed, outer="ones", bias=0.5)
        runs.append(run_recovery(truth, seed, hidden=[width], activation="tanh"))
    row = summarise(f"D={inputs}, beta={beta:.4g}, m={width}", runs, inputs=inputs, beta=beta, width=width)
    published = PUBLISHED_SECONDS[inputs][BETAS.index(beta)]
    row["published_seconds"] = published
    row["times_faster"] = published / row["seconds"] if row["seconds"] else None
    row["seeds_run"] = list(seeds)
    return row


def read_done(file: Path | None) -> list[Row]:
    """The rows that a former run left in the file."""
    if file is None or not file.exists():
        return []
    rows: list[Row] = json.loads(file.read_text())
    return rows


def pivot(rows: Sequence[Row]) -> str:
    """Seconds by D and beta, the published ones in brackets."""
    table = []
    for inputs in sorted({row["inputs"] for row in rows}):
        line: Row = {"inputs": str(inputs)}
        for row in rows:
            if row["inputs"] == inputs and row["seconds"] is not None:
                mark = "" if row["recovered"] == row["seeds"] and not row["wrong"] else " (!)"
                line[f"{row['beta']:.4g}"] = f"{row['seconds']:.2f}{mark} [{row['published_seconds']:g}]"
        table.append(line)
    betas = sorted({row["beta"] for row in rows})
    return markdown(table, {"inputs": "D \\ beta", **{f"{beta:.4g}": f"{beta:.4g}" for beta in betas}})


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the cells that are not done and print both tables."""
    arguments = parser(__doc__, "0:1", "D = 20 with beta up to 1.5 only").parse_args(argv)
    seeds = seeds_of(arguments, 1, 1)
    cells = [(inputs, beta) for inputs in PUBLISHED_SECONDS for beta in BETAS]
    if arguments.quick:
        cells = [(inputs, beta) for inputs, beta in cells if inputs == 20 and beta <= 1.5]
    rows = read_done(arguments.json)
    done = {(row["inputs"], row["beta"]) for row in rows if row["seeds_run"] == list(seeds)}
    # Small ones first: the memory's high-water mark then belongs to the cell beside which it is printed.
    for inputs, beta in sorted(cells, key=lambda cell: width_of(*cell) * cell[0] ** 2):
        if (inputs, beta) in done:
            continue
        rows.append(measure(inputs, beta, seeds))
        if arguments.json is not None:
            write_rows(rows, arguments.json)
    asked = [row for row in rows if (row["inputs"], row["beta"]) in cells and row["seeds_run"] == list(seeds)]
    asked.sort(key=lambda row: (row["inputs"], row["beta"]))
    print(pivot(asked))
    print("\nSeconds of the whole recovery, published seconds in brackets; (!) marks a cell not recovered.\n")
    tell(asked, {**COMMON, "published_seconds": "published s", "times_faster": "times faster"})
    return asked


if __name__ == "__main__":
    main()
