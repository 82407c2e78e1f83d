from __future__ import annotations

import numpy as np
import pytest
import torch

from unweave.certify import LossHessian, hessian_min_eig
from unweave.construct import as_exact
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.networks.random import random_network


def samples(net: Network, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, net.n_inputs)), rng.standard_normal((n, net.n_outputs))


def torch_hessian(net: Network, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradient and Hessian by automatic differentiation, parameters in the same order."""
    parameters = tuple(torch.tensor(p) for layer in zip(net.weights, net.biases, strict=True) for p in layer)

    def loss(*values):
        a = torch.tensor(x)
        for i, name in enumerate(net.activations):
            a = a @ values[2 * i] + values[2 * i + 1]
            a = {"tanh": torch.tanh, "relu": torch.relu, "identity": lambda z: z, "sigmoid": torch.sigmoid}[
                name
            ](a)
        return ((a - torch.tensor(y)) ** 2).sum() / (2 * len(x))

    blocks = torch.autograd.functional.hessian(loss, parameters)
    sizes = [p.numel() for p in parameters]
    hessian = np.block(
        [
            [b.reshape(m, n).numpy() for b, n in zip(row, sizes, strict=True)]
            for row, m in zip(blocks, sizes, strict=True)
        ]
    )
    gradients = torch.autograd.functional.jacobian(loss, parameters)
    return np.concatenate([g.numpy().ravel() for g in gradients]), hessian


@pytest.mark.parametrize(
    ("layers", "activation", "output"),
    [([4, 6, 5, 2], "tanh", "identity"), ([3, 5, 2], "tanh", "sigmoid"), ([3, 7, 1], "relu", "identity")],
)
def test_products_agree_with_automatic_differentiation(layers, activation, output) -> None:
    net = random_network(layers, activation=activation, outer="normal", seed=1000, output_activation=output)
    x, y = samples(net, 40, 1000)
    gradient, expected = torch_hessian(net, x, y)
    hessian = LossHessian(net, x, y)
    found = np.stack([hessian.product(row) for row in np.eye(hessian.size)])
    scale = np.abs(expected).max()
    assert np.abs(found - expected).max() <= 1e-13 * scale
    assert np.abs(hessian.gradient() - gradient).max() <= 1e-13 * scale
    least = hessian_min_eig(net, x, y)
    assert least.dense
    assert least.value == pytest.approx(np.linalg.eigvalsh(expected)[0], abs=1e-12 * scale)
    assert np.linalg.norm(expected @ least.vector - least.value * least.vector) <= 1e-12 * scale


def test_lanczos_finds_the_same_without_forming_it() -> None:
    net = random_network([5, 8, 6, 1], outer="normal", seed=1001)
    x, y = samples(net, 100, 1001)
    dense = hessian_min_eig(net, x, y)
    free = hessian_min_eig(net, x, y, dense_parameters=0)
    assert not free.dense
    assert dense.value < 0  # not a minimum: random labels
    assert free.value >= dense.value - 1e-10 * dense.largest
    assert abs(free.value - dense.value) <= max(free.residual, 1e-10 * dense.largest)
    assert free.residual <= 1e-6 * free.largest
    again = hessian_min_eig(net, x, y, dense_parameters=0)
    assert again.value == free.value
    short = hessian_min_eig(net, x, y, dense_parameters=0, steps=3)
    assert short.products <= 4
    assert short.value >= dense.value


def test_at_its_own_answers_a_network_is_at_a_minimum() -> None:
    net = random_network([4, 5, 1], outer="normal", seed=1002)
    x, _ = samples(net, 200, 1002)
    least = hessian_min_eig(net, x, net(x))
    assert least.value > 0
    twice = Network(
        [np.repeat(net.weights[0], 2, axis=1), np.repeat(net.weights[1], 2, axis=0) / 2],
        [np.repeat(net.biases[0], 2), net.biases[1]],
        net.activations,
    )
    flat = hessian_min_eig(twice, x, twice(x))  # duplicated units: a valley
    assert abs(flat.value) <= 1e-12 * flat.largest


def test_bad_input_is_named() -> None:
    net = random_network([3, 4, 2])
    x, y = samples(net, 10, 1003)
    for bad_x, bad_y in ((x[:, :2], y), (x, y[:, :1]), (x[0], y)):
        with pytest.raises(InvalidInput, match="shapes"):
            hessian_min_eig(net, bad_x, bad_y)
    with pytest.raises(InvalidInput, match="finite"):
        hessian_min_eig(net, x, y * np.inf)
    with pytest.raises(InvalidInput, match="steps"):
        hessian_min_eig(net, x, y, steps=0)
    with pytest.raises(InvalidInput, match="softmax"):
        hessian_min_eig(random_network([3, 4, 2], output_activation="softmax"), x, y)
    with pytest.raises(InvalidInput, match="floats"):
        hessian_min_eig(as_exact(random_network([3, 4, 2], activation="relu")), x, y)
