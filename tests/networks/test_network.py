from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_info

from unweave.errors import InvalidInput
from unweave.networks.activations import (
    Activation,
    Reflection,
    activation_names,
    get_activation,
    register_activation,
)
from unweave.networks.evaluation import evaluate_layers
from unweave.networks.network import Network
from unweave.networks.random import random_network
from unweave.numerics.threads import allowed_threads, single_threaded_blas

RNG = np.random.default_rng(1000)


def small(**changes: object) -> Network:
    parts: dict[str, object] = {
        "weights": [np.arange(6.0).reshape(2, 3), np.ones((3, 1))],
        "biases": [np.zeros(3), [0.5]],
        "activations": ["tanh", "identity"],
    }
    return Network(**{**parts, **changes})  # type: ignore[arg-type]


def test_answers_follow_the_formula() -> None:
    net = random_network([4, 7, 5, 3], seed=1001, outer="normal")
    x = RNG.standard_normal((10, 4))
    h = np.tanh(x @ net.weights[0] + net.biases[0])
    h = np.tanh(h @ net.weights[1] + net.biases[1])
    assert_allclose(net(x), h @ net.weights[2] + net.biases[2], rtol=1e-14, atol=1e-14)


def test_skip_reaches_the_last_preactivation() -> None:
    base = random_network([4, 7, 2], seed=1002, outer="normal")
    skip = RNG.standard_normal((4, 2))
    x = RNG.standard_normal((10, 4))
    net = Network(base.weights, base.biases, ["tanh", "sigmoid"], skip)
    assert_allclose(net(x), 1 / (1 + np.exp(-(base(x) + x @ skip))), rtol=1e-14)
    assert net.n_parameters == base.n_parameters + 8


def test_softmax_output() -> None:
    base = random_network([4, 7, 3], seed=1003, outer="normal")
    net = Network(base.weights, [base.biases[0], base.biases[1] + 1000], ["tanh", "softmax"])
    x = RNG.standard_normal((10, 4))
    e = np.exp(base(x))
    assert_allclose(net(x), e / e.sum(axis=1, keepdims=True), rtol=1e-12)  # the shift costs 1000 eps


def test_a_vector_gives_a_vector_and_no_rows_give_no_rows() -> None:
    net = random_network([4, 7, 3], seed=1004)
    x = RNG.standard_normal(4)
    assert net(x).shape == (3,)
    assert_array_equal(net(x), net(x[None])[0])
    assert net(np.empty((0, 4))).shape == (0, 3)
    assert net([[1, 2, 3, 4]]).dtype == np.float64


@pytest.mark.parametrize("x", [np.zeros((3, 5)), np.zeros(3), np.zeros((1, 2, 4)), 1.0])
def test_inputs_of_the_wrong_shape_are_refused(x: object) -> None:
    with pytest.raises(InvalidInput, match=r"shape \(n, 4\) or \(4,\)"):
        random_network([4, 7, 3])(x)  # type: ignore[arg-type]


@pytest.mark.parametrize("layers", [[50, 300, 2], [7, 1000, 30, 1], [3, 2]])
def test_the_number_of_workers_does_not_change_a_bit(layers: list[int]) -> None:
    net = random_network(layers, seed=1005, outer="normal")
    functions = [get_activation(name) for name in net.activations]
    x = RNG.standard_normal((4099, layers[0]))  # not a multiple of any block
    one, two, three = (
        evaluate_layers(x, net.weights, net.biases, functions, None, workers) for workers in (1, 2, 3)
    )
    assert_array_equal(one, two)
    assert_array_equal(one, three)
    assert_array_equal(one, net(x))


def test_rows_of_a_large_batch_are_the_rows_of_small_ones() -> None:
    net = random_network([20, 400, 2], seed=1006, outer="normal")
    x = RNG.standard_normal((5001, 20))
    whole = net(x)
    for start in (0, 327, 4999):
        # the same sums of 400 terms, possibly in another order
        assert_allclose(whole[start : start + 5], net(x[start : start + 5]), rtol=0, atol=400 * 2.3e-16 * 4)


