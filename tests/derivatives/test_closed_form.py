from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from unweave.derivatives.entangled import network_gradients, network_hessians
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.networks.random import random_network


def autodiff(network: Network, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradients (n, K, D) and Hessians (n, K, D, D) by reverse-mode differentiation, output by output."""
    module = network.to_torch()
    gradients = np.empty((len(points), network.n_outputs, network.n_inputs))
    hessians = np.empty((*gradients.shape, network.n_inputs))
    for i, point in enumerate(points):
        for k in range(network.n_outputs):

            def output(x: torch.Tensor, k: int = k) -> torch.Tensor:
                return module(x[None])[0, k]

            x = torch.from_numpy(point).requires_grad_(True)
            gradients[i, k] = torch.autograd.grad(output(x), x)[0].numpy()
            hessians[i, k] = torch.autograd.functional.hessian(output, torch.from_numpy(point)).numpy()
    return gradients, hessians


def with_skip(network: Network, seed: int) -> Network:
    skip = np.random.default_rng(seed).standard_normal((network.n_inputs, network.n_outputs))
    return Network(network.weights, network.biases, network.activations, skip=skip)


NETWORKS = {
    "shallow": random_network([4, 6, 1], seed=1000, outer="normal"),
    "several outputs": random_network([4, 6, 3], activation="sigmoid", seed=1001, outer="normal"),
    "deep": random_network([4, 6, 5, 2], seed=1002, outer="normal", norms=(0.5, 2)),
    "deeper, curved output": random_network(
        [3, 5, 4, 3, 2], activation="softplus", seed=1003, outer="normal", output_activation="tanh"
    ),
    "skip": with_skip(random_network([4, 6, 2], activation="gelu", seed=1004, outer="normal"), 1005),
    "skip under a curved output": with_skip(
        random_network([4, 5, 3, 2], seed=1006, outer="normal", output_activation="sigmoid"), 1007
    ),
    "no hidden layer": random_network([4, 2], seed=1008, outer="normal", output_activation="tanh"),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_derivatives_agree_with_automatic_differentiation(name: str) -> None:
    network = NETWORKS[name]
    points = np.random.default_rng(1010).standard_normal((5, network.n_inputs))
    gradients, hessians = autodiff(network, points)
    assert_allclose(network_gradients(network, points), gradients, atol=1e-12)
    assert_allclose(network_hessians(network, points), hessians, atol=1e-12)


def test_hessians_are_symmetric_and_rank_one_per_neuron() -> None:
    network = random_network([5, 1, 1], seed=1011)
    hessian = network_hessians(network, np.ones((1, 5)))[0, 0]
    w = network.weights[0][:, 0]
    assert_allclose(hessian, hessian.T)
    assert_allclose(hessian, np.outer(w, w) * (w @ hessian @ w), atol=1e-14)


def test_softmax_outputs_are_refused() -> None:
    network = random_network([3, 4, 2], seed=1012, output_activation="softmax")
    with pytest.raises(InvalidInput, match="identity output"):
        network_hessians(network, np.zeros((1, 3)))
