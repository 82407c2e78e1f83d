from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.networks.random import random_network
from unweave.networks.saturation import ERF, TANH, as_logistic

Z = np.linspace(-3, 3, 61)
SATURATING = {"tanh": TANH, "erf": ERF}


@pytest.mark.parametrize("output", ["identity", "tanh", "sigmoid"])
@pytest.mark.parametrize("layers", [[4, 5, 2], [4, 5, 3, 2], [3, 6, 5, 4, 1]])
def test_logistic_units_compute_the_same(layers: list[int], output: str) -> None:
    network = random_network(
        layers, seed=1000, outer="normal", norms=(0.5, 2), bias=1.0, output_activation=output
    )
    logistic = as_logistic(network)
    assert logistic.activations == ("sigmoid",) * (len(layers) - 2) + (output,)
    x = 2 * np.random.default_rng(1001).standard_normal((200, layers[0]))
    expected = network(x)
    assert_allclose(logistic(x), expected, rtol=0, atol=1e-13 * max(1.0, np.abs(expected).max()))
    assert_allclose(logistic.weights[0], 2 * network.weights[0])


def test_the_given_network_is_left_alone() -> None:
    network = random_network([4, 5, 3, 2], seed=1000, outer="normal")
    before = [np.array(part) for part in (*network.weights, *network.biases)]
    as_logistic(network)
    for old, new in zip(before, (*network.weights, *network.biases), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("name", list(SATURATING))
def test_slopes_and_bending_are_those_of_the_jet(name: str) -> None:
    g = SATURATING[name]
    assert g.name == name
    value, first, second, third = g.activation.jet(Z, 3)
    assert_allclose(g.values(Z), value)
    for mine, other in zip(g.slopes(Z), (first, second), strict=True):
        assert_allclose(mine, other)
    r, slope = g.bending(Z)
    assert_allclose(r, second / first, rtol=0, atol=1e-11)
    assert_allclose(slope, third / first - (second / first) ** 2, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", list(SATURATING))
def test_the_inverse_undoes(name: str) -> None:
    g = SATURATING[name]
    # eps over the slope at 3, 1e-2 for tanh and 1e-4 for erf
    assert_allclose(g.inverse(g.values(Z)), Z, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", list(SATURATING))
def test_odd_with_limits_one(name: str) -> None:
    g = SATURATING[name]
    assert_allclose(g.values(-Z), -g.values(Z), atol=1e-15)
    assert_allclose(g.values(np.array([-40.0, 0.0, 40.0])), [-1, 0, 1])


def test_bending_stays_finite_where_the_slope_vanishes() -> None:
    far = np.array([-50.0, 50.0])
    assert (TANH.slopes(far)[0] < 1e-40).all()
    assert_allclose(TANH.bending(far)[0], [2, -2])
    assert_allclose(ERF.bending(far)[0], [100, -100])
