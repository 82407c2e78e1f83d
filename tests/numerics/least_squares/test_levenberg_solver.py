from __future__ import annotations

import numpy as np
import pytest

from unweave.networks.parameters import NetworkParameters
from unweave.networks.random import random_network
from unweave.networks.value_fit import ValueFit
from unweave.numerics.least_squares.levenberg_solver import LevenbergSolver
from unweave.numerics.least_squares.ridged import Ridged


def problem() -> tuple[Ridged, np.ndarray]:
    rng = np.random.default_rng(1000)
    model = NetworkParameters.from_network(random_network([6, 5, 2], seed=1000, outer="normal"))
    x = rng.standard_normal((200, 6))
    fit = ValueFit(model, x, rng.standard_normal((200, 2)))
    return Ridged(fit, np.full(model.size, 0.3)), model.to_vector()


@pytest.mark.parametrize("damping", [0.0, 1e-2, 10.0])
def test_it_solves_the_damped_normal_equations(damping: float) -> None:
    ridged, vector = problem()
    linear, residual = ridged.linearise(vector), ridged.residual(vector)
    dense, metric = linear.dense(), linear.typical_squares()
    exact = np.linalg.solve(dense.T @ dense + damping * np.diag(metric), dense.T @ residual)
    found = LevenbergSolver(200, 1e-6).step(linear, residual, damping)
    np.testing.assert_allclose(found, exact, atol=1e-4 * np.abs(exact).max())


def test_the_metric_is_the_mean_square_of_a_layer() -> None:
    ridged, vector = problem()
    values = ridged.problem.linearise(vector)
    squares = (values.dense() ** 2).sum(axis=0)
    metric = values.typical_squares()
    first = 7 * 5
    assert len(set(metric[:first])) == len(set(metric[first:])) == 1
    assert metric[0] == pytest.approx(squares[:first].mean(), rel=0.3)  # as if what it reads were independent
    assert metric[-1] == pytest.approx(squares[first:].mean(), rel=1e-6)


def test_a_ridge_belongs_to_the_preconditioner() -> None:
    ridged, vector = problem()
    values, rng = ridged.problem.linearise(vector), np.random.default_rng(1001)
    right, ridge = rng.standard_normal(len(vector)), np.full(len(vector), 1e9)
    np.testing.assert_allclose(values.precondition_with_ridge(right, ridge), right / 1e9, rtol=1e-4)


def test_nothing_to_do_and_no_conditioning() -> None:
    ridged, vector = problem()
    solver, linear = LevenbergSolver(10, 1e-2), ridged.linearise(vector)
    assert not solver.step(linear, np.zeros(ridged.n_equations), 1.0).any()
    condition, covariance = solver.conditioning(linear)
    assert np.isnan(condition)
    assert covariance is None
