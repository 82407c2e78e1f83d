from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import unweave.deep.gradient_subspace as module
from unweave.deep.gradient_subspace import GradientSubspace, LayerState
from unweave.deep.projected_descent import descend
from unweave.deep.saturating import ERF, TANH, Saturating
from unweave.derivatives.closed_form import network_gradients
from unweave.network import Network
from unweave.random_networks import random_network

FAMILY = {"tanh": TANH, "erf": ERF}
M, K = 5, 3


def planted(outputs: int = 2, activation: str = "tanh") -> Network:
    return random_network([M, M, K, outputs], activation, seed=1000, outer="normal", norms=(0.7, 1.4))


def problem_of(
    network: Network, g: Saturating = TANH, directions_known: bool = False, count: int = 30
) -> GradientSubspace:
    points = 1.2 * np.random.default_rng(1001).standard_normal((count, M))
    gradients = network_gradients(network, points).transpose(0, 2, 1)
    return GradientSubspace(points, gradients, g, directions_known)


def truth(network: Network) -> LayerState:
    return LayerState(network.weights[0], network.biases[0], np.linalg.qr(network.weights[1])[0])


def perturbed(state: LayerState, size: float, problem: GradientSubspace) -> LayerState:
    unknowns = len(problem.normal_equations(state)[1])
    return problem.moved(state, size * np.random.default_rng(1002).standard_normal(unknowns))


CASES = [(name, known) for name in ("tanh", "erf") for known in (False, True)]


@pytest.mark.parametrize(("activation", "known"), CASES)
def test_nothing_is_left_at_the_truth(activation: str, known: bool) -> None:
    network = planted(activation=activation)
    problem = problem_of(network, FAMILY[activation], known)
    assert problem.cost(truth(network)) < 1e-26
    _, gradient, cost = problem.normal_equations(truth(network))
    assert cost < 1e-26
    assert np.abs(gradient).max() < 1e-12
    assert problem.cost(perturbed(truth(network), 1e-3, problem)) > 1e-8


@pytest.mark.parametrize(("activation", "known"), CASES)
def test_the_gradient_is_that_of_the_cost(activation: str, known: bool) -> None:
    """Kaufman's derivatives leave out a term orthogonal to the residual: J^T r is exact everywhere."""
    network = planted(activation=activation)
    problem = problem_of(network, FAMILY[activation], known)
    state = perturbed(truth(network), 0.05, problem)
    _, gradient, cost = problem.normal_equations(state)
    assert cost == pytest.approx(problem.cost(state), rel=1e-12)
    assert len(gradient) == (M if known else M * M) + M + (M - K) * K
    step = 1e-5
    for number in range(len(gradient)):
        along = np.eye(len(gradient))[number] * step
        change = problem.cost(problem.moved(state, along)) - problem.cost(problem.moved(state, -along))
        # h^2 of the third derivative, eps/h of rounding
        assert change / (4 * step) == pytest.approx(gradient[number], abs=1e-7)


@pytest.mark.parametrize(("activation", "known"), CASES)
def test_the_gram_matrix_is_the_curvature_at_zero_residual(activation: str, known: bool) -> None:
    network = planted(activation=activation)
    problem = problem_of(network, FAMILY[activation], known)
    gram, _, _ = problem.normal_equations(truth(network))
    assert_allclose(gram, gram.T, atol=1e-14)
    rng, step = np.random.default_rng(1003), 1e-4
    for _ in range(10):
        along = rng.standard_normal(len(gram))
        costs = [problem.cost(problem.moved(truth(network), sign * step * along)) for sign in (-1, 1)]
        assert sum(costs) / 2 / step**2 == pytest.approx(along @ gram @ along, rel=1e-4)


def test_normal_equations_do_not_depend_on_how_sites_are_grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    network = planted()
    problem = problem_of(network)
    state = perturbed(truth(network), 0.05, problem)
    whole = problem.normal_equations(state)
    monkeypatch.setattr(module, "_CHUNK_ENTRIES", 1000)
    for one, two in zip(whole, problem.normal_equations(state), strict=True):
        assert_allclose(one, two, rtol=0, atol=1e-13 * np.abs(one).max())


