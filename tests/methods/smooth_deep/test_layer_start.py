from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linear_sum_assignment

from unweave.derivatives.entangled import network_gradients, network_hessians
from unweave.methods.smooth_deep.layer_start import LayerStart, layer_start, norms_and_biases
from unweave.networks.network import Network
from unweave.networks.random import random_network
from unweave.networks.saturation import ERF, TANH

FAMILY = {"tanh": TANH, "erf": ERF}
M = 5


def planted(inner: tuple[int, ...] = (), activation: str = "tanh", seed: int = 1000) -> Network:
    return random_network([M, M, *inner, 2], activation, seed=seed, outer="normal", norms=(0.7, 1.4))


def data(network: Network, count: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    points = 1.3 * np.random.default_rng(1001).standard_normal((count, network.n_inputs))
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
    assert start.misfit < 1e-6  # the root of a difference of squares, each rounded
    assert start.mismatch < 1e-12
    mixing, biases = matched(network, start.mixing, start.biases)
    # Thirty damped Gauss-Newton steps with a ridge of 1 %: a hundredth of the error stays at each.
    assert_allclose(mixing, network.weights[0], rtol=0, atol=1e-6)
    assert_allclose(biases, network.biases[0], rtol=0, atol=1e-6)


def test_a_hidden_layer_that_follows_shows_off_the_diagonal_but_leaves_a_start() -> None:
    network = planted((3,))
    start = layer_start(*data(network, 120), TANH)
    assert start.off_diagonal > 1e-3
    assert start.mismatch >= start.off_diagonal
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
    assert found[2] < 1e-6


def test_the_misfit_is_the_share_of_the_diagonal_that_is_not_explained() -> None:
    network = planted((3,))
    points, gradients, hessians = data(network)
    true_norms = np.linalg.norm(network.weights[0], axis=0)
    directions = network.weights[0] / true_norms
    norms, biases, misfit = norms_and_biases(directions, points, gradients, hessians, TANH)
    inverse = np.linalg.inv(directions)
    diagonal = np.einsum("ja,noab,jb->noj", inverse, hessians, inverse)
    slopes = np.einsum("ja,nao->noj", inverse, gradients)
    bent = norms * -2 * np.tanh(norms * (points @ directions) + biases)
    left = diagonal - bent[:, None, :] * slopes
    assert misfit == pytest.approx(np.linalg.norm(left) / np.linalg.norm(diagonal), rel=1e-9)
    # It says the same of Hessians and gradients in other units.
    assert norms_and_biases(directions, points, 1e-6 * gradients, 1e-6 * hessians, TANH)[2] == pytest.approx(
        misfit, rel=1e-6
    )


def test_nothing_curved_leaves_no_misfit() -> None:
    points = np.random.default_rng(1001).standard_normal((20, 3))
    misfit = norms_and_biases(np.eye(3), points, np.zeros((20, 3, 2)), np.zeros((20, 2, 3, 3)), TANH)[2]
    assert misfit == 0.0


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


def start_of(layers: list[int], activation: str, seed: int) -> LayerStart:
    network = random_network(layers, activation, seed=seed, outer="normal", norms=(0.7, 1.4))
    return layer_start(*data(network), FAMILY[activation])


SEEDS = [1000, 1001, 1002, 1003]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("activation", ["tanh", "erf"])
@pytest.mark.parametrize("layers", [[1, 1, 1], [1, 1, 2], [2, 2, 1], [3, 3, 1], [5, 5, 2]])
def test_a_last_hidden_layer_explains_the_hessians(layers: list[int], activation: str, seed: int) -> None:
    assert 0 <= start_of(layers, activation, seed).mismatch < 1e-12


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("activation", ["tanh", "erf"])
@pytest.mark.parametrize(
    "layers",
    [[1, 1, 1, 1], [1, 1, 3, 2], [2, 2, 1, 1], [5, 5, 1, 2], [5, 5, 3, 2], [5, 5, 5, 1], [5, 5, 5, 5, 2]],
)
def test_a_layer_before_the_last_one_does_not(layers: list[int], activation: str, seed: int) -> None:
    # The route takes 1e-4 and less for a last hidden layer.
    assert start_of(layers, activation, seed).mismatch > 1e-3


@pytest.mark.parametrize("activation", ["tanh", "erf"])
def test_a_single_unit_is_always_diagonal_so_that_only_the_misfit_tells(activation: str) -> None:
    last, inner = start_of([1, 1, 2], activation, 1000), start_of([1, 1, 3, 2], activation, 1000)
    assert last.off_diagonal == inner.off_diagonal == 0.0
    assert last.misfit < 1e-6 < 0.05 < inner.misfit


def test_the_mismatch_is_the_worse_of_the_two() -> None:
    mixing, biases = np.eye(2), np.zeros(2)
    assert LayerStart(mixing, biases, 0.3, 0.1).mismatch == 0.3
    assert LayerStart(mixing, biases, 1e-9, 0.1).mismatch == pytest.approx(0.01)
    assert LayerStart(mixing, biases, -1e-16, 0.0).mismatch == 0.0  # rounding