def test_inputs_and_strided_inputs_are_left_alone() -> None:
    net = random_network([6, 9, 1], "identity", seed=1007)
    x = RNG.standard_normal((40, 12))
    before = x.copy()
    assert_allclose(net(x[::2, ::2]), net(x[::2, ::2].copy()), rtol=1e-14, atol=1e-14)
    net(x.T[:6].T)
    assert_array_equal(x, before)


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_blas_is_single_threaded_inside_and_as_before_outside() -> None:
    before = blas_threads()
    with single_threaded_blas():
        assert allowed_threads() == 1
        with single_threaded_blas():
            assert allowed_threads() == 1
        assert allowed_threads() == 1
    assert blas_threads() == before


def test_threads_that_evaluate_at_the_same_time_do_not_disturb_each_other() -> None:
    before = blas_threads()
    net = random_network([20, 500, 2], seed=1014, outer="normal")
    x = RNG.standard_normal((6000, 20))
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(net, [x] * 8))
    for answer in answers:
        assert_array_equal(answer, net(x))
    assert blas_threads() == before


def test_parameters_are_copies_and_read_only() -> None:
    weight = np.ones((2, 3))
    net = small(weights=[weight, np.ones((3, 1))])
    weight[0, 0] = 7
    assert net.weights[0][0, 0] == 1
    for array in (*net.weights, *net.biases):
        assert array.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert twin == net
        assert not twin.weights[0].flags.writeable
    with pytest.raises(AttributeError):
        net.weights = ()  # type: ignore[misc]


def test_shape_properties_and_repr() -> None:
    net = random_network([20, 100, 1])
    assert (net.n_inputs, net.n_outputs, net.hidden, net.n_parameters) == (20, 1, (100,), 2201)
    assert repr(net) == "Network(20-100-1, tanh, identity output, 2201 parameters)"
    deep = Network([np.ones((2, 2))] * 3, [np.zeros(2)] * 3, ["logistic", "relu", "linear"], np.eye(2))
    assert deep.activations == ("sigmoid", "relu", "identity")
    assert repr(deep) == "Network(2-2-2-2, sigmoid/relu, identity output, skip, 22 parameters)"
    assert (
        repr(Network([np.ones((2, 1))], [[0.0]], ["sigmoid"])) == "Network(2-1, sigmoid output, 3 parameters)"
    )


def test_equality_is_exact() -> None:
    assert small() == small()
    assert hash(small()) == hash(small())
    assert small() != small(biases=[np.zeros(3), [np.nextafter(0.5, 1)]])
    assert small() != small(activations=["relu", "identity"])
    assert small() != small(skip=np.zeros((2, 1)))
    assert small() != "a network"
    assert len({small(), small(), small(activations=["relu", "identity"])}) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": []}, "at least one layer"),
        ({"weights": [np.ones((2, 3))]}, "one per layer"),
        ({"weights": [np.ones((2, 3)), np.ones((1, 3))]}, "must have 3 rows.*transpose"),
        ({"weights": [np.ones(3), np.ones((3, 1))]}, "non-empty matrix"),
        ({"weights": [np.ones((2, 3)), np.full((3, 1), np.nan)]}, r"weights\[1\] must be finite. Got 3"),
        ({"weights": [[[1.0], [2.0, 3.0]], np.ones((3, 1))]}, "array of real numbers"),
        ({"weights": [np.ones((2, 3)), np.empty((3, 0))]}, "non-empty"),
        ({"biases": [np.zeros(2), [0.5]]}, r"biases\[0\] must be of shape \(3,\)"),
        ({"biases": [np.zeros((3, 1)), [0.5]]}, "a vector"),
        ({"activations": ["tanh"]}, "2 names"),
        ({"activations": "tanh"}, "2 names"),
        ({"activations": ["tanh", "tahn"]}, "one of tanh"),
        ({"activations": ["softmax", "identity"]}, "output activation only"),
        ({"skip": np.ones((1, 2))}, r"skip must be of shape \(2, 1\)"),
    ],
)
def test_what_is_not_a_network_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        small(**changes)


