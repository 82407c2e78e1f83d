"""Convex programs over cones: against an independent solver, and on the problems that mislead NNLS."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest
from planted_units import planted

from unweave.exact import Absolute, Huber, Logistic, Squared, hyperplane_dichotomies
from unweave.exact.cone_program import cone_program, predictions, solve
from unweave.exact.cone_projection import _careful, nonnegative_least_squares

PRECISION = 1e-7  # of the zero network's loss
ORACLE = 1e-5  # of the same: what the oracle's own tolerance of 1e-8 allows on flat programs


def objective(loss, f, y):
    if isinstance(loss, Squared):
        return cvxpy.sum_squares(f - y)
    if isinstance(loss, Absolute):
        return cvxpy.norm1(f - y)
    if isinstance(loss, Huber):
        return cvxpy.sum(cvxpy.huber(f - y, loss.threshold)) / 2
    return cvxpy.sum(cvxpy.logistic(-cvxpy.multiply(y, f)))


@pytest.mark.parametrize(
    "loss", [Squared(), Absolute(), Huber(0.5), Logistic()], ids=lambda loss: type(loss).__name__
)
def test_against_an_independent_solver(loss):
    _, x, y = planted(2, 2, 10, 0.5, 1000)
    y = np.sign(y) if isinstance(loss, Logistic) else y
    z = np.column_stack([x, np.ones(len(x))])
    patterns = hyperplane_dichotomies(x)
    scale = float(np.sum(loss.value(np.zeros(len(y)), y)))
    rng = np.random.default_rng(1000)
    for _ in range(15):
        signs = rng.choice([-1.0, 1.0], 2)
        program = cone_program(patterns[rng.integers(len(patterns), size=2)], signs, z, y)
        fit = solve(program, loss, PRECISION * scale)
        c = cvxpy.Variable(program.design.shape[1])
        oracle = cvxpy.Problem(
            cvxpy.Minimize(objective(loss, program.design @ c, y)), [program.conditions @ c >= 0]
        ).solve(solver=cvxpy.CLARABEL)
        assert fit.loss == pytest.approx(oracle, abs=ORACLE * scale)
        # Logistic optima may lie at infinity, where multipliers are tiny and their balance is rounding.
        gap = (10 if isinstance(loss, Logistic) else 1) * PRECISION * scale
        assert fit.loss - gap <= fit.lower_bound <= fit.loss + gap
        assert fit.loss == float(np.sum(loss.value(predictions(fit.units, fit.signs, z), y)))


def test_deficient_patterns_are_solved_and_validated():
    # Random labels, few points: the setting in which a quarter of the least-distance programs went wrong.
    rng = np.random.default_rng(1000)
    x, y = rng.standard_normal((7, 2)), rng.standard_normal(7)
    z = np.column_stack([x, np.ones(7)])
    patterns = hyperplane_dichotomies(x)
    scale = float(y @ y)
    for _ in range(150):
        program = cone_program(
            patterns[rng.integers(len(patterns), size=2)], rng.choice([-1.0, 1.0], 2), z, y
        )
        fit = solve(program, Squared(), PRECISION * scale)
        assert abs(fit.loss - fit.lower_bound) <= PRECISION * scale


def optimal(matrix, right, x):
    gradient = matrix.T @ (right - matrix @ x)
    scale = 1e-9 * np.linalg.norm(right)  # ten times what the solver accepts; columns here have length one
    return x.min() >= 0 and gradient.max() <= scale and np.abs(gradient[x > 0]).max(initial=0) <= scale


def test_nonnegative_least_squares_on_the_border():
    # b on the border of the polar cone: some columns are orthogonal to it, none has a positive product.
    rng = np.random.default_rng(1000)
    for _ in range(200):
        matrix = rng.standard_normal((6, 24))
        right = rng.standard_normal(6)
        right /= np.linalg.norm(right)
        matrix -= np.outer(right, np.maximum(right @ matrix, 0))
        matrix /= np.linalg.norm(matrix, axis=0)
        for x in (nonnegative_least_squares(matrix, right), _careful(matrix, right)):
            assert x is not None
            assert np.linalg.norm(matrix @ x - right) >= 1 - 1e-9
            assert optimal(matrix, right, x)


def test_careful_solver_alone():
    rng = np.random.default_rng(1001)
    for _ in range(100):
        matrix = rng.standard_normal((5, 20))
        matrix[:, 10:] = matrix[:, :10]  # every column twice
        matrix /= np.linalg.norm(matrix, axis=0)
        right = rng.standard_normal(5)
        x = _careful(matrix, right)
        assert x is not None
        assert optimal(matrix, right, x)
    assert _careful(np.zeros((3, 4)), np.ones(3)) is not None


def test_solver_that_lies_is_found_out(monkeypatch):
    monkeypatch.setattr(
        "unweave.exact.cone_projection.nnls", lambda a, b, maxiter: (np.ones(a.shape[1]), 0.0)
    )
    rng = np.random.default_rng(1002)
    matrix, right = rng.standard_normal((5, 12)), rng.standard_normal(5)
    x = nonnegative_least_squares(matrix, right)
    length = np.linalg.norm(matrix, axis=0)
    assert x is not None
    assert optimal(matrix / length, right, x * length)


def test_wrong_answers_close_nothing(monkeypatch):
    _, x, y = planted(2, 2, 12, 0.3, 1001)
    z = np.column_stack([x, np.ones(len(x))])
    program = cone_program(hyperplane_dichotomies(x)[[3, 40]], np.array([1.0, -1.0]), z, y)
    honest = solve(program, Squared(), 1e-9)
    infeasible = np.linalg.lstsq(program.design, y, rcond=None)[0]
    wrong = (infeasible, np.zeros(len(program.conditions)))
    monkeypatch.setattr("unweave.exact.cone_program.project_on_cone", lambda a, b, c: wrong)
    fooled = solve(program, Squared(), 1e-9)
    nothing = np.zeros(program.design.shape[1]), np.zeros(len(program.conditions))
    monkeypatch.setattr("unweave.exact.cone_program.project_on_cone", lambda a, b, c: nothing)
    assert solve(program, Squared(), 1e-9).lower_bound < honest.loss
    # The least squares value bounds the optimum from below; the loss is that of the network, not the claim.
    claimed = float(np.sum((program.design @ infeasible - y) ** 2))
    assert fooled.lower_bound == pytest.approx(claimed)
    assert fooled.lower_bound < honest.loss
    assert fooled.loss == float(np.sum((predictions(fooled.units, fooled.signs, z) - y) ** 2))
