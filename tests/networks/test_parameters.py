from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import unweave
from random_models import CASES, random_model, sites_of
from unweave.errors import InvalidInput
from unweave.networks.parameters import NetworkParameters

DEPTHS = ([4, 2], [4, 5, 2], [4, 5, 3, 2], [4, 5, 3, 3, 1])


def planted(layers: list[int], hidden: str = "tanh", output: str = "identity") -> unweave.Network:
    return unweave.random_network(layers, hidden, seed=1000, outer="normal", output_activation=output)


@pytest.mark.parametrize("layers", DEPTHS)
def test_there_and_back(layers: list[int]) -> None:
    network = planted(layers, "erf", "sigmoid")
    model = NetworkParameters.from_network(network)
    assert model.size == network.n_parameters == len(model.to_vector())
    assert model.from_vector(model.to_vector()).to_network() == network
    assert (model.depth, model.n_inputs, model.n_outputs) == (len(layers) - 1, 4, layers[-1])


def test_the_vector_holds_layer_by_layer_the_weights_and_then_the_bias() -> None:
    network = planted([2, 3, 1])
    first, second = NetworkParameters.from_network(network).split(np.arange(13.0))
    assert_array_equal(first, np.arange(9.0).reshape(3, 3))
    assert_array_equal(second, np.arange(9.0, 13.0).reshape(4, 1))
    model = NetworkParameters.from_network(network).from_vector(np.arange(13.0))
    assert_array_equal(model.biases[0], [6, 7, 8])
    assert_array_equal(model.weights[1], [[9], [10], [11]])


@pytest.mark.parametrize("layers", DEPTHS)
@pytest.mark.parametrize(
    ("hidden", "output"), [("tanh", "identity"), ("sigmoid", "tanh"), ("erf", "sigmoid")]
)
def test_states_are_those_of_the_network(layers: list[int], hidden: str, output: str) -> None:
    network = planted(layers, hidden, output)
    model = NetworkParameters.from_network(network)
    points = np.random.default_rng(1000).standard_normal((7, 4))
    states = model.forward(points)
    assert_array_equal(model.values(points), network(points))
    assert_allclose(states.outputs, network(points), rtol=0, atol=1e-14)
    assert [state.shape[1] for state in states.inputs] == layers[:-1]
    assert [slope.shape[1] for slope in states.slopes] == layers[1:]


@pytest.mark.parametrize(
    ("hidden", "output"), [("tanh", "identity"), ("sigmoid", "tanh"), ("erf", "sigmoid")]
)
def test_sensitivities_are_the_effect_of_a_bias(hidden: str, output: str) -> None:
    # z^l moves with b^l one to one. Central differences of step h leave h^2 / 6 |f'''| + eps / h ~ 1e-10.
    model = NetworkParameters.from_network(planted([4, 5, 3, 2], hidden, output))
    points = np.random.default_rng(1000).standard_normal((6, 4))
    sensitivities = model.sensitivities(model.forward(points).slopes)
    step = 1e-5
    vector = model.to_vector()
    for (_, width), end, sensitivity in zip(model.shapes, model.ends, sensitivities, strict=True):
        for unit in range(width):
            moved = np.zeros(model.size)
            moved[end - width + unit] = step
            above, below = (model.from_vector(vector + sign * moved).values(points) for sign in (1, -1))
            assert_allclose(sensitivity[:, :, unit], (above - below) / (2 * step), rtol=0, atol=1e-8)


def with_skip(network: unweave.Network) -> unweave.Network:
    skip = np.random.default_rng(1001).standard_normal((network.n_inputs, network.n_outputs))
    return unweave.Network(network.weights, network.biases, network.activations, skip=skip)


@pytest.mark.parametrize("output", ["identity", "sigmoid", "softmax"])
@pytest.mark.parametrize("skips", [False, True])
@pytest.mark.parametrize("layers", [[4, 3], [4, 5, 3], [4, 5, 3, 2]])
def test_skip_and_softmax_are_the_same_function(layers: list[int], skips: bool, output: str) -> None:
    network = planted(layers, "tanh", output)
    network = with_skip(network) if skips else network
    model = NetworkParameters.from_network(network)
    points = np.random.default_rng(1002).standard_normal((9, 4))
    expected = network(points)
    assert_allclose(model.values(points), expected, rtol=0, atol=1e-14)
    assert_allclose(model.forward(points).outputs, expected, rtol=0, atol=1e-14)
    assert_allclose(model.to_network()(points), expected, rtol=0, atol=1e-14)
    assert model.n_outputs == layers[-1]
    # A softmax has one class fewer to say: adding the same to all changes nothing.
    free = network.n_parameters
    if output == "softmax":
        free -= layers[-2] + 1 + (4 if skips else 0)
    assert model.size == free == len(model.to_vector())
    again = model.from_vector(model.to_vector())
    assert_array_equal(again.values(points), model.values(points))


def test_classes_of_a_softmax_are_centred_on_the_way_back() -> None:
    network = with_skip(planted([4, 5, 3], "tanh", "softmax"))
    back = NetworkParameters.from_network(network).to_network()
    assert back.skip is not None
    for part in (back.weights[-1], back.biases[-1], back.skip):
        assert_allclose(part.sum(axis=-1), 0, rtol=0, atol=1e-14)
    assert unweave.compare(network, back).parameter_error < 1e-13
    as_is = NetworkParameters.from_network(network).to_network_as_is()
    assert not as_is.weights[-1][:, -1].any()
    assert as_is.biases[-1][-1] == 0


def test_a_vector_of_another_length_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"shape \(26,\)"):
        NetworkParameters.from_network(planted([3, 4, 2])).from_vector(np.zeros(25))


@CASES
def test_vector_and_model_are_the_same_thing(d: int, m: int, k: int, skip: bool) -> None:
    model = random_model(d, m, k, skip)
    vector = model.to_vector()
    assert len(vector) == model.size
    again = random_model(d, m, k, skip, seed=1002).from_vector(vector)
    assert_array_equal(again.to_vector(), vector)
    x = sites_of(d)
    assert_array_equal(again.values(x), model.values(x))


@CASES
def test_the_network_computes_the_same_values(d: int, m: int, k: int, skip: bool) -> None:
    model = random_model(d, m, k, skip)
    x = sites_of(d)
    network = model.to_network()
    assert network.n_parameters == model.size
    assert_allclose(network(x), model.values(x), atol=1e-13)


def test_keep_selects_units() -> None:
    model = random_model(4, 5, 2, True)
    parts = [model.keep(np.array([0, 3])), model.keep(np.array([1, 2, 4]))]
    x = sites_of(4)
    linear = model.biases[1] + x @ model.skip
    assert parts[0].width == 2
    assert_allclose(sum(part.values(x) - linear for part in parts) + linear, model.values(x), atol=1e-13)
