from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.derivatives.entangled import network_gradients
from unweave.methods.smooth_deep.gradient_subspace import (
    GradientSubspace,
    LayerState,
    is_solution,
    narrowed,
    range_gap,
)
from unweave.networks.network import Network
from unweave.networks.random import random_network
from unweave.networks.saturation import ERF, TANH, Saturating
from unweave.numerics.least_squares.manifold_descent import Descent, descend

FAMILY = {"tanh": TANH, "erf": ERF}
M, K = 5, 3


def planted(outputs: int = 2, activation: str = "tanh") -> Network:
    return random_network([M, M, K, outputs], activation, seed=1000, outer="normal", norms=(0.7, 1.4))


def problem_of(
    network: Network,
    g: Saturating = TANH,
    directions_known: bool = False,
    count: int = 30,
    chunk_entries: int = 3_000_000,
) -> GradientSubspace:
    points = 1.2 * np.random.default_rng(1001).standard_normal((count, M))
    gradients = network_gradients(network, points).transpose(0, 2, 1)
    return GradientSubspace(points, gradients, g, directions_known, chunk_entries)


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


def test_normal_equations_do_not_depend_on_how_sites_are_grouped() -> None:
    network = planted()
    problem = problem_of(network)
    state = perturbed(truth(network), 0.05, problem)
    whole = problem.normal_equations(state)
    grouped = problem_of(network, chunk_entries=1000).normal_equations(state)
    for one, two in zip(whole, grouped, strict=True):
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


def test_the_spectrum_bears_a_saturated_site() -> None:
    network = planted()
    points = np.random.default_rng(1001).standard_normal((30, M))
    points[0] *= 1e3
    gradients = network_gradients(network, points).transpose(0, 2, 1)
    problem = GradientSubspace(points, gradients, TANH)
    axes, values = problem.spectrum(truth(network))
    assert np.isfinite(values).all()
    assert_allclose(axes.T @ axes, np.eye(M), atol=1e-12)


@pytest.mark.parametrize("activation", ["tanh", "erf"])
def test_a_site_where_all_units_are_saturated_does_not_hide_the_range(activation: str) -> None:
    network = planted(activation=activation)
    points = 1.2 * np.random.default_rng(1001).standard_normal((30, M))
    points[0] = np.linalg.solve(network.weights[0].T, np.full(M, 400.0))  # slopes and gradient are zero
    gradients = network_gradients(network, points).transpose(0, 2, 1)
    assert not gradients[0].any()
    problem = GradientSubspace(points, gradients, FAMILY[activation])
    assert range_gap(problem, truth(network)) > 1e6
    found = problem.with_range(truth(network), K).next_range
    # g' of erf falls as fast as exp(-z^2): what the sites with the smallest slopes say is rounded the most.
    assert_allclose(found @ found.T, truth(network).next_range @ truth(network).next_range.T, atol=1e-6)


@pytest.mark.parametrize("activation", ["tanh", "erf"])
def test_the_gap_is_at_the_end_of_the_range(activation: str) -> None:
    network = planted(activation=activation)
    problem = problem_of(network, FAMILY[activation])
    right = range_gap(problem, truth(network))
    assert right is not None
    assert right > 1e6
    values = problem.spectrum(truth(network))[1]
    assert right == pytest.approx(values[K - 1] / values[K])
    narrow = range_gap(problem, problem.with_range(truth(network), K - 1))
    assert narrow == pytest.approx(values[K - 2] / values[K - 1])
    assert narrow < 100  # nothing ends there
    assert range_gap(problem, problem.with_range(truth(network), M)) is None


def test_a_range_of_gradients_that_end_exactly_has_a_finite_gap() -> None:
    points = np.random.default_rng(1001).standard_normal((20, M))
    state = LayerState(np.eye(M), np.zeros(M), np.eye(M)[:, :1])
    gradients = np.zeros((20, M, 1))
    gradients[:, 0] = 1.0
    gap = range_gap(GradientSubspace(points, gradients, TANH), state)
    assert gap is not None
    assert 1e10 < gap < np.inf


