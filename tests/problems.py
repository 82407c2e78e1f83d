"""Problems and the methods that must solve them: a new method is tested by one line here.

A problem is a planted network with the way it is asked. `tests/methods/test_problems.py` runs every pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unweave import Network, Samples, random_network

Array = np.ndarray


@dataclass(frozen=True)
class Problem:
    """A planted network, how it answers, and how well it must come back."""

    network: Network
    target: Any
    """What is handed to `recover`."""
    tolerance: float = 1e-9
    """Largest parameter error."""
    told: dict[str, Any] = field(default_factory=dict)
    """What is said about it."""
    samples: bool = False


def _planted(layers: list[int], activation: str, output: str = "identity") -> Network:
    net = random_network(layers, activation=activation, seed=1000, outer="signed", norms=(0.8, 1.5))
    return Network(net.weights, net.biases, (*net.activations[:-1], output))


def _asked(layers: list[int], activation: str, output: str = "identity", **told: Any) -> Problem:
    network = _planted(layers, activation, output)
    return Problem(network, network, told=told)


def _rounded(layers: list[int], activation: str, decimals: int, **told: Any) -> Problem:
    network = _planted(layers, activation)
    told = {"input_dim": network.n_inputs, **told}
    return Problem(network, lambda x: np.round(network(x), decimals), 1e-8, told)


def _sampled(layers: list[int], units: str, rows: int, **told: Any) -> Problem:
    network = _planted(layers, units)
    x = np.random.default_rng(1001).standard_normal((rows, network.n_inputs))
    return Problem(network, Samples(x, network(x)), 1e-8, told, samples=True)


def _against_the_rest() -> Problem:
    rng = np.random.default_rng(1000)
    weights, bias = rng.standard_normal((5, 4)) / 2, rng.standard_normal(4)
    network = Network([weights, -np.eye(4)], [bias, np.zeros(4)], ["softplus", "softmax"])
    return Problem(network, network)


def _affine(inputs: int) -> Problem:
    weights = np.random.default_rng(1000).standard_normal((inputs, 2))
    network = Network([weights], [np.ones(2)], ["identity"])
    return Problem(network, network)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "affine": lambda: _affine(5),
    "one class against the rest": _against_the_rest,
    "relu": lambda: _asked([6, 5, 1], "relu"),
    "leaky, two outputs": lambda: _asked([6, 5, 2], "leaky_relu"),
    "relu in a box": lambda: _asked([4, 4, 1], "relu", domain=(-3, 3)),
    "two relu layers": lambda: _asked([8, 6, 5, 1], "relu"),
    "relu behind a sigmoid": lambda: _asked([6, 5, 1], "relu", "sigmoid"),
    "relu, four decimals": lambda: _rounded([5, 4, 1], "relu", 4),
    "tanh": lambda: _asked([6, 4, 1], "tanh"),
    "tanh, more units than inputs": lambda: _asked([6, 9, 1], "tanh"),
    "tanh, far more units than inputs": lambda: _asked([6, 20, 1], "tanh"),
    "softplus, two outputs": lambda: _asked([7, 5, 2], "softplus"),
    "tanh in a box": lambda: _asked([6, 4, 1], "tanh", domain=(-2, 2)),
    "tanh behind a sigmoid": lambda: _asked([6, 4, 1], "tanh", "sigmoid"),
    "tanh, four decimals": lambda: _rounded([5, 4, 1], "tanh", 4),
    "tanh, two inputs": lambda: _asked([2, 4, 1], "tanh"),
    "two tanh layers": lambda: _asked([10, 6, 3, 1], "tanh"),
    "two small tanh layers": lambda: _asked([4, 3, 2, 1], "tanh"),
    "two wide tanh layers": lambda: _asked([5, 7, 9, 2], "tanh"),
    "two gelu layers": lambda: _asked([5, 9, 6, 1], "gelu"),
    "samples of relu": lambda: _sampled([5, 4, 1], "relu", 600),
    "samples of squared relu": lambda: _sampled([4, 3, 1], "squared_relu", 600),
    "samples of two tanh layers": lambda: _sampled(
        [6, 8, 5, 1], "tanh", 5000, hidden=[8, 5], activation="tanh"
    ),
    "samples of tanh": lambda: _sampled([5, 4, 1], "tanh", 2000, hidden=[4], activation="tanh"),
}

SOLVES: dict[str, tuple[str, ...]] = {
    "affine": ("affine",),
    "one_versus_rest": ("one class against the rest",),
    "relu": ("relu", "leaky, two outputs", "relu in a box"),
    "relu_deep": ("two relu layers",),
    "relu_layers": ("two relu layers",),
    "relu_coarse": ("relu behind a sigmoid", "relu, four decimals"),
    "smooth": ("tanh", "tanh, more units than inputs", "softplus, two outputs", "tanh in a box"),
    "smooth_coarse": ("tanh behind a sigmoid", "tanh, four decimals"),
    "smooth_values": ("tanh, two inputs",),
    "smooth_wide": ("tanh, far more units than inputs",),
    "smooth_deep_values": ("two small tanh layers",),
    "smooth_patterns": ("two wide tanh layers", "two tanh layers"),
    "smooth_deep": ("two tanh layers",),
    "rectified_deep": ("two gelu layers",),
    "samples_relu": ("samples of relu",),
    "samples_squared_relu": ("samples of squared relu",),
    "samples_smooth": ("samples of tanh",),
    "samples_deep": ("samples of two tanh layers",),
}
"""Problems that each method must solve. A new method gets one line."""
