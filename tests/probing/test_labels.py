"""Labels are told from numbers."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.arrays import Array
from unweave.probing.look import look
from unweave.targets.target import as_queries


def planted(outputs: int, scale: float = 1.0, seed: int = 1000) -> unweave.Network:
    network = unweave.random_network([6, 5, outputs], seed=seed, outer="normal")
    weights, biases = list(network.weights), list(network.biases)
    weights[1], biases[1] = scale * weights[1], scale * biases[1]
    return unweave.Network(weights, biases, network.activations)


def labels_of(function) -> int:
    return look(as_queries(function, input_dim=6), rng=np.random.default_rng(1001)).labels


def argmax(x: Array) -> Array:
    return planted(10)(x).argmax(axis=1)


def one_hot(x: Array) -> Array:
    return np.eye(4)[planted(4)(x).argmax(axis=1)]


@pytest.mark.parametrize(
    ("function", "fewest"),
    [
        (lambda x: np.sign(planted(1)(x)), 2),
        (lambda x: planted(1)(x) > 0, 2),
        (lambda x: np.where(planted(1)(x) > 0, 1 / 3, 2 / 3), 2),
        (lambda x: planted(3)(x).argmax(axis=1), 3),
        (argmax, 5),
        (one_hot, 3),
    ],
)
def test_labels_are_counted(function, fewest: int) -> None:
    assert fewest <= labels_of(function) <= 10


@pytest.mark.parametrize(
    "function",
    [
        planted(1),
        lambda x: np.round(planted(1)(x), 2),
        lambda x: np.round(planted(1, 5.0)(x)),  # some ten whole numbers, but one after the other
        lambda x: np.round(planted(1, 100.0)(x)),
        lambda x: np.maximum(planted(1)(x), 0),
        lambda x: np.ones(len(x)),
    ],
)
def test_numbers_are_no_labels(function) -> None:
    assert labels_of(function) == 0


def test_noise_is_no_label() -> None:
    rng = np.random.default_rng(1002)
    assert labels_of(lambda x: rng.choice([-1.0, 1.0], len(x))) == 0


@pytest.mark.parametrize("function", [lambda x: np.sign(planted(1)(x)), argmax, one_hot])
def test_the_user_is_told_what_is_out_of_reach_and_what_to_do(function) -> None:
    result = unweave.recover(function, input_dim=6)
    assert (result.status, result.network) == (unweave.Status.FAILED, None)
    assert "labels" in result.message
    assert "decision boundary" in result.message
    assert "predict_proba" in result.message
    assert result.queries < 1000
