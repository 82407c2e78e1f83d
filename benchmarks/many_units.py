"""One smooth hidden layer with more units than Hessians can show, with nothing told.

In d inputs Hessians determine d(d-1)/2 units. "trained" is a scikit-learn regressor of tanh units, fitted to
the standardized diabetes data and asked through ``predict``; "box" is a random network that may only be
asked in [-4, 4]^d, so that its far field is out of reach. Rows count everything but the look and the
verification, per parameter, the median and the most; seconds are computing time of whole recoveries.

    python benchmarks/many_units.py [--rows tanh:10-64-1,trained:10-100-1] [--seeds 10]
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np

import unweave
from named_rows import print_rows
from unweave.arrays import Array

ROWS = (
    "tanh:8-40-1",
    "tanh:10-64-1",
    "tanh:13-100-1",
    "trained:10-100-1",
    "softplus:5-30-1",
    "softplus:10-40-1",
    "softplus:10-60-1",
    "erf:10-64-1",
    "gelu:10-60-1",
    "swish:10-60-1",
    "box:8-40-1",
    "box:10-64-1",
)
TRAINED_SEEDS = 5
BOX = (-4.0, 4.0)


def trained(width: int, seed: int) -> tuple[Callable[[Array], Array], unweave.Network]:
    """Return ``predict`` of a trained regressor, and the network inside."""
    from sklearn.datasets import load_diabetes
    from sklearn.neural_network import MLPRegressor

    x, y = load_diabetes(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = MLPRegressor(hidden_layer_sizes=(width,), activation="tanh", random_state=seed)
        fitted.fit((x - x.mean(0)) / x.std(0), y)
    return fitted.predict, unweave.Network(fitted.coefs_, fitted.intercepts_, ["tanh", "identity"])


def measure(row: str, seeds: int) -> None:
    """Print one line of the table, and what failed below it."""
    kind, shape = row.split(":")
    layers = [int(width) for width in shape.split("-")]
    seeds = min(seeds, TRAINED_SEEDS) if kind == "trained" else seeds
    recovered, errors, rows, seconds, failures = 0, [], [], [], []
    for seed in range(seeds):
        target: Callable[[Array], Array]
        if kind == "trained":
            target, truth = trained(layers[1], seed)
        else:
            name = "tanh" if kind == "box" else kind
            target = truth = unweave.random_network(layers, name, seed=seed, outer="normal")
        domain = BOX if kind == "box" else None
        began = time.process_time()
        result = unweave.recover(target, input_dim=layers[0], domain=domain)
        seconds.append(time.process_time() - began)
        asked = result.queries - result.probing_queries - result.verification_queries
        rows.append(asked / truth.n_parameters)
        if result.status is unweave.Status.RECOVERED and result.network is not None:
            recovered += 1
            errors.append(unweave.compare(truth, result.network).parameter_error)
        else:
            failures.append(f"    seed {seed}: {result.status.name}: {result.message}")
    worst = f"{max(errors):.1e}" if errors else "-"
    print(
        f"| {kind} {shape} | {recovered} of {seeds} | {worst} | {np.median(rows):.1f}, {max(rows):.1f} "
        f"| {np.median(seconds):.1f}, {max(seconds):.1f} |",
        flush=True,
    )
    for text in failures:
        print(text, flush=True)


def main() -> None:
    """Print the table."""
    print_rows(__doc__, ROWS, "| case | recovered | error | rows per parameter | CPU s |", measure)


if __name__ == "__main__":
    main()
