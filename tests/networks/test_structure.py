"""Convolutions and skip connections are read from the weights of a dense network."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import unweave
from unweave.networks.pooled_filters import pooling_message
from unweave.networks.structure import Convolution, SkipConnection, find_convolution, structure_of

nn = torch.nn

SHAPES = {
    "row": ((1, 16), {"kernel_size": 5}, 2),
    "row, stride 2, padded": ((1, 15), {"kernel_size": 5, "stride": 2, "padding": 2}, 3),
    "image": ((8, 8), {"kernel_size": 3}, 2),
    "image, padded": ((8, 8), {"kernel_size": 3, "padding": 1}, 1),
    "image, not square": ((6, 9), {"kernel_size": (2, 3)}, 2),
}


def dense_layer(layer, shape) -> tuple[np.ndarray, np.ndarray]:
    """The weights (n_in, n_out) and biases of a convolution over flat inputs."""
    count = shape[0] * shape[1]
    image = (1, shape[1]) if shape[0] == 1 else (1, *shape)
    with torch.no_grad():
        bias = layer(torch.zeros(1, *image, dtype=torch.float64)).reshape(-1).numpy()
        rows = layer(torch.eye(count, dtype=torch.float64).reshape(count, *image)).reshape(count, -1).numpy()
    return rows - bias, bias


def planted(name: str, activation: str, seed: int = 1000):
    """A convolution followed by a dense layer, its units in random order, signs and lengths."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    shape, told, filters = SHAPES[name]
    kind = nn.Conv1d if shape[0] == 1 else nn.Conv2d
    layer = kind(1, filters, **told).double()
    weights, biases = dense_layer(layer, shape)
    order = rng.permutation(weights.shape[1])
    factor = {
        "relu": rng.uniform(0.5, 2, len(order)),
        "tanh": rng.choice([-1.0, 1.0], len(order)),
        "sigmoid": rng.choice([-1.0, 1.0], len(order)),
        "softplus": np.ones(len(order)),
    }[activation]
    outgoing = rng.standard_normal((len(order), 3))
    first = [weights[:, order] * factor, biases[order] * factor]
    return unweave.Network([first[0], outgoing], [first[1], np.ones(3)], [activation, "identity"]), layer


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid", "softplus"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_convolution_is_found_and_exported(name, activation):
    network, layer = planted(name, activation)
    found = find_convolution(network)
    assert found is not None
    shape, _, filters = SHAPES[name]
    assert (found.shape, len(found.filters)) == (shape, filters)
    assert found.n_parameters == sum(part.numel() for part in layer.parameters())
    module = network.to_torch(structure=True)
    assert any(isinstance(part, nn.Conv1d | nn.Conv2d) for part in module)
    x = np.random.default_rng(1).standard_normal((20, network.n_inputs))
    with torch.no_grad():
        np.testing.assert_allclose(module(torch.tensor(x)).numpy(), network(x), rtol=1e-12, atol=1e-12)


def test_the_sentence_names_size_and_number():
    network, _ = planted("image", "relu")
    assert str(find_convolution(network)) == (
        "the first layer is a 2-D convolution over 8 x 8 inputs: 2 filters of 3 x 3 at 6 x 6 places, "
        "20 parameters"
    )


def test_one_unit_that_is_no_filter_is_enough_against_it():
    network, _ = planted("image", "tanh")
    weights = network.weights[0].copy()
    weights[np.argmax(np.abs(weights[:, 5])), 5] *= 1.01
    changed = unweave.Network([weights, network.weights[1]], network.biases, network.activations)
    assert find_convolution(changed) is None


def test_dense_layers_are_no_convolutions():
    for seed in range(1000, 1005):
        assert structure_of(unweave.random_network([16, 24, 1], seed=seed)) == ()


def test_a_skip_is_named():
    network, _ = planted("row", "tanh")
    with_skip = unweave.Network(
        network.weights, network.biases, network.activations, skip=np.ones((network.n_inputs, 3))
    )
    assert [type(part) for part in structure_of(with_skip)] == [Convolution, SkipConnection]


def test_a_recovered_convolution_is_reported():
    network, _ = planted("row", "relu")
    result = unweave.recover(network)
    assert any("1-D convolution" in note for note in result.notes)
    assert list(result.structure) == result.to_dict()["structure"]


@pytest.mark.parametrize("seed", range(1000, 1003))
def test_max_pooling_is_refused_by_name(seed):
    torch.manual_seed(seed)
    layers = [nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    module = nn.Sequential(*layers, nn.Linear(18, 4)).double()
    result = unweave.recover(module, input_dim=64)
    assert result.status is unweave.Status.FAILED
    assert "max pooling" in result.message
    assert "8 x 8" in result.message


def test_a_convolution_without_pooling_shows_none():
    network, _ = planted("image", "relu")
    assert pooling_message(network.weights[0]) is None
    assert pooling_message(unweave.random_network([16, 20, 1], "relu", seed=1000).weights[0]) is None
