from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import unweave
import unweave.networks.value_fit as module
from unweave.errors import InvalidInput
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFit, ValueFitResult, fit_values
from unweave.numerics.least_squares import Fit, levenberg_marquardt, solved_steps

DEPTHS = ([4, 2], [4, 5, 2], [4, 5, 3, 2], [4, 5, 3, 3, 1])
PAIRS = [
    (hidden, output) for hidden in ("tanh", "sigmoid", "erf") for output in ("identity", "tanh", "sigmoid")
]


def planted(
    layers: list[int],
    hidden: str = "tanh",
    output: str = "identity",
    norms: tuple[float, float] = (0.6, 1.6),
    seed: int = 1000,
) -> NetworkParameters:
    network = unweave.random_network(
        layers, hidden, seed=seed, outer="unit", norms=norms, output_activation=output
    )
    return NetworkParameters.from_network(network)


def problem(model: NetworkParameters, points: int = 23, weighted: bool = True, seed: int = 1000) -> ValueFit:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((points, model.n_inputs))
    answers = model.values(x) + 0.1 * rng.standard_normal((points, model.n_outputs))
    return ValueFit(model, x, answers, rng.uniform(0.5, 2, answers.shape) if weighted else None)


def perturbed(model: NetworkParameters, size: float, seed: int = 1001) -> NetworkParameters:
    rng = np.random.default_rng(seed)
    return model.from_vector(model.to_vector() + size * rng.standard_normal(model.size))


def refit(
    truth: NetworkParameters,
    start: NetworkParameters,
    per_parameter: float = 1.5,
    noise: float = 0.0,
    acceleration: bool = True,
    max_memory: int | None = None,
) -> tuple[ValueFitResult, float]:
    """Fit from ``start`` to answers of ``truth``; the result and its largest parameter error."""
    rng = np.random.default_rng(1002)
    n = int(per_parameter * truth.size / truth.n_outputs) + 20
    points = 1.5 * rng.standard_normal((n, truth.n_inputs))
    answers = truth.values(points) + noise * rng.standard_normal((n, truth.n_outputs))
    result = fit_values(start, points, answers, noise, acceleration=acceleration, max_memory=max_memory)
    return result, float(np.abs(result.model.to_vector() - truth.to_vector()).max())


def skipping(model: NetworkParameters) -> NetworkParameters:
    """``model`` with a skip."""
    width = model.weights[-1].shape[1]
    return replace(model, skip=np.random.default_rng(1004).standard_normal((model.n_inputs, width)))


def softmax(layers: list[int]) -> NetworkParameters:
    network = unweave.random_network(layers, seed=1000, outer="unit", output_activation="softmax")
    return NetworkParameters.from_network(network)


def check_jacobian(model: NetworkParameters, fit: ValueFit) -> None:
    """J v, J^T r and J^T J against the matrix, and that against differences."""
    vector, rng = model.to_vector(), np.random.default_rng(1003)
    linear = fit.linearise(vector)
    matrix = linear.dense()
    assert matrix.shape == (fit.n_equations, model.size)
    direction, rows = rng.standard_normal(model.size), rng.standard_normal(fit.n_equations)
    # Central differences: h^2 / 6 |f'''| |direction|^3 + eps / h, about 1e-8 at h = 1e-5.
    step = 1e-5
    change = fit.residual(vector - step * direction) - fit.residual(vector + step * direction)
    assert_allclose(matrix @ direction, change / (2 * step), rtol=0, atol=1e-6)
    assert_allclose(linear.apply(direction), matrix @ direction, rtol=0, atol=1e-12)
    assert_allclose(linear.adjoint(rows), matrix.T @ rows, rtol=0, atol=1e-12)
    expected = matrix.T @ matrix
    assert_allclose(np.triu(linear.gram()), np.triu(expected), rtol=0, atol=1e-13 * expected.max())


