"""The Jacobian of values and difference gradients, against differences of the residual itself."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from random_models import CASES, random_model, sites_of
from unweave.derivatives.sobolev_fit import SobolevFit, SobolevJacobian
from unweave.derivatives.stencils import Jets, forward_jets, gradient_jets, hessian_jets
from unweave.derivatives.truncation import difference_gradients
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.least_squares import LevenbergMarquardtOptions, levenberg_marquardt

STEP = 0.1  # large, so that the truncation terms h^2/6 are no small part of the Jacobian


def jets_of(model: NetworkParameters, n: int = 7, step: float = STEP) -> tuple[Jets, ...]:
    """All gradient rules, with different steps: the axes, pairs with compact Hessians, forward, exact."""
    x = sites_of(model.n_inputs, n)
    half = n // 2
    exact = Jets(x, model.values(x), difference_gradients(model, x, 0.0, "exact"), 0.0, rule="exact")
    differences = gradient_jets(model.values, x[:half], step), hessian_jets(model.values, x[half:], step / 2)
    return *differences, forward_jets(model.values, x[:half], step / 4), exact


def jacobian_of(d: int, m: int, k: int, skip: bool) -> tuple[SobolevJacobian, NetworkParameters, int]:
    model = random_model(d, m, k, skip)
    jets = jets_of(model)
    assert [part.rule for part in jets] == ["axes", "pairs", "forward", "exact"]
    return SobolevJacobian(model, jets), model, sum(len(part) for part in jets)


@CASES
def test_apply_and_adjoint_are_those_of_the_dense_matrix(d: int, m: int, k: int, skip: bool) -> None:
    jacobian, model, n = jacobian_of(d, m, k, skip)
    dense = jacobian.dense()
    assert dense.shape == (n * k * (1 + d), model.size)
    rng = np.random.default_rng(1003)
    vector, rows = rng.standard_normal(model.size), rng.standard_normal(len(dense))
    assert_allclose(jacobian.apply(vector), dense @ vector, atol=1e-12)
    assert_allclose(jacobian.adjoint(rows), dense.T @ rows, atol=1e-12)
    assert_allclose(jacobian.apply(vector) @ rows, vector @ jacobian.adjoint(rows), rtol=1e-12)


@CASES
@pytest.mark.parametrize("rule", ["axes", "pairs"])
@pytest.mark.parametrize("step", [1e-6, 0.02])
def test_the_dense_matrix_is_the_derivative_of_the_residual(
    d: int, m: int, k: int, skip: bool, rule: str, step: float
) -> None:
    model = random_model(d, m, k, skip)
    take = gradient_jets if rule == "axes" else hessian_jets
    problem = SobolevFit(model, (take(model.values, sites_of(d), step),))
    assert problem.jets[0].rule == rule
    vector = model.to_vector()
    dense = problem.linearise(vector).dense()
    h = 1e-5
    # Differences of the residual: h^2 and eps/h, 1e-10. The model has step^4/120 g^(5) too, whose slope (with
    # |g^(6)| up to 100) the Jacobian leaves out: 4e-7, while the step^2/6 terms that it has are 1e-3.
    left_out = 300 * step**4 / 120
    for column in range(model.size):
        e = np.zeros(model.size)
        e[column] = h
        slope = (problem.residual(vector - e) - problem.residual(vector + e)) / (2 * h)
        assert_allclose(slope, dense[:, column], atol=1e-8 + left_out)


def test_forward_differences_leave_out_the_second_power_of_the_step() -> None:
    model = random_model(4, 5, 2, True)
    direction = np.random.default_rng(1006).standard_normal(model.size)
    vector, h = model.to_vector(), 1e-4
    errors = []
    for step in (0.02, 0.01):
        problem = SobolevFit(model, (forward_jets(model.values, sites_of(4), step),))
        assert np.abs(problem.residual(vector)).max() < 1e-12  # differences of differences, not a series
        slope = (problem.residual(vector - h * direction) - problem.residual(vector + h * direction)) / (
            2 * h
        )
        errors.append(np.abs(slope - problem.linearise(vector).apply(direction)).max())
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.1)


@pytest.mark.parametrize("name", ["sigmoid", "softplus", "gelu", "sine"])
@pytest.mark.parametrize("rule", ["axes", "pairs"])
def test_what_the_jacobian_leaves_out_is_of_fourth_order(name: str, rule: str) -> None:
    model = random_model(4, 5, 2, True, name=name)
    take = gradient_jets if rule == "axes" else hessian_jets
    direction = np.random.default_rng(1006).standard_normal(model.size)
    vector, h = model.to_vector(), 1e-4
    errors = []
    for step in (0.8, 0.4):
        problem = SobolevFit(model, (take(model.values, sites_of(4), step),))
        slope = (problem.residual(vector - h * direction) - problem.residual(vector + h * direction)) / (
            2 * h
        )
        errors.append(np.abs(slope - problem.linearise(vector).apply(direction)).max())
    # Order two would give a factor of 4.
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.25)


@CASES
def test_single_precision_products_agree_to_single_precision(d: int, m: int, k: int, skip: bool) -> None:
    jacobian, model, n = jacobian_of(d, m, k, skip)
    single = jacobian.in_single_precision()
    exact = SobolevJacobian(model, jets_of(model), truncation=False)  # single precision leaves truncation out
    rng = np.random.default_rng(1004)
    vector = rng.standard_normal(model.size).astype(np.float32)
    rows = rng.standard_normal(n * k * (1 + d)).astype(np.float32)
    for name, argument in (("apply", vector), ("adjoint", rows)):
        low = getattr(single, name)(argument)
        high = getattr(exact, name)(argument.astype(np.float64))
        assert low.dtype == np.float32
        assert_allclose(low, high, atol=1e-5 * np.abs(high).max())


@CASES
def test_the_preconditioner_inverts_the_diagonal_blocks(d: int, m: int, k: int, skip: bool) -> None:
    model = random_model(d, m, k, skip)
    # The blocks leave truncation out: steps at which it is rounding.
    jacobian = SobolevJacobian(model, jets_of(model, n=40, step=1e-6))
    dense = jacobian.dense()
    gram = dense.T @ dense
    diagonal = jacobian.preconditioner_diagonal()
    for unit in range(m):
        own = np.concatenate([np.arange(d) * m + unit, [d * m + unit], d * m + m + unit * k + np.arange(k)])
        block = np.linalg.inv(gram[np.ix_(own, own)])
        for position, index in enumerate(own):
            e = np.zeros(model.size)
            e[index] = 1.0
            # up to the relative ridge of 1e-12, magnified by the block's condition
            assert_allclose(
                jacobian.precondition(e)[own], block[:, position], atol=1e-5 * np.abs(block).max()
            )
        assert_allclose(diagonal[own], np.diag(block), rtol=1e-4)
    linear = np.arange(d * m + m + m * k, model.size)
    e = np.zeros(model.size)
    e[linear] = 1.0
    assert_allclose(jacobian.precondition(e)[linear], 1 / np.diag(gram)[linear], rtol=1e-12)


@CASES
def test_the_preconditioner_is_symmetric_and_positive(d: int, m: int, k: int, skip: bool) -> None:
    jacobian, model, _ = jacobian_of(d, m, k, skip)
    matrix = np.stack([jacobian.precondition(e) for e in np.eye(model.size)])
    assert_allclose(matrix, matrix.T, rtol=1e-6, atol=1e-9 * np.abs(matrix).max())
    assert np.linalg.eigvalsh((matrix + matrix.T) / 2)[0] > 0


@pytest.mark.parametrize("skip", [False, True])
def test_gauss_newton_returns_to_the_model_that_made_the_data(skip: bool) -> None:
    model, x = random_model(4, 6, 2, skip), sites_of(4, n=40)
    parts = (gradient_jets(model.values, x[:25], 0.02), gradient_jets(model.values, x[25:], 0.01))
    problem = SobolevFit(model, parts)
    truth = model.to_vector()
    assert np.abs(problem.residual(truth)).max() < 1e-10
    start = truth + 1e-2 * np.random.default_rng(1005).standard_normal(model.size)
    fit = levenberg_marquardt(problem, start, LevenbergMarquardtOptions(steps=60))
    assert_allclose(fit.vector, truth, atol=1e-9)
    assert problem.n_equations == 40 * 2 * 5
