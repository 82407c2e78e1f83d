"""Kinds of units and structures of layers, with nothing told.

A kind of unit is planted in a random network and asked in float64; "named" counts the runs whose network has
units of that kind (or of the family that is the same function: CELU is ELU, ReLU6 and hard sigmoid are hard
tanh, PReLU units are ReLU units with a skip matrix). A structure is a torch module with random weights, asked
as it is. Rows count everything; seconds are computing time of whole recoveries.

    python benchmarks/kinds.py [--case elu:10-16-1,conv1d:relu] [--seeds 10] [--first 0]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import unweave
from unweave.arrays import Array
from unweave.networks.activations import get_activation

UNITS = (
    "mish",
    "elu",
    "selu",
    "celu",
    "softsign",
    "arctan",
    "gaussian",
    "prelu",
    "relu6",
    "hard_tanh",
    "hard_sigmoid",
)
SHAPES = ("10-20-1", "20-40-3")
STRUCTURES = (
    "conv1d:relu",
    "conv1d:tanh",
    "conv2d:relu",
    "conv2d:tanh",
    "batchnorm:relu",
    "batchnorm:tanh",
    "residual:relu",
    "residual:tanh",
    "layernorm:relu",
    "layernorm:tanh",
    "maxpool:relu",
)
CASES = (
    *(f"{kind}:{shape}" for kind in UNITS for shape in SHAPES),
    *(f"{kind}:10-16-1" for kind in ("elu", "selu", "mish")),
    *STRUCTURES,
)
CELU_ALPHA = 2.0
FAMILY = {"celu": "elu", "prelu": "relu", "relu6": "hard_tanh", "hard_sigmoid": "hard_tanh"}
"""Kind under which a network of the same function comes back."""


@dataclass(frozen=True)
class Planted:
    """A target, and the network that it is where there is one."""

    target: Any
    inputs: int
    truth: unweave.Network | None
    word: str
    """What the result must name: an activation, or a word of the result's structure or message."""


def planted_units(kind: str, layers: list[int], seed: int) -> Planted:
    """Plant units of ``kind`` in one hidden layer."""
    net = unweave.random_network(layers, seed=seed, outer="normal")
    (incoming, outgoing), (biases, offset) = net.weights, net.biases
    target: Callable[[Array], Array]
    if kind == "prelu":
        slopes = np.random.default_rng([seed, 7]).uniform(0.05, 0.5, layers[1])
        target = lambda x: np.where((z := x @ incoming + biases) > 0, z, slopes * z) @ outgoing + offset  # noqa: E731
        skip = incoming @ (slopes[:, None] * outgoing)
        rest = offset + (slopes * biases) @ outgoing
        scaled = outgoing * (1 - slopes)[:, None]
        truth = unweave.Network([incoming, scaled], [biases, rest], ["relu", "identity"], skip=skip)
    elif kind == "celu":
        alpha, unit = CELU_ALPHA, get_activation("elu")
        target = lambda x: alpha * unit((x @ incoming + biases) / alpha) @ outgoing + offset  # noqa: E731
        weights, shifted = [incoming / alpha, alpha * outgoing], [biases / alpha, offset]
        truth = unweave.Network(weights, shifted, ["elu", "identity"])
    else:
        truth = unweave.Network(net.weights, net.biases, [kind, "identity"])
        target = truth
    return Planted(target, layers[0], truth, FAMILY.get(kind, kind))


