from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.numerics.least_squares import LevenbergMarquardtOptions, Linearisation, levenberg_marquardt
from unweave.numerics.least_squares.formed_jacobian import DenseSolver
from unweave.numerics.least_squares.gram_solver import GramSolver

EPS = np.finfo(np.float64).eps


class MatrixJacobian(Linearisation):
    """A Jacobian given as a matrix that offers J^T J and counts how often it was taken."""

    def __init__(self, matrix: np.ndarray, counter: list[type] | None = None) -> None:
        self.matrix = matrix
        self.counter: list[type] = [] if counter is None else counter

    def apply(self, vector: np.ndarray) -> np.ndarray:
        return self.matrix @ vector

    def adjoint(self, rows: np.ndarray) -> np.ndarray:
        return self.matrix.T @ rows

    def dense(self) -> np.ndarray:
        return self.matrix

    def gram(self) -> np.ndarray:
        self.counter.append(self.matrix.dtype.type)
        # Only the upper triangle counts: what is below must not matter.
        return np.triu(self.matrix.T @ self.matrix) + np.tril(np.full((self.matrix.shape[1],) * 2, 7.0), -1)

    def in_single_precision(self) -> MatrixJacobian:
        return MatrixJacobian(self.matrix.astype(np.float32), self.counter)

    def preconditioner_diagonal(self) -> np.ndarray:
        return 1 / np.einsum("ij,ij->j", self.matrix, self.matrix)

    def precondition(self, vector: np.ndarray) -> np.ndarray:
        return vector * self.preconditioner_diagonal()


class Exponentials:
    """r = data - W exp(V x): smooth, not linear, zero at the truth; the Jacobian is W diag(exp(V x)) V."""

    def __init__(self, size: int, spread: float, noise: float = 0.0) -> None:
        rng = np.random.default_rng(1000)
        self.mixing = rng.standard_normal((2 * size, size))
        self.inner = np.linalg.qr(rng.standard_normal((size, size)))[0] * np.geomspace(1, spread, size)
        self.true = rng.standard_normal(size)
        self.data = self.model(self.true) + noise * rng.standard_normal(2 * size)
        self.counter: list[type] = []
        self.n_equations = 2 * size

    def model(self, vector: np.ndarray) -> np.ndarray:
        return self.mixing @ np.exp(self.inner @ vector)

    def residual(self, vector: np.ndarray) -> np.ndarray:
        return self.data - self.model(vector)

    def linearise(self, vector: np.ndarray) -> MatrixJacobian:
        matrix = self.mixing @ (np.exp(self.inner @ vector)[:, None] * self.inner)
        return MatrixJacobian(matrix, self.counter)


# No problem is too small for J^T J.
FORMED = LevenbergMarquardtOptions(small_entries=0)


def ill_conditioned(condition: float, size: int = 30, rows: int = 50) -> np.ndarray:
    rng = np.random.default_rng(1000)
    left = np.linalg.qr(rng.standard_normal((rows, size)))[0]
    right = np.linalg.qr(rng.standard_normal((size, size)))[0]
    return left * np.geomspace(1, 1 / condition, size) @ right


def solver_for(linear: MatrixJacobian, tolerance: float = 1e-12) -> GramSolver:
    return GramSolver(linear, linear.in_single_precision().gram(), 200, tolerance)


@pytest.mark.parametrize("damping", [0.0, 1e-9, 1e-3, 10.0])
@pytest.mark.parametrize("condition", [3.0, 1e3, 1e6])
def test_steps_are_those_of_the_stacked_system(damping: float, condition: float) -> None:
    linear = MatrixJacobian(ill_conditioned(condition) * np.geomspace(1e-3, 1e3, 30))
    residual = np.random.default_rng(1001).standard_normal(50)
    ours = solver_for(linear).step(linear, residual, damping)
    expected = DenseSolver().step(linear, residual, damping)
    # Both are solved to eps times the squared condition number, as the residual is not small; the
    # diagonal that the damping multiplies is known to float32.
    scale = np.linalg.norm(linear.matrix, axis=0)
    error = np.linalg.norm(scale * (ours - expected)) / np.linalg.norm(scale * expected)
    seen = min(condition, 10 / np.sqrt(damping)) if damping else condition
    assert error < 100 * EPS * seen**2 + (1e-6 if damping else 0.0)


def test_nearly_singular_systems_are_solved_beyond_the_normal_equations() -> None:
    # A consistent system of condition 1e7: J^T J, of condition 1e14, leaves one digit, J itself nine.
    linear = MatrixJacobian(ill_conditioned(1e7))
    true = np.random.default_rng(1001).standard_normal(30)
    ours = solver_for(linear, 1e-13).step(linear, linear.matrix @ true, 0.0)
    assert np.linalg.norm(ours - true) < 1e-6 * np.linalg.norm(true)
    squared = linear.matrix.T @ linear.matrix
    plain = np.linalg.solve(squared, squared @ true)
    assert np.linalg.norm(plain - true) > 1e-4 * np.linalg.norm(true)


