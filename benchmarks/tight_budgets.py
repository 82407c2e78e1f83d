"""Small networks within small budgets: told all within 300 rows, told nothing within 600.

    python benchmarks/tight_budgets.py [--seeds 10]

Networks ``random_network([10, m, 1], ...)``, m = 5 and 8, ReLU (outer="signed") and tanh (outer="normal"),
float64 answers. A network counts where the status is RECOVERED and all parameters agree to 1e-8.
"""

from __future__ import annotations

import argparse
import time

import unweave

INPUTS, WIDTHS, RIGHT = 10, (5, 8), 1e-8
OUTER = {"relu": "signed", "tanh": "normal"}
LIMITS = {True: 300, False: 600}


def measure(kind: str, width: int, told: bool, seeds: int) -> tuple[int, int, list[int], float, int]:
    """Return networks recovered and wrong ones among them, rows, CPU seconds per network, parameters."""
    right, wrong, rows, parameters = 0, 0, [], 0
    began = time.process_time()
    for seed in range(seeds):
        network = unweave.random_network([INPUTS, width, 1], kind, seed=seed, outer=OUTER[kind])
        known = {"hidden": [width], "activation": kind} if told else {}
        result = unweave.recover(network, max_queries=LIMITS[told], **known)
        if result.status is unweave.Status.RECOVERED:
            same = unweave.compare(network, result.network).parameter_error <= RIGHT
            right, wrong = right + same, wrong + (not same)
        rows.append(result.queries)
        parameters = network.n_parameters
    return right, wrong, rows, (time.process_time() - began) / seeds, parameters


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    seeds = parser.parse_args().seeds
    unweave.recover(unweave.random_network([3, 2, 1]))  # what is imported at first use is not measured
    print(
        "| network | told | limit | recovered | wrong | rows, mean (largest) | rows per parameter | CPU s |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for kind in OUTER:
        for width in WIDTHS:
            for told, limit in LIMITS.items():
                right, wrong, rows, seconds, size = measure(kind, width, told, seeds)
                mean = sum(rows) / seeds
                print(
                    f"| {kind} {INPUTS}-{width}-1 | {'all' if told else 'nothing'} | {limit} "
                    f"| {right} of {seeds} | {wrong} | {mean:.0f} ({max(rows)}) | {mean / size:.1f} "
                    f"| {seconds:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
