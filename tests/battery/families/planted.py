"""Networks that the package claims to recover."""

from __future__ import annotations

import numpy as np

from battery.case import Case, Rng, box, ordinary
from battery.plain import KINKED, POWERS, SMOOTH, Plain, logistic, pick, plant, shape, signed, softmax


def smooth_layer(rng: Rng) -> Case:
    """One hidden layer of smooth units."""
    kind, (inputs, units, outputs) = pick(rng, list(SMOOTH)), shape(rng)
    network = plant(rng, (inputs, units, outputs), kind)
    return Case(network, ordinary(inputs), hidden=(units,), kind=kind, must_recover=True)


def kinked_layer(rng: Rng) -> Case:
    """One hidden layer of units with a kink."""
    kind, (inputs, units, outputs) = pick(rng, list(KINKED)), shape(rng)
    network = plant(rng, (inputs, units, outputs), kind)
    return Case(network, ordinary(inputs), hidden=(units,), kind=kind, must_recover=True)


def smooth_layers(rng: Rng) -> Case:
    """Two hidden layers of saturating units, none wider than what it reads."""
    kind, inputs = pick(rng, ["tanh", "sigmoid", "erf"]), int(rng.integers(3, 6))
    first = int(rng.integers(2, inputs + 1))
    second = int(rng.integers(2, first + 1))
    network = plant(rng, (inputs, first, second, int(rng.integers(1, 3))), kind)
    return Case(network, ordinary(inputs), hidden=(first, second), kind=kind, must_recover=True)


def kinked_layers(rng: Rng) -> Case:
    """Two hidden layers of units with a kink."""
    kind, inputs = pick(rng, list(KINKED)), int(rng.integers(3, 6))
    first = int(rng.integers(2, inputs + 1))
    second = int(rng.integers(2, first + 1))
    network = plant(rng, (inputs, first, second, 1), kind)
    return Case(network, ordinary(inputs), kind=kind, must_recover=True)


def no_layer(rng: Rng) -> Case:
    """Affine functions, one in three constant."""
    inputs, outputs = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    weight = signed(rng, (inputs, outputs)) * (rng.random() > 1 / 3)
    network = Plain((weight,), (signed(rng, (outputs,)),), np.tanh)
    return Case(network, ordinary(inputs), hidden=(), must_recover=True)


def powers(rng: Rng) -> Case:
    """Squares, cubes and squared ReLU units."""
    kind, (inputs, units, outputs) = pick(rng, list(POWERS)), shape(rng, units=4)
    network = plant(rng, (inputs, min(units, inputs), outputs), kind)
    return Case(network, ordinary(inputs), must_recover=kind == "cubic")


def links(rng: Rng) -> Case:
    """A softmax, sigmoid or tanh at the output."""
    kind, (inputs, units, outputs) = pick(rng, ["tanh", "sigmoid", "gelu", "relu"]), shape(rng, units=4)
    output = [softmax, logistic, np.tanh][int(rng.integers(3))]
    outputs = max(outputs, 2) if output is softmax else outputs
    network = plant(rng, (inputs, units, outputs), kind, output)
    return Case(network, ordinary(inputs), hidden=(units,), kind=kind, must_recover=True)


def boxes(rng: Rng) -> Case:
    """Inputs of other places and scales, inside a declared box."""
    kind, (inputs, units, outputs) = pick(rng, ["tanh", "gelu", "softplus", "relu"]), shape(rng, units=4)
    inner = plant(rng, (inputs, units, outputs), kind)
    centre, half = 10 * rng.standard_normal(inputs), 10 ** rng.uniform(-2, 2, inputs)
    weight = inner.weights[0] / half[:, None]
    network = Plain(
        (weight, inner.weights[1]), (inner.biases[0] - centre @ weight, inner.biases[1]), inner.unit
    )
    low, high = centre - 2 * half, centre + 2 * half
    return Case(
        network,
        box(low, high),
        arguments={"domain": (low, high)},
        hidden=(units,),
        kind=kind,
        must_recover=True,
    )
