"""How far weights and answers are off."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.audits import Level, weight_errors
from unweave.audits.attack import knowledge, share_alike


def rebuilt(network, first, bias, second):
    return unweave.Network([first, second], [bias, network.biases[1]], network.activations)


def test_symmetry_is_no_error(planted):
    order, signs = [2, 0, 1], np.array([-1.0, 1.0, -1.0])
    first, bias, second = planted.weights[0][:, order], planted.biases[0][order], planted.weights[1][order]
    same = rebuilt(planted, first * signs, bias * signs, second * signs[:, None])
    np.testing.assert_array_equal(weight_errors(planted, same), 0)


def test_one_neuron_that_moved(planted):
    first, bias = planted.weights[0].copy(), planted.biases[0].copy()
    size = np.sqrt((first[:, 1] ** 2).sum() + bias[1] ** 2)
    first[:, 1] *= 1.01
    bias[1] *= 1.01
    errors = weight_errors(planted, rebuilt(planted, first, bias, planted.weights[1]))
    np.testing.assert_allclose(np.sort(errors), [0, 0, 0.01], atol=1e-12 * size)


@pytest.mark.parametrize("kept", [[0, 2], [0, 1, 2, 2]])
def test_missing_and_surplus_neurons(planted, kept):
    first, bias, second = planted.weights[0][:, kept], planted.biases[0][kept], planted.weights[1][kept]
    if len(kept) > 3:
        first[:, 3] += 5.0  # one that is not there
    errors = weight_errors(planted, rebuilt(planted, first, bias, second))
    assert sorted(np.round(errors, 12)) == ([0, 0, 1] if len(kept) < 3 else [0, 0, 0])


def test_nothing_known_counts_as_one(planted):
    far = rebuilt(planted, planted.weights[0] * 300, planted.biases[0], planted.weights[1])
    assert weight_errors(planted, far).max() == 1
    other = unweave.random_network([5, 3, 1], seed=1000)
    np.testing.assert_array_equal(weight_errors(planted, other), 1)


def test_half_turns_of_sine():
    net = unweave.random_network([3, 2, 1], activation="sine", seed=1000, outer="normal")
    turned = rebuilt(net, net.weights[0], net.biases[0] + [np.pi, 0], net.weights[1] * [[-1], [1]])
    np.testing.assert_allclose(net(np.ones((1, 3))), turned(np.ones((1, 3))), atol=1e-14)
    assert weight_errors(net, turned).max() < 1e-14


def test_share_alike_by_level():
    truth = np.array([[0.1234], [0.5678], [0.9]])
    got = truth + np.array([[1e-5], [1e-5], [0.02]])
    assert share_alike(truth, got, Level(decimals=3)) == pytest.approx(2 / 3)
    assert share_alike(truth, got, Level(noise=0.03)) == 1
    assert share_alike(truth, got, Level(noise=1e-6)) == 0
    assert share_alike(truth, got, Level()) == 0


def test_knowledge_without_network(planted):
    rows = np.zeros((2, 4))
    assert np.isnan(knowledge(planted, None, rows, Level()).median_weight_error)
    all_of_it = knowledge(planted, planted, rows, Level(decimals=3))
    assert (all_of_it.parameter_error, all_of_it.fresh_error, all_of_it.share_alike) == (0, 0, 1)
