"""A limit on memory chooses the linear algebra."""

from __future__ import annotations

import math

import numpy as np
import pytest

import unweave
from unweave import InvalidInput, Status
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFit
from unweave.numerics.least_squares import levenberg_marquardt
from unweave.numerics.memory import allowed_bytes, memory_limit


def test_the_limit_holds_inside_and_ends_outside() -> None:
    assert allowed_bytes() == math.inf
    with memory_limit(1000):
        with memory_limit(None):
            assert allowed_bytes() == 1000
        with memory_limit(10):
            assert allowed_bytes() == 10
        assert allowed_bytes() == 1000
    assert allowed_bytes() == math.inf


def test_fits_that_would_take_more_run_without_a_matrix() -> None:
    network = unweave.random_network([6, 5, 1], seed=1000, outer="normal")
    x = np.random.default_rng(1).standard_normal((200, 6))
    parameters = NetworkParameters.from_network(network)
    problem = ValueFit(parameters, x, network(x))
    start = parameters.to_vector() * (1 + 1e-4)
    formed = levenberg_marquardt(problem, start)
    with memory_limit(100):
        free = levenberg_marquardt(problem, start)
    assert formed.inner_iterations == 0 < free.inner_iterations
    np.testing.assert_allclose(free.vector, formed.vector, atol=1e-9)


@pytest.mark.parametrize("layers", [[6, 4, 1], [8, 5, 3, 1]])
def test_a_recovery_keeps_to_it(layers: list[int]) -> None:
    network = unweave.random_network(layers, seed=1000, outer="normal")
    result = unweave.recover(network, max_memory=1e4)
    assert result.status is Status.RECOVERED, result.message
    assert unweave.compare(network, result.network).parameter_error < 1e-8


def test_bytes_are_a_positive_number() -> None:
    with pytest.raises(InvalidInput, match="max_memory must be a positive number of bytes"):
        unweave.recover(unweave.random_network([3, 2, 1]), max_memory=0)
