"""Rounded samples are bounds, which the right network keeps and one that lacks a unit does not."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave import Status
from unweave.networks.network import Network
from unweave.networks.value_fit import fit_values
from unweave.recovery.rounded_rows import keeps_rounding

DIGIT = 0.01


def fitted(network: Network, x: np.ndarray, y: np.ndarray) -> Network:
    """Return the least-squares fit to ``y``, which starts at ``network``."""
    from unweave.networks.parameters import NetworkParameters

    return fit_values(NetworkParameters.from_network(network), x, y, 1e-3).model.to_network()


@pytest.mark.parametrize("seed", range(1000, 1006))
@pytest.mark.parametrize("kind", ["tanh", "relu"])
def test_the_right_network_keeps_them_after_least_squares(kind: str, seed: int) -> None:
    network = unweave.random_network([3, 4, 2], kind, seed=seed, outer="normal")
    x = np.random.default_rng(seed).standard_normal((400, 3))
    y = np.round(network(x), 2)
    half = np.full(2, DIGIT / 2)
    found = fitted(network, x, y)
    assert np.abs(found(x) - y).max() > DIGIT / 2  # least squares does not know the bound
    assert keeps_rounding(found, x, y, half)


@pytest.mark.parametrize("seed", range(1000, 1006))
def test_one_that_lacks_a_unit_does_not(seed: int) -> None:
    network = unweave.random_network([3, 4, 1], "tanh", seed=seed, outer="signed")
    weak = Network(
        [network.weights[0], network.weights[1] * np.array([[1.0], [1.0], [1.0], [0.03]])],
        network.biases,
        network.activations,
    )
    x = np.random.default_rng(seed).standard_normal((400, 3))
    y = np.round(weak(x), 2)
    without = Network(
        [weak.weights[0][:, :3], weak.weights[1][:3]],
        [weak.biases[0][:3], weak.biases[1]],
        weak.activations,
    )
    assert keeps_rounding(fitted(weak, x, y), x, y, np.full(1, DIGIT / 2))
    assert not keeps_rounding(fitted(without, x, y), x, y, np.full(1, DIGIT / 2))


def test_two_units_that_are_nearly_one_are_not_called_one() -> None:
    """A single softplus unit is within 1.2 half digits of all samples, and within one of nearly all."""
    network = Network(
        [np.array([[-1.26, -1.39]]), np.array([[0.58], [-1.8]])],
        [np.array([0.24, 0.37]), np.array([0.08])],
        ["softplus", "identity"],
    )
    x = np.random.default_rng(1001).standard_normal((500, 1))
    result = unweave.recover(unweave.Samples(x, np.round(network(x), 2)), activation="softplus", hidden=[1])
    assert result.status is Status.APPROXIMATE
    assert "round to all of the answers" in result.message
    assert not result.certificate.holds


def test_larger_networks_than_can_be_told_are_left_to_other_checks() -> None:
    network = unweave.random_network([30, 10, 1], "tanh", seed=1000)
    x = np.random.default_rng(1000).standard_normal((50, 30))
    assert keeps_rounding(network, x, network(x) + 1.0, np.full(1, DIGIT / 2))
