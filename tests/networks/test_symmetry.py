from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from unweave.networks.activations import activation_names
from unweave.networks.comparison import compare
from unweave.networks.network import Network
from unweave.networks.random import random_network
from unweave.networks.symmetry import Layers, canonical, equal_rows, first_nonzero

SLOPED = ("softplus", "gelu", "swish", "relu", "leaky_relu")


def points(net: Network) -> np.ndarray:
    return np.random.default_rng(1000).standard_normal((200, net.n_inputs))


def assert_same_function(a: Network, b: Network) -> None:
    x = points(a)
    expected = a(x)
    assert_allclose(b(x), expected, rtol=0, atol=1e-12 * max(1.0, np.abs(expected).max()))


def one_layer(w: object, b: object, a: object, c: object = (0.0,), activation: str = "tanh") -> Network:
    return Network([w, a], [b, c], [activation, "identity"])  # type: ignore[list-item]


@given(
    activation=st.sampled_from(activation_names()),
    widths=st.lists(st.integers(1, 6), min_size=0, max_size=3),
    outputs=st.integers(1, 3),
    output=st.sampled_from(["identity", "sigmoid", "softmax"]),
    has_skip=st.booleans(),
    seed=st.integers(1000, 10**6),
)
@settings(deadline=None, max_examples=150)
def test_the_function_stays_and_the_form_is_final(
    activation: str, widths: list[int], outputs: int, output: str, has_skip: bool, seed: int
) -> None:
    base = random_network(
        [3, *widths, outputs],
        activation,
        seed=seed,
        outer="normal",
        norms=(0.5, 2),
        bias=4.0,
        output_activation=output,
    )
    skip = np.random.default_rng(seed).standard_normal((3, outputs)) if has_skip else None
    net = Network(base.weights, base.biases, base.activations, skip)
    form = canonical(net)
    x = points(net)
    expected = net(x)
    # cubic towers amplify rounding by the size of their inner values
    size = max(1.0, np.abs(expected).max()) if activation in ("cubic", "quadratic", "squared_relu") else 1.0
    assert_allclose(form(x), expected, rtol=1e-9, atol=1e-11 * size)
    if outputs > 1 or output != "softmax":
        alive = () if activation == "identity" else net.hidden  # generic units neither die nor merge
        assert form.hidden == alive
    again = canonical(form)
    for one, two in zip((*form.weights, *form.biases), (*again.weights, *again.biases), strict=True):
        assert_allclose(two, one, rtol=1e-13, atol=1e-13)


def test_sigmoid_becomes_tanh() -> None:
    net = random_network([3, 5, 4, 2], "sigmoid", seed=1001, outer="normal")
    form = canonical(net)
    assert form.activations == ("tanh", "tanh", "identity")
    assert_same_function(net, form)


def test_odd_units_have_a_positive_first_outgoing_weight() -> None:
    for activation in ("tanh", "sigmoid", "erf", "sine", "cubic"):
        for seed in range(1002, 1008):
            form = canonical(random_network([3, 5, 4, 2], activation, seed=seed, outer="normal"))
            for outgoing in form.weights[1:]:
                assert (outgoing[:, 0] > 0).all()
    # rounding noise is not a nonzero weight
    form = canonical(one_layer([[1.0], [2.0]], [0.5], [[1e-17, -1.0]], [0.0, 0.0]))
    assert form.weights[1][0, 1] == 1.0
    assert_array_equal(form.weights[0], [[-1.0], [-2.0]])


@pytest.mark.parametrize("activation", ["relu", "leaky_relu", "squared_relu", "quadratic", "cubic"])
def test_homogeneous_units_have_unit_incoming_weight(activation: str) -> None:
    net = random_network([4, 6, 5, 2], activation, seed=1003, outer="normal", norms=(0.1, 10))
    form = canonical(net)
    for incoming in form.weights[:-1]:
        assert_allclose(np.linalg.norm(incoming, axis=0), 1, rtol=1e-14)
    x = points(net)
    assert_allclose(form(x), net(x), rtol=0, atol=1e-11 * np.abs(net(x)).max())


def test_extreme_lengths_of_homogeneous_units_do_not_make_them_dead() -> None:
    net = random_network([4, 2, 1], "relu", seed=1004, outer="normal")
    scale = np.array([1e-15, 1e15])
    stretched = Network(
        [net.weights[0] * scale, net.weights[1] / scale[:, None]],
        [net.biases[0] * scale, net.biases[1]],
        net.activations,
    )
    assert canonical(stretched).hidden == (2,)
    assert_same_function(net, canonical(stretched))


