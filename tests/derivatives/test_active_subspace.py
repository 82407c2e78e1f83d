from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.derivatives.active_subspace import active_subspace
from unweave.derivatives.stencils import gradient_jets
from unweave.networks.network import Network
from unweave.networks.random import random_network

NOISE = 1e-16


def jets(network: Network, sites: int, step: float = 1e-3, seed: int = 1000):
    points = np.random.default_rng(seed).standard_normal((sites, network.n_inputs))
    return gradient_jets(network, points, step)


def outside(frame: np.ndarray, columns: np.ndarray) -> float:
    return float(np.abs(columns - frame @ (frame.T @ columns)).max())


@pytest.mark.parametrize(("inputs", "width"), [(12, 1), (12, 4), (30, 11)])
def test_fewer_neurons_than_inputs_are_spanned(inputs: int, width: int) -> None:
    network = random_network([inputs, width, 1], seed=1001)
    found = active_subspace(jets(network, width + 6), NOISE)
    assert found.complete
    assert found.reduces
    assert found.dimension == width
    assert_allclose(found.frame.T @ found.frame, np.eye(width), atol=1e-13)
    # truncation of order h^2, magnified by the conditioning of the gradients
    assert outside(found.frame, network.weights[0]) < 1e-3


def test_a_skip_connection_adds_no_direction() -> None:
    network = random_network([12, 4, 1], seed=1002)
    skip = np.random.default_rng(1003).standard_normal((12, 1))
    skipped = Network(network.weights, network.biases, network.activations, skip=skip)
    assert active_subspace(jets(skipped, 12), NOISE).dimension == 4


def test_several_outputs_need_fewer_sites() -> None:
    network = random_network([20, 8, 3], seed=1004, outer="normal")
    found = active_subspace(jets(network, 6), NOISE)
    assert found.complete
    assert found.dimension == 8


def test_too_few_gradients_are_called_incomplete() -> None:
    network = random_network([20, 10, 1], seed=1005)
    found = active_subspace(jets(network, 8), NOISE)
    assert not found.complete
    assert not found.reduces


def test_as_many_neurons_as_inputs_leave_nothing_out() -> None:
    network = random_network([6, 9, 1], seed=1006)
    found = active_subspace(jets(network, 20), NOISE)
    assert found.complete
    assert not found.reduces
    assert found.frame is None
    assert found.dimension == 6


def test_noise_hides_no_direction_that_is_clearly_there() -> None:
    network = random_network([15, 3, 1], seed=1007)
    rng = np.random.default_rng(1008)
    sigma = 1e-6

    def noisy(x: np.ndarray) -> np.ndarray:
        answers = network(x)
        return answers + sigma * rng.standard_normal(answers.shape)

    points = np.random.default_rng(1009).standard_normal((30, 15))
    found = active_subspace(gradient_jets(noisy, points, 0.1), sigma)
    assert outside(found.frame, network.weights[0]) < 0.05
    assert found.dimension < 15
