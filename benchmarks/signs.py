"""Signs of the units of wide layers, with nothing told: how often a network comes back without a skip matrix.

Random networks have outer weights of random sign and size ("signed") or normal ones ("normal"); "diabetes" is
scikit-learn's default regressor, trained on that data set. Bits are those that the sign equations carry,
against one per unit that are needed. Seconds are computing time of whole recoveries.

    python benchmarks/signs.py [--rows 10-100-1:signed,10-20-1:gelu] [--seeds 10]
"""

from __future__ import annotations

import time
import warnings

import numpy as np

import unweave
from named_rows import print_rows
from unweave.arrays import Array

ROWS = (
    [f"{layers}:{outer}" for layers in ("10-80-1", "10-100-1", "13-128-1", "20-128-1", "8-128-1", "4-64-1")
     for outer in ("signed", "normal")]
    + ["10-100-1:diabetes"]
    + [f"{layers}:{name}" for name in ("gelu", "softplus", "swish") for layers in ("10-20-1", "10-40-1")]
)  # fmt: skip


class Regressor:
    """scikit-learn's default regressor on standardized diabetes data, asked through ``predict``."""

    def __init__(self, seed: int) -> None:
        from sklearn.datasets import load_diabetes
        from sklearn.neural_network import MLPRegressor

        x, y = load_diabetes(return_X_y=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.fitted = MLPRegressor(random_state=seed).fit((x - x.mean(0)) / x.std(0), y)

    def __call__(self, x: Array) -> Array:
        return np.asarray(self.fitted.predict(x))


def plant(kind: str, layers: list[int], seed: int) -> tuple[object, unweave.Network]:
    """Return a target and the network inside."""
    if kind == "diabetes":
        target = Regressor(seed)
        fitted = target.fitted
        return target, unweave.Network(fitted.coefs_, fitted.intercepts_, ["relu", "identity"])
    outer = kind if kind in ("signed", "normal") else "signed"
    network = unweave.random_network(layers, "relu" if kind == outer else kind, seed=seed, outer=outer)
    return network, network


def measure(row: str, seeds: int) -> None:
    """Print one line of the table, and what stayed open below it."""
    shape, kind = row.split(":")
    layers = [int(width) for width in shape.split("-")]
    seeds = min(seeds, 5) if kind == "diabetes" else seeds
    recovered, errors, seconds, bits, open_texts = 0, [], [], [], []
    for seed in range(seeds):
        target, truth = plant(kind, layers, seed)
        began = time.process_time()
        result = unweave.recover(target, input_dim=layers[0])
        seconds.append(time.process_time() - began)
        without = result.network is not None and getattr(result.network, "skip", None) is None
        figures = {key: value for stage in result.stages for key, value in stage.figures.items()}
        if "equation_error" in figures:
            bits.append(-layers[0] * np.log2(figures["equation_error"] * np.sqrt(layers[0])))
        if result.status is unweave.Status.RECOVERED and without:
            recovered += 1
            errors.append(unweave.compare(truth, result.network).parameter_error)
        else:
            open_texts.append(f"    seed {seed}: {result.status.name}: {result.message}")
    carried = f"{np.median(bits):.0f}" if bits else "-"
    worst = f"{max(errors):.1e}" if errors else "-"
    print(
        f"| {row} | {recovered} of {seeds} | {worst} | {carried} for {layers[1]} "
        f"| {np.median(seconds):.1f} | {max(seconds):.1f} |",
        flush=True,
    )
    for text in open_texts:
        print(text, flush=True)


def main() -> None:
    """Print the table."""
    print_rows(
        __doc__,
        ROWS,
        "| row | RECOVERED without skip | worst parameter error | bits | CPU s, median | CPU s, most |",
        measure,
    )


if __name__ == "__main__":
    main()
