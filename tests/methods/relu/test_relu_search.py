"""One hidden layer of kinked units from queries, end to end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import unweave
from searches import looked
from unweave import InvalidInput, Network, Recovery, Status
from unweave.methods.relu.search import ReluOptions
from unweave.methods.shared.kinked import line_search as line_route
from unweave.methods.shared.kinked.lines import random_line
from unweave.numerics.line_kinks import Line
from unweave.numerics.sign_search import SignOptions
from unweave.targets.region import Region


def planted(layers: list[int], activation: str = "relu", seed: int = 1000, **how: Any) -> Network:
    return unweave.random_network(layers, activation, seed=seed, outer="normal", norms=(0.5, 2), **how)


def assert_recovered(network: Network, result: Recovery, tolerance: float = 1e-10) -> None:
    assert result.status is Status.RECOVERED, result.message
    assert result.network is not None
    assert result.network.activations == network.activations
    assert unweave.compare(network, result.network).parameter_error <= tolerance


def unit_lengths(network: Network, seed: int, bias: float) -> Network:
    """The network with unit weights and biases up to ``bias``."""
    weights = network.weights[0] / np.linalg.norm(network.weights[0], axis=0)
    biases = np.random.default_rng(seed).uniform(-bias, bias, len(network.biases[0]))
    return Network([weights, network.weights[1]], [biases, network.biases[1]], network.activations)


@pytest.mark.parametrize(
    "layers",
    [[10, 5, 1], [10, 20, 1], [20, 10, 1], [10, 5, 3], [1, 6, 1], [5, 1, 2], [2, 15, 1], [40, 30, 2]],
)
@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
def test_width_activation_and_every_parameter_are_found(layers: list[int], activation: str) -> None:
    network = planted(layers, activation)
    result = unweave.recover(network)
    assert_recovered(network, result)
    stages = [stage.name for stage in result.stages]
    wanted = ["look", "line", "gradients", "completeness", "refinement", "signs", "polish", "verification"]
    assert stages == wanted
    if min(layers[:2]) >= 5:
        assert result.queries_per_parameter <= 6


@pytest.mark.parametrize("layers", [[10, 100, 1], [4, 64, 1]])
def test_the_signs_of_layers_far_wider_than_their_inputs_are_found(layers: list[int]) -> None:
    network = unweave.random_network(layers, "relu", seed=1000, outer="signed")
    result = unweave.recover(network)
    assert_recovered(network, result)
    assert result.network is not None
    assert result.network.skip is None
    figures = next(stage.figures for stage in result.stages if stage.name == "signs")
    assert figures["method"] == "lattice reduction"
    assert figures["equation_error"] < 1e-13


def test_an_affine_part_of_its_own_is_kept_as_a_skip_and_the_bits_are_counted() -> None:
    network = unweave.random_network([3, 60, 1], "relu", seed=1000, outer="signed")
    skip = np.random.default_rng(1000).standard_normal((3, 1))
    target = Network(network.weights, network.biases, network.activations, skip)
    options = ReluOptions(signs=SignOptions(largest_block=2))
    result = unweave.recover(target, method="relu", options=options)
    assert result.status is Status.RECOVERED_UP_TO_AMBIGUITY
    assert "the 3 equations carry 1" in result.message
    assert "bits for 60 signs" in result.message


@pytest.mark.parametrize("bias", [5.0, 20.0, 100.0])
def test_large_biases(bias: float) -> None:
    network = unit_lengths(planted([20, 20, 1]), 1001, bias)
    result = unweave.recover(network)
    assert_recovered(network, result)
    assert any("1e+05" in note for note in result.notes)


def test_a_unit_that_is_parallel_to_the_first_line_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Its hyperplane is so far away that no row near the origin notices that it is missing.
    network = unit_lengths(planted([20, 20, 1]), 1001, 5.0)
    biases = network.biases[0].copy()
    biases[3] = 60.0
    network = Network(network.weights, [biases, network.biases[1]], network.activations)
    lines = []

    def first_line_parallel(region: Region, *how: Any) -> Line:
        line = random_line(region, *how)
        if not lines:
            weight = network.weights[0][:, 3]
            direction = line.direction - (line.direction @ weight) * weight
            line = replace(line, direction=direction / np.linalg.norm(direction))
        lines.append(line)
        return line

    monkeypatch.setattr(line_route, "random_line", first_line_parallel)
    assert_recovered(network, unweave.recover(network))
    assert len(lines) == 2


def test_inputs_and_outputs_of_any_scale() -> None:
    network = planted([8, 6, 2])
    scale = 10.0 ** np.random.default_rng(1002).uniform(-3, 3, 8)
    stretch = np.array([1e-3, 1e4])
    target = Network(
        [network.weights[0] / scale[:, None], network.weights[1] * stretch],
        [network.biases[0], network.biases[1] * stretch],
        network.activations,
    )
    examples = np.random.default_rng(1003).standard_normal((200, 8)) * scale + scale
    for given in ({}, {"examples": examples}):
        assert_recovered(target, unweave.recover(target, **given))


@pytest.mark.parametrize(
    ("layers", "domain"), [([6, 5, 1], (-1, 1)), ([20, 20, 1], (-1, 1)), ([8, 6, 1], (-3, 3))]
)
def test_nothing_outside_a_box_is_asked(layers: list[int], domain: tuple[float, float]) -> None:
    network = planted(layers)

    def target(x: np.ndarray) -> np.ndarray:
        assert x.min() >= domain[0]
        assert x.max() <= domain[1]
        return network(x)

    result = unweave.recover(target, domain=domain, input_dim=layers[0])
    assert_recovered(network, result)
    assert any("cannot be seen" in note for note in result.notes)


def test_a_width_that_is_too_large_is_corrected() -> None:
    network = planted([8, 6, 1])
    result = unweave.recover(network, hidden=[9], activation="relu")
    assert_recovered(network, result)
    assert any("hidden=[9] was said, 6 units" in note for note in result.notes)


def test_two_sign_patterns_are_an_ambiguity() -> None:
    # Outer weights in the null space of the weights (Claim 4.8): all signs may be reversed.
    rng = np.random.default_rng(1004)
    weights = rng.standard_normal((3, 4))
    outer = np.linalg.svd(weights)[2][-1][:, None]
    network = Network([weights, outer], [rng.standard_normal(4), [0.3]], ["relu", "identity"])
    result = unweave.recover(network)
    assert result.status is Status.RECOVERED_UP_TO_AMBIGUITY
    assert "2 sign patterns" in result.message
    assert any("[0, 1, 2, 3] reversed" in note for note in result.notes)
    assert unweave.compare(network, result.network).is_same  # a skip matrix takes up the difference


def test_a_skip_connection_is_given_as_one() -> None:
    plain = planted([8, 6, 2])
    skip = np.random.default_rng(1005).standard_normal((8, 2))
    network = Network(plain.weights, plain.biases, plain.activations, skip)
    result = unweave.recover(network)
    assert result.status is Status.RECOVERED_UP_TO_AMBIGUITY
    assert "skip matrix" in result.message
    assert unweave.compare(network, result.network).parameter_error <= 1e-10


def test_two_layers_are_not_taken_for_one() -> None:
    result = unweave.recover(planted([8, 6, 5, 1]), hidden=[8], activation="relu")
    assert (result.status, result.network) == (Status.FAILED, None)
    assert "not explained by one hidden layer" in result.message


def test_the_second_line_shows_that_there_are_more_layers() -> None:
    result = unweave.recover(planted([20, 12, 8, 1]), method="relu")
    assert (result.status, result.network) == (Status.FAILED, None)
    assert "there are more layers" in result.message
    stages = [stage.name for stage in result.stages]
    assert (stages.count("line"), stages.count("gradients")) == (2, 1)


def test_something_smooth_is_not_taken_for_kinked() -> None:
    result = unweave.recover(planted([8, 6, 1], "tanh"), hidden=[6], activation="relu")
    assert (result.status, result.network) == (Status.FAILED, None)
    assert "not piecewise linear" in result.message


@pytest.mark.parametrize("spoil", [lambda y: y.astype(np.float32), lambda y: y.round(6)])
def test_imprecise_answers_are_refused(spoil: Any) -> None:
    network = planted([8, 6, 1])
    result = unweave.recover(lambda x: spoil(network(x)), input_dim=8, method="relu")
    assert result.status is Status.FAILED
    assert "it needs answers to 1e-11 of their spread" in result.message


def test_what_was_found_is_kept_when_the_budget_ends() -> None:
    network = planted([8, 6, 1])
    queries = unweave.recover(network).queries
    seen = {}
    for budget in range(60, queries, 40):
        result = unweave.recover(network, max_queries=budget)
        assert result.queries <= budget
        seen[budget] = result
        if result.status is not Status.RECOVERED:
            assert result.status in (Status.FAILED, Status.APPROXIMATE)
            assert "budget" in result.message
    assert seen[60].network is None
    recovered = [budget for budget, result in seen.items() if result.status is Status.RECOVERED]
    assert 200 < min(recovered) < 400  # less than half of what is usual
    assert recovered == [budget for budget in seen if budget >= min(recovered)]
    for budget in recovered:
        assert unweave.compare(network, seen[budget].network).parameter_error <= 1e-10


def test_an_interrupt_hands_back_what_there_is() -> None:
    network = planted([8, 6, 1])
    calls_left = 1000

    def target(x: np.ndarray) -> np.ndarray:
        nonlocal calls_left
        calls_left -= 1
        if calls_left < 0:
            raise KeyboardInterrupt
        return network(x)

    at = looked(target, input_dim=8, seed=1006)
    calls_left = 12
    candidate = at.search("relu").candidate
    assert candidate.interrupted
    assert candidate.problem == "interrupted"


def test_methods_can_be_asked_for_by_name() -> None:
    network = planted([8, 6, 1])
    assert_recovered(network, unweave.recover(network, method="relu"))
    with pytest.raises(InvalidInput, match="relu"):
        unweave.recover(network, method="rays")