@pytest.mark.parametrize(
    "model",
    [
        skipping(planted([4, 2])),
        skipping(planted([4, 5, 2])),
        skipping(planted([4, 5, 3, 2], output="sigmoid")),
        softmax([4, 3]),
        softmax([4, 5, 3]),
        softmax([4, 5, 3, 2]),
        skipping(softmax([4, 5, 3])),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_jacobian_with_skip_and_softmax(model: NetworkParameters, weighted: bool) -> None:
    check_jacobian(model, problem(model, weighted=weighted))


@pytest.mark.parametrize("layers", DEPTHS)
@pytest.mark.parametrize(("hidden", "output"), PAIRS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_jacobian_in_all_its_forms(layers: list[int], hidden: str, output: str, weighted: bool) -> None:
    model = planted(layers, hidden, output)
    check_jacobian(model, problem(model, weighted=weighted))


def test_weights_per_point_are_weights_per_answer() -> None:
    model = planted([4, 5, 2])
    fit = problem(model)
    weights = np.random.default_rng(1000).uniform(0.5, 2, len(fit.points))
    vector = perturbed(model, 0.1).to_vector()
    by_point = ValueFit(model, fit.points, fit.answers, weights)
    by_answer = ValueFit(model, fit.points, fit.answers, np.repeat(weights[:, None], 2, axis=1))
    assert_allclose(by_point.residual(vector), by_answer.residual(vector), rtol=1e-15)
    assert_allclose(by_point.linearise(vector).dense(), by_answer.linearise(vector).dense(), rtol=1e-14)
    plain = ValueFit(model, fit.points, fit.answers).residual(vector).reshape(-1, 2)
    assert_allclose(by_point.residual(vector), (plain * weights[:, None]).reshape(-1), rtol=1e-14)


@pytest.mark.parametrize("layers", DEPTHS)
def test_gram_does_not_depend_on_the_blocks_of_rows(
    layers: list[int],
) -> None:
    model = planted(layers)
    linear = problem(model).linearise(model.to_vector())
    whole = np.triu(linear.gram())
    in_parts = linear.gram(workspace=3000)  # a handful of rows
    assert_allclose(np.triu(in_parts), whole, rtol=0, atol=1e-13 * whole.max())


def test_single_precision_is_the_same_jacobian() -> None:
    model = planted([4, 5, 3, 2], output="tanh")
    linear = problem(model).linearise(model.to_vector())
    single = linear.in_single_precision()
    rng = np.random.default_rng(1003)
    direction = rng.standard_normal(model.size).astype(np.float32)
    rows = rng.standard_normal(46).astype(np.float32)
    for ours, exact in (
        (single.apply(direction), linear.apply(direction)),
        (single.adjoint(rows), linear.adjoint(rows)),
        (single.precondition(direction), linear.precondition(direction)),
        (single.gram(), linear.gram()),
    ):
        assert ours.dtype == np.float32
        assert_allclose(ours, exact, rtol=0, atol=1e-5 * np.abs(exact).max())


def test_the_preconditioner_is_exact_for_a_linear_layer() -> None:
    # One layer with identity output: J^T J is the Kronecker product itself.
    model = planted([4, 3])
    linear = problem(model, weighted=False).linearise(model.to_vector())
    matrix = linear.dense()
    inverse = np.linalg.inv(matrix.T @ matrix)
    direction = np.random.default_rng(1003).standard_normal(model.size)
    assert_allclose(linear.precondition(direction), inverse @ direction, rtol=1e-6, atol=1e-9)
    assert_allclose(linear.preconditioner_diagonal(), np.diag(inverse), rtol=1e-6)


def test_the_preconditioner_is_symmetric_positive_and_helps() -> None:
    model = planted([6, 5, 4, 2])
    linear = problem(model, points=200, weighted=False).linearise(model.to_vector())
    inverse = np.stack([linear.precondition(row) for row in np.eye(model.size)])
    assert_allclose(inverse, inverse.T, atol=1e-9 * np.abs(inverse).max())
    assert_allclose(np.diag(inverse), linear.preconditioner_diagonal(), rtol=1e-9)
    values = np.linalg.eigvalsh(inverse)
    assert values[0] > 0
    root = np.linalg.cholesky(inverse)
    matrix = linear.dense()
    scaled = matrix / np.linalg.norm(matrix, axis=0)
    assert np.linalg.cond(matrix @ root) < np.linalg.cond(scaled)


@pytest.mark.parametrize("hidden", ["tanh", "sigmoid", "erf"])
@pytest.mark.parametrize("output", ["identity", "tanh"])
def test_planted_networks_come_back(hidden: str, output: str) -> None:
    truth = planted([8, 7, 5, 2], hidden, output, norms=(1.5, 3.0))
    result, error = refit(truth, perturbed(truth, 1e-3), per_parameter=4)
    assert error < 1e-12
    assert result.history[-1] < 10 * result.floor
    assert result.error_bar is not None
    assert error < 10 * result.error_bar


@pytest.mark.parametrize("size", [1e-6, 1e-4, 1e-2])
def test_larger_networks_use_the_gram_matrix(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ("DenseSolver", "ConjugateGradientSolver"):
        monkeypatch.setattr(solved_steps, other, None)
    truth = planted([20, 20, 15, 3])
    assert truth.size > 700
    result, error = refit(truth, perturbed(truth, size))
    assert error < 1e-12
    assert result.condition < 1e4


def test_one_factorisation_is_enough_close_by(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    gram = module.ValueJacobian.gram
    monkeypatch.setattr(module.ValueJacobian, "gram", lambda self: made.append(1) or gram(self))
    truth = planted([20, 20, 15, 3])
    _, error = refit(truth, perturbed(truth, 1e-5))
    assert error < 1e-12
    assert len(made) == 1


def test_without_any_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ("DenseSolver", "GramSolver"):
        monkeypatch.setattr(solved_steps, other, None)
    truth = planted([12, 10, 6, 3])
    result, error = refit(truth, perturbed(truth, 1e-4), per_parameter=3, max_memory=0)
    assert error < 1e-12
    assert result.history[-1] < 10 * result.floor


def test_nearly_linear_networks_reach_what_the_rounding_allows() -> None:
    # J^T J has condition 1e10 and more: its Cholesky factor alone would stop far above the floor.
    truth = planted([15, 15, 10, 2], norms=(0.15, 0.4))
    result, error = refit(truth, perturbed(truth, 1e-6))
    assert result.condition > 1e5
    assert result.history[-1] < 10 * result.floor
    assert result.error_bar is not None
    assert error < 10 * result.error_bar < 1e-8


def test_bent_steps_follow_the_valley_of_a_nearly_linear_network() -> None:
    truth = planted([15, 15, 10, 2], norms=(0.1, 0.25))
    result, error = refit(truth, perturbed(truth, 1e-4))
    assert result.error_bar is not None
    assert error < 10 * result.error_bar < 1e-8
    straight, _ = refit(truth, perturbed(truth, 1e-4), acceleration=False)
    assert len(straight.history) > 1.5 * len(result.history)


def test_noise_is_averaged_down_to_the_minimum() -> None:
    noise = 1e-3
    truth = planted([20, 20, 15, 3])
    result, error = refit(truth, perturbed(truth, 1e-4), per_parameter=3, noise=noise)
    n = 3 * (int(3 * truth.size / 3) + 20)
    # |r|^2 is noise^2 chi^2 with n - P degrees of freedom: sqrt(2 / (n - P)) = 4 % of itself.
    assert result.history[-1] == pytest.approx(noise * np.sqrt(1 - truth.size / n), rel=0.1)
    assert result.floor == noise
    assert result.prediction_floor == pytest.approx(noise * np.sqrt(truth.size / (n - truth.size)))
    assert result.error_bar is not None
    # The largest of P Gaussian errors stays below 5 of its own bars, and those below the largest.
    assert 0.1 * result.error_bar < error < 5 * result.error_bar


def test_what_is_not_determined_is_reported() -> None:
    truth = planted([20, 20, 15, 3])
    doubled = np.array(truth.weights[1])
    doubled[:, 1] = doubled[:, 0]
    bias = np.array(truth.biases[1])
    bias[1] = bias[0]
    twins = NetworkParameters(
        truth.activations,
        (truth.weights[0], doubled, truth.weights[2]),
        (truth.biases[0], bias, truth.biases[2]),
    )
    points = np.random.default_rng(1000).standard_normal((600, 20))
    result = fit_values(twins, points, twins.values(points), 1e-12)
    assert result.condition == np.inf
    assert result.error_bar is None


def test_steps_are_told_and_may_end_the_fit() -> None:
    class Stop(Exception):
        pass

    def on_step(step: int, rms: float) -> None:
        seen.append((step, rms))
        raise Stop

    seen: list[tuple[int, float]] = []
    truth = planted([4, 5, 2])
    points = np.random.default_rng(1000).standard_normal((60, 4))
    with pytest.raises(Stop):
        fit_values(perturbed(truth, 1e-3), points, truth.values(points), 0.0, on_step)
    assert [step for step, _ in seen] == [1]


def test_shapes_are_checked() -> None:
    model, points = planted([4, 5, 2]), np.zeros((6, 4))
    with pytest.raises(InvalidInput, match=r"points must be of shape \(n, 4\)"):
        ValueFit(model, np.zeros((6, 3)), np.zeros((6, 2)))
    with pytest.raises(InvalidInput, match=r"answers must be of shape \(6, 2\)"):
        ValueFit(model, points, np.zeros((6, 1)))
    with pytest.raises(InvalidInput, match=r"weights must be of shape \(6,\) or \(6, 2\)"):
        ValueFit(model, points, np.zeros((6, 2)), np.ones((2, 6)))


@pytest.mark.parametrize("seed", range(6))
def test_a_large_fit_ends_once_steps_only_fit_rounding(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Whether a small fit takes such steps at all depends on how the machine's BLAS rounds."""
    model = planted([6, 12, 10, 1])
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((400, 6))
    start = model.from_vector(model.to_vector() + 1e-2 * rng.standard_normal(model.size))
    answers = model.values(x)
    rounding = np.finfo(np.float64).eps * np.sqrt(np.mean(answers**2))
    last_ratios = []

    def observed(*arguments: Any) -> Fit:
        last_ratios.append(arguments[2].last_ratio)
        return levenberg_marquardt(*arguments)

    monkeypatch.setattr(module, "levenberg_marquardt", observed)
    fit_values(start, x, answers)
    monkeypatch.setattr(module, "_LARGE", model.size)
    history = np.array(fit_values(start, x, answers).history)
    assert last_ratios == [1.0, 0.9]
    assert history[-1] < 10 * rounding
    assert not ((history[:-2] < 10 * rounding) & (history[1:-1] > 0.9 * history[:-2])).any()
