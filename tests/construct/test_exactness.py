"""Networks whose parameters are fractions: what they can do, and what they refuse."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest

import unweave
from unweave.construct import as_exact, as_float
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.networks.random import random_network

THIRD = Fraction(1, 3)


def small() -> Network:
    return Network([[[THIRD, 2]], [[1], [-1]]], [[0, 0.5], [0]], ["relu", "identity"])


def test_one_fraction_makes_all_parameters_fractions() -> None:
    net = small()
    assert net.is_exact
    assert all(isinstance(p, Fraction) for a in (*net.weights, *net.biases) for p in a.flat)
    assert net.biases[0][1] == Fraction(1, 2)  # the float kept its value
    assert not random_network([2, 3, 1]).is_exact
    assert not Network([[[1], [2]]], [[0]], ["identity"]).is_exact  # integers alone are floats, as before


def test_answers_are_fractions_without_rounding() -> None:
    answer = small()([[Fraction(1, 7)], [0.1], [-1]])
    tenth = Fraction(0.1)  # which is not 1/10
    expected = [
        Fraction(1, 21) - (Fraction(2, 7) + Fraction(1, 2)),
        tenth / 3 - 2 * tenth - Fraction(1, 2),
        Fraction(0),
    ]
    assert answer.shape == (3, 1)
    assert answer[:, 0].tolist() == expected
    assert small()([0]).tolist() == [Fraction(-1, 2)]


@pytest.mark.parametrize(("name", "expected"), [("quadratic", 9), ("cubic", -27), ("squared_relu", 0)])
def test_polynomial_activations(name: str, expected: int) -> None:
    net = Network([[[Fraction(1)]], [[1]]], [[0], [0]], [name, "identity"])
    assert net([-3])[0] == expected


def test_skip() -> None:
    net = Network([[[THIRD]], [[1]]], [[0], [0]], ["relu", "identity"], skip=[[THIRD]])
    assert net([2])[0] == Fraction(4, 3)
    assert net.n_parameters == 5


def test_equality_hash_and_repr_are_by_value() -> None:
    net, same = small(), small()
    assert net == same
    assert hash(net) == hash(same)
    assert net != Network([[[THIRD, 2]], [[1], [-1]]], [[0, THIRD], [0]], ["relu", "identity"])
    assert pickle.loads(pickle.dumps(net)) == net == copy.deepcopy(net)
    assert repr(net) == "Network(1-2-1, relu, identity output, exact, 7 parameters)"
    with pytest.raises(ValueError, match="read-only"):
        net.weights[0][0, 0] = Fraction(1)


def test_floats_to_fractions_and_back() -> None:
    net = random_network([3, 5, 2], activation="relu", outer="normal", seed=1000)
    exact = as_exact(net)
    assert exact.is_exact
    assert as_float(exact) == net
    assert as_exact(exact) is exact
    assert as_float(net) is net
    assert as_exact(net) != net
    x = np.random.default_rng(1000).standard_normal((20, 3))
    terms = 5 + 3 + 2  # roundings along the longest sum of products of order one
    assert np.abs(exact(x).astype(float) - net(x)).max() <= 10 * terms * np.finfo(float).eps


def test_operations_for_floats_refuse(tmp_path) -> None:
    net = small()
    for operation in (
        lambda: net.save(tmp_path / "net.npz"),
        lambda: net.save(tmp_path / "net.json"),
        net.to_torch,
    ):
        with pytest.raises(InvalidInput, match="as_float"):
            operation()
    assert not list(tmp_path.iterdir())


def test_as_a_target_it_answers_floats() -> None:
    target = Network([[[2, 1], [1, -2]], [[THIRD], [-1]]], [[0, 1], [0]], ["relu", "identity"])
    result = unweave.recover(target, input_dim=2, hidden=[2], activation="relu", seed=1000)
    assert result.status is unweave.Status.RECOVERED
    assert unweave.compare(as_float(target), result.network).is_same


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([[[THIRD]]], [[float("inf")]], ["identity"]), "finite"),
        (([[[THIRD]]], [[float("nan")]], ["identity"]), "finite"),
        (([[["a", THIRD]]], [[0, 0]], ["identity"]), "real numbers"),
        (([[[THIRD], [1, 2]]], [[0]], ["identity"]), "rectangular|array"),
        (([[[THIRD]]], [[0]], ["tanh"]), "rational"),
        (([[[THIRD]]], [[0]], ["softmax"]), "rational"),
        (([[THIRD]], [[0]], ["identity"]), "matrix"),
    ],
)
def test_bad_parameters_are_named(parts, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Network(*parts)


def test_bad_points_are_named() -> None:
    with pytest.raises(InvalidInput, match="finite"):
        small()([[float("inf")]])
    with pytest.raises(InvalidInput, match="shape"):
        small()([[1, 2]])


def test_rounding_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidInput, match="rounded"):
        as_float(Network([[[Fraction(10) ** 400]]], [[0]], ["identity"]))
