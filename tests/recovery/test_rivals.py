"""Behind coarse answers a kind of unit is found only if the others fail."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.errors import OutOfTime
from unweave.networks.activations import get_activation
from unweave.numerics.clock import time_limit
from unweave.recovery.rivals import are_parallel, rival_of, smaller_rival

ROWS = np.random.default_rng(1000).standard_normal((1500, 3))


def planted(activation: str) -> unweave.Network:
    return unweave.random_network([3, 2, 1], activation, seed=1001, outer="signed", norms=(1, 2))


def coarse(network: unweave.Network, sigma: float) -> np.ndarray:
    return network(ROWS) + sigma * np.random.default_rng(1002).standard_normal((len(ROWS), 1))


@pytest.mark.parametrize("activation", ["tanh", "gelu", "softplus", "relu", "sine"])
def test_rivals_of_the_truth_fail_where_the_noise_is_small(activation: str) -> None:
    network = planted(activation)
    assert rival_of(network, ROWS, coarse(network, 1e-4), np.array([1e-4])) is None


@pytest.mark.parametrize("activation", ["swish", "tanh"])
def test_noise_hides_the_kind(activation: str) -> None:
    network = planted(activation)
    assert rival_of(network, ROWS, coarse(network, 0.3), np.array([0.3])) is not None


def test_mish_behind_noise_is_not_taken_for_swish() -> None:
    mish = get_activation("mish")
    network, noise = planted("swish"), np.random.default_rng(1003)

    def target(x: np.ndarray) -> np.ndarray:
        hidden = mish(x @ network.weights[0] + network.biases[0])
        return hidden @ network.weights[1] + network.biases[1] + 1e-2 * noise.standard_normal((len(x), 1))

    result = unweave.recover(target, input_dim=3, deadline=20)
    assert not result.status.is_recovered, (result, result.message)


def test_fewer_units_of_another_kind() -> None:
    x = np.random.default_rng(1004).uniform(-3, 3, (300, 1))
    imitator = unweave.random_network([1, 6, 1], "relu", seed=1005)
    found = smaller_rival(imitator, x, np.sin(x), 1e-8, np.random.default_rng(0))
    assert found == "fewer sine"


def test_fewer_units_of_the_same_kind() -> None:
    network = planted("tanh")
    wide = unweave.random_network([3, 4, 1], seed=1008)
    assert (
        smaller_rival(wide, ROWS[:300], network(ROWS[:300]), 1e-8, np.random.default_rng(0)) == "fewer tanh"
    )
    assert smaller_rival(network, ROWS[:300], network(ROWS[:300]), 1e-8, np.random.default_rng(0)) is None


def test_rivals_without_time_have_not_failed() -> None:
    network = planted("tanh")
    with time_limit(lambda: 0.0), pytest.raises(OutOfTime):
        rival_of(network, ROWS, coarse(network, 1e-4), np.array([1e-4]))
    x = ROWS[:, :1]
    with time_limit(lambda: 0.0), pytest.raises(OutOfTime):
        smaller_rival(unweave.random_network([1, 2, 1], seed=1), x, np.sin(x), 1e-8, np.random.default_rng(0))


def test_parallel_units_could_imitate_anything() -> None:
    assert not are_parallel(planted("tanh"))
    assert not are_parallel(unweave.random_network([3, 1, 1], seed=1006))
    weights = np.array([[1.0, -2.0], [0.5, -1.001], [0.2, -0.4]])
    assert are_parallel(unweave.Network([weights, np.ones((2, 1))], [[0, 1], [0]], ["tanh", "identity"]))


def of_directions(weights: list[list[float]], outgoing: list[float], kind: str = "erf") -> unweave.Network:
    columns = np.array(weights).T
    layers = [columns, np.array(outgoing)[:, None]]
    return unweave.Network(layers, [np.zeros(len(outgoing)), np.zeros(1)], [kind, "identity"])


def test_pairs_of_parallel_units_could_imitate_a_sum() -> None:
    pairs = [[1.4, 0.0], [-1.2, 0.0], [0.2, 0.7], [0.25, 0.9]]
    assert are_parallel(of_directions(pairs, [1.0, 2.0, 1.0, 3.0]))
    nearly = [[1.4, 0.0], [-1.2, 0.1], [0.2, 0.7]]
    assert not are_parallel(of_directions(nearly, [1.0, 2.0, 1.0]))
    fourth = [*pairs, [0.02, 0.01]]  # nearly straight: it makes up for an affine part
    assert are_parallel(of_directions(fourth, [1.0, 2.0, 1.0, 3.0, 1.0]))


def test_parallel_units_that_cancel_could_imitate_their_derivative() -> None:
    three = [[1.4, 0.0], [-1.2, 0.08], [0.2, 0.7]]
    assert are_parallel(of_directions(three, [14.0, 14.1, 1.0]))  # odd: turned round, they cancel
    assert not are_parallel(of_directions(three, [14.0, -14.1, 1.0]))
    assert not are_parallel(of_directions(three, [14.0, 14.1, 1.0], "softplus"))
    three[1] = [1.2, -0.08]
    assert are_parallel(of_directions(three, [14.0, -14.1, 1.0], "softplus"))


@pytest.mark.parametrize("rounded", [True, False])
def test_packets_are_not_taken_for_differences_of_units(rounded: bool) -> None:
    """The sum of z exp(-z^2 / 2) in two directions: the limit of differences of erf units."""
    rng = np.random.default_rng([18, 18] if rounded else [38, 18])
    inputs = int(rng.integers(1, 6))
    x = rng.standard_normal((300 if rounded else 100, inputs))
    drawn = rng.standard_normal((2, inputs))
    drawn = 1.3 * drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    y = sum((x @ u) * np.exp(-((x @ u) ** 2) / 2) for u in drawn)
    y = np.round((y - y.mean()) / y.std(), 2)
    if not rounded:
        x, y = np.repeat(x, 3, axis=0), np.repeat(y, 3)
        y = y + 0.01 * rng.standard_normal(len(y))
    result = unweave.recover(unweave.Samples(x, y))
    assert not result.status.is_recovered


def test_noisy_samples_of_a_function_of_one_number() -> None:
    rng = np.random.default_rng(1007)
    x = rng.uniform(-3, 3, (500, 2))
    x = np.vstack([x, x[::2]])  # repeats tell the noise
    u = x @ [[0.6], [-0.4]]
    y = np.sin(u) * np.exp(u / 4) + 0.02 * rng.standard_normal(u.shape)
    assert not unweave.recover(unweave.Samples(x, y)).status.is_recovered
