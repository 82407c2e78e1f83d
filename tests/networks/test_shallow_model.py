from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from random_models import CASES, random_model, sites_of
from unweave.derivatives.stencils import hessian_jets


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


@pytest.mark.parametrize("scheme", ["compact", "four-point"])
@pytest.mark.parametrize("name", ["tanh", "sigmoid", "softplus", "sine"])
def test_difference_gradients_are_those_of_the_differences(name: str, scheme: str) -> None:
    model = random_model(4, 5, 2, True, name=name)
    x = sites_of(4)
    errors = []
    for step in (0.2, 0.1):
        jets = hessian_jets(model.values, x, step, scheme)
        errors.append(np.abs(model.difference_gradients(x, step, jets.rule) - jets.gradients).max())
    assert errors[1] < 1e-5
    assert errors[0] / errors[1] > 40  # what is left is of order h^6


def test_keep_selects_neurons() -> None:
    model = random_model(4, 5, 2, True)
    parts = [model.keep(np.array([0, 3])), model.keep(np.array([1, 2, 4]))]
    x = sites_of(4)
    linear = model.offset + x @ model.skip
    assert parts[0].width == 2
    assert_allclose(sum(part.values(x) - linear for part in parts) + linear, model.values(x), atol=1e-13)
