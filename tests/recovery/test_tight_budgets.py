from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import unweave
from unweave import Network, Status
from unweave.recovery.thrift import is_tight, look_size
from unweave.search import Request

OUTER = {"relu": "signed", "tanh": "normal", "softplus": "normal"}


def planted(layers: list[int], activation: str, seed: int = 1000) -> Network:
    return unweave.random_network(layers, activation, seed=seed, outer=OUTER[activation])


def assert_right_or_not_recovered(network: Network, result: unweave.Recovery) -> None:
    if result.status is Status.RECOVERED:
        assert unweave.compare(network, result.network).parameter_error <= 1e-8


@pytest.mark.parametrize("width", [5, 8])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_what_is_told_is_found_in_300_rows_and_what_is_not_in_600(activation: str, width: int) -> None:
    network = planted([10, width, 1], activation)
    for limit, told in ((300, {"hidden": [width], "activation": activation}), (600, {})):
        result = unweave.recover(network, max_queries=limit, **told)
        assert result.status is Status.RECOVERED
        assert result.queries <= limit
        assert result.queries <= (6 if told else 10) * network.n_parameters
        assert unweave.compare(network, result.network).parameter_error <= 1e-9
        assert result.certificate.holds


def test_softplus_units_point_the_right_way() -> None:
    network = planted([10, 6, 2], "softplus")
    result = unweave.recover(network, [6], "softplus", max_queries=400)
    assert result.status is Status.RECOVERED
    assert unweave.compare(network, result.network).parameter_error <= 1e-9


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("told", [3, 7])
def test_a_wrong_width_leads_to_no_wrong_network(activation: str, told: int) -> None:
    for seed in range(1000, 1004):
        network = planted([10, 5, 1], activation, seed)
        result = unweave.recover(network, [told], activation, max_queries=300)
        assert_right_or_not_recovered(network, result)


def test_more_units_than_a_budget_can_carry_are_told_of() -> None:
    network = planted([6, 11, 1], "tanh")
    result = unweave.recover(network, max_queries=400)
    assert result.status not in (Status.RECOVERED, Status.RECOVERED_UP_TO_AMBIGUITY)
    assert "at least 6 units were seen" in result.message
    wide = planted([10, 40, 1], "relu")
    result = unweave.recover(wide, max_queries=500)
    assert result.status not in (Status.RECOVERED, Status.RECOVERED_UP_TO_AMBIGUITY)
    assert "there may be more" in result.message


def _rounded(y: np.ndarray) -> np.ndarray:
    return y.round(4)


def _single(y: np.ndarray) -> np.ndarray:
    return y.astype(np.float32)


def _computed_in_single(y: np.ndarray) -> np.ndarray:
    return y.astype(np.float32) / 3.0 * np.float64(np.pi)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("spoil", [_rounded, _single, _computed_in_single])
def test_coarse_answers_are_not_taken_for_exact_ones(activation: str, spoil: Any) -> None:
    network = planted([10, 5, 1], activation)
    for known in ({}, {"hidden": [5], "activation": activation}):
        result = unweave.recover(lambda x: spoil(network(x)), input_dim=10, max_queries=300, **known)
        assert result.queries <= 300
        assert result.status is not Status.RECOVERED


@pytest.mark.parametrize("seed", range(1000, 1004))
def test_two_layers_are_not_taken_for_one(seed: int) -> None:
    network = planted([8, 5, 3, 1], "tanh", seed)
    for known in ({}, {"hidden": [5], "activation": "tanh"}):
        result = unweave.recover(network, max_queries=500, **known)
        assert result.status not in (Status.RECOVERED, Status.RECOVERED_UP_TO_AMBIGUITY)


def test_a_target_that_changes_its_mind_is_met_by_rows_asked_again() -> None:
    network, sent = planted([10, 5, 1], "tanh"), 0

    def target(x: np.ndarray) -> np.ndarray:
        nonlocal sent
        sent += len(x)
        return network(x) if sent < 150 else 1.001 * network(x)

    result = unweave.recover(target, [5], "tanh", input_dim=10, max_queries=300)
    assert result.status is not Status.RECOVERED


def test_a_budget_is_tight_below_the_usual_cost_only() -> None:
    assert is_tight(300, usual=870, look=360)
    assert not is_tight(None, usual=870, look=360)
    assert not is_tight(900, usual=870, look=360)
    assert not is_tight(50_000, usual=100_000, look=360)  # the look is the least of it
    assert look_size(Request()).lines > look_size(Request(tight=True)).lines
    told = Request(hidden=(5,), activation="tanh", tight=True)
    assert look_size(told).lines < look_size(Request(tight=True)).lines


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_nearly_all_networks_fit_into_small_budgets(activation: str) -> None:
    recovered = 0
    for seed in range(1000, 1030):
        network = planted([10, 8, 1], activation, seed)
        for limit, told in ((300, {"hidden": [8], "activation": activation}), (600, {})):
            result = unweave.recover(network, max_queries=limit, **told)
            assert_right_or_not_recovered(network, result)
            recovered += result.status is Status.RECOVERED
    assert recovered >= 57