@pytest.mark.parametrize("condition", [3.0, 1e3, 1e5])
def test_conditioning_is_that_of_the_dense_solver(condition: float) -> None:
    linear = MatrixJacobian(ill_conditioned(condition) * np.geomspace(1e-3, 1e3, 30))
    ours, covariance = solver_for(linear).conditioning(linear)
    expected, exact = DenseSolver().conditioning(linear)
    assert ours == pytest.approx(expected, rel=0.1)
    assert covariance is not None
    assert exact is not None
    # Float32 or a ridge may raise the bound, at most by the factor that counts as faithful.
    assert (covariance > 0.9 * exact).all()
    assert (covariance < 2.2 * exact).all()


def test_the_covariance_stays_an_upper_bound_where_squaring_fails() -> None:
    linear = MatrixJacobian(ill_conditioned(1e8))
    condition, covariance = solver_for(linear).conditioning(linear)
    expected, exact = DenseSolver().conditioning(linear)
    assert condition == pytest.approx(expected, rel=0.5)
    assert covariance is not None
    assert exact is not None
    assert (covariance > 0.9 * exact).all()


@pytest.mark.parametrize("kind", ["without effect", "twice the same"])
def test_singular_systems_are_reported(kind: str) -> None:
    matrix = ill_conditioned(10.0)
    matrix[:, 3] = 0 if kind == "without effect" else matrix[:, 4]
    linear = MatrixJacobian(matrix)
    assert solver_for(linear).conditioning(linear) == (np.inf, None)
    step = solver_for(linear).step(linear, np.ones(50), 1e-6)
    assert np.isfinite(step).all()


def test_a_problem_with_a_gram_matrix_is_solved_with_it() -> None:
    problem = Exponentials(20, 0.1)
    start = problem.true + 1e-2 * np.random.default_rng(1001).standard_normal(20)
    fit = levenberg_marquardt(problem, start, replace(FORMED, steps=100))
    assert_allclose(fit.vector, problem.true, atol=1e-11)
    assert fit.inner_iterations > 0
    assert problem.counter


@pytest.mark.parametrize("limit", [{"gram_parameters": 19, "dense_entries": 0}, {"max_memory": 9000}])
def test_above_the_limit_no_matrix_is_taken(limit: dict[str, int]) -> None:
    problem = Exponentials(20, 0.1)
    fit = levenberg_marquardt(problem, problem.true + 1e-3, replace(FORMED, steps=5, **limit))
    assert fit.inner_iterations > 0
    assert not problem.counter


def test_well_conditioned_problems_need_one_gram_matrix_in_single_precision() -> None:
    problem = Exponentials(20, 0.3)
    start = problem.true + 1e-4 * np.random.default_rng(1001).standard_normal(20)
    options = replace(FORMED, steps=30, damping=1e-9, floor=1e-15)
    fit = levenberg_marquardt(problem, start, options)
    assert_allclose(fit.vector, problem.true, atol=1e-12)
    assert problem.counter == [np.float32]


def test_ill_conditioned_problems_go_over_to_double_precision() -> None:
    problem = Exponentials(30, 1e-5)
    start = problem.true + 1e-6 * np.random.default_rng(1001).standard_normal(30)
    options = replace(FORMED, steps=30, damping=1e-12, inner_tolerance=1e-10)
    levenberg_marquardt(problem, start, options)
    assert problem.counter[0] is np.float32
    assert np.float64 in problem.counter


def test_a_refused_step_keeps_the_gram_matrix() -> None:
    linear = MatrixJacobian(ill_conditioned(1e3))
    residual = np.random.default_rng(1001).standard_normal(50)
    solver = solver_for(linear, 1e-6)
    for damping in (1e-9, 1e-3, 1.0, 1e3, 1e6):
        ours = solver.step(linear, residual, damping)
        expected = DenseSolver().step(linear, residual, damping)
        assert_allclose(ours, expected, atol=1e-3 * np.abs(expected).max())
    assert len(linear.counter) == 1


def test_noisy_problems_reach_the_same_minimum_as_densely() -> None:
    problem = Exponentials(20, 0.1, noise=1e-2)
    options = replace(FORMED, steps=100, rounding=1e-15)
    ours = levenberg_marquardt(problem, problem.true, options)
    dense = levenberg_marquardt(problem, problem.true, replace(options, small_entries=10**9))
    assert dense.inner_iterations == 0 < ours.inner_iterations
    assert_allclose(ours.rms, dense.rms, rtol=1e-5)
    # 20 of 40 degrees of freedom are fitted away: the minimum is below the floor, and was not left there.
    assert dense.rms < 0.9e-2
    assert dense.covariance_diagonal is not None
    spread = dense.rms * np.sqrt(dense.covariance_diagonal)
    assert (np.abs(ours.vector - dense.vector) < 0.1 * spread).all()


def test_a_residual_of_zero_makes_no_step() -> None:
    linear = MatrixJacobian(ill_conditioned(10.0))
    assert_allclose(solver_for(linear).step(linear, np.zeros(50), 1e-3), np.zeros(30), atol=0)


def test_a_jacobian_that_is_not_finite_makes_no_step() -> None:
    matrix = ill_conditioned(10.0)
    matrix[0, 0] = np.inf
    linear = MatrixJacobian(matrix)
    with np.errstate(invalid="ignore"):
        solver = solver_for(linear)
        assert_allclose(solver.step(linear, np.ones(50), 1e-3), np.zeros(30), atol=0)
        assert solver.conditioning(linear) == (np.inf, None)
