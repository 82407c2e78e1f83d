"""Gauss-Newton on all parameters of a kinked layer: both ways to solve, and where it stops."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.methods.relu.fit import PolishOptions, polish


def near(seed: int, outputs: int = 1) -> tuple[unweave.Network, unweave.Network, np.ndarray]:
    """A network, one with parameters off by 1e-9, and points on no hyperplane of either."""
    rng = np.random.default_rng(seed)
    truth = unweave.random_network([6, 9, outputs], "relu", seed=seed, outer="normal", bias=1)
    weights = [w + 1e-9 * rng.standard_normal(w.shape) for w in truth.weights]
    biases = [b + 1e-9 * rng.standard_normal(b.shape) for b in truth.biases]
    points = rng.standard_normal((600, 6))
    far = np.abs(points @ truth.weights[0] + truth.biases[0]).min(axis=1) > 1e-6
    return truth, unweave.Network(weights, biases, truth.activations), points[far]


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("exact", [True, False])
def test_parameters_come_to_rounding(exact: bool, outputs: int) -> None:
    options = PolishOptions() if exact else PolishOptions(largest_exact=0)
    for seed in range(1000, 1006):
        truth, start, points = near(seed, outputs)
        result = polish(start, points, truth(points), options)
        assert unweave.compare(truth, start).parameter_error > 1e-10
        assert unweave.compare(truth, result.network).parameter_error < 1e-13
        assert list(result.history) == sorted(result.history, reverse=True)


def test_a_singular_system_is_damped_until_it_can_be_solved() -> None:
    truth, start, points = near(1000)
    result = polish(start, points, truth(points), PolishOptions(largest_exact=0, ridge=1e-30))
    assert unweave.compare(truth, result.network).parameter_error < 1e-12


def test_too_few_or_too_many_equations_change_nothing() -> None:
    truth, start, points = near(1001)
    assert polish(start, points[:50], truth(points[:50])).network is start
    assert polish(start, points, truth(points), PolishOptions(largest=0)).network is start
