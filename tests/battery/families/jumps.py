"""Functions that jump: trees, steps, labels, and networks with a jump."""

from __future__ import annotations

import numpy as np

from battery.case import Array, Case, Rng, ordinary
from battery.plain import pick, plant, shape

LEAST_SPREAD = 0.2
"""Standard deviation of a label: the rarer of two comes once in 25 rows or more often."""


def _tree(rng: Rng, inputs: int, depth: int) -> tuple[Array, Array, Array]:
    """A full tree: the input and the threshold of every inner node, the value of every leaf."""
    nodes = 2**depth - 1
    return rng.integers(inputs, size=nodes), rng.standard_normal(nodes), rng.standard_normal(nodes + 1)


def trees(rng: Rng) -> Case:
    """One regression tree, or the sum of some."""
    inputs, depth = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    forest = [_tree(rng, inputs, depth) for _ in range(int(rng.choice([1, 1, 3, 10])))]

    def truth(x: Array) -> Array:
        total = np.zeros(len(x))
        for feature, threshold, leaf in forest:
            node = np.zeros(len(x), dtype=int)
            for _ in range(depth):
                right = x[np.arange(len(x)), feature[node]] > threshold[node]
                node = 2 * node + 1 + right
            total += leaf[node - (2**depth - 1)]
        return total[:, None]

    return Case(truth, ordinary(inputs), foreign=True, stepped=True)


def steps(rng: Rng) -> Case:
    """A few steps along single inputs or across all of them."""
    inputs, count = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    normal = rng.standard_normal((inputs, count))
    straight = rng.random() < 0.5
    if straight:
        normal = np.eye(inputs)[:, rng.integers(inputs, size=count)]
    offset, height = rng.uniform(-2.5, 2.5, count), rng.uniform(0.3, 2, count)
    return Case(
        lambda x: ((x @ normal > offset) * height).sum(axis=1, keepdims=True),
        ordinary(inputs),
        foreign=True,
        stepped=straight or inputs == 1,
    )


def step_and_network(rng: Rng) -> Case:
    """A network and a step that few rows cross."""
    kind, (inputs, units, _) = pick(rng, ["relu", "tanh", "gelu", "leaky_relu"]), shape(rng, units=4)
    network = plant(rng, (inputs, units, 1), kind)
    normal, offset = np.full(inputs, 1 / np.sqrt(inputs)), rng.uniform(0.5, 4.5)
    height = 10 ** rng.uniform(-3, 0)
    return Case(lambda x: network(x) + height * (x @ normal > offset)[:, None], ordinary(inputs))


def labels(rng: Rng) -> Case:
    """The number of the largest output, one column per class, or a decision."""
    kind, (inputs, units, outputs) = pick(rng, ["relu", "tanh", "gelu"]), shape(rng, units=4)
    rule, rows = int(rng.integers(3)), rng.standard_normal((2000, inputs))
    labelled = [
        lambda y: y.argmax(axis=1)[:, None].astype(float),
        lambda y: np.eye(y.shape[1])[y.argmax(axis=1)],
        lambda y: (y[:, :1] > 0).astype(float),
    ][rule]
    spread = 0.0
    while spread < LEAST_SPREAD:
        network = plant(rng, (inputs, units, max(outputs, 2)), kind)
        spread = labelled(network(rows)).std(axis=0).max()
    return Case(lambda x: labelled(network(x)), ordinary(inputs), foreign=True, stepped=inputs == 1)
