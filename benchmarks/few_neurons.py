"""Far fewer units than inputs, through the active subspace: (D, m) = (100, 10), (200, 16), (784, 32).

Generic networks (norms 1/2 to 2, outer weights of random sign and size 1/2 to 2, biases in [-2, 2]), and
nothing told. The gradients of such a network span only m dimensions; the search runs inside them, which
makes the queries per parameter few. 3 seeds each, 1 for the last.
"""

from __future__ import annotations

from collections.abc import Sequence

import unweave
from harness import Row, parser, run_recovery, say, seeds_of, summarise, tell

SETTINGS = ((100, 10, 3), (200, 16, 3), (784, 32, 1))
"""Inputs, units, seeds."""


def measure(inputs: int, width: int, seeds: range) -> Row:
    """The row of one setting."""
    say(f"few_neurons: D = {inputs}, m = {width}")
    runs = []
    for seed in seeds:
        truth = unweave.random_network([inputs, width, 1], seed=seed, outer="signed", norms=(0.5, 2), bias=2)
        runs.append(run_recovery(truth, seed))
    return summarise(f"D={inputs}, m={width}", runs, inputs=inputs, width=width)


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    arguments = parser(__doc__, "0:3, and 0:1 for D = 784", "(100, 10) only, 1 seed").parse_args(argv)
    settings = SETTINGS[:1] if arguments.quick else SETTINGS
    rows = [measure(inputs, width, seeds_of(arguments, count, 1)) for inputs, width, count in settings]
    tell(rows, file=arguments.json)
    return rows


if __name__ == "__main__":
    main()
