from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.derivatives.entangled import network_gradients, network_hessians
from unweave.methods.smooth_deep.hessian_tail import HessianTail, TailState, has_tail, tail_dimension
from unweave.networks.network import Network
from unweave.networks.random import random_network
from unweave.networks.saturation import ERF, TANH
from unweave.numerics.least_squares.manifold_descent import descend

FAMILY = {"tanh": TANH, "erf": ERF}
CASES = [(name, known) for name in ("tanh", "erf") for known in (False, True)]
M = 4


def planted(activation: str = "tanh", inner: tuple[int, ...] = (M,)) -> Network:
    return random_network([M, M, *inner, 2], activation, seed=1000, outer="normal", norms=(0.7, 1.4))


def truth(network: Network) -> TailState:
    return TailState(network.weights[0], network.biases[0])


def problem_of(
    network: Network,
    directions_known: bool = False,
    dimension: int = M,
    start: TailState | None = None,
    exact_entries: int = 12_000_000,
) -> HessianTail:
    z = 1.3 * np.random.default_rng(1001).uniform(-1, 1, (25, M))  # where the route asks
    points = np.linalg.solve(network.weights[0].T, (z - network.biases[0]).T).T
    return HessianTail(
        points,
        network_gradients(network, points).transpose(0, 2, 1),
        network_hessians(network, points),
        dimension,
        FAMILY[network.activations[0]],
        truth(network) if start is None else start,
        directions_known,
        exact_entries,
    )


def perturbed(state: TailState, size: float, problem: HessianTail) -> TailState:
    unknowns = len(problem.normal_equations(state)[1])
    return problem.moved(state, size * np.random.default_rng(1002).standard_normal(unknowns))


@pytest.mark.parametrize(("activation", "known"), CASES)
def test_nothing_is_left_at_the_truth(activation: str, known: bool) -> None:
    network = planted(activation)
    problem = problem_of(network, known)
    assert problem.cost(truth(network)) < 1e-24
    assert np.abs(problem.normal_equations(truth(network))[1]).max() < 1e-11
    values = problem.spectrum(truth(network))
    assert np.sum(values > 1e-11) == M  # the dimension is the width of the next layer
    assert problem.cost(perturbed(truth(network), 1e-2, problem)) > 1e-6


def test_one_dimension_less_is_not_enough() -> None:
    network = planted()
    assert problem_of(network, dimension=M - 1).cost(truth(network)) > 1e-6


def test_a_further_hidden_layer_leaves_more_than_its_width() -> None:
    network = planted(inner=(M, 3))
    assert problem_of(network).cost(truth(network)) > 1e-6


@pytest.mark.parametrize(("activation", "known"), CASES)
def test_the_gradient_is_that_of_the_cost(activation: str, known: bool) -> None:
    network = planted(activation)
    problem = problem_of(network, known)
    state = perturbed(truth(network), 0.03, problem)
    _, gradient, cost = problem.normal_equations(state)
    assert len(gradient) == (M if known else M * M) + M
    assert cost == pytest.approx(problem.cost(state), rel=1e-9)
    step = 1e-6
    for number in range(len(gradient)):
        along = np.eye(len(gradient))[number] * step
        change = problem.cost(problem.moved(state, along)) - problem.cost(problem.moved(state, -along))
        assert change / (4 * step) == pytest.approx(gradient[number], rel=1e-6, abs=1e-7)


@pytest.mark.parametrize(("activation", "known"), CASES)
def test_the_gram_matrix_is_the_curvature_at_zero_residual(activation: str, known: bool) -> None:
    network = planted(activation)
    problem = problem_of(network, known)
    gram, _, _ = problem.normal_equations(truth(network))
    rng, step = np.random.default_rng(1003), 1e-5
    for _ in range(10):
        along = rng.standard_normal(len(gram))
        costs = [problem.cost(problem.moved(truth(network), sign * step * along)) for sign in (-1, 1)]
        assert sum(costs) / 2 / step**2 == pytest.approx(along @ gram @ along, rel=1e-4)


