from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from unweave.errors import InvalidInput
from unweave.networks.activations import get_activation
from unweave.networks.comparison import compare, relative_uniform_error
from unweave.networks.network import Network
from unweave.networks.random import random_network
from unweave.networks.symmetry import Layers

ACTIVATIONS = ("tanh", "sigmoid", "erf", "sine", "softplus", "relu", "leaky_relu", "squared_relu", "cubic")


def scramble(net: Network, rng: np.random.Generator) -> Network:
    """Return the same function with other parameters: every symmetry that the activations have, at random."""
    layers = Layers.of(net)
    for index in layers.hidden:
        split_units(layers, index, rng)
        add_dead_units(layers, index, rng)
        layers.permute(index, rng.permutation(layers.weights[index].shape[1]))
        width = layers.weights[index].shape[1]
        layers.reflect(index, rng.random(width) < 0.5)
        power = get_activation(layers.activations[index]).homogeneity
        if power is not None:
            scale = rng.uniform(0.2, 5, width)
            layers.weights[index] *= scale
            layers.biases[index] *= scale
            layers.weights[index + 1] /= scale[:, None] ** power
        if layers.activations[index] == "sine":
            layers.half_turns(index, rng.integers(-3, 4, width).astype(float))
        if layers.activations[index] == "tanh" and rng.random() < 0.5:  # tanh(z) = 2 sigmoid(2z) - 1
            layers.activations[index] = "sigmoid"
            layers.weights[index] *= 2
            layers.biases[index] *= 2
            layers.biases[index + 1] -= layers.weights[index + 1].sum(axis=0)
            layers.weights[index + 1] *= 2
    skip = layers.skip if layers.skip.any() else None
    return Network(layers.weights, layers.biases, layers.activations, skip)


def split_units(layers: Layers, index: int, rng: np.random.Generator) -> None:
    """Replace unit 0 by two that share its outgoing weights."""
    share = rng.uniform(0.2, 0.8)
    outgoing = layers.weights[index + 1]
    layers.weights[index] = np.hstack([layers.weights[index], layers.weights[index][:, :1]])
    layers.biases[index] = np.append(layers.biases[index], layers.biases[index][0])
    layers.weights[index + 1] = np.vstack([outgoing, (1 - share) * outgoing[:1]])
    layers.weights[index + 1][0] *= share


def add_dead_units(layers: Layers, index: int, rng: np.random.Generator) -> None:
    """Add a unit that nothing uses and one that is constant, made up for in the next bias."""
    n_in, n_out = layers.weights[index].shape[0], layers.weights[index + 1].shape[1]
    bias = rng.standard_normal(2)
    outgoing = np.vstack([np.zeros(n_out), rng.standard_normal(n_out)])
    incoming = np.column_stack([rng.standard_normal(n_in), np.zeros(n_in)])
    value = get_activation(layers.activations[index])(bias[1])
    layers.weights[index] = np.hstack([layers.weights[index], incoming])
    layers.biases[index] = np.concatenate([layers.biases[index], bias])
    layers.weights[index + 1] = np.vstack([layers.weights[index + 1], outgoing])
    layers.biases[index + 1] -= value * outgoing[1]


@given(
    activation=st.sampled_from(ACTIVATIONS),
    hidden=st.lists(st.integers(1, 7), min_size=1, max_size=3),
    outputs=st.integers(1, 3),
    output=st.sampled_from(["identity", "sigmoid", "tanh"]),
    seed=st.integers(1000, 10**6),
)
@settings(deadline=None, max_examples=150)
def test_scrambled_networks_are_recognised(
    activation: str, hidden: list[int], outputs: int, output: str, seed: int
) -> None:
    net = random_network(
        [4, *hidden, outputs],
        activation,
        seed,
        outer="signed",
        norms=(0.5, 2),
        bias=1.0,
        output_activation=output,
    )
    other = scramble(net, np.random.default_rng(seed + 1))
    assert other.hidden != net.hidden
    for one, two in ((net, other), (other, net)):
        result = compare(one, two, points=20)
        assert result.reason == ""
        # sums of a dozen terms, rounded a few times
        assert result.parameter_error < 1e-13, str(result)
        assert result.is_same
        assert result.parameter_error == max(result.weight_error, result.bias_error)
    assert result.function_error < (1e-9 if activation in ("cubic", "squared_relu") else 1e-12)


