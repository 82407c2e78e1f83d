from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.diagnose import diagnose_network, expected_learnability, incoherence, shift_problem
from unweave.errors import InvalidInput
from unweave.networks.activations import get_activation
from unweave.networks.network import Network
from unweave.networks.random import random_network


def test_an_orthonormal_network_is_as_easy_as_can_be() -> None:
    weights = np.linalg.qr(np.random.default_rng(1000).standard_normal((5, 5)))[0]
    network = Network([2 * weights, np.ones((5, 1))], [np.zeros(5), np.zeros(1)], ["tanh", "identity"])
    found = diagnose_network(network)
    assert_allclose(found.norms, 2 * np.ones(5))
    assert found.incoherence.independent
    assert found.frame.count.holds
    assert found.frame.power_method.good_at_least > 1 - 1e-12
    assert found.learnability is not None
    assert_allclose(found.learnability.alpha, found.learnability.alpha_lower_bound)


def test_the_parts_are_those_of_the_unit_directions() -> None:
    network = random_network([6, 9, 2], seed=1001, norms=(0.5, 3), outer="normal")
    norms = np.linalg.norm(network.weights[0], axis=0)
    unit = network.weights[0] / norms
    found = diagnose_network(network, subspace_error=1e-3)
    assert_allclose(found.norms, norms)
    assert found.incoherence == incoherence(unit)
    tanh = get_activation("tanh")
    assert found.learnability == expected_learnability(unit, network.biases[0], tanh, network.weights[1])
    assert found.shifts == shift_problem(unit, network.biases[0], tanh)
    assert found.frame.subspace_error == 1e-3
    assert found.frame.frame_constant == found.incoherence.frame_constant


def test_networks_with_kinks_have_no_hessian_figures() -> None:
    found = diagnose_network(random_network([6, 9, 1], activation="relu", seed=1002))
    assert found.learnability is None
    assert found.shifts is None
    assert found.incoherence.width == 9


def test_deeper_networks_are_refused() -> None:
    with pytest.raises(InvalidInput, match="one hidden layer"):
        diagnose_network(random_network([6, 5, 4, 1], seed=1003))
