from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.methods.rectified_deep.unit_profiles import (
    ProfileOptions,
    best_by_layer,
    fit_profiles,
    read_profiles,
    smooth_network,
)
from unweave.recovery.result import Status


def planted(layers: list[int], activation: str, seed: int = 1000) -> unweave.Network:
    return unweave.random_network(layers, activation, seed=seed, outer="normal", norms=(0.7, 1.5))


@pytest.mark.parametrize("activation", ["softplus", "gelu", "swish", "mish", "elu", "selu"])
def test_layers_wider_than_what_they_read(activation: str) -> None:
    # One unit of the second layer reads only what makes it smaller: it has no far kink.
    network = planted([5, 9, 6, 2], activation)
    result = unweave.recover(network, seed=1001003)
    assert result.status is Status.RECOVERED, result.message
    assert unweave.compare(network, result.network).parameter_error < 1e-9
    assert result.network.activations[:2] == (activation, activation)
    assert "unit profiles" in [stage.name for stage in result.stages]


def test_three_hidden_layers() -> None:
    network = planted([6, 6, 6, 6, 1], "softplus", seed=1002)
    result = unweave.recover(network, hidden=[6, 6, 6], activation="softplus")
    assert result.status is Status.RECOVERED, result.message
    assert unweave.compare(network, result.network).parameter_error < 1e-9


def test_each_layer_may_have_a_kind_of_its_own() -> None:
    same = planted([6, 12, 8, 1], "softplus", seed=1002)
    network = unweave.Network(same.weights, same.biases, ["elu", "gelu", "identity"])
    result = unweave.recover(network)
    assert result.status is Status.RECOVERED, result.message
    assert result.network.activations == network.activations
    assert unweave.compare(network, result.network).parameter_error < 1e-9


def test_inputs_on_other_scales() -> None:
    network = planted([5, 9, 6, 1], "gelu")
    scale, location = np.array([1e-2, 1.0, 3.0, 50.0, 0.2]), np.array([3.0, -1.0, 0.0, 20.0, 0.1])

    def target(x: np.ndarray) -> np.ndarray:
        return network((x - location) / scale)

    examples = location + scale * np.random.default_rng(1000).standard_normal((200, 5))
    result = unweave.recover(target, input_dim=5, examples=examples)
    assert result.status is Status.RECOVERED, result.message
    np.testing.assert_allclose(result.network(examples), target(examples), atol=1e-11)


@pytest.mark.parametrize(("activation", "skip"), [("gelu", False), ("tanh", True)])
def test_one_layer_is_not_taken_for_several(activation: str, skip: bool) -> None:
    network = unweave.random_network([5, 4, 1], activation, seed=1000, outer="normal")
    straight = np.random.default_rng(1000).standard_normal((5, 1)) if skip else None
    network = unweave.Network(network.weights, network.biases, network.activations, straight)
    result = unweave.recover(network)
    assert result.status is Status.RECOVERED, result.message
    assert result.network.hidden == (4,)
    assert "unit profiles" not in [stage.name for stage in result.stages]


def test_a_target_that_rectifies_but_is_no_such_network_is_not_recovered() -> None:
    network = planted([5, 9, 6, 1], "softplus")

    def target(x: np.ndarray) -> np.ndarray:
        return network(x) + 0.1 * np.sin(x[:, :1])

    result = unweave.recover(target, input_dim=5, method="rectified_deep")
    assert result.status in (Status.APPROXIMATE, Status.FAILED)


@pytest.mark.parametrize("kind", ["softplus", "elu"])
def test_profiles_tell_scales_biases_and_kind(kind: str) -> None:
    truth = planted([4, 6, 5, 2], kind)
    factors = [np.random.default_rng(seed).uniform(0.5, 2, width) for seed, width in enumerate(truth.hidden)]
    weights = [
        truth.weights[0] * factors[0],
        truth.weights[1] * factors[1] / factors[0][:, None],
        truth.weights[2] / factors[1][:, None],
    ]
    biases = [truth.biases[0] * factors[0], truth.biases[1] * factors[1], truth.biases[2]]
    far = unweave.Network(weights, biases, ["relu", "relu", "identity"])
    options = ProfileOptions()
    profiles = read_profiles(truth, far, np.random.default_rng(1000), options)
    right, wrong = (fit_profiles(profiles, name, options) for name in (kind, "gelu"))
    assert np.median(right.misfits) < 1e-9
    assert np.median(wrong.misfits) > 1e-4
    layers = best_by_layer([wrong, right], far.hidden)
    assert [layer.kind for layer in layers] == [kind, kind]
    assert unweave.compare(truth, smooth_network(far, profiles, layers)).parameter_error < 1e-6
