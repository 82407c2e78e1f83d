"""One smooth hidden layer with many outputs: the feed-forward blocks of transformers, with nothing told.

Rows count everything that was asked, per parameter; memory is the peak of the whole process; seconds are
computing time of whole recoveries. float32 targets compute and answer in single precision.

    python benchmarks/many_outputs.py [--rows gelu:64-128-64] [--precisions float64,float32]
        [--seeds 5] [--first 0]
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np

import unweave
from unweave.arrays import Array

ROWS = ("gelu:32-64-32", "gelu:64-128-64", "gelu:128-512-128", "tanh:14-40-160")
PRECISIONS = ("float64", "float32")


def single(network: unweave.Network) -> Callable[[Array], Array]:
    """Return ``network`` computing in float32."""
    weights = [weight.astype(np.float32) for weight in network.weights]
    biases = [bias.astype(np.float32) for bias in network.biases]
    activation = unweave.get_activation(network.activations[0])

    def answer(x: Array) -> Array:
        before = x.astype(np.float32) @ weights[0] + biases[0]
        return np.asarray(activation(before).astype(np.float32) @ weights[1] + biases[1])

    return answer


def measure(row: str, precision: str, first: int, seeds: int, deadline: float | None) -> None:
    """Print one line of the table, and what failed below it."""
    kind, shape = row.split(":")
    layers = [int(width) for width in shape.split("-")]
    recovered, errors, rows, seconds, failures = 0, [], [], [], []
    for seed in range(first, first + seeds):
        truth = unweave.random_network(layers, kind, seed=seed, outer="normal")
        target = truth if precision == "float64" else single(truth)
        began = time.process_time()
        result = unweave.recover(target, input_dim=layers[0], deadline=deadline)
        seconds.append(time.process_time() - began)
        rows.append(result.queries / truth.n_parameters)
        if result.status is unweave.Status.RECOVERED and result.network is not None:
            recovered += 1
            errors.append(unweave.compare(truth, result.network).parameter_error)
        else:
            failures.append(f"    seed {seed}: {result.status.name}: {result.message}")
    worst = f"{max(errors):.1e}" if errors else "-"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"| {kind} {shape} {precision} | {recovered} of {seeds} | {worst} | {np.median(rows):.2f}, "
        f"{max(rows):.2f} | {np.median(seconds):.1f}, {max(seconds):.1f} | {peak:.1f} |",
        *failures,
        sep="\n",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--deadline", type=float)
    options = parser.parse_args()
    print("| network | recovered | worst error | rows per parameter | CPU s | peak GB |")
    print("|---|---|---|---|---|---|")
    for row in options.rows.split(","):
        for precision in options.precisions.split(","):
            measure(row, precision, options.first, options.seeds, options.deadline)


if __name__ == "__main__":
    main()
