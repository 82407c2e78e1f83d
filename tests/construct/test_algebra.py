from __future__ import annotations

from fractions import Fraction
from math import ceil, log2

import numpy as np
import pytest
from numpy.testing import assert_allclose

import unweave
from unweave import construct
from unweave.construct import (
    add,
    affine_network,
    as_exact,
    compose,
    depth,
    max_net,
    max_net_size,
    pad,
    size,
    stack,
)
from unweave.errors import InvalidInput
from unweave.networks.activations import get_activation
from unweave.networks.network import Network
from unweave.networks.random import random_network

RNG = np.random.default_rng(1000)
X = RNG.standard_normal((40, 4))
ROUNDING = 1e-13  # some hundred operations on numbers of order one to ten


def relu(layers: list[int], seed: int) -> Network:
    return random_network(layers, activation="relu", outer="normal", seed=seed)


def test_composition() -> None:
    inner, outer = relu([4, 5, 3], 1001), relu([3, 6, 6, 2], 1002)
    net = compose(outer, inner)
    assert net.hidden == (5, 6, 6)
    assert_allclose(net(X), outer(inner(X)), rtol=0, atol=ROUNDING)


def test_composition_keeps_other_activations() -> None:
    inner = random_network([4, 5, 3], seed=1003, outer="normal", output_activation="sigmoid")
    outer = random_network([3, 6, 2], seed=1004, outer="normal")
    net = compose(outer, inner)
    assert net.hidden == (5, 3, 6)
    assert_allclose(net(X), outer(inner(X)), rtol=0, atol=ROUNDING)


def test_sum_and_stack_of_different_depths() -> None:
    shallow, deep = relu([4, 5, 3], 1005), relu([4, 6, 7, 8, 3], 1006)
    side = stack(shallow, deep)
    assert_allclose(side(X), np.hstack([shallow(X), deep(X)]), rtol=0, atol=ROUNDING)
    assert size(side) == size(shallow) + size(deep) + 2 * 3 * 2  # two gates per output and missing layer
    total = add(shallow, deep, coefficients=[2.0, -1.0])
    assert_allclose(total(X), 2 * shallow(X) - deep(X), rtol=0, atol=ROUNDING)
    assert size(total) == size(side)
    assert_allclose(add(shallow)(X), shallow(X), rtol=0, atol=ROUNDING)


def test_padding_an_affine_map() -> None:
    affine = affine_network(RNG.standard_normal((4, 2)), [1.0, -1.0])
    padded = pad(affine, 4)
    assert (depth(padded), padded.hidden) == (4, (4, 4, 4))
    assert_allclose(padded(X), affine(X), rtol=0, atol=ROUNDING)
    assert pad(affine, 1) is affine


def test_exact_networks_stay_exact_among_floats() -> None:
    inner, outer = relu([2, 3, 2], 1007), as_exact(relu([2, 3, 1], 1008))
    net = add(compose(outer, inner), affine_network([[Fraction(1, 3)], [0]]))
    x = [Fraction(1, 7), Fraction(-2, 3)]
    assert net([x])[0, 0] == outer(as_exact(inner)([x]))[0, 0] + Fraction(1, 21)


@pytest.mark.parametrize("gates", [3, 4])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 100])
def test_maximum_layers_size_and_value(n: int, gates: int) -> None:
    net = max_net(n, gates)
    assert len(net.hidden) == ceil(log2(n))
    assert size(net) == max_net_size(n, gates)
    x = 10 * np.random.default_rng(1000 + n).standard_normal((200, n))
    largest = np.abs(x).max()
    assert np.abs(net(x)[:, 0] - x.max(axis=1)).max() <= 4 * (1 + log2(n)) * np.finfo(float).eps * largest


def test_maximum_sizes_are_the_known_ones() -> None:
    assert [max_net_size(n) for n in (2, 8, 16, 33, 100)] == [3, 21, 45, 106, 303]
    assert [max_net_size(n, 4) for n in (2, 8, 16, 33, 100)] == [4, 28, 60, 138, 402]


@pytest.mark.parametrize("gates", [3, 4])
def test_maximum_of_a_hundred_is_exact(gates: int) -> None:
    net = max_net(100, gates, exact=True)
    x = np.random.default_rng(1009).integers(-99, 99, (10, 100))
    rows = [[Fraction(int(v), 13) for v in row] for row in x]
    assert net(rows)[:, 0].tolist() == [max(row) for row in rows]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compose(relu([3, 2, 1], 1), relu([3, 2, 1], 1)), "order may be reversed"),
        (lambda: add(relu([3, 2, 1], 1), relu([3, 2, 2], 1)), "use stack"),
        (lambda: add(relu([3, 2, 1], 1), relu([2, 2, 1], 1)), "same inputs"),
        (lambda: add(relu([3, 2, 1], 1), coefficients=[1, 2]), "one per network"),
        (lambda: add(relu([3, 2, 1], 1), coefficients=[float("inf")]), "finite"),
        (lambda: add(), "at least one"),
        (lambda: stack(relu([3, 2, 1], 1), random_network([3, 2, 1])), "activations"),
        (lambda: stack(random_network([3, 2, 1]), random_network([3, 2, 2, 1])), "relu units"),
        (lambda: add(random_network([3, 2, 1], output_activation="tanh")), "identity output"),
        (lambda: compose("net", relu([3, 2, 1], 1)), "unweave.Network"),
        (lambda: pad(relu([3, 2, 1], 1), 1), "shallower"),
        (lambda: affine_network([1.0, 2.0]), "shape"),
        (lambda: affine_network([[np.inf]]), "finite"),
        (lambda: max_net(0), "positive"),
        (lambda: max_net(4, gates=5), "gates"),
        (lambda: compose(Network([[[1.0]]], [[0.0]], ["identity"], [[1.0]]), relu([3, 2, 1], 1)), "skip"),
    ],
)
def test_bad_input_is_named(call, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        call()


def test_a_single_filter_is_a_mean_over_views() -> None:
    rng = np.random.default_rng(1000)
    matrices, weights = rng.standard_normal((4, 3, 6)), rng.standard_normal(3)
    x = rng.standard_normal((10, 6))
    net = construct.single_filter_net(matrices, weights, "leaky_relu")
    gates = [get_activation("leaky_relu")(x @ (weights @ matrix)) for matrix in matrices]
    np.testing.assert_allclose(net(x)[:, 0], np.mean(gates, axis=0), atol=1e-14)
    assert construct.windows(6, 3, 2).shape == (2, 3, 6)
    with pytest.raises(unweave.UnweaveError, match="matrices"):
        construct.single_filter_net(matrices, weights[:2])
    with pytest.raises(unweave.UnweaveError, match="width"):
        construct.windows(3, 4)
