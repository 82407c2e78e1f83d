"""Two hidden layers of kinked units from queries, end to end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unweave
from planted_layers import planted, second_preactivations
from searches import looked
from unweave import Network, Recovery, Status
from unweave.methods.relu_deep.complete import CompletionOptions
from unweave.methods.relu_deep.search import ReluDeepOptions
from unweave.methods.shared.kinked.check_rows import CheckOptions


def assert_recovered(network: Network, result: Recovery, tolerance: float = 1e-9) -> None:
    assert result.status is Status.RECOVERED, result.message
    assert result.network is not None
    assert result.network.activations == network.activations
    assert unweave.compare(network, result.network).parameter_error <= tolerance


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
@pytest.mark.parametrize(
    ("layers", "seed"), [([8, 6, 5, 1], 1000), ([6, 8, 6, 1], 1003), ([10, 6, 5, 3], 1003)]
)
def test_depth_widths_and_every_parameter_are_found(layers: list[int], seed: int, activation: str) -> None:
    network = planted(layers, seed, activation)
    result = unweave.recover(network, seed=1000)
    assert_recovered(network, result)
    assert result.queries_per_parameter <= 50


@pytest.mark.parametrize("seed", [1000, 1001])
def test_fifteen_and_fifteen_units_behind_ten_inputs(seed: int) -> None:
    network = planted([10, 15, 15, 1], seed)
    told = unweave.recover(network, hidden=[15, 15], activation="relu", seed=seed)
    untold = unweave.recover(network, seed=seed)
    for result in (told, untold):
        assert_recovered(network, result)
        assert result.queries_per_parameter <= 25
    # What the search for one layer asked before it saw more is not asked again.
    assert untold.queries <= 1.3 * told.queries


@pytest.mark.slow
@pytest.mark.parametrize("layers", [[40, 20, 10, 1], [20, 20, 20, 1], [10, 15, 15, 3]])
def test_larger_networks(layers: list[int]) -> None:
    recovered = 0
    for seed in range(1000, 1003):
        network = planted(layers, seed)
        result = unweave.recover(network, seed=seed)
        if result.status is unweave.Status.RECOVERED_UP_TO_AMBIGUITY:
            # A unit that hardly ever acts together with some it reads: said so, and the same function.
            assert "hardly ever" in result.message
            assert result.error < 1e-12
            continue
        assert_recovered(network, result)
        recovered += 1
    assert recovered >= 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # any trained network will do
def test_trained_networks_through_predict() -> None:
    from sklearn.datasets import load_diabetes
    from sklearn.neural_network import MLPRegressor

    x, y = load_diabetes(return_X_y=True)
    x, y = x / x.std(axis=0), (y - y.mean()) / y.std()
    for widths in ((16, 16), (10, 10)):
        model = MLPRegressor(hidden_layer_sizes=widths, activation="relu", max_iter=100, random_state=1000)
        model.fit(x, y)
        truth = Network(model.coefs_, model.intercepts_, ["relu", "relu", "identity"])
        assert_recovered(truth, unweave.recover(model, seed=1000))


def test_inputs_and_outputs_of_any_scale() -> None:
    network = planted([8, 6, 5, 2], 1001)
    scale = 10.0 ** np.random.default_rng(1).uniform(-2, 2, 8)
    stretch = np.array([1e-3, 1e4])
    weights = [network.weights[0] / scale[:, None], network.weights[1], network.weights[2] * stretch]
    biases = [*network.biases[:2], network.biases[2] * stretch]
    target = Network(weights, biases, network.activations)
    examples = np.random.default_rng(2).standard_normal((200, 8)) * scale + scale
    assert_recovered(target, unweave.recover(target, examples=examples, seed=1001))


def test_nested_options_reach_their_stage() -> None:
    network = planted([8, 6, 5, 1], 1000)
    check = CheckOptions(fewest=500)
    options = ReluDeepOptions(completion=CompletionOptions(check=check))
    usual = unweave.recover(network, hidden=[6, 5], activation="relu", seed=1000)
    result = unweave.recover(network, hidden=[6, 5], activation="relu", seed=1000, options=options)
    assert_recovered(network, result)
    assert result.queries <= usual.queries - 1000


def test_a_width_that_is_too_large_is_corrected() -> None:
    network = planted([8, 6, 5, 1], 1000)
    result = unweave.recover(network, hidden=[7, 6], activation="relu", seed=1000)
    assert_recovered(network, result)
    assert any("hidden=[7, 6] was said, [6, 5]" in note for note in result.notes)


def with_second_unit(network: Network, unit: int, bias: float, sign: float) -> Network:
    """All weights of one second-layer unit made of one sign, and its bias set."""
    weights, biases = [w.copy() for w in network.weights], [b.copy() for b in network.biases]
    weights[1][:, unit] = sign * np.abs(weights[1][:, unit])
    biases[1][unit] = bias
    return Network(weights, biases, network.activations)


def test_a_dead_unit_is_not_there() -> None:
    network = with_second_unit(planted([8, 6, 5, 1], 1000), 2, -0.1, -1.0)
    keep = [0, 1, 3, 4]
    without = Network(
        [network.weights[0], network.weights[1][:, keep], network.weights[2][keep]],
        [network.biases[0], network.biases[1][keep], network.biases[2]],
        network.activations,
    )
    result = unweave.recover(network, seed=1000)
    assert_recovered(without, result)
    assert any("dead units, cannot be seen" in note for note in result.notes)


def test_a_unit_that_is_always_active_is_an_ambiguity() -> None:
    network = with_second_unit(planted([8, 6, 5, 1], 1000), 2, 0.5, 1.0)
    points = 30 * np.random.default_rng(3).standard_normal((10_000, 8))
    assert (second_preactivations(network, points)[:, 2] > 0).all()
    result = unweave.recover(network, seed=1000)
    assert result.status is Status.RECOVERED_UP_TO_AMBIGUITY, result.message
    assert "active wherever they were asked" in result.message
    assert result.network is not None
    np.testing.assert_allclose(result.network(points / 30), network(points / 30), atol=1e-10)


def test_a_rare_unit_is_found_by_counterexample_or_owned_up_to() -> None:
    rng = np.random.default_rng(4)
    far = 100 * rng.standard_normal((20_000, 10))
    for seed in range(2000, 2200):
        network = planted([10, 15, 15, 1], seed)
        share = (second_preactivations(network, far) > 0).mean(axis=0)
        if ((share > 3e-4) & (share < 1e-3)).any() and (share > 0).all():
            break
    result = unweave.recover(network, seed=1000)
    assert result.network is not None
    assert result.network.hidden == (15, 15)
    same = unweave.compare(network, result.network).parameter_error <= 1e-9
    assert same or result.status is not Status.RECOVERED


def test_three_layers_are_not_taken_for_two() -> None:
    network = planted([10, 8, 8, 6, 1], 1000)
    result = unweave.recover(network, seed=1000, method="relu_deep")
    assert result.status in (Status.FAILED, Status.APPROXIMATE)
    assert "there are more layers" in result.message
    told = unweave.recover(network, hidden=[8, 8, 6], activation="relu", method="relu_deep")
    assert told.status is Status.FAILED
    assert "it handles two hidden layers, and 3 were asked for" in told.message


def test_a_box_is_refused() -> None:
    result = unweave.recover(planted([8, 6, 5, 1], 1000), domain=(-1, 1), method="relu_deep")
    assert result.status is Status.FAILED
    assert "nothing outside the domain may be asked" in result.message


def test_one_layer_is_not_taken_for_two() -> None:
    network = unweave.random_network([8, 6, 1], "relu", seed=1000, outer="normal")
    result = unweave.recover(network, method="relu_deep")
    assert result.status is Status.FAILED
    assert "there is no second hidden layer" in result.message


def test_something_smooth_is_not_taken_for_kinked() -> None:
    network = unweave.random_network([8, 6, 4, 1], "tanh", seed=1000, outer="normal")
    result = unweave.recover(network, hidden=[6, 4], activation="relu")
    assert (result.status, result.network) == (Status.FAILED, None)
    assert "not piecewise linear" in result.message


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_what_was_found_is_kept_when_the_budget_ends(share: float) -> None:
    network = planted([8, 6, 5, 1], 1000)
    told: dict[str, Any] = {"hidden": [6, 5], "activation": "relu", "seed": 1000}
    budget = int(share * unweave.recover(network, **told).queries)
    result = unweave.recover(network, max_queries=budget, **told)
    assert result.queries <= budget
    assert result.status in (Status.FAILED, Status.APPROXIMATE)
    assert "budget" in result.message
    if share > 0.5:
        layer = result.known_layers
        assert layer is not None
        first = Network(network.weights[:1], network.biases[:1], ["relu"])
        assert layer.hidden == ()
        lengths = np.linalg.norm(layer.weights[0], axis=0)
        cosines = layer.weights[0].T / lengths[:, None] @ first.weights[0]
        cosines /= np.linalg.norm(first.weights[0], axis=0)
        np.testing.assert_allclose(cosines.max(axis=1), 1, atol=1e-9)  # signs included


def test_an_interrupt_hands_back_what_there_is() -> None:
    network = planted([8, 6, 5, 1], 1000)
    calls_left = 10_000

    def target(x: np.ndarray) -> np.ndarray:
        nonlocal calls_left
        calls_left -= 1
        if calls_left < 0:
            raise KeyboardInterrupt
        return network(x)

    at = looked(target, input_dim=8, seed=1000)
    calls_left = 60
    candidate = at.search("relu_deep").candidate
    assert candidate.interrupted
    assert (candidate.problem, candidate.network) == ("interrupted", None)
