from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.derivatives.entangled import network_gradients
from unweave.methods.smooth_deep.first_biases import linear_biases
from unweave.methods.smooth_deep.options import FirstLayerOptions
from unweave.networks.network import Network
from unweave.networks.random import random_network


def planted(layers: list[int], seed: int = 1000) -> Network:
    return random_network(layers, seed=seed, outer="normal", norms=(0.7, 1.4))


def data(network: Network, more: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates (n, m) and exact gradients (n, m, K), as many as the route takes."""
    m, outputs = network.n_inputs, network.n_outputs
    count = int(np.ceil(more * FirstLayerOptions().rows_per_unit * m / outputs)) + 4
    z = 1.66 * np.random.default_rng(1001).uniform(-1, 1, (count, m))
    points = np.linalg.solve(network.weights[0].T, (z - network.biases[0]).T).T
    return points, network_gradients(network, points).transpose(0, 2, 1)


@pytest.mark.parametrize("layers", [[5, 5, 3, 2], [6, 6, 2, 1], [6, 6, 5, 3], [5, 5, 4, 3, 2], [4, 4, 1, 1]])
@pytest.mark.parametrize("seed", [1000, 1001, 1002])
def test_biases_and_the_next_width_come_out_of_linear_algebra(layers: list[int], seed: int) -> None:
    network = planted(layers, seed)
    found = linear_biases(network.weights[0], *data(network))
    assert found.next_width == layers[2]
    assert found.gap > 1e4
    assert found.inconsistency < 1e-5
    assert_allclose(found.biases, network.biases[0], rtol=0, atol=1e-6)
    # m - k singular values at rounding, the others not.
    assert found.singular_values.shape == (3 * layers[1],)
    assert np.sum(found.singular_values < 1e-9 * found.singular_values[0]) == layers[1] - layers[2]


def test_the_width_may_be_told() -> None:
    network = planted([5, 5, 3, 2])
    told = linear_biases(network.weights[0], *data(network), next_width=3)
    assert told.next_width == 3
    assert_allclose(told.biases, network.biases[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("width", [1, 2])
def test_a_width_that_is_too_small_shows_in_the_gap_and_the_inconsistency(width: int) -> None:
    network = planted([5, 5, 3, 2])
    told = linear_biases(network.weights[0], *data(network), next_width=width)
    assert told.next_width == width
    assert told.gap < 1e3
    assert told.inconsistency > 1e-2


def test_a_width_that_is_too_large_still_gives_the_biases() -> None:
    # Fewer null vectors than there are, each of them a true one.
    network = planted([5, 5, 3, 2])
    told = linear_biases(network.weights[0], *data(network), next_width=4)
    assert_allclose(told.biases, network.biases[0], rtol=0, atol=1e-5)


def test_a_next_layer_as_wide_as_this_one_shows_no_gap() -> None:
    network = planted([5, 5, 5, 2])
    assert linear_biases(network.weights[0], *data(network)).gap < 1e3


def test_the_size_of_gradients_does_not_matter() -> None:
    network = planted([5, 5, 3, 2])
    points, gradients = data(network)
    scale = 10.0 ** np.random.default_rng(1002).uniform(-8, 8, (len(points), 1, 2))
    found = linear_biases(network.weights[0], points, scale * gradients)
    assert found.next_width == 3
    assert_allclose(found.biases, network.biases[0], rtol=0, atol=1e-6)


def test_norms_that_are_off_blur_in_proportion() -> None:
    network = planted([5, 5, 3, 2])
    points, gradients = data(network)
    errors = []
    for size in (1e-4, 1e-6):
        off = 1 + size * np.random.default_rng(1003).uniform(-1, 1, 5)
        found = linear_biases(network.weights[0] * off, points, gradients, next_width=3)
        errors.append(np.abs(found.biases - network.biases[0]).max())
    assert errors[0] < 0.3
    assert errors[1] < 0.05 * errors[0]
