from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.errors import InvalidInput
from unweave.numerics.least_squares import LevenbergMarquardtOptions, Linearisation, levenberg_marquardt


class DenseJacobian(Linearisation):
    """A Jacobian given as a matrix, preconditioned by the diagonal of J^T J."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix

    def apply(self, vector: np.ndarray) -> np.ndarray:
        return self.matrix @ vector

    def adjoint(self, rows: np.ndarray) -> np.ndarray:
        return self.matrix.T @ rows

    def dense(self) -> np.ndarray:
        return self.matrix

    def in_single_precision(self) -> DenseJacobian:
        return DenseJacobian(self.matrix.astype(np.float32))

    def preconditioner_diagonal(self) -> np.ndarray:
        return 1 / np.einsum("ij,ij->j", self.matrix, self.matrix)

    def precondition(self, vector: np.ndarray) -> np.ndarray:
        return vector * self.preconditioner_diagonal()


@dataclass
class Problem:
    """Least squares from a residual r(x) = data - model(x) and the model's Jacobian."""

    rows: int
    function: Callable[[np.ndarray], np.ndarray]
    jacobian: Callable[[np.ndarray], np.ndarray]
    evaluations: int = 0

    @property
    def n_equations(self) -> int:
        return self.rows

    def residual(self, vector: np.ndarray) -> np.ndarray:
        self.evaluations += 1
        return self.function(vector)

    def linearise(self, vector: np.ndarray) -> DenseJacobian:
        return DenseJacobian(self.jacobian(vector))


def rosenbrock() -> Problem:
    return Problem(
        2,
        lambda x: np.array([1 - x[0], -10 * (x[1] - x[0] ** 2)]),
        lambda x: np.array([[1.0, 0.0], [-20 * x[0], 10.0]]),
    )


def exponentials(noise: float = 0.0, seed: int = 1000) -> tuple[Problem, np.ndarray]:
    """Data a exp(-b t) + c exp(-d t) on a grid, and the true parameters."""
    true = np.array([1.0, 0.5, -2.0, 3.0])
    t = np.linspace(0, 4, 60)

    def model(x: np.ndarray) -> np.ndarray:
        return x[0] * np.exp(-x[1] * t) + x[2] * np.exp(-x[3] * t)

    def jacobian(x: np.ndarray) -> np.ndarray:
        first, second = np.exp(-x[1] * t), np.exp(-x[3] * t)
        return np.stack([first, -x[0] * t * first, second, -x[2] * t * second], axis=1)

    data = model(true) + noise * np.random.default_rng(seed).standard_normal(60)
    return Problem(60, lambda x: data - model(x), jacobian), true


START = np.array([0.7, 0.8, -1.5, 2.0])
THOROUGH = LevenbergMarquardtOptions(steps=200)
WITHOUT_A_MATRIX = replace(THOROUGH, max_memory=0)


def test_rosenbrock_is_solved_from_the_classical_start() -> None:
    fit = levenberg_marquardt(rosenbrock(), np.array([-1.2, 1.0]), THOROUGH)
    assert_allclose(fit.vector, [1.0, 1.0], atol=1e-12)
    assert fit.rms < 1e-13
    assert all(np.diff(fit.history) < 0)


def test_exact_data_give_exact_parameters() -> None:
    problem, true = exponentials()
    fit = levenberg_marquardt(problem, START, THOROUGH)
    assert_allclose(fit.vector, true, atol=1e-11)
    assert fit.inner_iterations == 0


def test_conjugate_gradients_reach_the_same_minimum() -> None:
    problem, _ = exponentials(noise=1e-3)
    dense = levenberg_marquardt(problem, START, THOROUGH)
    free = levenberg_marquardt(problem, START, WITHOUT_A_MATRIX)
    assert free.inner_iterations > 0
    assert_allclose(free.rms, dense.rms, rtol=1e-6)
    # Stopping after steps without worthwhile progress leaves an error that the noise dwarfs.
    spread = dense.rms * np.sqrt(dense.covariance_diagonal)
    assert (np.abs(free.vector - dense.vector) < 0.05 * spread).all()


def test_conjugate_gradients_reach_double_precision_on_exact_data() -> None:
    problem, true = exponentials()
    fit = levenberg_marquardt(problem, START, WITHOUT_A_MATRIX)
    assert_allclose(fit.vector, true, atol=1e-10)


def test_the_covariance_is_that_of_the_linearised_problem() -> None:
    problem, _ = exponentials(noise=1e-3)
    fit = levenberg_marquardt(problem, START, THOROUGH)
    jacobian = problem.linearise(fit.vector).matrix
    expected = np.diag(np.linalg.inv(jacobian.T @ jacobian))
    assert_allclose(fit.covariance_diagonal, expected, rtol=1e-8)
    scaled = jacobian / np.linalg.norm(jacobian, axis=0)
    assert_allclose(fit.condition, np.linalg.cond(scaled), rtol=1e-8)


def test_the_covariance_without_a_matrix_bounds_the_true_one() -> None:
    problem, _ = exponentials(noise=1e-3)
    dense = levenberg_marquardt(problem, START, THOROUGH)
    free = levenberg_marquardt(problem, START, WITHOUT_A_MATRIX)
    assert (free.covariance_diagonal > 0.9 * dense.covariance_diagonal).all()


def test_nothing_is_told_of_the_conditioning_where_nobody_asks() -> None:
    problem, true = exponentials()
    fit = levenberg_marquardt(problem, START, replace(THOROUGH, conditioning=False))
    assert_allclose(fit.vector, true, atol=1e-11)
    assert fit.covariance_diagonal is None
    assert fit.condition == np.inf


