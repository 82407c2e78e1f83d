"""Logistic models of one class against the rest."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import unweave
from unweave import Network, Status

INPUTS, CLASSES = 5, 4


def models(seed: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((INPUTS, CLASSES)) / 2, rng.standard_normal(CLASSES) - 1


def normalised(x: np.ndarray) -> np.ndarray:
    weights, bias = models()
    scores = expit(x @ weights + bias)
    return np.asarray(scores / scores.sum(axis=1, keepdims=True))


def test_normalised_sigmoids_are_softplus_units_behind_a_softmax() -> None:
    weights, bias = models()
    truth = Network([-weights, -np.eye(CLASSES)], [-bias, np.zeros(CLASSES)], ["softplus", "softmax"])
    x = np.random.default_rng(1001).standard_normal((50, INPUTS))
    np.testing.assert_allclose(truth(x), normalised(x), rtol=1e-13)
    result = unweave.recover(normalised, input_dim=INPUTS, seed=1002)
    assert result.status is Status.RECOVERED
    assert unweave.compare(truth, result.network).parameter_error < 1e-12
    assert "4 logistic models" in " ".join(result.notes)
    rows = result.queries - result.probing_queries - result.verification_queries
    assert rows <= 3 * (INPUTS + 1) * CLASSES


@pytest.mark.parametrize("seed", [1003, 1004])
def test_other_units_behind_a_softmax_are_none(seed: int) -> None:
    net = unweave.random_network([INPUTS, 3, CLASSES], activation="tanh", seed=seed, outer="normal")
    soft = Network(net.weights, net.biases, ["tanh", "softmax"])
    result = unweave.recover(soft, method="one_versus_rest", seed=seed)
    assert result.status is not Status.RECOVERED
