"""Layers whose units are hard to tell apart, hard to see, or of kinds that the package does not know."""

from __future__ import annotations

import numpy as np

from battery.case import Array, Case, Rng, ordinary
from battery.plain import FOREIGN, KNOWN, NAMED, REWRITABLE, Plain, pick, plant, shape, signed, with_unit

UNLIKE = ("tanh", "gelu", "softplus", "sine", "erf", "relu")
"""Kinds of which none is a sum of another's units."""
VISIBLE_GAP = 1e-4
"""1 - cos of two units' directions that the package claims to tell apart."""
VISIBLE_WEIGHT = 1e-4
"""Outgoing weight of a unit that the package claims to find beside weights of about 1."""
TRACEABLE_WEIGHT = 1e-9
"""Outgoing weight above which a network without the unit is no full account of float64 answers."""


def foreign(rng: Rng) -> Case:
    """Units that the package does not know."""
    name, (inputs, units, outputs) = pick(rng, list(FOREIGN)), shape(rng, units=4)
    return Case(
        plant(rng, (inputs, units, outputs), FOREIGN[name]), ordinary(inputs), foreign=name not in NAMED
    )


def rewritable(rng: Rng) -> Case:
    """Units that the package does not know, but can write as a sum of its own."""
    name, (inputs, units, outputs) = pick(rng, list(REWRITABLE)), shape(rng, units=3)
    return Case(plant(rng, (inputs, units, outputs), REWRITABLE[name]), ordinary(inputs))


def mixed(rng: Rng) -> Case:
    """Two kinds of units in one layer."""
    inputs, units, outputs = shape(rng, units=4)
    one, other = (KNOWN[name] for name in rng.permutation(UNLIKE)[:2])
    split = max(1, units // 2)

    def unit(z: Array) -> Array:
        return np.hstack([one(z[:, :split]), other(z[:, split:])])

    return Case(plant(rng, (inputs, max(units, 2), outputs), unit), ordinary(inputs), foreign=True)


def near_duplicates(rng: Rng) -> Case:
    """Two units whose directions nearly agree, with equal or different biases."""
    kind, (inputs, units, outputs) = pick(rng, ["tanh", "gelu", "relu", "softplus"]), shape(rng, units=3)
    network = plant(rng, (inputs, units, outputs), kind)
    gap = 10 ** rng.uniform(-9, -3)
    first = network.weights[0][:, 0]
    turn = rng.standard_normal(inputs)
    turn -= first * (turn @ first) / (first @ first)
    turn *= np.linalg.norm(first) / np.linalg.norm(turn)
    beside = (1 - gap) * first + np.sqrt(gap * (2 - gap)) * turn
    same_bias = rng.random() < 0.5
    bias = network.biases[0][0] + (0 if same_bias else rng.uniform(0.2, 0.5))
    network = with_unit(network, beside, bias, signed(rng, (outputs,)))
    visible = gap >= VISIBLE_GAP or not same_bias
    return Case(network, ordinary(inputs), hidden=(units + 1,), kind=kind, must_recover=visible)


def weak_units(rng: Rng) -> Case:
    """One unit whose outgoing weight is small."""
    kind, (inputs, units, outputs) = pick(rng, ["tanh", "gelu", "relu", "erf"]), shape(rng, units=3)
    network = plant(rng, (inputs, units + 1, outputs), kind)
    size = 10 ** rng.uniform(-12, -3)
    network.weights[1][-1] *= size
    return Case(
        network,
        ordinary(inputs),
        hidden=(units + 1,) if size >= TRACEABLE_WEIGHT else None,
        kind=kind,
        must_recover=size >= VISIBLE_WEIGHT,
    )


def idle_units(rng: Rng) -> Case:
    """Dead units, and units that occur twice: a smaller network is the same function."""
    kind, (inputs, units, outputs) = pick(rng, ["tanh", "gelu", "relu", "softplus"]), shape(rng, units=3)
    network = plant(rng, (inputs, units, outputs), kind)
    if rng.random() < 0.5:
        network = with_unit(network, rng.standard_normal(inputs), 0.3, np.zeros(outputs))
    else:
        weight, bias = network.weights[0][:, 0], network.biases[0][0]
        network = with_unit(network, weight, bias, network.weights[1][0] * 0.7)
    return Case(network, ordinary(inputs), hidden=(units,), kind=kind, must_recover=True)


def products(rng: Rng) -> Case:
    """Units that are multiplied: gates, attention, squares of sums."""
    kind, (inputs, units, outputs) = pick(rng, ["tanh", "gelu", "relu"]), shape(rng, units=3, outputs=1)
    one, other = (plant(rng, (inputs, units + 1, outputs), kind) for _ in range(2))
    gate = plant(rng, (inputs, 1, outputs), "sigmoid")
    choice = int(rng.integers(3))

    def truth(x: Array) -> Array:
        return [one(x) * other(x), one(x) * gate(x), one(x) ** 2][choice]

    square_of_one = choice == 2 and kind == "relu" and units == 0
    return Case(truth, ordinary(inputs), foreign=not square_of_one)


def narrow_kinked(rng: Rng) -> Case:
    """Two narrow layers of units with a kink, which nearly look like one."""
    slope = pick(rng, ["0.0", "0.01", "0.2", "0.5"])
    unit = (lambda leak: lambda z: np.where(z > 0, z, leak * z))(float(slope))
    inputs = int(rng.integers(2, 5))
    network: Plain = plant(rng, (inputs, 2, int(rng.integers(1, 3)), 1), unit)
    return Case(network, ordinary(inputs))
