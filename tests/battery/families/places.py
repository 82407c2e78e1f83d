"""What acts in one place only: far out, in a corner of a box, at one cluster of examples, in a bump."""

from __future__ import annotations

import numpy as np

from battery.case import Array, Case, Rng, around, box, ordinary
from battery.plain import pick, plant, shape, signed, with_unit

LOCAL = ("gelu", "relu", "softplus", "tanh", "swish")


def far_units(rng: Rng) -> Case:
    """One unit acts 5 to 50 standard deviations from the origin."""
    kind, (inputs, units, outputs) = pick(rng, LOCAL), shape(rng, units=3, outputs=1)
    network = plant(rng, (inputs, units, outputs), kind)
    direction = rng.standard_normal(inputs)
    direction *= rng.uniform(1.5, 4) / np.linalg.norm(direction)
    bias = -float(np.linalg.norm(direction)) * 10 ** rng.uniform(np.log10(5), np.log10(50))
    return Case(with_unit(network, direction, bias, signed(rng, (outputs,))), ordinary(inputs))


def corner_units(rng: Rng) -> Case:
    """One unit acts in one corner of the declared box only."""
    kind, inputs = pick(rng, LOCAL), int(rng.integers(2, 15))
    network = plant(rng, (inputs, int(rng.integers(1, 4)), 1), kind)
    corner, depth = rng.choice([-1.0, 1.0], inputs), rng.uniform(0.3, 1.2)
    steep = (1.0 if kind == "relu" else 8.0) / depth  # the unit falls silent within this depth of the corner
    outgoing = signed(rng, (1,)) * rng.uniform(2, 20)
    network = with_unit(network, steep * corner, -steep * (inputs - depth), outgoing)
    low, high = -np.ones(inputs), np.ones(inputs)
    return Case(
        network,
        box(low, high),
        arguments={"domain": (-1.0, 1.0)},
        hidden=(len(network.biases[0]),),
        kind=kind,
        witness=corner[None],
    )


def clusters(rng: Rng) -> Case:
    """Examples come in clusters, and one unit acts at one of them only."""
    kind, inputs = pick(rng, LOCAL), int(rng.integers(2, 6))
    network = plant(rng, (inputs, int(rng.integers(1, 4)), 1), kind)
    away = rng.uniform(5, 12)
    network = with_unit(network, np.full(inputs, 1.5), -1.5 * inputs * away, np.array([2.0]))
    x = 0.5 * rng.standard_normal((400, inputs))
    x[: int(400 * rng.uniform(0.02, 0.3))] += away
    x = rng.permutation(x)
    return Case(
        network, around(x), arguments={"examples": x}, hidden=(len(network.biases[0]),), kind=kind, witness=x
    )


def bumps(rng: Rng) -> Case:
    """A network and a bump that is wide, of medium width, or so thin that chance decides who sees it."""
    kind, (inputs, units, _) = pick(rng, LOCAL), shape(rng, units=3)
    inputs = min(inputs, 5)
    network = plant(rng, (inputs, units, 1), kind)
    widest = [(1.0, 2.0), (0.3, 0.6), (0.02, 0.1)][int(rng.integers(3))]
    width, height = rng.uniform(*widest), float(signed(rng, (1,))[0])
    centre = rng.standard_normal(inputs)

    def truth(x: Array) -> Array:
        square = ((x - centre) ** 2).sum(axis=1, keepdims=True)
        return network(x) + height * np.exp(-square / (2 * width**2))

    return Case(truth, ordinary(inputs), witness=centre[None], foreign=True)
