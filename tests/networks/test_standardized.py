"""Standardized samples, and the way back to networks of the samples given."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.networks.activations import get_activation
from unweave.networks.parameters import NetworkParameters
from unweave.networks.standardized import StandardizedSamples


def samples(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Inputs that are correlated and far from zero, answers of very different sizes, one of them constant."""
    x = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 3)) + [5.0, -2.0, 0.5]
    return x, np.column_stack([1e3 * np.sin(x[:, 0]), 1e-3 * x[:, 1] ** 2, np.full(200, 7.0)])


def test_inputs_are_white_and_answers_standard() -> None:
    standard = StandardizedSamples.of(*samples(np.random.default_rng(1000)))
    assert_allclose(np.cov(standard.inputs.T, bias=True), np.eye(3), atol=1e-12)
    assert_allclose(standard.answers.mean(axis=0), 0, atol=1e-12)
    assert_allclose(standard.answers.std(axis=0), [1, 1, 0], atol=1e-12)
    assert standard.spread[2] == 1


@pytest.mark.parametrize("with_skip", [True, False])
def test_the_network_answers_the_samples_as_the_model_answers_the_standard_ones(with_skip: bool) -> None:
    rng = np.random.default_rng(1001)
    x, y = samples(rng)
    standard = StandardizedSamples.of(x, y)
    model = NetworkParameters.shallow(
        activation=get_activation("tanh"),
        weights=rng.standard_normal((3, 4)),
        biases=rng.standard_normal(4),
        outgoing=rng.standard_normal((4, 3)),
        offset=rng.standard_normal(3),
        skip=rng.standard_normal((3, 3)) if with_skip else None,
    )
    answers = model.values(standard.inputs)
    expected = answers * standard.spread + standard.center
    assert_allclose(standard.network(model)(x), expected, atol=1e-10 * np.abs(expected).max())
    off = np.sqrt(np.mean((answers - standard.answers) ** 2, axis=0)).max()
    assert standard.residual(model) == pytest.approx(off)


def test_an_affine_model_comes_back_too() -> None:
    rng = np.random.default_rng(1002)
    x, y = samples(rng)
    standard = StandardizedSamples.of(x, y)
    model = NetworkParameters((get_activation("identity"),), (rng.standard_normal((3, 3)),), (np.ones(3),))
    expected = model.values(standard.inputs) * standard.spread + standard.center
    assert_allclose(standard.network(model)(x), expected, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("with_skip", [True, False])
def test_a_network_becomes_standard_again(with_skip: bool) -> None:
    rng = np.random.default_rng(1003)
    x, y = samples(rng)
    standard = StandardizedSamples.of(x, y)
    model = NetworkParameters.shallow(
        activation=get_activation("tanh"),
        weights=rng.standard_normal((3, 4)),
        biases=rng.standard_normal(4),
        outgoing=rng.standard_normal((4, 3)),
        offset=rng.standard_normal(3),
        skip=rng.standard_normal((3, 3)) if with_skip else None,
    )
    again = standard.model(standard.network(model))
    assert_allclose(again.to_vector(), model.to_vector(), atol=1e-9)


def test_inputs_that_never_vary_are_no_hindrance() -> None:
    rng = np.random.default_rng(1004)
    x = np.column_stack([rng.standard_normal((200, 2)), np.full(200, 3.0)])
    standard = StandardizedSamples.of(x, np.sin(x[:, :1]))
    model = NetworkParameters.shallow(
        get_activation("tanh"),
        rng.standard_normal((3, 2)),
        rng.standard_normal(2),
        rng.standard_normal((2, 1)),
        rng.standard_normal(1),
    )
    answers = standard.model(model.to_network()).values(standard.inputs) * standard.spread + standard.center
    assert_allclose(answers, model.values(x), atol=1e-10)
