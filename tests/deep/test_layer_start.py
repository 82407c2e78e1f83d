from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linear_sum_assignment

from unweave.deep.layer_start import layer_start, norms_and_biases
from unweave.deep.saturating import ERF, TANH
from unweave.derivatives.closed_form import network_gradients, network_hessians
from unweave.network import Network
from unweave.random_networks import random_network

FAMILY = {"tanh": TANH, "erf": ERF}
M = 5


def planted(inner: tuple[int, ...] = (), activation: str = "tanh", seed: int = 1000) -> Network:
    return random_network([M, M, *inner, 2], activation, seed=seed, outer="normal", norms=(0.7, 1.4))


def data(network: Network, count: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    points = 1.3 * np.random.default_rng(1001).standard_normal((count, M))
    gradients = network_gradients(network, points).transpose(0, 2, 1)
    return points, gradients, network_hessians(network, points)


def matched(network: Network, mixing: np.ndarray, biases: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns in the planted order and with the planted signs."""
    cosines = (mixing / np.linalg.norm(mixing, axis=0)).T @ (
        network.weights[0] / np.linalg.norm(network.weights[0], axis=0)
    )
    rows, columns = linear_sum_assignment(-np.abs(cosines))
    order = rows[np.argsort(columns)]
    signs = np.sign(cosines[order, np.arange(M)])
    return mixing[:, order] * signs, biases[order] * signs


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("activation", ["tanh", "erf"])
@pytest.mark.parametrize("seed", [1000, 1001, 1002])
def test_the_last_hidden_layer_comes_out_exactly(activation: str, normalise: bool, seed: int) -> None:
    network = planted(activation=activation, seed=seed)
    start = layer_start(*data(network), FAMILY[activation], normalise)
    assert start.off_diagonal < 1e-14
    mixing, biases = matched(network, start.mixing, start.biases)
    # Thirty damped Gauss-Newton steps with a ridge of 1 %: a hundredth of the error stays at each.
    assert_allclose(mixing, network.weights[0], rtol=0, atol=1e-6)
    assert_allclose(biases, network.biases[0], rtol=0, atol=1e-6)


def test_a_hidden_layer_that_follows_shows_off_the_diagonal_but_leaves_a_start() -> None:
    network = planted((3,))
    start = layer_start(*data(network, 120), TANH)
    assert start.off_diagonal > 1e-3
    mixing, _ = matched(network, start.mixing, start.biases)
    unit, true = (part / np.linalg.norm(part, axis=0) for part in (mixing, network.weights[0]))
    assert np.sum(unit * true, axis=0).min() > 0.8


@pytest.mark.parametrize("activation", ["tanh", "erf"])
def test_norms_and_biases_for_known_directions(activation: str) -> None:
    network = planted(activation=activation)
    norms = np.linalg.norm(network.weights[0], axis=0)
    found = norms_and_biases(network.weights[0] / norms, *data(network), FAMILY[activation])
    assert_allclose(found[0], norms, rtol=0, atol=1e-7)
    assert_allclose(found[1], network.biases[0], rtol=0, atol=1e-7)


def test_a_large_bias_and_a_large_norm_are_within_reach() -> None:
    network = planted()
    weights, biases = network.weights[0].copy(), network.biases[0].copy()
    weights[:, 0] *= 4 / np.linalg.norm(weights[:, 0])
    biases[1] = -3.5
    wide = Network([weights, network.weights[1]], [biases, network.biases[1]], network.activations)
    norms = np.linalg.norm(weights, axis=0)
    found = norms_and_biases(weights / norms, *data(wide, 200), TANH)
    assert_allclose(found[0], norms, rtol=1e-5)
    assert_allclose(found[1], biases, rtol=0, atol=1e-4)


def test_hessians_that_vanish_are_left_out() -> None:
    network = planted()
    points, gradients, hessians = data(network)
    hessians[0] = 0.0
    gradients[0] = 0.0
    start = layer_start(points, gradients, hessians, TANH)
    assert_allclose(matched(network, start.mixing, start.biases)[0], network.weights[0], rtol=0, atol=1e-6)
