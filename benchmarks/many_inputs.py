"""One hidden layer in hundreds of inputs, in single precision, with nothing told.

Targets compute in float32: in NumPy, in torch or in onnxruntime. Rows count everything that was asked, per
parameter, the median and the most; seconds are computing time of whole recoveries. Errors are those of
`unweave.compare` against the float32 parameters.

    python benchmarks/many_inputs.py [--rows relu:784-32-10] [--runtimes numpy,torch,onnx]
        [--seeds 10] [--first 0]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import unweave
from unweave.arrays import Array

ROWS = (
    "relu:784-4-10",
    "tanh:784-4-10",
    "relu:784-32-10",
    "tanh:784-32-10",
    "relu:784-128-10",
    "tanh:784-128-10",
)
RUNTIMES = ("numpy", "torch", "onnx")


def in_numpy(network: unweave.Network) -> Callable[[Array], Array]:
    """Return ``network``, whose parameters are float32, computing in NumPy."""
    weights, biases = (
        [part.astype(np.float32) for part in parts] for parts in (network.weights, network.biases)
    )
    activation = unweave.get_activation(network.activations[0])

    def answer(x: Array) -> Array:
        units = activation(x.astype(np.float32) @ weights[0] + biases[0]).astype(np.float32)
        return np.asarray(units @ weights[1] + biases[1])

    return answer


def in_torch(network: unweave.Network) -> Callable[[Array], Array]:
    """Return it as a torch module of float32."""
    import torch

    module = network.to_torch().float()

    def answer(x: Array) -> Array:
        with torch.no_grad():
            return np.asarray(module(torch.from_numpy(x.astype(np.float32))).numpy())

    return answer


def in_onnx(network: unweave.Network) -> Callable[[Array], Array]:
    """Return it as a float32 model that onnxruntime runs."""
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        network.save(path, dtype="float32")
        session = onnxruntime.InferenceSession(path.read_bytes())
    name = session.get_inputs()[0].name
    return lambda x: np.asarray(session.run(None, {name: x.astype(np.float32)})[0])


TARGETS = {"numpy": in_numpy, "torch": in_torch, "onnx": in_onnx}


def measure(row: str, runtime: str, first: int, seeds: int, deadline: float | None) -> None:
    """Print one line of the table, and what failed below it."""
    kind, shape = row.split(":")
    layers = [int(width) for width in shape.split("-")]
    recovered, errors, rows, seconds, failures = 0, [], [], [], []
    for seed in range(first, first + seeds):
        planted = unweave.random_network(layers, kind, seed=seed, outer="normal")
        single = [[part.astype(np.float32) for part in parts] for parts in (planted.weights, planted.biases)]
        truth = unweave.Network(*single, planted.activations)
        target = TARGETS[runtime](truth)
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
    print(
        f"| {kind} {shape} {runtime} | {recovered} of {seeds} | {worst} | {np.median(rows):.1f}, "
        f"{max(rows):.1f} | {np.median(seconds):.1f}, {max(seconds):.1f} |",
        *failures,
        sep="\n",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default=",".join(ROWS))
    parser.add_argument("--runtimes", default=",".join(RUNTIMES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--deadline", type=float)
    options = parser.parse_args()
    print("| network | recovered | worst error | rows per parameter | CPU s |")
    print("|---|---|---|---|---|")
    for row in options.rows.split(","):
        for runtime in options.runtimes.split(","):
            measure(row, runtime, options.first, options.seeds, options.deadline)


if __name__ == "__main__":
    main()
