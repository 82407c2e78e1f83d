"""One unit far weaker than the others, in one smooth hidden layer, with nothing told.

A row is KIND:SHAPE:SIZE. Outgoing weights are normal; those of one unit are scaled to SIZE. "Found" counts
results with all units; "function" is the largest relative difference of functions, which is what a unit of
1e-9 can be judged by. Rows count everything; seconds are computing time of whole recoveries.

    python benchmarks/weak_units.py [--rows tanh:10-8-1:1e-7] [--seeds 10]
"""

from __future__ import annotations

import time

import numpy as np

import unweave
from named_rows import print_rows

ROWS = (
    *(f"{kind}:10-8-1:{size}" for size in ("1e-5", "1e-7", "1e-9") for kind in ("tanh", "softplus", "gelu")),
    "tanh:10-16-1:1e-7",
    "tanh:20-40-1:1e-7",
)


def planted(kind: str, layers: list[int], size: float, seed: int) -> unweave.Network:
    """Return a random network whose first unit has outgoing weights of ``size``."""
    net = unweave.random_network(layers, kind, seed=seed, outer="normal")
    incoming, outgoing = (weight.copy() for weight in net.weights)
    outgoing[0] *= size / np.abs(outgoing[0]).max()
    return unweave.Network([incoming, outgoing], net.biases, net.activations)


def measure(row: str, seeds: int) -> None:
    """Print one line of the table, and what failed below it."""
    kind, shape, size = row.split(":")
    layers = [int(width) for width in shape.split("-")]
    found, errors, rows, seconds, failures = 0, [], [], [], []
    for seed in range(seeds):
        truth = planted(kind, layers, float(size), seed)
        began = time.process_time()
        result = unweave.recover(truth, input_dim=layers[0])
        seconds.append(time.process_time() - began)
        rows.append(result.queries)
        if result.status is unweave.Status.RECOVERED and result.network.hidden == truth.hidden:
            found += 1
            errors.append(unweave.compare(truth, result.network).function_error)
        else:
            failures.append(f"    seed {seed}: {result.status.name} {result.network}: {result.message}")
    worst = f"{max(errors):.1e}" if errors else "-"
    cpu = f"{np.median(seconds):.1f}, {max(seconds):.1f}"
    print(f"| {row} | {found} of {seeds} | {worst} | {np.median(rows):.0f} | {cpu} |", flush=True)
    for text in failures:
        print(text, flush=True)


def main() -> None:
    """Print the table."""
    print_rows(__doc__, ROWS, "| case | found | function | rows | CPU s |", measure)


if __name__ == "__main__":
    main()
