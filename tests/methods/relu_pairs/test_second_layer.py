"""Layers behind hyperplanes whose signs are open, from the surfaces of the second layer."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from planted_pairs import planted_pair
from unweave.arrays import Array
from unweave.methods.relu_pairs.bent import Bent, BentOptions, grow
from unweave.methods.relu_pairs.features import FirstUnits
from unweave.methods.relu_pairs.planes import Kink
from unweave.methods.relu_pairs.second_layer import (
    SecondLayerOptions,
    fit_behind,
    signs_are_unique,
    with_signs,
)
from unweave.networks.activations import get_activation
from unweave.targets.region import Region

ERROR = 1e-9
SEEDS = {3: 1000, 5: 1005}
"""Networks by inputs, all of whose units switch at the points."""
FLIPS = np.array([1.0, -1.0, -1.0, 1.0])


def first_units(network: unweave.Network) -> FirstUnits:
    """Hyperplanes of the first layer, some of them with the other sign."""
    lengths = FLIPS * np.linalg.norm(network.weights[0], axis=0)
    return FirstUnits(network.weights[0] / lengths, network.biases[0] / lengths)


def kinks(network: unweave.Network, rng: np.random.Generator) -> list[Kink]:
    """A kink of every unit of the second layer, with its normal."""
    g, found = get_activation(network.activations[0]), []
    for unit in range(network.hidden[1]):
        while True:
            start, step = rng.standard_normal((2, network.n_inputs))
            points = start + np.linspace(-4, 4, 4001)[:, None] * step
            z = points @ network.weights[0] + network.biases[0]
            heights = g(z) @ network.weights[1][:, unit] + network.biases[1][unit]
            turns = np.flatnonzero(heights[1:] * heights[:-1] < 0)
            if len(turns) and np.abs(z[turns[0]]).min() > 0.05:
                break
        near, rise = int(turns[0]), heights[turns[0] + 1] - heights[turns[0]]
        point = points[near] - heights[near] / rise * (points[near + 1] - points[near])
        below = -float(g(np.array([-1.0]))[0])
        slopes = np.where(z[near] > 0, 1.0, below)
        normal = network.weights[0] @ (slopes * network.weights[1][:, unit])

        length = float(np.linalg.norm(normal))
        bend = (1 - below) * length * network.weights[2][unit]
        found.append(Kink(point, normal / length, 1e-4, 1e-7, bend))
    return found


def surfaces(network: unweave.Network, rng: np.random.Generator) -> list[Bent]:
    """The surfaces of the second layer, grown."""

    def read(points: Array) -> tuple[Array, Array]:
        return network(points), np.full(len(points), ERROR)

    layer, options = first_units(network), BentOptions()
    starts = [
        Bent(layer, np.zeros(4), np.eye(network.n_inputs), kink, options) for kink in kinks(network, rng)
    ]
    return grow(read, Region.standard(network.n_inputs), starts, ERROR, rng, options)


@pytest.mark.parametrize(("inputs", "activation"), [(5, "relu"), (3, "relu"), (5, "leaky_relu")])
def test_signs_and_second_layer_are_found(inputs: int, activation: str) -> None:
    network = planted_pair([inputs, 4, 3, 2], activation, seed=SEEDS[inputs])
    rng = np.random.default_rng(0)
    signed = with_signs(surfaces(network, rng), ("relu", "leaky_relu"), SecondLayerOptions())
    assert signed.clear
    assert signed.activation == activation
    points = 2 * rng.standard_normal((400, inputs))
    pair = fit_behind(points, network(points), signed, 1e-6, rng, SecondLayerOptions())
    assert pair is not None
    assert unweave.compare(network, pair.network).parameter_error < 1e-7


def test_a_surface_that_is_none_is_refused() -> None:
    network, rng = planted_pair([4, 4, 3, 2], seed=1000), np.random.default_rng(0)
    wrong = Kink(rng.standard_normal(4), np.eye(4)[0], 1e-4, 1e-7, np.ones(2))

    def read(points: Array) -> tuple[Array, Array]:
        return network(points), np.full(len(points), ERROR)

    surface = Bent(first_units(network), np.zeros(4), np.eye(4), wrong, BentOptions())
    assert grow(read, Region.standard(4), [surface], ERROR, rng, BentOptions()) == []


def test_signs_of_a_network_are_unique_unless_units_cancel() -> None:
    network = planted_pair([4, 4, 3, 2], seed=1000)
    assert signs_are_unique(network, SecondLayerOptions())
    twins = unweave.Network(
        [np.array([[1.0, 1.0]]), np.array([[1.0], [-1.0]]), np.ones((1, 1))],
        [np.array([0.0, 1.0]), np.zeros(1), np.zeros(1)],
        ["relu", "relu", "identity"],
    )
    assert not signs_are_unique(twins, SecondLayerOptions())
