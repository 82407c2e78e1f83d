"""A target that divides by the size of what it reads is told from networks of layers."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.networks.activations import get_activation
from unweave.probing.normalised import is_normalised
from unweave.targets import as_queries
from unweave.targets.region import NormalisedQueries, Region

KINDS = ("tanh", "relu", "softplus", "sine", "arctan", "softsign", "gaussian", "hard_tanh", "elu", "cubic")


def view_of(target, inputs: int) -> NormalisedQueries:
    return NormalisedQueries(as_queries(target, input_dim=inputs), Region.standard(inputs))


def with_layer_norm(activation: str, seed: int):
    net = unweave.random_network([8, 10, 2], activation, seed=seed, outer="normal")
    unit = get_activation(activation)

    def target(x):
        z = x @ net.weights[0] + net.biases[0]
        z = (z - z.mean(axis=1, keepdims=True)) / np.sqrt(z.var(axis=1, keepdims=True) + 1e-5)
        return unit(z) @ net.weights[1] + net.biases[1]

    return target


@pytest.mark.parametrize("seed", range(1000, 1005))
@pytest.mark.parametrize("kind", ["relu", "tanh", "gelu"])
def test_layer_norm_is_seen(kind, seed):
    assert is_normalised(view_of(with_layer_norm(kind, seed), 8), np.random.default_rng(seed))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", [[8, 10, 2], [8, 6, 4, 1]])
def test_networks_are_not_taken_for_it(kind, layers):
    for seed in range(1000, 1005):
        net = unweave.random_network(layers, kind, seed=seed, outer="normal")
        assert not is_normalised(view_of(net, 8), np.random.default_rng(seed))


@pytest.mark.parametrize("kind", ["relu", "tanh"])
def test_recover_refuses_it_by_name(kind):
    result = unweave.recover(with_layer_norm(kind, 1000), input_dim=8)
    assert not result.status.is_recovered
    assert "layer norm" in result.message