@pytest.mark.parametrize("activation", SLOPED)
def test_sloped_reflections_move_the_affine_part_into_the_skip(activation: str) -> None:
    net = random_network([3, 6, 2], activation, seed=1005, outer="normal")
    form = canonical(net)
    assert (form.weights[0][0] > 0).all()
    assert form.skip is not None
    assert_same_function(net, form)
    deep = random_network([3, 6, 5, 2], activation, seed=1006, outer="normal")
    form = canonical(deep)
    assert form.skip is None
    assert_allclose(np.sign(form.weights[0]), np.sign(deep.weights[0]))


def test_a_skip_that_cancels_is_none() -> None:
    # softplus(z) - softplus(-z) = z, which the skip takes away again
    w = np.array([[0.3, -0.3], [0.7, -0.7]])
    net = Network([w, [[1.1], [-1.1]]], [[0.2, -0.2], [0.0]], ["softplus", "identity"], [[-0.33], [-0.77]])
    form = canonical(net)
    assert form.skip is None
    assert not form.weights[0].any()
    assert form.hidden == ()
    assert_same_function(net, form)
    affine = canonical(Network(net.weights, net.biases, net.activations, np.zeros((2, 1))))
    assert (affine.hidden, affine.skip) == ((), None)
    assert_allclose(affine.weights[0], [[0.33], [0.77]])
    plain = random_network([2, 3, 1], seed=1007)
    assert canonical(Network(plain.weights, plain.biases, plain.activations, np.zeros((2, 1)))).skip is None


def test_rounding_errors_do_not_make_a_skip() -> None:
    net = random_network([3, 6, 2], "softplus", seed=1014, outer="normal")
    upright = Network([np.abs(net.weights[0]), net.weights[1]], net.biases, net.activations)
    layers = Layers.of(upright)
    for unit in (4, 1, 0, 5):  # one at a time, so that sums are rounded otherwise than on the way back
        layers.reflect(0, np.arange(6) == unit)
    mirrored = Network(layers.weights, layers.biases, layers.activations, layers.skip)
    assert layers.skip.any()
    assert_same_function(upright, mirrored)
    assert canonical(mirrored).skip is None


def test_sine_biases_are_reduced() -> None:
    net = one_layer([[1.0, -2.0, 0.5]], [7.0, 3.0, -11.0], [[1.0], [-1.0], [2.0]], activation="sine")
    form = canonical(net)
    assert (np.abs(form.biases[0]) <= math.pi).all()
    assert (form.weights[1] > 0).all()
    assert (form.weights[0][0] > 0).all()
    assert_same_function(net, form)


def test_sine_units_that_differ_by_half_turns_merge() -> None:
    b = 0.4
    biases = [b, b + math.pi, -b, b - 6 * math.pi, math.pi / 2, -math.pi / 2]
    weights = [[1.0, 1.0, -1.0, 1.0, 3.0, 3.0]]
    outgoing = [[1.0], [0.5], [0.25], [2.0], [1.0], [0.3]]
    net = one_layer(weights, biases, outgoing, activation="sine")
    form = canonical(net)
    assert form.hidden == (2,)
    assert_allclose(form.weights[1][:, 0], [1 - 0.5 - 0.25 + 2, 0.7], rtol=1e-14)
    assert_same_function(net, form)


def test_softmax_is_centred() -> None:
    net = random_network([3, 5, 4], seed=1008, outer="normal", output_activation="softmax")
    shift = np.random.default_rng(1009).standard_normal((5, 1))
    moved = Network(
        [net.weights[0], net.weights[1] + shift], [net.biases[0], net.biases[1] + 3], net.activations
    )
    one, two = canonical(net), canonical(moved)
    assert_allclose(two.weights[1], one.weights[1], atol=1e-14)
    assert_allclose(one.weights[1].sum(axis=1), 0, atol=1e-14)
    assert_allclose(two.biases[1], one.biases[1], atol=1e-14)


def test_dead_units_are_dropped_and_their_constants_kept() -> None:
    net = one_layer(
        [[0.0, 1.0, 2.0], [0.0, -1.0, 1.0]], [0.7, 0.1, 0.2], [[2.0], [0.0], [3.0]], [0.5], activation="tanh"
    )
    form = canonical(net)
    assert form.hidden == (1,)
    assert_allclose(form.biases[1], [0.5 + 2 * math.tanh(0.7)])
    assert_same_function(net, form)


