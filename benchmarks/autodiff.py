"""Torch modules by their own derivatives, beside answers alone: one smooth hidden layer, nothing told.

Generic networks (norms 1/2 to 2, normal outer weights, biases N(0, 1)) as torch modules in float64, each
recovered twice with the same seed: with derivatives="autodiff", where every forward and backward pass of a
row counts as a query, and from answers alone. "fewer queries" and "faster" are ratios of the two rows, look
and verification left out of the first. The last two rows are the first network in float32, where the same
network means parameters to 1e-4. 3 seeds each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import unweave
from harness import COMMON, Row, parser, run_recovery, say, seeds_of, summarise, tell

SETTINGS = (
    ((20, 40, 1), "tanh"),
    ((20, 40, 1), "softplus"),
    ((12, 30, 2), "tanh"),
    ((50, 8, 1), "tanh"),
    ((50, 100, 1), "tanh"),
    ((784, 32, 10), "tanh"),
)
"""Widths, activation."""
SINGLE = 1e-4
"""Parameter error up to which a network behind float32 answers counts as the planted one."""
COLUMNS = {**COMMON, "fewer_queries": "fewer queries", "faster": "faster"}


def measure(widths: tuple[int, ...], activation: str, seeds: range, way: str, single: bool) -> Row:
    """The row of one setting, recovered in one way."""
    shape = "-".join(str(width) for width in widths)
    setting = f"{shape} {activation}{' float32' if single else ''}, {way}"
    say(f"autodiff: {setting}")
    runs = []
    for seed in seeds:
        truth = unweave.random_network(
            list(widths), activation, seed=seed, outer="normal", norms=(0.5, 2), bias=1
        )
        module = truth.to_torch()
        target: Any = module.float() if single else module
        run = run_recovery(truth, seed, target=target, derivatives=way)
        runs.append(replace(run, same=run.parameter_error <= SINGLE) if single else run)
    return summarise(setting, runs, widths=list(widths), derivatives=way)


def compared(autodiff: Row, queries: Row) -> list[Row]:
    """Both rows, the first with what it saves against the second."""
    ratios = {
        "fewer_queries": queries["queries_per_parameter"] / autodiff["queries_per_parameter"],
        "faster": queries["cpu_seconds"] / autodiff["cpu_seconds"],
    }
    return [{**autodiff, **ratios}, queries]


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    arguments = parser(__doc__, "0:3", "the first setting, 1 seed").parse_args(argv)
    seeds = seeds_of(arguments, 3, 1)
    rows: list[Row] = []
    settings = [(*setting, False) for setting in SETTINGS[: 1 if arguments.quick else None]]
    for widths, activation, single in [*settings, (*SETTINGS[0], True)]:
        both = (measure(widths, activation, seeds, way, single) for way in ("autodiff", "queries"))
        rows += compared(*both)
    tell(rows, COLUMNS, file=arguments.json)
    return rows


if __name__ == "__main__":
    main()