def test_it_stops_at_the_floor() -> None:
    problem, _ = exponentials()
    fit = levenberg_marquardt(problem, START, LevenbergMarquardtOptions(steps=200, floor=1e-4))
    assert fit.rms <= 1e-4
    assert fit.history[-2] > 1e-4


def test_a_start_at_the_floor_costs_one_residual() -> None:
    problem, true = exponentials()
    fit = levenberg_marquardt(problem, true, LevenbergMarquardtOptions(floor=1e-8))
    assert problem.evaluations == 1
    assert fit.history == (fit.rms,)


@pytest.mark.parametrize("least", [0, 1])
def test_without_a_matrix_the_conditioning_at_the_floor_takes_a_step(least: int) -> None:
    problem, _ = exponentials(noise=1e-9)
    start = levenberg_marquardt(problem, START, WITHOUT_A_MATRIX).vector
    start = start + 1e-9 * np.arange(1, len(start) + 1)
    options = LevenbergMarquardtOptions(floor=1e-4, least_steps=least, max_memory=0)
    fit = levenberg_marquardt(problem, start, options)
    assert np.isnan(fit.condition) == (least == 0)
    assert (fit.covariance_diagonal is None) == (least == 0)


def test_it_stops_when_progress_does() -> None:
    problem, _ = exponentials(noise=1e-2)
    fit = levenberg_marquardt(problem, START, LevenbergMarquardtOptions(steps=10_000))
    assert problem.evaluations < 100
    gradient = problem.linearise(fit.vector).adjoint(problem.residual(fit.vector))
    assert np.linalg.norm(gradient) < 1e-2


def test_a_raising_callback_ends_the_fit() -> None:
    class Stop(Exception):
        pass

    seen: list[tuple[int, float]] = []

    def on_step(step: int, rms: float) -> None:
        seen.append((step, rms))
        if step == 2:
            raise Stop

    problem, _ = exponentials()
    with pytest.raises(Stop):
        levenberg_marquardt(problem, START, THOROUGH, on_step)
    assert [step for step, _ in seen] == [1, 2]
    assert seen[1][1] < seen[0][1]


def test_wild_steps_are_refused_not_raised() -> None:
    # Far out the exponential overflows: a full Gauss-Newton step from here does.
    problem = Problem(
        2,
        lambda x: np.array([1.0 - np.exp(x[0]), 0.0]),
        lambda x: np.array([[np.exp(x[0])], [0.0]]),
    )
    fit = levenberg_marquardt(problem, np.array([-8.0]), THOROUGH)
    assert_allclose(fit.vector, [0.0], atol=1e-9)


def test_a_parameter_without_effect_is_reported_as_undetermined() -> None:
    t = np.linspace(0, 1, 10)
    problem = Problem(10, lambda x: 2 * t - x[0] * t, lambda x: np.stack([t, np.zeros_like(t)], axis=1))
    fit = levenberg_marquardt(problem, np.array([0.5, 3.0]), THOROUGH)
    assert_allclose(fit.vector, [2.0, 3.0], atol=1e-12)
    assert fit.condition == np.inf
    assert fit.covariance_diagonal is None


def test_bent_steps_need_fewer_of_them_in_a_curved_valley() -> None:
    start = np.array([-1.2, 1.0])
    straight = levenberg_marquardt(rosenbrock(), start, THOROUGH)
    bent = levenberg_marquardt(rosenbrock(), start, replace(THOROUGH, acceleration=True))
    assert_allclose(bent.vector, [1.0, 1.0], atol=1e-12)
    assert len(bent.history) < len(straight.history)


def test_noise_does_not_end_the_fit_above_its_minimum() -> None:
    # 4 of 60 degrees of freedom go into the parameters: the minimum is 3 % below the noise.
    noise = 1e-2
    problem, _ = exponentials(noise=noise)
    thorough = levenberg_marquardt(problem, START, THOROUGH)
    stopped = levenberg_marquardt(problem, START, replace(THOROUGH, floor=1.05 * thorough.rms))
    told = levenberg_marquardt(problem, START, replace(THOROUGH, rounding=1e-16))
    assert stopped.rms > 1.0001 * thorough.rms
    assert_allclose(told.rms, thorough.rms, rtol=1e-6)


def test_at_a_minimum_above_rounding_it_stops_soon() -> None:
    problem, _ = exponentials(noise=1e-2)
    there = levenberg_marquardt(problem, START, THOROUGH).vector
    problem.evaluations = 0
    levenberg_marquardt(problem, there, replace(THOROUGH, rounding=1e-16))
    assert problem.evaluations < 12


@pytest.mark.parametrize("solver", ["dense", "conjugate gradients"])
def test_the_solver_may_be_chosen(solver: str) -> None:
    problem, true = exponentials()
    fit = levenberg_marquardt(problem, START, replace(THOROUGH, solver=solver))
    assert_allclose(fit.vector, true, atol=1e-10)
    assert (fit.inner_iterations == 0) == (solver == "dense")


def test_a_problem_without_a_gram_matrix_cannot_be_solved_with_it() -> None:
    problem, _ = exponentials()
    with pytest.raises(InvalidInput, match="without a cheap"):
        levenberg_marquardt(problem, START, replace(THOROUGH, solver="gram"))


def test_products_that_overflow_leave_no_condition_number():
    from unweave.numerics.least_squares.conjugate_gradient_solver import _lanczos_extremes

    low, high = _lanczos_extremes(np.array([1.0, np.inf, 2.0]), np.array([0.1, 0.2, 0.3]))
    assert np.isnan(low)
    assert np.isnan(high)
