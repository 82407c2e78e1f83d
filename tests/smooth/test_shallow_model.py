from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from unweave.activations import get_activation
from unweave.derivatives.stencils import gradient_jets, hessian_jets
from unweave.optimize import LevenbergMarquardtOptions, levenberg_marquardt
from unweave.smooth.shallow_model import ShallowModel, SobolevFit, SobolevJacobian

SHAPES = [(4, 3, 1, False), (4, 3, 1, True), (3, 5, 3, False), (3, 5, 3, True)]
CASES = pytest.mark.parametrize(("d", "m", "k", "skip"), SHAPES)


def random_model(d: int, m: int, k: int, skip: bool, seed: int = 1000, name: str = "tanh") -> ShallowModel:
    rng = np.random.default_rng(seed)
    return ShallowModel(
        activation=get_activation(name),
        weights=rng.standard_normal((d, m)) / np.sqrt(d),
        biases=rng.uniform(-1, 1, m),
        outgoing=rng.standard_normal((m, k)),
        offset=rng.standard_normal(k),
        skip=rng.standard_normal((d, k)) if skip else None,
    )


def sites_of(d: int, n: int = 7, seed: int = 1001) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


@CASES
def test_vector_and_model_are_the_same_thing(d: int, m: int, k: int, skip: bool) -> None:
    model = random_model(d, m, k, skip)
    vector = model.to_vector()
    assert len(vector) == model.size
    again = random_model(d, m, k, skip, seed=1002).from_vector(vector)
    assert_array_equal(again.to_vector(), vector)
    x = sites_of(d)
    assert_array_equal(again.values(x), model.values(x))


@CASES
def test_the_network_computes_the_same_values(d: int, m: int, k: int, skip: bool) -> None:
    model = random_model(d, m, k, skip)
    x = sites_of(d)
    network = model.to_network()
    assert network.n_parameters == model.size
    assert_allclose(network(x), model.values(x), atol=1e-13)


@pytest.mark.parametrize("scheme", ["compact", "four-point"])
@pytest.mark.parametrize("name", ["tanh", "sigmoid", "softplus", "sine"])
def test_difference_gradients_are_those_of_the_differences(name: str, scheme: str) -> None:
    model = random_model(4, 5, 2, True, name=name)
    x = sites_of(4)
    errors = []
    for step in (0.2, 0.1):
        jets = hessian_jets(model.values, x, step, scheme)
        errors.append(np.abs(model.difference_gradients(x, step, jets.rule) - jets.gradients).max())
    assert errors[1] < 1e-5
    assert errors[0] / errors[1] > 40  # what is left is of order h^6


def test_keep_selects_neurons() -> None:
    model = random_model(4, 5, 2, True)
    parts = [model.keep(np.array([0, 3])), model.keep(np.array([1, 2, 4]))]
    x = sites_of(4)
    linear = model.offset + x @ model.skip
    assert parts[0].width == 2
    assert_allclose(sum(part.values(x) - linear for part in parts) + linear, model.values(x), atol=1e-13)


def jacobian_of(d: int, m: int, k: int, skip: bool) -> tuple[SobolevJacobian, ShallowModel, np.ndarray]:
    model, x = random_model(d, m, k, skip), sites_of(d)
    return SobolevJacobian(model, x), model, x


@CASES
def test_apply_and_adjoint_are_those_of_the_dense_matrix(d: int, m: int, k: int, skip: bool) -> None:
    jacobian, model, x = jacobian_of(d, m, k, skip)
    dense = jacobian.dense()
    assert dense.shape == (len(x) * k * (1 + d), model.size)
    rng = np.random.default_rng(1003)
    vector, rows = rng.standard_normal(model.size), rng.standard_normal(len(dense))
    assert_allclose(jacobian.apply(vector), dense @ vector, atol=1e-12)
    assert_allclose(jacobian.adjoint(rows), dense.T @ rows, atol=1e-12)
    assert_allclose(jacobian.apply(vector) @ rows, vector @ jacobian.adjoint(rows), rtol=1e-12)


@CASES
def test_the_dense_matrix_is_the_derivative_of_the_model(d: int, m: int, k: int, skip: bool) -> None:
    model, x = random_model(d, m, k, skip), sites_of(d)
    tiny = 1e-6  # step of the sampled gradients: their truncation is what the Jacobian leaves out
    problem = SobolevFit(model, (gradient_jets(model.values, x, tiny),))
    vector = model.to_vector()
    dense = problem.linearise(vector).dense()
    h = 1e-5
    for column in range(model.size):
        e = np.zeros(model.size)
        e[column] = h
        slope = (problem.residual(vector - e) - problem.residual(vector + e)) / (2 * h)
        assert_allclose(slope, dense[:, column], atol=1e-8)


@CASES
def test_single_precision_products_agree_to_single_precision(d: int, m: int, k: int, skip: bool) -> None:
    jacobian, model, x = jacobian_of(d, m, k, skip)
    single = jacobian.in_single_precision()
    rng = np.random.default_rng(1004)
    vector = rng.standard_normal(model.size).astype(np.float32)
    rows = rng.standard_normal(len(x) * k * (1 + d)).astype(np.float32)
    for name, argument in (("apply", vector), ("adjoint", rows)):
        low = getattr(single, name)(argument)
        high = getattr(jacobian, name)(argument.astype(np.float64))
        assert low.dtype == np.float32
        assert_allclose(low, high, atol=1e-5 * np.abs(high).max())


@CASES
def test_the_preconditioner_inverts_the_diagonal_blocks(d: int, m: int, k: int, skip: bool) -> None:
    model, x = random_model(d, m, k, skip), sites_of(d, n=40)
    jacobian = SobolevJacobian(model, x)
    dense = jacobian.dense()
    gram = dense.T @ dense
    diagonal = jacobian.preconditioner_diagonal()
    for neuron in range(m):
        own = np.concatenate(
            [np.arange(d) * m + neuron, [d * m + neuron], d * m + m + neuron * k + np.arange(k)]
        )
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
