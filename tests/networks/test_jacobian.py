from __future__ import annotations

import numpy as np
import pytest

from unweave import get_activation, random_network
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFit
from unweave.numerics.least_squares import LevenbergMarquardtOptions, levenberg_marquardt


def model(outputs: int, skip: bool, seed: int = 1000) -> NetworkParameters:
    net = random_network([4, 6, outputs], seed=seed, outer="normal")
    matrix = np.random.default_rng(seed).standard_normal((4, outputs)) if skip else None
    return NetworkParameters.shallow(
        get_activation("tanh"), net.weights[0], net.biases[0], net.weights[1], net.biases[1], matrix
    )


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
class TestJacobian:
    def test_is_the_derivative_of_the_residual(self, outputs: int, skip: bool) -> None:
        m, points = model(outputs, skip), np.random.default_rng(0).standard_normal((9, 4))
        fit = ValueFit(m, points, np.zeros((9, outputs)))
        vector, direction = m.to_vector(), np.random.default_rng(1).standard_normal(m.size)
        numeric = (fit.residual(vector - 1e-6 * direction) - fit.residual(vector + 1e-6 * direction)) / 2e-6
        linear = fit.linearise(vector)
        # Central differences: truncation 1e-12 times third derivatives, rounding 1e-16 / 1e-6.
        np.testing.assert_allclose(linear.apply(direction), numeric, atol=1e-7)
        np.testing.assert_allclose(linear.dense() @ direction, linear.apply(direction), atol=1e-12)

    def test_products_agree_with_the_matrix(self, outputs: int, skip: bool) -> None:
        m, points = model(outputs, skip), np.random.default_rng(0).standard_normal((9, 4))
        linear = ValueJacobian(m, points)
        dense, rows = linear.dense(), np.random.default_rng(2).standard_normal(9 * outputs)
        np.testing.assert_allclose(linear.adjoint(rows), dense.T @ rows, atol=1e-12)
        upper = np.triu_indices(m.size)
        np.testing.assert_allclose(linear.gram()[upper], (dense.T @ dense)[upper], atol=1e-11)
        single = linear.in_single_precision()
        assert single.apply(np.ones(m.size, dtype=np.float32)).dtype == np.float32


@pytest.mark.parametrize("skip", [False, True])
def test_a_disturbed_network_comes_back(skip: bool) -> None:
    truth = model(2, skip)
    points = np.random.default_rng(3).standard_normal((60, 4))
    start = truth.to_vector() + 1e-2 * np.random.default_rng(4).standard_normal(truth.size)
    problem = ValueFit(truth, points, truth.values(points))
    fit = levenberg_marquardt(problem, start, LevenbergMarquardtOptions(floor=1e-15, damping=1e-6))
    assert fit.rms < 1e-13
    np.testing.assert_allclose(fit.vector, truth.to_vector(), atol=1e-9)
