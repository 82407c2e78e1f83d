"""Which last transformations the answers' range and the far field allow."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.probing.answer_range import possible_links
from unweave.probing.far_look import FarLook, far_look
from unweave.targets.region import NormalisedQueries, Region
from unweave.targets.target import as_queries


def test_the_range_names_the_links() -> None:
    unit = np.linspace(0, 1, 20)[:, None]
    assert possible_links(unit, 0.0) == ("identity", "sigmoid")
    assert possible_links(2 * unit - 1, 0.0) == ("identity", "tanh")
    assert possible_links(unit * 1.01, 0.0) == ("identity",)
    assert possible_links(-1.01 * unit, 0.0) == ("identity",)


def test_noise_may_put_answers_a_little_outside() -> None:
    unit = np.array([[-0.01], [1.015], [0.5]])
    assert possible_links(unit, 0.0) == ("identity",)
    assert possible_links(unit, 0.01) == ("identity", "sigmoid")


def test_rows_that_sum_to_one_are_classes_and_nothing_else() -> None:
    probabilities = np.random.default_rng(1000).dirichlet(np.ones(4), 50)
    assert possible_links(probabilities, 0.0) == ("softmax",)
    rounded = np.round(probabilities, 2)
    assert possible_links(rounded, 0.01 / np.sqrt(12)) == ("softmax",)
    # One column of them is a number between 0 and 1; two that do not sum to one are two sigmoids.
    assert possible_links(probabilities[:, :1], 0.0) == ("identity", "sigmoid")
    assert possible_links(probabilities[:, :2], 0.0) == ("identity", "sigmoid")


def test_a_sum_of_one_with_negative_parts_is_chance() -> None:
    centred = np.random.default_rng(1001).standard_normal((50, 3))
    centred += (1 - centred.sum(axis=1, keepdims=True)) / 3
    assert possible_links(centred, 0.0) == ("identity",)


# -- the far field -----------------------------------------------------------------------------------------


def looked_at(network: unweave.Network, links: tuple[str, ...] = ("identity",)) -> FarLook:
    view = NormalisedQueries(as_queries(network), Region.standard(network.n_inputs))
    return far_look(view, 1e-16, np.random.default_rng(1002), links)


def planted(layers: list[int], activation: str = "tanh", output: str = "identity") -> unweave.Network:
    network = unweave.random_network(layers, activation, seed=1003, outer="normal", output_activation=output)
    # Small outputs: a sigmoid far out would be saturated, and tell nothing.
    weights = [*network.weights[:-1], 0.5 * network.weights[-1]]
    return unweave.Network(weights, network.biases, network.activations)


@pytest.mark.parametrize(
    ("outputs", "output", "asked"),
    [
        (1, "identity", ("identity", "tanh")),
        (1, "sigmoid", ("identity", "sigmoid")),
        (1, "tanh", ("identity", "tanh")),
        (3, "softmax", ("softmax",)),
    ],
)
def test_one_hidden_layer_is_odd_behind_its_own_link_alone(
    outputs: int, output: str, asked: tuple[str, ...]
) -> None:
    far = looked_at(planted([6, 5, outputs], output=output), asked)
    assert (far.saturates, far.layered) == (True, False)
    assert far.links == (output,)


@pytest.mark.parametrize("output", ["identity", "sigmoid"])
def test_two_hidden_layers_are_odd_behind_none(output: str) -> None:
    asked = ("identity", "sigmoid") if output == "sigmoid" else ("identity",)
    far = looked_at(planted([6, 5, 4, 1], output=output), asked)
    assert (far.saturates, far.layered) == (True, True)
    assert far.links == asked  # what rules out all rules out none


def test_units_that_do_not_level_off_tell_nothing() -> None:
    far = looked_at(planted([6, 5, 1], "softplus"), ("identity", "sigmoid"))
    assert (far.saturates, far.layered, far.links) == (False, False, ("identity", "sigmoid"))


def test_saturated_probabilities_tell_nothing() -> None:
    network = planted([6, 5, 1], output="sigmoid")
    weights = [network.weights[0], 1e4 * network.weights[1]]
    steep = unweave.Network(weights, network.biases, network.activations)
    far = looked_at(steep, ("identity", "sigmoid"))
    assert not far.layered
    assert "sigmoid" in far.links
