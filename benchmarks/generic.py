"""Generic networks with nothing told: neither the width nor the activation.

    20 inputs, 40 units with weights of norm 1/2 to 2 and biases in [-2, 2]; outer weights of random sign
    and size 1/2 to 2 ("signed") or standard normal; tanh or sigmoid; 1 or 5 outputs

The last column counts the seeds at which the width came out exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import unweave
from harness import COMMON, Row, parser, run_recovery, say, seeds_of, summarise, tell

INPUTS, WIDTH = 20, 40
OUTERS = ("signed", "normal")
ACTIVATIONS = ("tanh", "sigmoid")
OUTPUTS = (1, 5)


def width_found(result: unweave.Recovery) -> dict[str, Any]:
    """Hidden widths of the result, None without a network."""
    return {"hidden": None if result.network is None else result.network.hidden}


def measure(outer: str, activation: str, outputs: int, seeds: range) -> Row:
    """The row of one setting."""
    say(f"generic: outer {outer}, {activation}, {outputs} outputs")
    runs = []
    for seed in seeds:
        truth = unweave.random_network(
            [INPUTS, WIDTH, outputs],
            activation=activation,
            seed=seed,
            outer=outer,  # type: ignore[arg-type]
            norms=(0.5, 2),
            bias=2,
        )
        runs.append(run_recovery(truth, seed, extra=width_found))
    return summarise(
        f"{activation}, outer {outer}, {outputs} output{'s' if outputs > 1 else ''}",
        runs,
        activation=activation,
        outer=outer,
        outputs=outputs,
        width_exact=sum(run.extra.get("hidden") == (WIDTH,) for run in runs),
    )


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    arguments = parser(__doc__, "0:10", "signed tanh with 1 output only, 2 seeds").parse_args(argv)
    settings = list(product(OUTERS, ACTIVATIONS, OUTPUTS))[: 1 if arguments.quick else None]
    rows = [measure(*setting, seeds_of(arguments, 10, 2)) for setting in settings]
    tell(rows, {**COMMON, "width_exact": "width exact"}, arguments.json)
    return rows


if __name__ == "__main__":
    main()
