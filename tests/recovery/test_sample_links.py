"""Probabilities in samples: the link is found and taken off, and what is behind it recovered."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave import Samples, Status


def behind(
    activation: str, link: str, outputs: int, seed: int, rows: int = 900
) -> tuple[unweave.Network, np.ndarray]:
    net = unweave.random_network([4, 3, outputs], activation=activation, seed=seed, outer="normal")
    net = unweave.Network(net.weights, net.biases, [activation, link])
    return net, np.random.default_rng([seed, 7]).standard_normal((rows, 4))


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
@pytest.mark.parametrize(("link", "outputs"), [("sigmoid", 1), ("softmax", 3)])
def test_the_network_behind_a_link(activation: str, link: str, outputs: int) -> None:
    net, x = behind(activation, link, outputs, 1000)
    result = unweave.recover(Samples(x, net(x)))
    assert result.status is Status.RECOVERED
    assert result.certificate.holds
    assert unweave.compare(net, result.network).parameter_error < 1e-9
    assert result.network.activations[-1] == link


def test_two_columns_are_one_sigmoid() -> None:
    net, x = behind("tanh", "sigmoid", 1, 1001)
    p = net(x)
    result = unweave.recover(Samples(x, np.hstack([1 - p, p])), hidden=[3], activation="tanh")
    assert result.status is Status.RECOVERED
    assert unweave.compare(net, result.network).is_same


def test_answers_between_zero_and_one_need_no_link() -> None:
    net = unweave.random_network([4, 3, 1], activation="tanh", seed=1002, outer="normal")
    x = np.random.default_rng(1002).standard_normal((600, 4))
    scale = 0.4 / np.abs(net(x)).max()
    inside = unweave.Network(
        (net.weights[0], scale * net.weights[1]),
        [net.biases[0], scale * net.biases[1] + 0.5],
        net.activations,
    )
    result = unweave.recover(Samples(x, inside(x)))
    assert result.status is Status.RECOVERED
    assert result.network.activations[-1] == "identity"


def test_saturated_rows_are_heard() -> None:
    net, x = behind("tanh", "sigmoid", 1, 1003)
    sharp = unweave.Network(
        [net.weights[0], 40 * net.weights[1]], [net.biases[0], 40 * net.biases[1]], net.activations
    )
    y = sharp(x)
    told = {"hidden": [3], "activation": "tanh", "output_activation": "sigmoid"}
    result = unweave.recover(Samples(x, y), **told)
    assert result.status is Status.RECOVERED
    assert any("saturated" in note for note in result.notes)
    wrong = y.copy()
    wrong[np.argmax(y)] = 0.0  # a saturated row, which the fit never sees
    result = unweave.recover(Samples(x, wrong), **told)
    assert result.status is Status.APPROXIMATE
    assert not result.certificate.holds


def test_labels_are_no_probabilities() -> None:
    rng = np.random.default_rng(1004)
    x = rng.standard_normal((200, 3))
    with pytest.raises(unweave.InvalidInput, match="not saturated"):
        unweave.recover(Samples(x, (x[:, 0] > 0).astype(float)), output_activation="sigmoid")
    with pytest.raises(unweave.InvalidInput, match="output_activation must be one of"):
        unweave.recover(Samples(x, x[:, 0]), output_activation="relu")
