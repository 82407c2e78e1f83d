"""Targets with several hidden layers that the route cannot have, or only in part: an honest answer."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest

import unweave
from unweave import Interrupted, Network, Recovery, Status, TargetError

GOOD = (Status.RECOVERED, Status.RECOVERED_UP_TO_AMBIGUITY)
HIDDEN = [5, 3]
TOLD: dict[str, Any] = {"hidden": HIDDEN, "activation": "tanh"}


def planted(layers: list[int], activation: str = "tanh", seed: int = 1000, **how: Any) -> Network:
    return unweave.random_network(layers, activation, seed=seed, outer="normal", norms=(0.7, 1.4), **how)


def honest(network: Network, result: Recovery, tolerance: float = 1e-6) -> None:
    """Never RECOVERED with other parameters, never up to ambiguity with another function, never silent."""
    assert result.message
    if result.status is Status.RECOVERED:
        assert result.network is not None
        assert unweave.compare(network, result.network).parameter_error < tolerance
    elif result.status is Status.RECOVERED_UP_TO_AMBIGUITY:
        assert result.network is not None
        x = np.random.default_rng(1002).standard_normal((500, network.n_inputs))
        assert np.abs(result.network(x) - network(x)).max() < tolerance * np.abs(network(x)).max()
    elif result.status is Status.FAILED:
        assert result.network is None


def assert_first_layer(network: Network, known: Network | None, tolerance: float = 1e-6) -> None:
    """The known layer is the true one, in some order and with some signs."""
    assert known is not None
    assert known.hidden == ()
    true = np.r_[network.weights[0], [network.biases[0]]]
    found = np.r_[known.weights[0], [known.biases[0]]]
    assert true.shape == found.shape
    gaps = [np.abs(true[:, :, None] - sign * found[:, None, :]).max(axis=0) for sign in (-1, 1)]
    gap = np.minimum(*gaps)
    assert sorted(gap.argmin(axis=1)) == list(range(true.shape[1]))
    assert gap.min(axis=1).max() < tolerance


# -- depth and widths that are not what was said --------------------------------------------------------


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_shallow_network_declared_deep_is_recovered_as_shallow(outputs: int) -> None:
    network = planted([6, 4, outputs])
    result = unweave.recover(network, hidden=[4, 3])
    assert result.status is Status.RECOVERED, result.message
    assert result.network is not None
    assert result.network.hidden == (4,)
    assert unweave.compare(network, result.network).parameter_error < 1e-9
    assert any("[4, 3] was said, [4] is what the answers show" in note for note in result.notes)


@pytest.mark.parametrize("said", [[5], [8]])
def test_a_deep_network_declared_shallow_is_not_recovered(said: list[int]) -> None:
    result = unweave.recover(planted([6, 5, 3, 1]), hidden=said, activation="tanh")
    assert result.status not in GOOD
    assert "more than one hidden layer" in result.message


@pytest.mark.parametrize("said", [[4, 6], [5, 3, 4], [6, 6, 7]])
def test_a_layer_that_is_said_to_widen_is_named(said: list[int], recorder: Any) -> None:
    target = recorder(planted([6, *said, 1]))
    result = unweave.recover(target, hidden=said, input_dim=6, method="smooth_deep")
    assert (result.status, result.network) == (Status.FAILED, None)
    number = next(i for i in range(1, len(said)) if said[i] > said[i - 1]) + 1
    assert f"layer {number} of hidden={said} is wider" in result.message
    assert len(target.rows) < 1000  # refused before the search


def test_a_first_layer_that_is_said_to_be_wider_than_the_inputs() -> None:
    result = unweave.recover(planted([4, 6, 3, 1]), hidden=[6, 3], method="smooth_deep")
    assert (result.status, result.network) == (Status.FAILED, None)
    assert "layer 1 of hidden=[6, 3] is wider" in result.message


@pytest.mark.parametrize("layers", [[4, 6, 3, 1], [6, 4, 6, 1]])
def test_widening_layers_that_nobody_spoke_of(layers: list[int]) -> None:
    network = planted(layers)
    result = unweave.recover(network, method="smooth_deep")
    honest(network, result)
    assert result.status not in GOOD
    if layers[1] > layers[0]:
        assert "layer 1" in result.message
        assert "wider" in result.message


def test_a_first_layer_narrower_than_said_is_corrected_even_if_said_as_wide_as_the_inputs() -> None:
    network = planted([6, 5, 3, 2])
    result = unweave.recover(network, hidden=[6, 3], activation="tanh")
    assert result.status is Status.RECOVERED, result.message


def test_the_message_tells_why_the_deep_route_failed_too() -> None:
    result = unweave.recover(planted([4, 6, 3, 1]), method="smooth_deep")
    assert result.status is Status.FAILED
    assert "wider" in result.message


def test_layers_of_two_units_inside_a_deep_network() -> None:
    network = planted([5, 2, 2, 1, 1, 3], seed=1141)
    honest(network, unweave.recover(network, hidden=[2, 2, 1, 1], activation="tanh"))


# -- units that hardly act ------------------------------------------------------------------------------


def with_bias(network: Network, layer: int, value: float) -> Network:
    biases = [np.array(part) for part in network.biases]
    biases[layer][0] = value
    return Network(network.weights, biases, network.activations)


@pytest.mark.parametrize(("layer", "value"), [(0, 3.0), (1, -3.0)])
def test_units_pushed_out_by_their_bias_are_recovered(layer: int, value: float) -> None:
    network = with_bias(planted([6, 5, 3, 2]), layer, value)
    result = unweave.recover(network, **TOLD)
    assert result.status is Status.RECOVERED, result.message
    honest(network, result)


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize(("value", "seed"), [(-6.0, 1000), (6.0, 1001)])
def test_saturated_units_are_recovered_or_not_but_never_wrongly(layer: int, value: float, seed: int) -> None:
    network = with_bias(planted([6, 5, 3, 2], seed=seed), layer, value)
    result = unweave.recover(network, **TOLD)
    honest(network, result)
    if result.network is not None:
        x = np.random.default_rng(1003).standard_normal((500, 6))
        assert np.abs(result.network(x) - network(x)).max() < 1e-4 * np.abs(network(x)).max()


def test_a_unit_that_is_constant_to_rounding_cannot_be_seen() -> None:
    network = with_bias(planted([6, 5, 3, 2]), 1, 40.0)
    result = unweave.recover(network, **TOLD)
    assert result.status is Status.RECOVERED, result.message
    assert result.network is not None
    assert result.network.hidden == (5, 2)
    assert any("[5, 3] was said, [5, 2]" in note for note in result.notes)
    x = np.random.default_rng(1003).standard_normal((500, 6))
    np.testing.assert_allclose(result.network(x), network(x), atol=1e-12)


def twins(network: Network, layer: int) -> Network:
    """The network with the first unit of a layer doubled."""
    weights, biases = [np.array(w) for w in network.weights], [np.array(b) for b in network.biases]
    weights[layer] = np.c_[weights[layer], weights[layer][:, 0]]
    biases[layer] = np.r_[biases[layer], biases[layer][0]]
    outgoing = np.linspace(0.7, -0.4, weights[layer + 1].shape[1])
    weights[layer + 1] = np.r_[weights[layer + 1], [outgoing]]
    return Network(weights, biases, network.activations)


@pytest.mark.parametrize("layer", [0, 1])
def test_two_equal_units_come_back_as_one(layer: int) -> None:
    network = twins(planted([7, 5, 3, 2]), layer)
    said = [6, 3] if layer == 0 else [5, 4]
    result = unweave.recover(network, hidden=said, activation="tanh")
    assert result.status is Status.RECOVERED, result.message
    assert result.network is not None
    assert result.network.hidden == (5, 3)
    assert unweave.compare(network, result.network).parameter_error < 1e-9
    assert any(f"{said} was said, [5, 3]" in note and "do the same" in note for note in result.notes)


# -- outputs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, 2.5])
def test_an_output_that_does_not_depend_on_anything(value: float) -> None:
    base = planted([6, 5, 3, 2])
    biases = [*base.biases[:2], np.full(2, value)]
    network = Network([*base.weights[:2], np.zeros((3, 2))], biases, base.activations)
    result = unweave.recover(network, **TOLD)
    assert result.status is Status.RECOVERED
    assert result.network is not None
    assert result.network.hidden == ()
    np.testing.assert_allclose(result.network.biases[0], value)
    assert any("constant" in note for note in result.notes)


@pytest.mark.parametrize("copy", [False, True])
def test_an_output_that_says_nothing_new(copy: bool) -> None:
    base = planted([6, 5, 3, 2])
    outer, offset = np.array(base.weights[2]), np.array(base.biases[2])
    outer[:, 1], offset[1] = (outer[:, 0], offset[0]) if copy else (0.0, 0.3)
    network = Network([*base.weights[:2], outer], [*base.biases[:2], offset], base.activations)
    result = unweave.recover(network, **TOLD)
    honest(network, result)
    assert result.network is not None
    assert result.network.hidden == (5, 3)
    assert result.status is Status.RECOVERED, result.message


@pytest.mark.parametrize("layers", [[12, 10, 2, 10], [8, 6, 2, 10]])
def test_more_outputs_than_units_before_them(layers: list[int]) -> None:
    network = planted(layers)
    result = unweave.recover(network, hidden=layers[1:-1], activation="tanh")
    honest(network, result)
    assert result.status is Status.RECOVERED, result.message


# -- precision and smoothness ---------------------------------------------------------------------------


def in_float32(network: Network) -> Any:
    weights, biases = (
        [np.asarray(part, np.float32) for part in parts] for parts in (network.weights, network.biases)
    )

    def target(x: np.ndarray) -> np.ndarray:
        y = x.astype(np.float32)
        for w, b in itertools.islice(zip(weights, biases, strict=True), 2):
            y = np.tanh(y @ w + b)
        return np.asarray(y @ weights[2] + biases[2])

    return target


def test_answers_in_float32_are_refused_with_what_is_needed() -> None:
    result = unweave.recover(
        in_float32(planted([6, 5, 3, 2])), hidden=HIDDEN, input_dim=6, method="smooth_deep"
    )
    assert (result.status, result.network) == (Status.FAILED, None)
    assert "needs answers to 1e-11" in result.message
    assert "float32" in result.message


def test_answers_with_six_decimals_are_refused_with_what_is_needed() -> None:
    network = planted([6, 5, 3, 2])
    result = unweave.recover(lambda x: np.round(network(x), 6), hidden=HIDDEN, input_dim=6)
    assert (result.status, result.network) == (Status.FAILED, None)
    assert "needs answers to 1e-11" in result.message


def test_kinks_are_seen_and_named() -> None:
    result = unweave.recover(planted([6, 5, 3, 1], "relu"), **TOLD)
    assert (result.status, result.network) == (Status.FAILED, None)
    assert "kinks were seen" in result.message


def test_three_kinked_layers_are_refused_when_told() -> None:
    result = unweave.recover(planted([6, 5, 4, 3, 2], "relu"), hidden=[5, 4, 3], activation="relu")
    assert (result.status, result.network) == (Status.FAILED, None)
    assert "it handles two hidden layers, and 3 were asked for" in result.message


@pytest.mark.parametrize(
    ("activation", "said"), [("softplus", "tanh"), ("gelu", "tanh"), ("sine", "tanh"), ("sine", None)]
)
def test_units_that_do_not_level_off(activation: str, said: str | None) -> None:
    result = unweave.recover(planted([6, 5, 3, 1], activation), hidden=HIDDEN, activation=said)
    assert (result.status, result.network) == (Status.FAILED, None)
    assert result.message


@pytest.mark.parametrize("activation", ["softplus", "gelu"])
def test_units_that_rectify_are_found_where_only_the_widths_are_said(activation: str) -> None:
    network = planted([6, 5, 3, 1], activation)
    result = unweave.recover(network, hidden=HIDDEN)
    assert result.status is Status.RECOVERED, result.message
    assert unweave.compare(network, result.network).parameter_error < 1e-9


def test_the_wrong_saturating_activation() -> None:
    network = planted([6, 5, 3, 2], "erf")
    result = unweave.recover(network, **TOLD)
    assert result.status not in GOOD
    assert result.message


def test_the_wrong_output_activation() -> None:
    network = planted([6, 5, 3, 2], output_activation="sigmoid")
    result = unweave.recover(network, **TOLD, output_activation="identity")
    assert result.status not in GOOD
    assert result.message


# -- bounded inputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("half", [1.0, 3.0])
def test_inside_a_box_nothing_outside_is_asked(half: float, recorder: Any) -> None:
    network = planted([6, 5, 3, 2])
    target = recorder(network)
    result = unweave.recover(target, **TOLD, input_dim=6, domain=(-half, half))
    assert result.status is Status.RECOVERED, result.message
    honest(network, result, 1e-9)
    assert np.abs(target.rows).max() <= half


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # states that are one to rounding divide by zero
def test_a_wide_box_is_recovered_or_not_but_never_wrongly(recorder: Any) -> None:
    network = planted([6, 5, 3, 2])
    target = recorder(network)
    honest(network, unweave.recover(target, **TOLD, input_dim=6, domain=(-10.0, 10.0)))
    assert np.abs(target.rows).max() <= 10.0


def test_layers_that_are_said_to_be_known_are_true() -> None:
    network = planted([6, 5, 3, 2])
    result = unweave.recover(network, **TOLD, domain=(-100.0, 100.0), method="smooth_deep")
    assert result.status is Status.FAILED
    if result.known_layers is not None:
        assert_first_layer(network, result.known_layers)


# -- budgets and interruptions --------------------------------------------------------------------------


@functools.cache
def whole() -> Recovery:
    """The recovery of the network that most of the following cut short."""
    return unweave.recover(planted([6, 5, 3, 2]), **TOLD, method="smooth_deep")


def stage_end(result: Recovery, name: str) -> int:
    """Rows sent when the stage ended."""
    number = [stage.name for stage in result.stages].index(name)
    return sum(stage.queries for stage in result.stages[: number + 1])


def test_a_budget_that_runs_out_in_layer_2(recorder: Any) -> None:
    network = planted([6, 5, 3, 2])
    target, budget = recorder(network), stage_end(whole(), "layer 2") - 1
    result = unweave.recover(target, **TOLD, input_dim=6, max_queries=budget, method="smooth_deep")
    assert result.status is Status.FAILED
    assert result.network is None
    assert_first_layer(network, result.known_layers)
    assert "layer 2" in result.message
    assert f"{budget:,}" in result.message
    assert result.queries == len(target.rows) <= budget
    assert np.isnan(result.error)


def test_a_budget_that_ends_in_any_stage() -> None:
    network = planted([6, 5, 3, 2])
    for name in ("look", "layer 1 inputs", "layer 1 directions", "layer 1 biases", "polish"):
        result = unweave.recover(
            network, **TOLD, max_queries=stage_end(whole(), name) - 1, method="smooth_deep"
        )
        assert result.status is (Status.APPROXIMATE if name == "polish" else Status.FAILED), name
        assert result.queries < stage_end(whole(), name)
        assert "max_queries" in result.message
        assert (result.network is None) == (result.status is Status.FAILED)
    for limit in (whole().queries, whole().queries - 1):  # the verdict asks what the budget allows
        assert (
            unweave.recover(network, **TOLD, max_queries=limit, method="smooth_deep").status
            is Status.RECOVERED
        )


def test_answers_that_were_paid_for_are_not_paid_again() -> None:
    network = planted([6, 5, 3, 2])
    rows: list[int] = []

    def target(x: np.ndarray) -> np.ndarray:
        rows.append(len(x))
        if sum(rows) > whole().queries // 2:
            raise RuntimeError("down")
        return network(x)

    with pytest.raises(TargetError, match="down") as caught:
        unweave.recover(target, **TOLD, input_dim=6, method="smooth_deep")
    assert caught.value.ledger is not None
    assert caught.value.ledger.sent > whole().queries // 4


@pytest.mark.parametrize("deadline", [0.0, 0.02, 0.1])
def test_hardly_any_time(deadline: float) -> None:
    network = planted([6, 5, 3, 2])
    result = unweave.recover(network, **TOLD, deadline=deadline)
    honest(network, result)
    if result.status is not Status.RECOVERED:
        assert "deadline" in result.message
    if result.known_layers is not None:
        assert_first_layer(network, result.known_layers)


def interrupted_after(network: Network, rows: int) -> Interrupted:
    asked: list[int] = []

    def target(x: np.ndarray) -> np.ndarray:
        asked.append(len(x))
        if sum(asked) >= rows:
            raise KeyboardInterrupt
        return network(x)

    with pytest.raises(Interrupted) as caught:
        unweave.recover(target, **TOLD, input_dim=network.n_inputs, method="smooth_deep")
    return caught.value


def test_an_interruption_in_layer_2_hands_over_layer_1() -> None:
    network = planted([6, 5, 3, 2])
    end = stage_end(whole(), "layer 2")
    stopped = interrupted_after(network, end)
    assert stopped.recovery.status is Status.FAILED
    assert stopped.recovery.network is None
    assert_first_layer(network, stopped.recovery.known_layers)
    assert "interrupted" in stopped.recovery.message
    assert stopped.ledger.sent == stopped.recovery.queries


@pytest.mark.parametrize("stage", ["look", "layer 1 directions"])
def test_an_early_interruption(stage: str) -> None:
    network = planted([6, 5, 3, 2])
    stopped = interrupted_after(network, stage_end(whole(), stage))
    assert stopped.recovery.status is Status.FAILED
    assert stopped.recovery.known_layers is None


def test_an_interruption_while_verifying_hands_over_the_network() -> None:
    network = planted([6, 5, 3, 2])
    stopped = interrupted_after(network, whole().queries)
    assert stopped.recovery.status is Status.APPROXIMATE
    assert stopped.recovery.network is not None
    assert unweave.compare(network, stopped.recovery.network).parameter_error < 1e-9
    assert "not verified" in stopped.recovery.message


@pytest.mark.parametrize("stage", ["layer 1 directions", "layer 2", "polish"])
def test_nan_in_the_middle(stage: str) -> None:
    network = planted([6, 5, 3, 2])
    end, asked = stage_end(whole(), stage), []

    def target(x: np.ndarray) -> np.ndarray:
        asked.append(len(x))
        answers = network(x)
        return np.where(sum(asked) >= end, np.nan, answers)

    with pytest.raises(TargetError, match="must be finite") as caught:
        unweave.recover(target, **TOLD, input_dim=6, method="smooth_deep")
    assert caught.value.ledger is not None
    assert caught.value.ledger.sent <= end


def test_noise_that_starts_in_the_middle() -> None:
    """What was looked at was exact, what is answered later is not."""
    network, asked, rng = planted([6, 5, 3, 2]), [], np.random.default_rng(1004)

    def target(x: np.ndarray) -> np.ndarray:
        asked.append(len(x))
        return network(x) + (1e-6 * rng.standard_normal((len(x), 2)) if sum(asked) > 500 else 0.0)

    result = unweave.recover(target, **TOLD, input_dim=6, method="smooth_deep")
    assert result.status is not Status.RECOVERED
    assert result.message
