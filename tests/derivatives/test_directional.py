from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from unweave.derivatives.stencils import directional_derivatives
from unweave.networks.activations import get_activation
from unweave.networks.random import random_network


def exact(network, directions: np.ndarray, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    jet = get_activation(network.activations[0]).jet(point @ network.weights[0] + network.biases[0], 3)
    along = directions @ network.weights[0]
    return (along**2 * jet[2]) @ network.weights[1], (along**3 * jet[3]) @ network.weights[1]


def errors(h: float) -> tuple[float, float]:
    network = random_network([5, 8, 2], seed=1000, outer="normal")
    rng = np.random.default_rng(1001)
    directions, point = rng.standard_normal((6, 5)), rng.standard_normal(5)
    computed = directional_derivatives(network, directions, point, h, h)
    return tuple(
        float(np.abs(mine - true).max())
        for mine, true in zip(computed, exact(network, directions, point), strict=True)
    )


def test_both_derivatives_are_of_second_order() -> None:
    coarse, fine = errors(0.02), errors(0.01)
    assert_allclose(np.log2(np.divide(coarse, fine)), [2, 2], atol=0.1)
    assert max(errors(1e-3)) < 1e-3


def test_cubics_are_differentiated_exactly() -> None:
    directions = np.random.default_rng(1002).standard_normal((4, 3))
    a = np.array([1.0, -2.0, 0.5])

    def cubic(x: np.ndarray) -> np.ndarray:
        return ((x @ a) ** 3 + 3 * (x @ a) ** 2)[:, None]

    second, third = directional_derivatives(cubic, directions, second_step=0.5, third_step=0.25)
    assert_allclose(second[:, 0], 6 * (directions @ a) ** 2, rtol=1e-11)
    assert_allclose(third[:, 0], 6 * (directions @ a) ** 3, rtol=1e-10)


def test_the_origin_is_the_default_point_and_equal_steps_share_rows() -> None:
    network = random_network([5, 8, 1], seed=1003)
    asked = []

    def counting(x: np.ndarray) -> np.ndarray:
        asked.append(len(x))
        return network(x)

    directions = np.random.default_rng(1004).standard_normal((6, 5))
    implicit = directional_derivatives(counting, directions)
    assert asked == [4 * 6 + 1]
    explicit = directional_derivatives(counting, directions, np.zeros(5))
    for mine, other in zip(implicit, explicit, strict=True):
        assert_allclose(mine, other)
    directional_derivatives(counting, directions, second_step=1e-3, third_step=1e-2)
    assert asked[-1] == 6 * 6 + 1
    directional_derivatives(counting, directions, second_step=2e-2, third_step=1e-2)
    assert asked[-1] == 4 * 6 + 1
