"""Affine maps behind a link: logistic, softmax, log-linear models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unweave
from unweave import Network, Status

D = 6
OUTPUTS = {"identity": 2, "sigmoid": 1, "tanh": 2, "softmax": 4, "exp": 1}


def planted(link: str, seed: int = 1000, size: float = 1.0) -> Network:
    """Slopes of both signs and a bias; the last input has no effect."""
    rng = np.random.default_rng(seed)
    weights = size * rng.standard_normal((D, OUTPUTS[link])) / np.sqrt(D)
    weights[-1] = 0.0
    return Network([weights], [0.3 * rng.standard_normal(OUTPUTS[link])], [link])


def recovered(target: Any, **more: Any) -> unweave.Recovery:
    return unweave.recover(target, input_dim=D, seed=1001, **more)


@pytest.mark.parametrize("link", OUTPUTS)
def test_precise_answers_need_a_row_per_input(link: str) -> None:
    net = planted(link)
    result = recovered(net)
    assert result.status is Status.RECOVERED
    assert result.network.activations == (link,)
    assert unweave.compare(net, result.network).parameter_error < 1e-13
    rows = result.queries - result.probing_queries - result.verification_queries
    assert rows <= 3 * (D + 1)
    assert result.probing_queries < 450


@pytest.mark.parametrize("link", OUTPUTS)
def test_rounded_answers_are_bisected(link: str) -> None:
    net = planted(link)
    result = recovered(lambda x: np.round(net(x), 3))
    assert result.status is Status.RECOVERED
    assert unweave.compare(net, result.network).parameter_error < 1e-11


@pytest.mark.parametrize("link", OUTPUTS)
def test_noise_leaves_error_bars_that_are_right(link: str) -> None:
    net, rng = planted(link), np.random.default_rng(1002)
    result = recovered(lambda x: net(x) + 1e-3 * rng.standard_normal((len(x), OUTPUTS[link])))
    assert result.status is Status.RECOVERED
    bars = result.standard_errors
    assert bars is not None

    def numbers(network: Network) -> np.ndarray:
        stacked = np.vstack([network.weights[0], network.biases[0]])
        return stacked[:, :-1] - stacked[:, -1:] if link == "softmax" else stacked

    bars = np.vstack([bars.weights[0], bars.biases[0]])[:, : numbers(net).shape[1]]
    chi_square = np.mean(((numbers(net) - numbers(result.network)) / bars) ** 2)
    assert 0.1 < chi_square < 3.5  # of 7 to 28 parameters


def test_float32_answers_are_averaged() -> None:
    net = planted("softmax")
    weights, bias = net.weights[0].astype(np.float32), net.biases[0].astype(np.float32)

    def answer(x: np.ndarray) -> np.ndarray:
        z = np.exp(x.astype(np.float32) @ weights + bias)
        return np.asarray(z / z.sum(axis=1, keepdims=True))

    result = recovered(answer)
    assert result.status is Status.RECOVERED
    truth = Network([weights], [bias], ["softmax"])
    assert unweave.compare(truth, result.network).parameter_error < 1e-6


@pytest.mark.parametrize("link", ["sigmoid", "tanh", "softmax"])
@pytest.mark.parametrize("decimals", [None, 3])
def test_a_link_that_is_saturated_at_ordinary_inputs_is_met_where_it_is_not(
    link: str, decimals: int | None
) -> None:
    net = planted(link)
    weights = net.weights[0] * np.array([3e3, 30.0, 3e2, 1.0, 0.1, 1.0])[:, None]
    net = Network([weights], [net.biases[0] - 40 * np.arange(OUTPUTS[link])], [link])
    result = recovered(net if decimals is None else lambda x: np.round(net(x), decimals))
    assert result.status is Status.RECOVERED
    assert unweave.compare(net, result.network).parameter_error < 1e-10
    assert result.queries < 4000


def test_a_temperature_is_again_a_softmax() -> None:
    net = planted("softmax", size=0.1)
    assert recovered(net).network.hidden == ()


def clipped(x: np.ndarray) -> np.ndarray:
    return np.clip(planted("sigmoid", size=3.0)(x), 0.1, 0.9)


def probit(x: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return np.asarray(ndtr(x @ planted("sigmoid").weights[0]))


def nearly_linear(x: np.ndarray) -> np.ndarray:
    """Units that leave their linear range at inputs of 100, where the link is saturated."""
    rng = np.random.default_rng(1003)
    z = np.tanh(1e-2 * x @ rng.standard_normal((D, 3))) @ [1e2, 2e2, -1e2]
    return np.asarray(1 / (1 + np.exp(-z)))


def softened(x: np.ndarray) -> np.ndarray:
    """A logistic model that never says less than 1 %."""
    return 0.01 + 0.98 * planted("sigmoid")(x)


@pytest.mark.parametrize("target", [clipped, probit, nearly_linear, softened])
@pytest.mark.parametrize("decimals", [None, 3])
def test_what_is_no_such_model_is_not_called_one(target: Any, decimals: int | None) -> None:
    asked = target if decimals is None else lambda x: np.round(target(x), decimals)
    result = recovered(asked, max_queries=8000, method="affine")
    assert result.status is not Status.RECOVERED


def test_exp_is_for_the_last_layer() -> None:
    with pytest.raises(unweave.InvalidInput, match="output activation only"):
        Network([np.ones((1, 1)), np.ones((1, 1))], [[0.0], [0.0]], ["exp", "identity"])
