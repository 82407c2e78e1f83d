from __future__ import annotations

import numpy as np
import pytest

from unweave.networks.parameters import NetworkParameters
from unweave.networks.random import random_network
from unweave.networks.value_fit import ValueFit
from unweave.numerics.least_squares import LevenbergMarquardtOptions
from unweave.numerics.least_squares.levenberg_marquardt import SolverName
from unweave.numerics.least_squares.ridged import Ridged
from unweave.numerics.least_squares.solved_steps import SolvedSteps


def planted() -> tuple[Ridged, np.ndarray]:
    rng = np.random.default_rng(1000)
    model = NetworkParameters.from_network(random_network([3, 4, 2], seed=1000, outer="normal"))
    points = rng.standard_normal((40, 3))
    problem = ValueFit(model, points, rng.standard_normal((40, 2)))
    return Ridged(problem, rng.uniform(0, 1, model.size)), model.to_vector()


def test_products_are_those_of_the_matrix() -> None:
    problem, vector = planted()
    linear, rng = problem.linearise(vector), np.random.default_rng(1)
    matrix = linear.dense()
    assert matrix.shape == (problem.n_equations, len(vector))
    right, left = rng.standard_normal(len(vector)), rng.standard_normal(problem.n_equations)
    np.testing.assert_allclose(linear.apply(right), matrix @ right, atol=1e-12)
    np.testing.assert_allclose(linear.adjoint(left), matrix.T @ left, atol=1e-12)
    gram = linear.gram()
    assert gram is not None
    np.testing.assert_allclose(np.triu(gram), np.triu(matrix.T @ matrix), atol=1e-10)


def test_matrix_is_the_derivative_of_the_residual() -> None:
    problem, vector = planted()
    step = 1e-6 * np.random.default_rng(2).standard_normal(len(vector))
    change = problem.residual(vector - step) - problem.residual(vector + step)
    np.testing.assert_allclose(change / 2, problem.linearise(vector).apply(step), atol=1e-12)


@pytest.mark.parametrize("solver", ["dense", "gram"])
def test_steps_solve_the_normal_equations_of_the_ridge(solver: SolverName) -> None:
    problem, vector = planted()
    options = LevenbergMarquardtOptions(solver=solver, inner_tolerance=1e-10)
    steps = SolvedSteps(problem, vector, options)
    step = steps.trial(steps.start, 0.0).vector - vector
    matrix = problem.linearise(vector).dense()
    expected = np.linalg.lstsq(matrix, problem.residual(vector), rcond=None)[0]
    np.testing.assert_allclose(step, expected, atol=1e-6)