@pytest.mark.parametrize("known", [False, True])
def test_a_step_keeps_the_range_orthonormal(known: bool) -> None:
    network = planted()
    problem = problem_of(network, directions_known=known)
    moved = perturbed(truth(network), 0.5, problem)
    assert_allclose(moved.next_range.T @ moved.next_range, np.eye(K), atol=1e-14)
    cosines = np.sum(moved.mixing * network.weights[0], axis=0) / (
        np.linalg.norm(moved.mixing, axis=0) * np.linalg.norm(network.weights[0], axis=0)
    )
    assert (np.abs(cosines - 1).max() < 1e-14) == known


def test_no_step_moves_nothing() -> None:
    network = planted()
    problem = problem_of(network)
    same = problem.moved(truth(network), np.zeros(M * M + M + (M - K) * K))
    assert_allclose(same.mixing, network.weights[0])
    projector = truth(network).next_range @ truth(network).next_range.T
    assert_allclose(same.next_range @ same.next_range.T, projector, atol=1e-14)


def test_the_spectrum_ends_with_the_next_width() -> None:
    network = planted()
    problem = problem_of(network)
    axes, values = problem.spectrum(truth(network))
    assert values[K - 1] > 1e-3
    assert values[K] < 1e-12
    projector = truth(network).next_range @ truth(network).next_range.T
    assert_allclose(axes[:, :K] @ axes[:, :K].T, projector, atol=1e-9)
    found = problem.with_range(truth(network), K).next_range
    assert_allclose(found @ found.T, projector, atol=1e-9)


@pytest.mark.parametrize("known", [False, True])
def test_fewer_columns_say_the_same(known: bool) -> None:
    network = planted(outputs=7)
    problem = problem_of(network, directions_known=known)
    smaller = problem.compressed(K)
    assert smaller._gradients.shape == (30, M, K)
    state = perturbed(truth(network), 0.1, problem)
    assert smaller.cost(state) == pytest.approx(problem.cost(state), rel=1e-10)
    for one, two in zip(problem.normal_equations(state), smaller.normal_equations(state), strict=True):
        assert_allclose(one, two, rtol=0, atol=1e-10 * np.abs(one).max())
    assert problem.compressed(7) is problem


def test_the_size_of_gradients_does_not_matter() -> None:
    network = planted()
    points = np.random.default_rng(1001).standard_normal((30, M))
    gradients = network_gradients(network, points).transpose(0, 2, 1)
    scale = 10.0 ** np.random.default_rng(1004).uniform(-9, 9, (30, 1, 1))
    problem, scaled = (GradientSubspace(points, part, TANH) for part in (gradients, scale * gradients))
    state = perturbed(truth(network), 0.1, problem)
    assert scaled.cost(state) == pytest.approx(problem.cost(state), rel=1e-12)
    assert problem.cost(state) < 1


def test_a_gradient_that_vanishes_is_left_alone() -> None:
    points = np.random.default_rng(1001).standard_normal((10, M))
    problem = GradientSubspace(points, np.zeros((10, M, 2)), TANH)
    assert problem.cost(truth(planted())) == 0.0


@pytest.mark.parametrize(("activation", "known"), CASES)
def test_descent_comes_back_from_a_perturbed_start(activation: str, known: bool) -> None:
    network = planted(activation=activation)
    problem = problem_of(network, FAMILY[activation], known, count=60)
    found = descend(problem, perturbed(truth(network), 0.03, problem))
    assert found.residual < 1e-12
    # Residuals are relative; the Jacobian's condition is some 1e3 here.
    assert_allclose(found.state.mixing, network.weights[0], rtol=0, atol=1e-8)
    assert_allclose(found.state.biases, network.biases[0], rtol=0, atol=1e-8)


@pytest.mark.xfail(strict=True, reason="divides by a slope that is zero to rounding: a RuntimeWarning")
def test_the_spectrum_bears_a_saturated_site() -> None:
    network = planted()
    points = np.random.default_rng(1001).standard_normal((30, M))
    points[0] *= 1e3
    gradients = network_gradients(network, points).transpose(0, 2, 1)
    problem = GradientSubspace(points, gradients, TANH)
    assert np.isfinite(problem.spectrum(truth(network))[1]).all()