def test_death_spreads_through_layers() -> None:
    net = random_network([3, 4, 4, 4, 2], seed=1010, outer="normal")
    weights = [w.copy() for w in net.weights]
    weights[3][1] = 0  # unit 1 of layer 3 is not used ...
    weights[2][2, [0, 2, 3]] = 0  # ... and it alone used unit 2 of layer 2 ...
    weights[1][3, [0, 1, 3]] = 0  # ... which alone used unit 3 of layer 1
    thinned = Network(weights, net.biases, net.activations)
    form = canonical(thinned)
    assert form.hidden == (3, 3, 3)
    assert_same_function(thinned, form)
    weights[1][:] = 0  # the second layer is constant, so everything is
    constant = Network(weights, net.biases, net.activations)
    form = canonical(constant)
    assert form.hidden == ()
    assert_same_function(constant, form)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu", "softplus", "quadratic", "squared_relu"])
def test_duplicates_merge(activation: str) -> None:
    net = random_network([3, 4, 2], activation, seed=1011, outer="normal")
    w, b, a = net.weights[0], net.biases[0], net.weights[1]
    doubled = one_layer(
        np.hstack([w, w[:, :2]]),
        np.concatenate([b, b[:2]]),
        np.vstack([a, 2 * a[:2]]),
        net.biases[1],
        activation,
    )
    form = canonical(doubled)
    assert form.hidden == (4,)
    assert_same_function(doubled, form)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "erf", "relu", "gelu", "quadratic"])
def test_mirrored_duplicates_merge(activation: str) -> None:
    net = random_network([3, 4, 2], activation, seed=1012, outer="normal")
    w, b, a = net.weights[0], net.biases[0], net.weights[1]
    doubled = one_layer(
        np.hstack([w, -w]), np.concatenate([b, -b]), np.vstack([a, 0.3 * a]), [0, 0], activation
    )
    form = canonical(doubled)
    assert form.hidden == (4,)
    assert_same_function(doubled, form)


def test_duplicates_that_cancel_vanish() -> None:
    net = one_layer([[1.0, 1.0, 2.0]], [0.3, 0.3, 0.0], [[0.1], [-0.1], [1.0]])
    assert canonical(net).hidden == (1,)


def test_near_duplicates_do_not_merge() -> None:
    net = one_layer([[1.0, 1.0 + 1e-10]], [0.3, 0.3], [[1.0], [1.0]])
    assert canonical(net).hidden == (2,)


def test_squared_relu_is_not_mirrored() -> None:
    net = one_layer([[1.0, -1.0]], [0.3, -0.3], [[1.0], [1.0]], activation="squared_relu")
    assert canonical(net).hidden == (2,)


def test_a_single_layer_absorbs_its_skip() -> None:
    net = Network([[[1.0], [2.0]]], [[0.5]], ["sigmoid"], [[3.0], [4.0]])
    form = canonical(net)
    assert_array_equal(form.weights[0], [[4.0], [6.0]])
    assert form.skip is None


def test_first_nonzero() -> None:
    rows = np.array([[0.0, -2.0, 1.0], [1e-14, 3.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 5.0, 0.0]])
    assert_array_equal(first_nonzero(rows), [-2.0, 3.0, 0.0, -1.0])


def test_equal_rows_finds_all_groups_among_many() -> None:
    rng = np.random.default_rng(1013)
    rows = rng.standard_normal((500, 7))
    rows[[17, 250, 499]] = rows[3] * (1 + 1e-15)
    rows[100] = rows[99]
    assert sorted(equal_rows(rows)) == [[3, 17, 250, 499], [99, 100]]
    assert equal_rows(rng.standard_normal((1, 4))) == []
    # one long row widens the search for candidates, not what counts as equal
    rows[0] *= 1e14
    assert sorted(equal_rows(rows)) == [[3, 17, 250, 499], [99, 100]]


def test_linear_layers_are_multiplied_out() -> None:
    net = random_network([5, 4, 6, 3, 2], seed=1012, outer="normal")
    rng = np.random.default_rng(1013)
    for names in (
        ["identity", "tanh", "identity", "identity"],
        ["identity", "identity", "identity", "tanh"],
        ["tanh", "identity", "identity", "softmax"],
    ):
        linear = Network(net.weights, net.biases, names, skip=rng.standard_normal((5, 2)))
        form = canonical(linear)
        assert len(form.hidden) == names[:-1].count("tanh")
        assert_same_function(linear, form)
        mixing = rng.standard_normal((4, 4))  # between the first two layers, invisible if they are linear
        weights = [net.weights[0] @ mixing, np.linalg.inv(mixing) @ net.weights[1], *net.weights[2:]]
        mixed = Network(weights, [net.biases[0] @ mixing, *net.biases[1:]], names, skip=linear.skip)
        assert compare(linear, mixed).is_same == (names[0] == "identity")