@pytest.mark.parametrize("sketched", [False, True])
@pytest.mark.parametrize(("activation", "known"), CASES)
def test_descent_comes_back_from_a_perturbed_start(activation: str, known: bool, sketched: bool) -> None:
    network = planted(activation)
    start = perturbed(truth(network), 0.03, problem_of(network, known))
    problem = problem_of(network, known, start=start, exact_entries=0 if sketched else 12_000_000)
    found = descend(problem, start, steps=80, enough=1e-11)
    assert found.residual < 1e-9
    # Columns that were right in direction stay so; free ones are fixed by the equations alone.
    assert_allclose(found.state.mixing, network.weights[0], rtol=0, atol=1e-6)
    assert_allclose(found.state.biases, network.biases[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("known", [False, True])
def test_long_steps_are_shortened(known: bool) -> None:
    network = planted()
    problem = problem_of(network, known)
    long = np.zeros((M if known else M * M) + M)
    long[-1] = -100.0
    moved = problem.moved(truth(network), long)
    assert_allclose(moved.biases - network.biases[0], [0, 0, 0, -0.25], atol=1e-15)
    assert_allclose(moved.mixing, network.weights[0])


def test_known_directions_are_kept() -> None:
    network = planted()
    moved = perturbed(truth(network), 0.1, problem_of(network, directions_known=True))
    ratio = moved.mixing / network.weights[0]
    assert_allclose(ratio, np.broadcast_to(ratio[0], (M, M)), rtol=1e-12)
    assert np.abs(ratio - 1).max() > 1e-3


def test_numbers_that_broke_down_cost_infinity() -> None:
    network = planted()
    with np.errstate(all="ignore"):
        assert problem_of(network).cost(TailState(network.weights[0], np.full(M, 1e4))) == np.inf


def test_where_the_tail_begins() -> None:
    assert tail_dimension(8, 100, True) == 8
    assert tail_dimension(8, 100, False) == 24
    assert tail_dimension(8, 100, None) == 24
    assert tail_dimension(8, 30, False) == 10
    assert tail_dimension(1, 2, False) == 1


PRODUCTS = M * (M + 1) // 2


@pytest.mark.parametrize(
    ("dimension", "matrices", "width", "expected"),
    [
        (4, 50, 4, True),
        (9, 50, 4, True),
        (10, 50, 4, False),  # ten products of four states: all of them
        (12, 50, 4, False),
        (9, 10, 4, True),
        (9, 9, 4, False),  # as many matrices as dimensions: they span no more
        (9, 5, 4, False),
        (1, 50, 1, False),  # a layer of one unit has one product
        (1, 2, 2, True),
        (1, 1, 2, False),
        (4, 0, 4, False),
    ],
)
def test_whether_anything_lies_beyond(dimension: int, matrices: int, width: int, expected: bool) -> None:
    assert has_tail(dimension, matrices, width) == expected


@pytest.mark.parametrize("matrices", [6, 30])
@pytest.mark.parametrize("dimension", range(4, PRODUCTS + 3))
def test_a_tail_is_what_a_wrong_layer_leaves(dimension: int, matrices: int) -> None:
    network = planted(inner=(M, 3))
    whole = problem_of(network, dimension=dimension)
    sites = matrices // 2  # of two outputs
    problem = HessianTail(
        whole._c[:sites],
        whole._gradients[:sites],
        whole._hessians[:sites],
        dimension,
        TANH,
        truth(network),
    )
    wrong = TailState(np.eye(M), np.zeros(M))
    if has_tail(dimension, matrices, M):
        assert problem.cost(wrong) > 1e-12
        assert np.linalg.norm(problem.normal_equations(wrong)[1]) > 1e-12
    else:
        assert problem.cost(wrong) == 0.0
        assert len(problem.spectrum(wrong)) <= dimension


@pytest.mark.parametrize("dimension", [PRODUCTS, 3 * M])
def test_no_tail_at_all_costs_nothing(dimension: int) -> None:
    network = planted()
    assert not has_tail(dimension, 50, M)
    assert problem_of(network, dimension=dimension).cost(truth(network)) < 1e-24


@pytest.mark.xfail(
    strict=True,
    raises=ValueError,
    reason="normal equations need a tail: whoever descends asks has_tail first",
)
@pytest.mark.parametrize("dimension", [PRODUCTS, 3 * M])
def test_no_tail_at_all_is_solved_at_once(dimension: int) -> None:
    network = planted()
    problem = problem_of(network, dimension=dimension)
    assert descend(problem, truth(network)).residual < 1e-12
