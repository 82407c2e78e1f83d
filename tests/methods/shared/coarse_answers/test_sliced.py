"""Many inputs and coarse answers: a slice shows the units, moves outside it the rest of their weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import unweave
from unweave import Network, Queries, Status
from unweave.arrays import Array
from unweave.methods.shared.coarse_answers.sliced import SlicedOptions, components_outside
from unweave.networks.parameters import NetworkParameters
from unweave.probing.noise import Noise
from unweave.targets.region import NormalisedQueries, Region
from unweave.targets.slice import SliceQueries


def in_single(network: Network) -> tuple[Callable[[Array], Array], Network]:
    """Return the network computing in float32, and the one whose parameters it has."""
    weights = [weight.astype(np.float32) for weight in network.weights]
    biases = [bias.astype(np.float32) for bias in network.biases]
    hidden, output = network.activations
    activation, last = unweave.get_activation(hidden), output

    def answer(x: Array) -> Array:
        units = activation(x.astype(np.float32) @ weights[0] + biases[0]).astype(np.float32)
        values = units @ weights[1] + biases[1]
        if last == "sigmoid":
            values = 1 / (1 + np.exp(-values))
        return np.asarray(values)

    return answer, Network(weights, biases, network.activations)


def queries_of(network: Network) -> NormalisedQueries:
    return NormalisedQueries(Queries(network, network.n_inputs), Region.standard(network.n_inputs))


def test_a_slice_answers_as_the_target_and_counts_there() -> None:
    network = unweave.random_network([30, 4, 2], seed=1000, outer="normal")
    view = queries_of(network)
    on_slice = SliceQueries(view, 6, np.random.default_rng(0))
    y = np.random.default_rng(1).standard_normal((5, 6))
    np.testing.assert_array_equal(on_slice(y), network(y @ on_slice.frame.T))
    assert on_slice.sent == view.sent == 5
    np.testing.assert_allclose(on_slice.frame.T @ on_slice.frame, 5 * np.eye(6), atol=1e-12)
    np.testing.assert_allclose(on_slice.frame.T @ on_slice.outside, 0, atol=1e-12)


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("outputs", [1, 7])
@pytest.mark.parametrize("skip", [False, True])
def test_components_outside_are_those_of_the_network(activation: str, outputs: int, skip: bool) -> None:
    network = unweave.random_network([30, 4, outputs], activation, seed=1001, outer="normal")
    rng = np.random.default_rng(1002)
    affine = rng.standard_normal((30, outputs)) / 30 if skip else None
    network = Network(network.weights, network.biases, network.activations, affine)
    on_slice = SliceQueries(queries_of(network), 6, rng)
    seen = Network(
        [on_slice.frame.T @ network.weights[0], network.weights[1]],
        network.biases,
        network.activations,
        None if affine is None else on_slice.frame.T @ affine,
    )
    noise = Noise("float64", 1e-15, np.full(outputs, 1e-15), None, 1.0, 1e-15, repeatable=True)
    found = components_outside(
        NetworkParameters.from_network(seen), on_slice, noise, rng, SlicedOptions(), lambda *_: None
    )
    wanted = [network.weights[0]] if affine is None else [network.weights[0], affine]
    np.testing.assert_allclose(found, on_slice.outside.T @ np.hstack(wanted), atol=1e-9)


@pytest.mark.parametrize(
    ("activation", "layers", "output"),
    [("relu", [300, 4, 3], "identity"), ("tanh", [160, 5, 4], "identity"), ("tanh", [160, 3, 1], "sigmoid")],
)
def test_networks_in_float32_come_back(activation: str, layers: list[int], output: str) -> None:
    planted = unweave.random_network(layers, activation, seed=1003, outer="normal")
    target, truth = in_single(Network(planted.weights, planted.biases, [activation, output]))
    result = unweave.recover(target, input_dim=layers[0])
    assert result.status is Status.RECOVERED, result.message
    assert result.network is not None
    assert unweave.compare(truth, result.network).parameter_error < 1e-5
    assert result.queries < 60 * truth.n_parameters


def test_what_acts_outside_the_slice_alone_is_no_such_network() -> None:
    target, _ = in_single(unweave.random_network([160, 3, 2], seed=1004, outer="normal"))

    def more(x: Array) -> Array:
        return target(x) + np.float32(0.1) * np.sin(3 * x[:, :1] * x[:, 1:2]).astype(np.float32)

    result = unweave.recover(more, [3], "tanh", input_dim=160, method="smooth_coarse")
    assert not result.status.is_recovered


def test_many_inputs_behind_decimals_are_refused_with_a_reason() -> None:
    network = unweave.random_network([160, 3, 1], seed=1005, outer="normal")
    plan = unweave.recover(lambda x: np.round(network(x), 4), input_dim=160, method="smooth_coarse")
    assert not plan.status.is_recovered
    assert "answers in floating point and no box" in plan.message
