"""Wide tanh networks with unit outer weights: D inputs, m hidden units, width and activation given.

    f(x) = sum_k tanh(w_k . x + tau_k),    |w_k| = 1, |tau_k| <= 1/2

The recovery does not know that the outer weights are one; the largest |outer weight - 1| that it found
is a column of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import unweave
from harness import COMMON, Row, parser, run_recovery, say, seeds_of, summarise, tell

SETTINGS = ((20, 100), (25, 156), (30, 225), (30, 360))


def outer_error(result: unweave.Recovery) -> dict[str, Any]:
    """Largest distance of an outer weight to one, up to the sign of its unit; inf without a network."""
    if result.network is None:
        return {"outer_error": np.inf}
    outer = unweave.canonical(result.network).weights[-1]  # odd units there have positive outgoing weights
    return {"outer_error": float(np.abs(outer - 1).max())}


def measure(inputs: int, width: int, seeds: range) -> Row:
    """The row of one setting."""
    say(f"shallow_table: D = {inputs}, m = {width}")
    runs = []
    for seed in seeds:
        truth = unweave.random_network([inputs, width, 1], seed=seed, outer="ones", bias=0.5)
        runs.append(run_recovery(truth, seed, hidden=[width], activation="tanh", extra=outer_error))
    worst = max((run.extra.get("outer_error", np.inf) for run in runs), default=np.inf)
    return summarise(
        f"D={inputs}, m={width}",
        runs,
        inputs=inputs,
        width=width,
        worst_outer_error=worst if np.isfinite(worst) else None,
    )


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    arguments = parser(__doc__, "0:10", "the first setting only, 2 seeds").parse_args(argv)
    settings = SETTINGS[:1] if arguments.quick else SETTINGS
    rows = [measure(inputs, width, seeds_of(arguments, 10, 2)) for inputs, width in settings]
    tell(rows, {**COMMON, "worst_outer_error": "largest \\|outer weight - 1\\|"}, arguments.json)
    return rows


if __name__ == "__main__":
    main()