@pytest.mark.parametrize(
    ("residual", "gap", "expected"),
    [
        (1e-6, None, True),
        (1e-6, 1e3, True),
        (1e-13, 1e9, True),
        (1e-4, None, False),
        (1e-4, 1e9, False),
        (1e-6, 30.0, False),  # little is left, but the range does not end
        (1e-13, 1.5, False),
        (np.inf, None, False),
        (np.nan, 1e9, False),
        (1e-6, np.nan, False),
    ],
)
def test_what_counts_as_a_solution(residual: float, gap: float | None, expected: bool) -> None:
    assert is_solution(residual, gap) == expected


@pytest.mark.parametrize("outputs", [1, 2, 4])
def test_a_range_that_is_too_wide_leaves_nothing_but_is_no_solution(outputs: int) -> None:
    network = planted(outputs)
    problem = problem_of(network, count=60)
    wide = problem.with_range(truth(network), K + 1)
    assert problem.cost(wide) < 1e-26
    assert not is_solution(np.sqrt(problem.cost(wide)), range_gap(problem, wide))
    assert is_solution(np.sqrt(problem.cost(truth(network))), range_gap(problem, truth(network)))


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize(("activation", "known"), CASES)
def test_a_range_with_room_to_spare_is_narrowed(activation: str, known: bool, outputs: int) -> None:
    network = planted(outputs, activation)
    problem = problem_of(network, FAMILY[activation], known, count=60)
    start = perturbed(truth(network), 1e-3, problem)
    wide = descend(problem, problem.with_range(start, K + 1))
    assert wide.state.next_range.shape == (M, K + 1)
    found = narrowed(problem, wide)
    assert found.state.next_range.shape == (M, K)
    assert found.residual < 1e-12
    assert is_solution(found.residual, range_gap(problem, found.state))
    assert_allclose(found.state.mixing, network.weights[0], rtol=0, atol=1e-8)
    assert_allclose(found.state.biases, network.biases[0], rtol=0, atol=1e-8)
    projector = truth(network).next_range @ truth(network).next_range.T
    assert_allclose(found.state.next_range @ found.state.next_range.T, projector, rtol=0, atol=1e-8)


def test_narrowing_finds_the_layer_where_the_wide_range_has_not() -> None:
    network = planted()
    problem = problem_of(network, count=60)
    # A wide range, and a layer that is off: nothing has been solved yet.
    start = problem.with_range(perturbed(truth(network), 1e-3, problem), K + 1)
    unsolved = Descent(start, float(np.sqrt(problem.cost(start))), ())
    assert unsolved.residual > 1e-5
    found = narrowed(problem, unsolved)
    assert found.state.next_range.shape == (M, K)
    assert_allclose(found.state.mixing, network.weights[0], rtol=0, atol=1e-8)


@pytest.mark.parametrize("activation", ["tanh", "erf"])
def test_the_narrowest_range_is_left_alone(activation: str) -> None:
    network = planted(activation=activation)
    problem = problem_of(network, FAMILY[activation], count=60)
    fit = Descent(truth(network), 1e-15, ())
    assert narrowed(problem, fit) is fit
    off = perturbed(truth(network), 0.5, problem)
    wrong = Descent(off, float(np.sqrt(problem.cost(off))), ())
    assert narrowed(problem, wrong).residual in (wrong.residual, pytest.approx(0, abs=1e-5))
    one = LayerState(network.weights[0], network.biases[0], truth(network).next_range[:, :1])
    alone = Descent(one, 0.5, ())
    assert narrowed(problem, alone) is alone  # there is nothing below one


@pytest.mark.parametrize(("activation", "scale"), [("tanh", 10.0), ("tanh", 100.0), ("erf", 3.0)])
def test_a_site_where_some_units_are_saturated_does_not_hide_the_range(activation: str, scale: float) -> None:
    network = planted(activation=activation)
    points = 1.2 * np.random.default_rng(1001).standard_normal((30, M))
    points[0] *= scale
    gradients = network_gradients(network, points).transpose(0, 2, 1)
    problem = GradientSubspace(points, gradients, FAMILY[activation])
    state = truth(network)
    assert problem.cost(state) < 1e-26
    assert is_solution(np.sqrt(problem.cost(state)), range_gap(problem, state))