@given(
    activation=st.sampled_from(ACTIVATIONS),
    hidden=st.lists(st.integers(2, 6), min_size=1, max_size=3),
    exponent=st.integers(-10, -4),
    seed=st.integers(1000, 10**6),
)
@settings(deadline=None, max_examples=80)
def test_a_perturbation_shows_at_its_own_size(
    activation: str, hidden: list[int], exponent: int, seed: int
) -> None:
    net = random_network([4, *hidden, 2], activation, seed, outer="signed")
    rng = np.random.default_rng(seed + 1)
    size = 10.0**exponent

    def moved(array: np.ndarray) -> np.ndarray:
        return array + size * rng.choice([-1.0, 1.0], array.shape)

    other = Network([moved(w) for w in net.weights], [moved(b) for b in net.biases], net.activations)
    forth, back = compare(net, other), compare(other, net)
    # rewriting a unit mixes at most its own few parameters and those of its neighbours
    assert size / 10 < forth.parameter_error < 200 * size
    assert 0.9 < forth.parameter_error / back.parameter_error < 1.1
    assert forth.is_same == (forth.parameter_error <= 1e-6)
    assert compare(net, other, tolerance=300 * size).is_same


@pytest.mark.parametrize("activation", ["tanh", "softplus", "sine", "relu"])
def test_a_sign_rule_decided_by_a_tiny_weight_does_not_matter(activation: str) -> None:
    net = random_network([4, 3, 2], activation, seed=1001, outer="normal")
    tiny = np.array([[1e-9], [1e-9], [1e-9]])

    def with_first(sign: int) -> Network:
        incoming, outgoing = net.weights[0].copy(), net.weights[1].copy()
        outgoing[:, :1] = sign * tiny
        incoming[:1] = sign * tiny.T
        return Network([incoming, outgoing], net.biases, net.activations)

    result = compare(with_first(1), with_first(-1))
    assert result.parameter_error < 4e-9
    if activation == "tanh":
        assert_array_equal(result.matching[0][1], [-1, -1, -1])


def test_tanh_and_sigmoid_are_one_family() -> None:
    sigmoid = random_network([3, 5, 1], "sigmoid", seed=1002, outer="normal")
    w, a = sigmoid.weights
    tanh = Network(
        [w / 2, a / 2], [sigmoid.biases[0] / 2, sigmoid.biases[1] + a.sum(axis=0) / 2], ["tanh", "identity"]
    )
    assert compare(sigmoid, tanh).parameter_error < 1e-15


def test_the_matching_leads_from_one_network_to_the_other() -> None:
    net = random_network([4, 6, 2], seed=1003)  # outgoing weights are ones, so both forms are as given
    order = np.array([3, 0, 5, 1, 4, 2])
    other = Network(
        [net.weights[0][:, order], net.weights[1]], [net.biases[0][order], net.biases[1]], net.activations
    )
    ((permutation, signs),) = compare(net, other).matching
    assert_array_equal(order[permutation], np.arange(6))
    assert_array_equal(signs, np.ones(6))


def test_errors_are_told_apart_and_scaled_by_layer() -> None:
    net = Network([[[1.0, 2.0]], [[10.0], [20.0]]], [[0.1, 0.2], [0.3]], ["tanh", "identity"])

    def changed(weight: float = 0.0, bias: float = 0.0, outer: float = 0.0, skip: float = 0.0) -> Network:
        w = [[[1.0 + weight, 2.0]], [[10.0 + outer], [20.0]]]
        return Network(w, [[0.1 + bias, 0.2], [0.3]], net.activations, [[skip]])

    result = compare(net, changed(weight=1e-3))
    assert result.weight_error == pytest.approx(1e-3 / 2)
    assert result.bias_error == result.output_error == 0
    result = compare(net, changed(bias=1e-3))
    assert result.bias_error == pytest.approx(1e-3 / 2)
    assert result.weight_error == 0
    result = compare(net, changed(outer=1e-3))
    assert result.output_error == result.weight_error == pytest.approx(1e-3 / 20)
    result = compare(net, changed(skip=1e-3))
    assert result.output_error == result.weight_error == pytest.approx(1e-3 / 20)


