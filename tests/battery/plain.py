"""Networks in plain NumPy, and the functions their units may have."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from battery.case import Array, Rng

Unit = Callable[[Array], Array]
_erf = np.frompyfunc(math.erf, 1, 1)
_erfc = np.frompyfunc(math.erfc, 1, 1)


def logistic(z: Array) -> Array:
    """1 / (1 + e^-z) without overflow."""
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, e) / (1 + e)


def softplus(z: Array) -> Array:
    """log(1 + e^z) without overflow."""
    return np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))


def softmax(z: Array) -> Array:
    """Probabilities of classes."""
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def identity(z: Array) -> Array:
    """z"""
    return z


def _gelu(z: Array) -> Array:
    return z * 0.5 * _erfc(-z / math.sqrt(2)).astype(np.float64)


SMOOTH: dict[str, Unit] = {
    "tanh": np.tanh,
    "sigmoid": logistic,
    "erf": lambda z: _erf(z).astype(np.float64),
    "softplus": softplus,
    "gelu": _gelu,
    "swish": lambda z: z * logistic(z),
    "sine": np.sin,
}
"""Smooth units that the package knows."""

KINKED: dict[str, Unit] = {
    "relu": lambda z: np.maximum(z, 0.0),
    "leaky_relu": lambda z: np.where(z > 0, z, 0.01 * z),
}
"""Units with a kink that the package knows."""

POWERS: dict[str, Unit] = {
    "quadratic": lambda z: z * z,
    "cubic": lambda z: z * z * z,
    "squared_relu": lambda z: np.maximum(z, 0.0) ** 2,
}
"""Powers that the package knows."""

KNOWN: dict[str, Unit] = SMOOTH | KINKED | POWERS

FOREIGN: dict[str, Unit] = {
    "mish": lambda z: z * np.tanh(softplus(z)),
    "softsign": lambda z: z / (1 + np.abs(z)),
    "arctan": np.arctan,
    "gaussian": lambda z: np.exp(-z * z),
    "elu": lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0))),
    "hard_swish": lambda z: z * np.clip(z / 6 + 0.5, 0, 1),
    "gelu_tanh": lambda z: 0.5 * z * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3))),
    "algebraic": lambda z: z / np.sqrt(1 + z * z),
    "cauchy": lambda z: 1 / (1 + z * z),
    "log_cosh_root": lambda z: np.sign(z) * np.log1p(np.abs(z)),
    "soft_exponential": lambda z: np.exp(np.clip(z, -30, 3)),
    "quartic": lambda z: (z / 2) ** 4,
}
"""Units that the package does not know, but for those of `NAMED`, and that no sum of others equals."""

NAMED = ("mish", "softsign", "arctan", "gaussian", "elu")
"""Those of them that the package has come to know since; kept here so that all cases stay as they are."""

REWRITABLE: dict[str, Unit] = {
    "hard_tanh": lambda z: np.clip(z, -1, 1),
    "hard_sigmoid": lambda z: np.clip(z / 6 + 0.5, 0, 1),
    "relu6": lambda z: np.clip(z, 0, 6),
    "square_with_sign": lambda z: z * np.abs(z),
    "snake": lambda z: z + np.sin(z) ** 2,
    "soft_shrink": lambda z: np.sign(z) * np.maximum(np.abs(z) - 0.5, 0),
    "absolute": np.abs,
    "prelu": lambda z: np.where(z > 0, z, 0.2 * z),
}
"""Units that the package does not know but that sums of those it knows equal."""


@dataclass(frozen=True)
class Plain:
    """x -> output(... unit(x W1 + b1) ... W_L + b_L)."""

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    unit: Unit
    output: Unit = identity

    def __call__(self, x: Array) -> Array:
        *inner, last = zip(self.weights, self.biases, strict=True)
        for weight, bias in inner:
            x = self.unit(x @ weight + bias)
        return self.output(x @ last[0] + last[1])

    def in_single_precision(self, x: Array) -> Array:
        """The same computed in float32."""
        single = [a.astype(np.float32) for a in (*self.weights, *self.biases)]
        half = len(self.weights)
        z = x.astype(np.float32)
        for place in range(half):
            z = z @ single[place] + single[half + place]
            z = (self.unit if place < half - 1 else self.output)(z).astype(np.float32)
        return z


def directions(rng: Rng, inputs: int, units: int, closest: float = 0.95) -> Array:
    """(inputs, units) unit vectors no two of which are nearly parallel, if there is room for that."""
    for _ in range(200):
        columns = rng.standard_normal((inputs, units))
        columns /= np.linalg.norm(columns, axis=0)
        if inputs == 1 or np.abs(columns.T @ columns - np.eye(units)).max() <= closest:
            break
    return columns


def signed(rng: Rng, shape: tuple[int, ...]) -> Array:
    """Sizes in [0.5, 2] with random signs."""
    return rng.choice([-1.0, 1.0], shape) * rng.uniform(0.5, 2, shape)


def plant(rng: Rng, widths: Sequence[int], unit: Unit | str, output: Unit = identity) -> Plain:
    """A network in which every unit acts near the origin and matters."""
    function = KNOWN[unit] if isinstance(unit, str) else unit
    weights, biases = [], []
    for n_in, n_out in pairwise(widths[:-1]):
        weights.append(directions(rng, n_in, n_out) * rng.uniform(0.7, 1.5, n_out))
        biases.append(rng.uniform(-0.6, 0.6, n_out))
    weights.append(signed(rng, (widths[-2], widths[-1])))
    biases.append(rng.uniform(-0.5, 0.5, widths[-1]))
    return Plain(tuple(weights), tuple(biases), function, output)


def with_unit(network: Plain, incoming: Array, bias: float, outgoing: Array) -> Plain:
    """The network of one hidden layer with one more unit."""
    first, last = network.weights
    return Plain(
        (np.column_stack([first, incoming]), np.vstack([last, outgoing])),
        (np.append(network.biases[0], bias), network.biases[1]),
        network.unit,
        network.output,
    )


def pick(rng: Rng, names: Sequence[str]) -> str:
    """One of the names."""
    return names[int(rng.integers(len(names)))]


def shape(rng: Rng, units: int = 6, outputs: int = 3) -> tuple[int, int, int]:
    """(D, m, K) of a small network of one hidden layer that a sum of units determines."""
    inputs = int(rng.integers(2, 9))
    most = min(units, inputs * (inputs - 1) // 2 + 1)
    return inputs, int(rng.integers(1, most + 1)), int(rng.integers(1, outputs + 1))
