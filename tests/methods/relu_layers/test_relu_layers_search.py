"""Two hidden layers of kinked units from queries, end to end."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
import pytest

import unweave
from planted_layers import planted, second_preactivations
from searches import looked
from unweave import Network, Recovery, Status
from unweave.methods.relu_layers.complete import CompletionOptions
from unweave.methods.relu_layers.inner_signs import InnerSignOptions
from unweave.methods.relu_layers.options import ReluLayersOptions
from unweave.methods.shared.kinked.check_rows import CheckOptions

recover = partial(unweave.recover, method="relu_layers")
"""Two layers are first tried by the method for them."""

THREE_LAYERS, CHANNEL, OPEN_WEIGHT = 1002, 1000, 1003
"""Seeds of networks of which all, all but a bias, and all but some weights of the last hidden layer show."""


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
    result = recover(network, seed=1000)
    assert_recovered(network, result)
    assert result.queries_per_parameter <= 50


@pytest.mark.parametrize("seed", [1000, 1001])
def test_fifteen_and_fifteen_units_behind_ten_inputs(seed: int) -> None:
    network = planted([10, 15, 15, 1], seed)
    told = recover(network, hidden=[15, 15], activation="relu", seed=seed)
    untold = recover(network, seed=seed)
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
        result = recover(network, seed=seed)
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
        assert_recovered(truth, recover(model, seed=1000))


def test_inputs_and_outputs_of_any_scale() -> None:
    network = planted([8, 6, 5, 2], 1001)
    scale = 10.0 ** np.random.default_rng(1).uniform(-2, 2, 8)
    stretch = np.array([1e-3, 1e4])
    weights = [network.weights[0] / scale[:, None], network.weights[1], network.weights[2] * stretch]
    biases = [*network.biases[:2], network.biases[2] * stretch]
    target = Network(weights, biases, network.activations)
    examples = np.random.default_rng(2).standard_normal((200, 8)) * scale + scale
    assert_recovered(target, recover(target, examples=examples, seed=1001))


def test_nested_options_reach_their_stage() -> None:
    network = planted([8, 6, 5, 1], 1000)
    check = CheckOptions(fewest=500)
    options = ReluLayersOptions(completion=CompletionOptions(check=check))
    usual = recover(network, hidden=[6, 5], activation="relu", seed=1000)
    result = recover(network, hidden=[6, 5], activation="relu", seed=1000, options=options)
    assert_recovered(network, result)
    assert result.queries <= usual.queries - 1000


def test_a_width_that_is_too_large_is_corrected() -> None:
    network = planted([8, 6, 5, 1], 1000)
    result = recover(network, hidden=[7, 6], activation="relu", seed=1000)
    assert_recovered(network, result)
    assert any("hidden=[7, 6] was said, [6, 5]" in note for note in result.notes)


def with_second_unit(network: Network, unit: int, bias: float, sign: float) -> Network:
    """All weights of one second-layer unit made of one sign, and its bias set."""
    weights, biases = [w.copy() for w in network.weights], [b.copy() for b in network.biases]
    weights[1][:, unit] = sign * np.abs(weights[1][:, unit])
    biases[1][unit] = bias
    return Network(weights, biases, network.activations)


def test_a_dead_unit_changes_nothing() -> None:
    network = with_second_unit(planted([8, 6, 5, 1], 1000), 2, -0.1, -1.0)
    result = recover(network, seed=1000)
    assert result.status.is_recovered, result.message
    assert result.network is not None
    x = 2 * np.random.default_rng(0).standard_normal((1000, 8))
    np.testing.assert_allclose(result.network(x), network(x), atol=1e-12)


def test_a_unit_that_is_always_active_is_an_ambiguity() -> None:
    network = with_second_unit(planted([8, 6, 5, 1], 1000), 2, 0.5, 1.0)
    points = 30 * np.random.default_rng(3).standard_normal((10_000, 8))
    assert (second_preactivations(network, points)[:, 2] > 0).all()
    result = recover(network, seed=1000)
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
    result = recover(network, seed=1000)
    assert result.network is not None
    same = result.network.hidden == (15, 15)
    same = same and unweave.compare(network, result.network).parameter_error <= 1e-9
    assert same or result.status is not Status.RECOVERED


def test_three_layers_are_found_with_their_widths() -> None:
    network = planted([8, 8, 8, 6, 1], THREE_LAYERS)
    result = recover(network, seed=1000)
    assert_recovered(network, result)


def with_unit(network: Network, layer: int, bias: float) -> Network:
    """The last unit of a layer made to read with weights of one sign, and its bias set."""
    weights, biases = [w.copy() for w in network.weights], [b.copy() for b in network.biases]
    weights[layer][:, -1] = np.abs(weights[layer][:, -1])
    biases[layer][-1] = bias
    return Network(weights, biases, network.activations)


def test_a_unit_of_a_middle_layer_that_never_switches_is_passed_on() -> None:
    network = with_unit(planted([8, 8, 8, 6, 1], CHANNEL), 1, 0.5)
    result = recover(network, seed=1000)
    assert result.status is Status.RECOVERED_UP_TO_AMBIGUITY, result.message
    assert "active wherever they were asked" in result.message
    assert result.network is not None
    points = 10 * np.random.default_rng(3).standard_normal((2000, 8))
    np.testing.assert_allclose(result.network(points), network(points), atol=1e-9)


@pytest.mark.slow
def test_weights_that_nothing_shows_are_named() -> None:
    network = planted([8, 8, 8, 6, 1], OPEN_WEIGHT)
    result = recover(network, seed=1000)
    assert result.status is Status.RECOVERED_UP_TO_AMBIGUITY, result.message
    assert "not determined by the answers (layer, row, unit: (3, " in result.message
    assert result.network is not None
    points = 3 * np.random.default_rng(3).standard_normal((2000, 8))
    np.testing.assert_allclose(result.network(points), network(points), atol=1e-9)


def test_two_good_layers_before_something_else_are_kept_and_not_called_recovered() -> None:
    two = planted([8, 6, 6, 1], 1000)
    below = Network(two.weights[:2], two.biases[:2], two.activations[:2])

    def target(x: np.ndarray) -> np.ndarray:
        states = below(x)
        return np.asarray((states @ two.weights[2] + np.maximum(states[:, :1], states[:, 1:2]) ** 2) / 10)

    result = recover(target, input_dim=8, method="relu_layers", seed=1000)
    assert result.status in (Status.FAILED, Status.APPROXIMATE), result.message


@pytest.mark.parametrize("limit", ["rows", pytest.param("seconds", marks=pytest.mark.slow)])
def test_layers_found_before_the_end_are_kept(limit: str) -> None:
    network = planted([8, 8, 8, 6, 1], THREE_LAYERS)
    told: dict[str, Any] = {"hidden": [8, 8, 6], "activation": "relu", "seed": 1000}
    if limit == "rows":
        result = recover(network, max_queries=6000, **told)
        assert result.queries <= 6000
        assert "budget" in result.message
    else:
        slow = 0

        def target(x: np.ndarray) -> np.ndarray:
            nonlocal slow
            slow += len(x)
            if slow > 5000:
                time.sleep(8.0)
            return network(x)

        result = recover(target, input_dim=8, deadline=8.0, **told)
    assert result.status in (Status.FAILED, Status.APPROXIMATE)
    layers = result.known_layers
    assert layers is not None
    cosines = layers.weights[0].T @ network.weights[0]
    lengths = np.linalg.norm(layers.weights[0], axis=0)[:, None] * np.linalg.norm(network.weights[0], axis=0)
    np.testing.assert_allclose((cosines / lengths).max(axis=1), 1, atol=1e-8)  # signs included


def test_a_box_is_refused() -> None:
    result = recover(planted([8, 6, 5, 1], 1000), hidden=[6, 5], activation="relu", domain=(-1, 1))
    assert result.status is Status.FAILED
    assert "nothing outside the domain may be asked" in result.message


def test_one_layer_is_not_taken_for_two() -> None:
    network = unweave.random_network([8, 6, 1], "relu", seed=1000, outer="normal")
    result = recover(network, method="relu_layers")
    assert result.status is Status.FAILED
    assert "there is no second hidden layer" in result.message


def test_something_smooth_is_not_taken_for_kinked() -> None:
    network = unweave.random_network([8, 6, 4, 1], "tanh", seed=1000, outer="normal")
    result = recover(network, hidden=[6, 4], activation="relu")
    assert (result.status, result.network) == (Status.FAILED, None)
    assert "not piecewise linear" in result.message


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_what_was_found_is_kept_when_the_budget_ends(share: float) -> None:
    network = planted([8, 6, 5, 1], 1000)
    told: dict[str, Any] = {"hidden": [6, 5], "activation": "relu", "seed": 1000}
    budget = int(share * recover(network, **told).queries)
    result = recover(network, max_queries=budget, **told)
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


def states_behind(network: Network, depth: int, points: np.ndarray) -> np.ndarray:
    """(n, m) of the first layers, of length one per unit."""
    first = Network(network.weights[:depth], network.biases[:depth], network.activations[:depth])
    states = first(points)
    return np.asarray(states / np.maximum(np.linalg.norm(states, axis=0), 1e-300))


@pytest.mark.parametrize("share", [0.4, 0.6, 0.8])
def test_of_three_layers_those_that_are_complete_are_kept_when_the_budget_ends(share: float) -> None:
    network = planted([8, 6, 6, 5, 1], THREE_LAYERS)
    budget = int(share * recover(network, seed=1000).queries)
    result = recover(network, max_queries=budget, seed=1000)
    assert result.queries <= budget
    assert result.status in (Status.FAILED, Status.APPROXIMATE), result.message
    known, points = result.known_layers, np.random.default_rng(1).standard_normal((500, 8))
    depth = 0 if known is None else len(known.weights)
    assert result.network is not None or depth >= 1
    if result.network is None and "in 3 hidden layers" in result.message:
        assert depth == 2
    for layer in range(1, depth + 1):
        assert known is not None
        found, truth = states_behind(known, layer, points), states_behind(network, layer, points)
        assert found.shape == truth.shape
        np.testing.assert_allclose((found.T @ truth).max(axis=1), 1, atol=1e-8)  # signs included


def test_of_three_layers_the_first_is_kept_where_the_second_has_no_signs() -> None:
    network = planted([8, 6, 6, 5, 1], 1003)
    nothing = ReluLayersOptions(signs=InnerSignOptions(most_surfaces=0))  # the first layer's are read off
    result = recover(network, seed=1000, options=nothing)
    assert result.status is Status.FAILED
    known, points = result.known_layers, np.random.default_rng(1).standard_normal((500, 8))
    assert known is not None
    found, truth = states_behind(known, 1, points), states_behind(network, 1, points)
    np.testing.assert_allclose((found.T @ truth).max(axis=1), 1, atol=1e-8)


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
    candidate = at.search("relu_layers").candidate
    assert candidate.interrupted
    assert (candidate.problem, candidate.network) == ("interrupted", None)


@pytest.mark.parametrize(("inputs", "seed"), [(32, 1000), (32, 1001), (512, 1002)])
def test_layers_of_two_units_hide_nothing(inputs: int, seed: int) -> None:
    network = planted([inputs, 2, 2, 1], seed)
    result = recover(network, seed=seed)
    assert result.status.is_recovered, result.message
    assert result.network is not None
    x = 3 * np.random.default_rng(0).standard_normal((2000, inputs))
    np.testing.assert_allclose(result.network(x), network(x), atol=1e-11)