@pytest.mark.parametrize(
    ("layers", "activation", "output", "reason"),
    [
        ([4, 6, 1], "tanh", "identity", "hidden widths differ in canonical form, 5 and 6"),
        ([4, 5, 5, 1], "tanh", "identity", "hidden widths"),
        ([4, 5, 1], "relu", "identity", "activations differ"),
        ([4, 5, 1], "tanh", "sigmoid", "activations differ"),
        ([3, 5, 1], "tanh", "identity", "inputs"),
        ([4, 5, 2], "tanh", "identity", "outputs"),
    ],
)
def test_networks_of_other_shapes_are_infinitely_far(
    layers: list[int], activation: str, output: str, reason: str
) -> None:
    net = random_network([4, 5, 1], seed=1004)
    other = random_network(layers, activation, seed=1005, output_activation=output)
    result = compare(net, other)
    assert (
        result.parameter_error == result.weight_error == result.bias_error == result.output_error == math.inf
    )
    assert not result.is_same
    assert reason in result.reason
    assert reason in str(result)
    assert math.isnan(result.function_error) == (reason in ("inputs", "outputs"))


def test_different_functions_are_not_the_same() -> None:
    for activation in ACTIVATIONS:
        one, two = (random_network([4, 5, 5, 1], activation, seed, outer="normal") for seed in (1006, 1007))
        result = compare(one, two)
        assert not result.is_same
        assert result.parameter_error > 0.01
        assert result.function_error > 0.01
        assert str(result).startswith("different: parameter error")


def test_rotated_quadratic_units_are_the_same_function_only() -> None:
    net = random_network([4, 3, 1], "quadratic", seed=1008, bias=0.0)
    turn, _ = np.linalg.qr(np.random.default_rng(1009).standard_normal((3, 3)))
    other = Network([net.weights[0] @ turn, net.weights[1]], net.biases, net.activations)
    result = compare(net, other)
    assert not result.is_same
    assert result.function_error < 1e-14
    assert "same answers" in str(result)
    assert str(compare(net, net)).startswith("same network up to symmetry")


def test_points_may_be_given() -> None:
    one = Network([[[1.0]]], [[0.0]], ["identity"])
    two = Network([[[1.1]]], [[0.0]], ["identity"])
    assert compare(one, two, points=[[2.0], [-4.0]]).function_error == pytest.approx(0.1)
    assert compare(one, two, points=[[0.0]]).function_error == 0
    assert compare(one, two, seed=1).function_error == pytest.approx(0.1)
    assert relative_uniform_error(np.zeros((2, 1)), np.ones((2, 1))) == math.inf


def test_bad_arguments_are_refused() -> None:
    net = random_network([4, 5, 1])
    with pytest.raises(InvalidInput, match="points must be positive"):
        compare(net, net, points=0)
    with pytest.raises(InvalidInput, match="shape"):
        compare(net, net, points=np.zeros((3, 5)))
    with pytest.raises(InvalidInput, match="b must be a Network"):
        compare(net, "net.npz")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="tolerance"):
        compare(net, net, tolerance=-1)


@pytest.mark.parametrize("activation", ["tanh", "relu", "sine"])
def test_wide_networks_are_compared_unit_by_unit(activation: str) -> None:
    net = random_network([50, 1000, 1], activation, seed=1010, outer="normal")
    other = scramble(net, np.random.default_rng(1011))
    assert compare(net, other).parameter_error < 1e-12


def test_units_closer_than_the_digits_of_a_gemm_are_told_apart() -> None:
    rng = np.random.default_rng(1012)
    w, a = rng.standard_normal((5, 4)), rng.standard_normal((4, 1))
    w[:, 1] = w[:, 0] + 1e-9
    net = Network([w, a], [np.zeros(4), [0.0]], ["tanh", "identity"])
    order = [1, 0, 3, 2]
    other = Network([w[:, order], a[order]], net.biases, net.activations)
    assert compare(net, other).parameter_error == 0


def test_a_large_parameter_does_not_excuse_a_small_one_that_matters() -> None:
    weights, outer = np.array([[1e7, 1.0], [1e7, -1.0]]), np.array([[1e-9], [1.0]])
    a = Network([weights, outer], [np.zeros(2), np.zeros(1)], ["tanh", "identity"])
    moved = weights.copy()
    moved[:, 1] *= 5.0
    b = Network([moved, outer], [np.zeros(2), np.zeros(1)], ["tanh", "identity"])
    comparison = compare(a, b)
    assert comparison.parameter_error <= comparison.tolerance
    assert comparison.function_error > 0.1
    assert not comparison.is_same
    assert str(comparison).startswith("different")
