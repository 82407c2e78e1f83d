"""What a target that was not recovered looks like is said in plain words, first."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.arrays import Array
from unweave.methods.shared.coarse_answers.evidence import CoarseEvidence
from unweave.probing.look import look
from unweave.recovery.looks_like import looks_like
from unweave.search import Candidate
from unweave.targets.target import as_queries

RNG = np.random.default_rng(1000)
WEIGHTS, BIASES, HEIGHTS = RNG.standard_normal((4, 6)), RNG.standard_normal(6), RNG.standard_normal(6)


def signs(x: Array) -> Array:
    return (x @ WEIGHTS + BIASES > 0) @ HEIGHTS


def deep_in_float32(x: Array) -> Array:
    net = unweave.random_network([5, 6, 4, 1], activation="relu", seed=1000, outer="normal")
    hidden = x.astype(np.float32)
    for weights, biases in zip(net.weights[:-1], net.biases[:-1], strict=True):
        hidden = np.maximum(hidden @ weights.astype(np.float32) + biases.astype(np.float32), 0)
    return hidden @ net.weights[-1].astype(np.float32) + net.biases[-1].astype(np.float32)


def test_steps_across_directions_are_named() -> None:
    result = unweave.recover(signs, input_dim=4, max_queries=3000)
    assert result.status is unweave.Status.FAILED
    assert result.message.startswith("the answers are piecewise constant")


def test_deep_relu_networks_in_float32_are_named() -> None:
    result = unweave.recover(deep_in_float32, input_dim=5, max_queries=4000)
    assert not result.status.is_recovered
    said = "looks like two or more hidden ReLU layers, or a very wide one, in float32: more than two"
    assert result.message.startswith(said)


def test_one_layer_that_is_nearly_explained_is_not_called_two() -> None:
    network = unweave.random_network([4, 3, 1], activation="relu", seed=1000)
    evidence = CoarseEvidence(fit_history=(1e-2, 1e-5))
    findings = look(as_queries(lambda x: network(x).astype(np.float32), 4), rng=np.random.default_rng(1000))
    told = looks_like(findings, Candidate(network, evidence), unweave.Status.APPROXIMATE)
    assert told is not None
    assert told.startswith("looks like one hidden ReLU layer in float32")


def test_noise_is_named() -> None:
    rng = np.random.default_rng(1000)
    result = unweave.recover(lambda x: rng.standard_normal(len(x)), input_dim=4)
    assert result.status is unweave.Status.FAILED
    assert result.message.startswith("noise hides the answers")


@pytest.mark.parametrize("decimals", [None, 1, 2, 4])
def test_rounded_answers_of_a_smooth_network_are_not_piecewise_constant(decimals: int | None) -> None:
    net = unweave.random_network([5, 4, 1], activation="tanh", seed=1000, outer="normal")
    target = as_queries(lambda x: net(x) if decimals is None else net(x).round(decimals), input_dim=5)
    assert not look(target, rng=np.random.default_rng(1000)).flat


def test_a_budget_that_is_too_small_is_said_in_plain_words() -> None:
    net = unweave.random_network([6, 4, 1], activation="tanh", seed=1000, outer="normal")
    result = unweave.recover(net, max_queries=20)
    assert "budget of 20 queries is too small" in result.message
    assert ".;" not in result.message