def planted_structure(kind: str, activation: str, seed: int) -> Planted:
    """Build a torch module with random weights."""
    import torch
    from torch import nn

    torch.manual_seed(seed)
    act = {"relu": nn.ReLU, "tanh": nn.Tanh}[activation]
    word, inputs = kind, 64
    if kind == "conv1d":
        layers = [nn.Unflatten(1, (1, 16)), nn.Conv1d(1, 2, 5), act(), nn.Flatten(), nn.Linear(24, 1)]
        inputs, word = 16, "convolution"
    elif kind == "conv2d":
        layers = [nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 2, 3), act(), nn.Flatten(), nn.Linear(72, 10)]
        word = "convolution"
    elif kind == "maxpool":
        layers = [nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 2, 3), act(), nn.MaxPool2d(2), nn.Flatten()]
        layers.append(nn.Linear(18, 10))
        word = "pool"
    elif kind == "batchnorm":
        inputs, word = 10, activation
        layers = [nn.Linear(10, 12), nn.BatchNorm1d(12), act(), nn.Linear(12, 1)]
    elif kind == "layernorm":
        inputs, word = 10, "layer norm"
        layers = [nn.Linear(10, 12), nn.LayerNorm(12), act(), nn.Linear(12, 1)]
    else:
        inputs, word = 10, "residual"
        layers = [_Residual(nn.Linear(10, 12), act(), nn.Linear(12, 10)), nn.Linear(10, 3)]
    module = nn.Sequential(*layers).double()
    for part in module.modules():
        if isinstance(part, nn.BatchNorm1d):
            nn.init.normal_(part.running_mean)
            nn.init.uniform_(part.running_var, 0.5, 2)
            nn.init.uniform_(part.weight, 0.5, 2)
            nn.init.normal_(part.bias)
    return Planted(module.eval(), inputs, None, word)


def _Residual(*layers: Any) -> Any:
    from torch import nn

    class Residual(nn.Module):
        """x + block(x)."""

        def __init__(self) -> None:
            super().__init__()
            self.block = nn.Sequential(*layers)

        def forward(self, x: Any) -> Any:
            """Return x + block(x)."""
            return x + self.block(x)

    return Residual()


def planted(case: str, seed: int) -> Planted:
    """Plant the case."""
    kind, rest = case.split(":")
    if case in STRUCTURES:
        return planted_structure(kind, rest, seed)
    return planted_units(kind, [int(width) for width in rest.split("-")], seed)


def is_named(found: Planted, result: unweave.Recovery) -> bool:
    """Whether the result names the kind or the structure."""
    network = result.network
    words = [result.message, *result.notes, str(getattr(result, "structure", ""))]
    if isinstance(network, unweave.Network) and found.word in network.activations:
        return True
    return any(found.word in text for text in words)


def measure(case: str, seeds: range) -> None:
    """Print one line of the table, and what failed below it."""
    recovered, named, wrong, errors, rows, seconds, failures = 0, 0, 0, [], [], [], []
    for seed in seeds:
        found = planted(case, seed)
        began = time.process_time()
        result = unweave.recover(found.target, input_dim=found.inputs)
        seconds.append(time.process_time() - began)
        rows.append(result.queries)
        named += is_named(found, result)
        good = result.status.is_recovered
        if good and found.truth is not None and result.network is not None:
            error = unweave.compare(found.truth, result.network).parameter_error
            wrong += not error <= 1e-6
            good = error <= 1e-9
            errors.append(error)
        recovered += good
        if not good:
            failures.append(f"    seed {seed}: {result.status.name}: {result.message}")
    worst = f"{max(errors):.1e}" if errors else "-"
    print(
        f"| {case} | {recovered} of {len(seeds)} | {named} | {wrong} | {worst} | {np.median(rows):.0f} "
        f"| {np.median(seconds):.1f}, {max(seconds):.1f} |",
        flush=True,
    )
    for text in failures:
        print(text, flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--case", default=",".join(CASES), help="cases of the table, with commas between them"
    )
    parser.add_argument("--seeds", type=int, default=10, help="number of seeds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    print(
        "| case | recovered | named | wrong | error | rows | CPU s |\n|---|---|---|---|---|---|---|",
        flush=True,
    )
    for case in arguments.case.split(","):
        measure(case, range(arguments.first, arguments.first + arguments.seeds))


if __name__ == "__main__":
    main()
