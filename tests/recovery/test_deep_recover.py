"""Networks with several hidden layers, from answers alone: every class that the route promises."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unweave
from unweave import Network, Recovery, Status

ERROR = 1e-9
"""Largest parameter error: rounding, 1e-15, times the condition of the final fit, up to 1e5 in these."""


def planted(
    layers: list[int], activation: str = "tanh", output: str = "identity", seed: int = 1000
) -> Network:
    return unweave.random_network(
        layers, activation, seed=seed, outer="normal", norms=(0.7, 1.4), output_activation=output
    )


def assert_recovered(network: Network, result: Recovery) -> Network:
    assert result.status is Status.RECOVERED, result.message
    assert result.network is not None
    assert result.network.hidden == network.hidden
    assert unweave.compare(network, result.network).parameter_error < ERROR
    return result.network


# -- what there is to recover --------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["identity", "tanh", "sigmoid"])
@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "erf"])
def test_activations_of_hidden_layers_and_outputs(activation: str, output: str) -> None:
    network = planted([6, 5, 3, 2], activation, output, seed=1001)
    found = assert_recovered(
        network,
        unweave.recover(network, hidden=[5, 3], activation=activation, output_activation=output),
    )
    assert found.activations == network.activations


@pytest.mark.parametrize("output", ["tanh", "sigmoid"])
def test_the_output_activation_is_found_out(output: str) -> None:
    network = planted([6, 5, 3, 2], "tanh", output, seed=1001)
    found = assert_recovered(network, unweave.recover(network, hidden=[5, 3]))
    assert found.activations == network.activations


@pytest.mark.parametrize("activation", ["sigmoid", "erf"])
def test_the_hidden_activation_is_found_out(activation: str) -> None:
    network = planted([6, 5, 3, 2], activation)
    found = assert_recovered(network, unweave.recover(network, hidden=[5, 3]))
    assert found.activations[0] == ("tanh" if activation == "sigmoid" else activation)


SHAPES = {
    "many inputs": [15, 5, 3, 2],
    "one output": [7, 5, 3, 1],
    "as wide as the inputs": [6, 6, 4, 2],
    "equal widths": [8, 8, 3],
    "equal hidden widths": [5, 5, 5, 2],
    "one unit at the end": [6, 4, 1, 1],
    "one unit everywhere": [3, 1, 1, 1],
    "three hidden layers": [6, 5, 4, 3, 2],
    "four hidden layers": [7, 6, 5, 4, 3, 2],
}


@pytest.mark.parametrize("name", list(SHAPES))
def test_shapes(name: str) -> None:
    layers = SHAPES[name]
    network = planted(layers, seed=1001)
    assert_recovered(network, unweave.recover(network, hidden=layers[1:-1], activation="tanh"))


@pytest.mark.parametrize(
    ("layers", "seed"),
    [
        ([9, 5, 5, 2], 1000),
        ([9, 5, 5, 2], 1001),
    ],
)
def test_a_good_network_has_a_certificate_that_holds(layers: list[int], seed: int) -> None:
    network = planted(layers, seed=seed)
    result = unweave.recover(network, hidden=layers[1:-1], activation="tanh")
    assert_recovered(network, result)
    assert result.certificate.holds, str(result.certificate)


def not_yet(layers: list[int], seed: int, reason: str) -> Any:
    return pytest.param(layers, seed, marks=pytest.mark.xfail(strict=True, reason=reason))


@pytest.mark.parametrize(
    ("layers", "seed"),
    [
        ([6, 5, 3, 2], 1000),
        ([8, 5, 3, 1], 1000),
        ([6, 6, 4, 2], 1000),
        ([8, 8, 8, 3], 1000),
        ([8, 8, 8, 3], 1002),
        not_yet([5, 5, 5, 1], 1000, "the last layer is as wide as the one before, and has to be told"),
    ],
)
def test_widths_and_depth_are_found_out(layers: list[int], seed: int) -> None:
    network = planted(layers, seed=seed)
    result = unweave.recover(network, method="smooth_deep")
    assert_recovered(network, result)
    assert result.notes == ()


@pytest.mark.parametrize(
    "said",
    [
        [5, 2],
        [5, 4],
        [4, 3],
        [5, 3, 2],
    ],
)
def test_widths_that_were_said_wrongly_are_corrected(said: list[int]) -> None:
    network = planted([6, 5, 3, 2])
    result = unweave.recover(network, hidden=said, activation="tanh")
    assert_recovered(network, result)
    assert any(str(said) in note and "[5, 3]" in note for note in result.notes)


def test_one_unit_behind_an_output_that_is_found_out() -> None:
    network = planted([6, 4, 1, 2], output="tanh")
    assert_recovered(network, unweave.recover(network, hidden=[4, 1], activation="tanh"))


@pytest.mark.xfail(
    strict=True, reason="a chain of single units is a function of one number: nothing tells them apart"
)
@pytest.mark.parametrize(("layers", "output"), [([6, 3, 1, 1, 2], "identity")])
def test_one_unit_says_nothing_about_what_follows(layers: list[int], output: str) -> None:
    network = planted(layers, output=output)
    assert_recovered(network, unweave.recover(network, hidden=layers[1:-1], activation="tanh"))


def test_a_network_of_widths_as_in_practice() -> None:
    network = planted([20, 12, 6, 1])
    assert_recovered(network, unweave.recover(network, hidden=[12, 6], activation="tanh"))


# -- what must not matter ------------------------------------------------------------------------------


def recovered(target: Any, **how: Any) -> Network:
    result = unweave.recover(target, hidden=[5, 3], activation="tanh", **how)
    assert result.status is Status.RECOVERED, result.message
    assert result.network is not None
    return result.network


def with_first(network: Network, weights: np.ndarray, biases: np.ndarray | None = None) -> Network:
    return Network(
        [weights, *network.weights[1:]],
        [network.biases[0] if biases is None else biases, *network.biases[1:]],
        network.activations,
    )


def test_the_order_of_the_inputs() -> None:
    network = planted([6, 5, 3, 2])
    order = np.random.default_rng(1001).permutation(6)
    found = recovered(with_first(network, network.weights[0][order]))
    back = np.empty_like(found.weights[0])
    back[order] = found.weights[0]
    assert unweave.compare(network, with_first(found, back)).parameter_error < ERROR


def test_a_rotation_of_the_inputs() -> None:
    network = planted([6, 5, 3, 2])
    turn, _ = np.linalg.qr(np.random.default_rng(1002).standard_normal((6, 6)))
    found = recovered(with_first(network, turn @ network.weights[0]))
    assert unweave.compare(network, with_first(found, turn.T @ found.weights[0])).parameter_error < ERROR


@pytest.mark.parametrize("seed", [1000, 1001])
def test_scale_and_location_of_the_inputs(seed: int) -> None:
    network, rng = planted([6, 5, 3, 2], seed=seed), np.random.default_rng(seed + 3)
    scale, location = 10.0 ** rng.uniform(-2, 2, 6), rng.standard_normal(6)
    weights = network.weights[0] / scale[:, None]
    moved = with_first(network, weights, network.biases[0] - (scale * location) @ weights)
    examples = scale * (location + rng.standard_normal((300, 6)))
    found = recovered(moved, examples=examples)
    back = found.weights[0] * scale[:, None]
    biases = found.biases[0] + (scale * location) @ found.weights[0]
    assert unweave.compare(network, with_first(found, back, biases)).parameter_error < ERROR


def test_order_and_signs_of_the_units() -> None:
    network, rng = planted([6, 5, 3, 2]), np.random.default_rng(1004)
    order, signs = rng.permutation(5), rng.choice([-1.0, 1.0], 5)
    other = Network(
        [
            network.weights[0][:, order] * signs,
            network.weights[1][order] * signs[:, None],
            network.weights[2],
        ],
        [network.biases[0][order] * signs, *network.biases[1:]],
        network.activations,
    )
    first, second = unweave.canonical(recovered(network)), unweave.canonical(recovered(other))
    for one, two in zip((*first.weights, *first.biases), (*second.weights, *second.biases), strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=ERROR)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_the_size_of_the_outputs(scale: float) -> None:
    network = planted([6, 5, 3, 2])
    larger = Network(
        [*network.weights[:2], network.weights[2] * scale],
        [*network.biases[:2], network.biases[2] * scale],
        network.activations,
    )
    found = recovered(larger)
    back = Network(
        [*found.weights[:2], found.weights[2] / scale],
        [*found.biases[:2], found.biases[2] / scale],
        found.activations,
    )
    assert unweave.compare(network, back).parameter_error < ERROR


@pytest.mark.parametrize("seed", [1000, 1001])
def test_the_seed_of_the_search(seed: int) -> None:
    network = planted([6, 5, 3, 2])
    assert unweave.compare(network, recovered(network, seed=seed)).parameter_error < ERROR


def test_the_same_seed_gives_the_same_numbers() -> None:
    network = planted([6, 5, 3, 2])
    first, second = (unweave.recover(network, hidden=[5, 3], seed=5) for _ in range(2))
    assert first.network is not None
    assert second.network is not None
    assert first.queries == second.queries
    for one, two in zip(first.network.weights, second.network.weights, strict=True):
        np.testing.assert_array_equal(one, two)


# -- what the result tells -----------------------------------------------------------------------------


def test_the_certificate_speaks_of_every_layer() -> None:
    result = unweave.recover(planted([6, 5, 4, 3, 2]), hidden=[5, 4, 3], activation="tanh")
    assert [layer.width for layer in result.evidence.layers] == [5, 4, 3]
    for number in (1, 2, 3):
        check = result.certificate[f"layer {number} residual"]
        assert check.holds
        assert 0 <= check.value < 1e-2
    assert "layer 4 residual" not in result.certificate
    for name in ("fresh error", "fit residual", "fit conditioning", "parameter error bar"):
        assert result.certificate[name].holds


def test_queries_add_up(recorder: Any) -> None:
    target = recorder(planted([6, 5, 3, 2]))
    result = unweave.recover(target, hidden=[5, 3], activation="tanh", input_dim=6, method="smooth_deep")
    assert result.queries == len(target.rows) == sum(stage.queries for stage in result.stages)
    names = [stage.name for stage in result.stages]
    assert names[0] == "look"
    assert names[-2:] == ["polish", "verification"]
    assert sum("layer 1" in name for name in names) >= 3
    assert sum(layer.queries for layer in result.evidence.layers) < result.queries


def test_a_result_that_was_saved_keeps_its_layers(tmp_path: Path) -> None:
    result = unweave.recover(planted([6, 5, 3, 2]), hidden=[5, 3], activation="tanh")
    result.save(tmp_path / "run.npz")
    loaded = Recovery.load(tmp_path / "run.npz")
    assert loaded.evidence.layers == result.evidence.layers
    assert loaded.known_layers is None
    assert loaded.certificate == result.certificate
    assert result.network is not None
    assert loaded.network is not None
    for one, two in zip(result.network.weights, loaded.network.weights, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_result_without_a_network_keeps_the_layers_it_knows(tmp_path: Path) -> None:
    network = planted([6, 5, 3, 2])
    whole = unweave.recover(network, hidden=[5, 3], activation="tanh", method="smooth_deep")
    number = [stage.name for stage in whole.stages].index("layer 2")
    budget = sum(stage.queries for stage in whole.stages[: number + 1]) - 1
    result = unweave.recover(
        network, hidden=[5, 3], activation="tanh", max_queries=budget, method="smooth_deep"
    )
    assert result.known_layers is not None
    result.save(tmp_path / "run.npz")
    loaded = Recovery.load(tmp_path / "run.npz")
    assert loaded.network is None
    assert loaded.known_layers is not None
    assert loaded.known_layers.activations == result.known_layers.activations
    np.testing.assert_array_equal(loaded.known_layers.weights[0], result.known_layers.weights[0])
    np.testing.assert_array_equal(loaded.known_layers.biases[0], result.known_layers.biases[0])
    assert "5" in str(loaded.to_dict()["known_layers"])


def test_progress_is_told() -> None:
    told: list[Any] = []
    unweave.recover(planted([6, 5, 3, 2]), hidden=[5, 3], activation="tanh", progress=told.append)
    assert len(told) >= 5


def test_more_outputs_than_the_last_hidden_layer_has_units() -> None:
    network = planted([8, 8, 4, 9])
    assert_recovered(network, unweave.recover(network, hidden=[8, 4], activation="tanh"))