def _negated_sine(z: np.ndarray, order: int) -> tuple[np.ndarray, ...]:
    return (-np.sin(z), -np.cos(z), np.sin(z), np.cos(z))[: order + 1]


@pytest.fixture(scope="module")
def registered() -> str:
    register_activation(Activation("negated_sine", _negated_sine, Reflection(-1)))
    return "negated_sine"


@pytest.mark.parametrize("output", ["identity", "softmax"])
@pytest.mark.parametrize("with_skip", [False, True])
def test_torch_modules_give_the_same_answers(registered: str, output: str, with_skip: bool) -> None:
    x = 3 * RNG.standard_normal((20, 4))
    skip = RNG.standard_normal((4, 3)) if with_skip else None
    assert registered in activation_names()
    for name in activation_names():
        base = random_network([4, 6, 5, 3], name, seed=1008, outer="unit", output_activation=output)
        net = Network(base.weights, base.biases, base.activations, skip)
        module = net.to_torch()
        assert isinstance(module, torch.nn.Sequential) is not with_skip
        with torch.no_grad():
            got = module(torch.tensor(x))
        assert got.dtype == torch.float64
        assert_allclose(got.numpy(), net(x), rtol=1e-12, atol=1e-13)
        assert sum(p.numel() for p in module.parameters()) == net.n_parameters


def test_registered_activations_can_be_differentiated_in_torch(registered: str) -> None:
    module = random_network([2, 3, 1], registered, seed=1009).to_torch()
    reference = random_network([2, 3, 1], "sine", seed=1009).to_torch()
    x = torch.tensor([0.3, -0.7], dtype=torch.float64)
    hessian = torch.autograd.functional.hessian(lambda v: module(v).sum(), x)
    expected = torch.autograd.functional.hessian(lambda v: -reference(v).sum(), x)
    assert_allclose(hessian.numpy(), expected.numpy(), rtol=1e-13, atol=1e-14)


def test_random_networks_keep_what_they_promise() -> None:
    net = random_network([30, 50, 20, 4], seed=1010, outer="signed", norms=(0.5, 2), bias=0.3)
    for weight, bias in zip(net.weights[:-1], net.biases[:-1], strict=True):
        lengths = np.linalg.norm(weight, axis=0)
        assert lengths.min() >= 0.5 - 1e-12
        assert lengths.max() <= 2 + 1e-12
        assert np.ptp(lengths) > 0.5
        assert np.abs(bias).max() <= 0.3
    sizes = np.abs(net.weights[-1])
    assert sizes.min() >= 0.5
    assert sizes.max() <= 2
    assert (net.weights[-1] < 0).any()
    assert net == random_network([30, 50, 20, 4], seed=1010, outer="signed", norms=(0.5, 2), bias=0.3)
    assert net != random_network([30, 50, 20, 4], seed=1011, outer="signed", norms=(0.5, 2), bias=0.3)
    ones = random_network([3, 4, 2], seed=1012)
    assert_array_equal(ones.weights[-1], np.ones((4, 2)))
    assert_array_equal(ones.biases[-1], np.zeros(2))
    assert_allclose(np.linalg.norm(ones.weights[0], axis=0), 1)
    unit = random_network([3, 4, 2], seed=1013, outer="unit", output_activation="logistic")
    assert_allclose(np.linalg.norm(unit.weights[-1], axis=0), 1)
    assert unit.activations == ("tanh", "sigmoid")
    assert np.abs(unit.biases[-1]).max() > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layers": [3]}, "at least two"),
        ({"layers": [3, 0, 1]}, "positive integers"),
        ({"layers": [3, 2.5, 1]}, "positive integers"),
        ({"layers": [3, 2, 1], "outer": "two"}, "outer must be one of"),
        ({"layers": [3, 2, 1], "norms": (2, 1)}, "low <= high"),
        ({"layers": [3, 2, 1], "norms": (0, 1)}, "0 < low"),
        ({"layers": [3, 2, 1], "bias": -1}, "non-negative"),
        ({"layers": [3, 2, 1], "activation": "nope"}, "one of tanh"),
    ],
)
def test_random_network_checks_its_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        random_network(**arguments)  # type: ignore[arg-type]
