"""Quadratic units with biases and signs from samples, nothing told."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave import Samples, Status


@pytest.mark.parametrize(("inputs", "width"), [(6, 3), (10, 8), (4, 1)])
def test_quadratic_units_are_found_with_nothing_told(inputs, width):
    net = unweave.random_network([inputs, width, 1], "quadratic", seed=1000, outer="normal")
    x = np.random.default_rng(1).standard_normal((6 * net.n_parameters, inputs))
    result = unweave.recover(Samples(x, net(x)))
    expected = Status.RECOVERED if width == 1 else Status.RECOVERED_UP_TO_AMBIGUITY
    assert result.status is expected
    assert result.network.hidden == (width,)
    assert unweave.compare(net, result.network).function_error <= 1e-10


def test_other_units_are_left_to_other_methods():
    net = unweave.random_network([4, 2, 1], "tanh", seed=1000, outer="normal")
    x = np.random.default_rng(1).standard_normal((600, 4))
    result = unweave.recover(Samples(x, net(x)))
    assert result.network.activations[0] == "tanh"


def test_few_rows_are_left_to_other_methods():
    net = unweave.random_network([10, 2, 1], "relu", seed=1000, outer="normal")
    x = np.random.default_rng(1).standard_normal((100, 10))
    result = unweave.recover(Samples(x, net(x)))
    assert not any(stage.name == "fit quadratic form" for stage in result.stages)
