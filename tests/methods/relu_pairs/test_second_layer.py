"""Layers behind hyperplanes whose signs are open."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from planted_pairs import planted_pair
from unweave.methods.relu_pairs.features import FirstUnits
from unweave.methods.relu_pairs.second_layer import Behind, SecondLayerOptions

SEEDS = {3: 1000, 5: 1005}
"""Networks by inputs, all of whose units switch at the points."""


@pytest.mark.parametrize(("inputs", "activation"), [(5, "relu"), (3, "relu"), (5, "leaky_relu")])
def test_signs_and_second_layer_are_found(inputs: int, activation: str) -> None:
    network = planted_pair([inputs, 4, 3, 2], activation, seed=SEEDS[inputs])
    rng = np.random.default_rng(0)
    points = 2 * rng.standard_normal((1500, inputs))
    flips = np.array([1.0, -1.0, -1.0, 1.0]) / np.linalg.norm(network.weights[0], axis=0)
    layer = FirstUnits(network.weights[0] * flips, network.biases[0] * flips)
    behind = Behind(points, network(points), None, rng, SecondLayerOptions())
    signed = behind.signed(layer, ("relu", "leaky_relu"))
    assert signed is not None
    known, name, clear = signed
    assert clear
    assert name == activation
    pair = behind.pair(known, name, clear, 1e-8)
    assert pair is not None
    assert pair.signs_solved
    assert unweave.compare(network, pair.network).parameter_error < 1e-7


def test_noise_is_no_second_layer() -> None:
    rng = np.random.default_rng(0)
    points = rng.standard_normal((600, 3))
    behind = Behind(points, rng.standard_normal((600, 1)), 2, rng, SecondLayerOptions(starts=1))
    assert behind.signed(FirstUnits(np.eye(3), np.zeros(3)), ("relu",)) is None
