"""Widths near the limit D(D-1)/2 of the method: D = 20, where the limit is 190, and m = 170, 180.

tanh networks with unit outer weights, width and activation given. Spurious maximisers of the power
method's objective come close to the true ones here, and the span's conditioning gets worse.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import unweave
from harness import COMMON, Row, parser, run_recovery, say, seeds_of, summarise, tell

INPUTS = 20
WIDTHS = (170, 180)
QUICK = (60,)


def width_list(text: str) -> tuple[int, ...]:
    """Read ``170,180``."""
    try:
        widths = tuple(int(entry) for entry in text.split(","))
    except ValueError:
        widths = ()
    if not widths or min(widths) < 1:
        raise argparse.ArgumentTypeError(
            f"widths must be whole numbers >= 1, with commas. Got {text!r} instead. For example 170,180."
        )
    return widths


def measure(width: int, seeds: range) -> Row:
    """The row of one width."""
    say(f"near_limit: D = {INPUTS}, m = {width}")
    runs = []
    for seed in seeds:
        truth = unweave.random_network([INPUTS, width, 1], seed=seed, outer="ones", bias=0.5)
        runs.append(run_recovery(truth, seed, hidden=[width], activation="tanh"))
    limit = INPUTS * (INPUTS - 1) // 2
    return summarise(f"D={INPUTS}, m={width}", runs, inputs=INPUTS, width=width, share_of_limit=width / limit)


def main(argv: Sequence[str] | None = None) -> list[Row]:
    """Run the benchmark and print its table."""
    options = parser(__doc__, "0:10", f"m = {QUICK[0]} only, 1 seed")
    options.add_argument("--widths", type=width_list, default=None, metavar="M,M", help="widths (170,180)")
    arguments = options.parse_args(argv)
    widths = arguments.widths or (QUICK if arguments.quick else WIDTHS)
    rows = [measure(width, seeds_of(arguments, 10, 1)) for width in widths]
    tell(rows, {**COMMON, "share_of_limit": "m / (D(D-1)/2)"}, arguments.json)
    return rows


if __name__ == "__main__":
    main()
