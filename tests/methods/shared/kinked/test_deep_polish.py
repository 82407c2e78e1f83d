"""The polish and the checks of networks with several kinked layers."""

from __future__ import annotations

import numpy as np

import unweave
from planted_layers import planted, second_preactivations
from unweave import Network
from unweave.methods.shared.kinked.check_rows import check_points
from unweave.methods.shared.kinked.deep_polish import (
    DeepPolishOptions,
    _Solver,
    clear_of_kinks,
    enough_rows,
    open_parameters,
    polish,
    rows_for_open_parameters,
)


def perturbed(network: Network, size: float) -> Network:
    rng = np.random.default_rng(5)
    weights = [w + size * rng.standard_normal(w.shape) for w in network.weights]
    biases = [b + size * rng.standard_normal(b.shape) for b in network.biases]
    return Network(weights, biases, network.activations)


def test_a_polish_ends_at_rounding_with_honest_error_bars() -> None:
    network = planted([6, 5, 4, 1], 1005)
    points = 2 * np.random.default_rng(6).standard_normal((400, 6))
    polished = polish(perturbed(network, 1e-7), points, network(points))
    error = unweave.compare(network, polished.network).parameter_error
    assert polished.history[0] > 1e-9
    assert error < 1e-12
    assert polished.history[-1] < 1e-15
    assert error < 100 * polished.error_bar < 1e-9
    assert open_parameters(polished) == []


def test_what_no_row_determines_is_open_and_rows_for_it_are_found() -> None:
    network = planted([6, 5, 4, 1], 1004)
    points = 2 * np.random.default_rng(7).standard_normal((600, 6))
    z = points @ network.weights[0] + network.biases[0]
    second = second_preactivations(network, points)
    apart = ~((z[:, 2] > 0) & (second[:, 1] > 0))  # units 2 and 1 are never active together
    polished = polish(network, points[apart], network(points[apart]))
    assert (1, 2, 1) in open_parameters(polished)
    more = rows_for_open_parameters(polished, np.random.default_rng(8))
    together = ((more @ network.weights[0] + network.biases[0])[:, 2] > 0) & (
        second_preactivations(network, more)[:, 1] > 0
    )
    assert together.any()
    rows = np.concatenate([points[apart], more])
    assert open_parameters(polish(network, rows, network(rows))) == []


def test_rows_near_a_kink_are_left_out() -> None:
    network = planted([6, 5, 4, 1], 1005)
    normal = network.weights[0][:, 0] / np.linalg.norm(network.weights[0][:, 0])
    point = np.random.default_rng(9).standard_normal(6)
    foot = point - (point @ normal + network.biases[0][0] / np.linalg.norm(network.weights[0][:, 0])) * normal
    near = np.stack([foot + 1e-7 * normal, foot + 1e-2 * normal])
    assert clear_of_kinks(network, near).tolist() == [False, True]


def test_rows_on_the_rare_side_of_a_unit_are_taken() -> None:
    network = planted([6, 5, 4, 1], 1006)
    points = np.random.default_rng(10).standard_normal((5000, 6))
    active = second_preactivations(network, points)[:, 0] > 0
    points = np.concatenate([points[~active][:2000], points[active][:5]])
    chosen = enough_rows(network, points, 50, np.random.default_rng(11))
    assert set(range(len(points) - 5, len(points))) <= set(chosen.tolist())
    assert len(chosen) < 500


def test_check_points_see_rare_units_more_often_than_random_ones() -> None:
    # A network whose last unit of the second layer is active on one far point in a thousand or less.
    rng = np.random.default_rng(12)
    far = 100 * rng.standard_normal((20_000, 10))
    for seed in range(2000, 2200):
        network = planted([10, 15, 15, 1], seed)
        share = (second_preactivations(network, far) > 0).mean(axis=0)
        rare = np.flatnonzero((share > 2e-4) & (share < 1e-3))
        if len(rare):
            break
    points = check_points(network, 4000, rng)
    seen = (second_preactivations(network, points)[:, rare[0]] > 0).mean()
    assert points.shape == (5400, 10)
    assert seen > 2 * share[rare[0]]


def test_what_a_jacobian_determines_is_told_as_by_its_singular_values() -> None:
    rng, options = np.random.default_rng(0), DeepPolishOptions()
    jacobian = rng.standard_normal((400, 80))
    jacobian[:, :4] = jacobian[:, 10:13] @ rng.standard_normal((3, 4))  # they are never active alone
    jacobian[:, 79] = 1.3 * jacobian[:, 50] + 1e-6 * rng.standard_normal(400)  # hardly ever
    residual = rng.standard_normal(400)
    solver = _Solver(jacobian.copy(), options)
    size = np.linalg.norm(jacobian, axis=0)
    left, values, right = np.linalg.svd(jacobian / size, full_matrices=False)
    rank = int((values > options.rank * values[0]).sum())
    assert rank == 76
    step = right[:rank].T @ (left[:, :rank].T @ residual / values[:rank]) / size
    np.testing.assert_allclose(solver.solve(residual), step, atol=1e-6 * np.abs(step).max())
    roots, is_open = solver.covariance_roots(), np.linalg.norm(right[rank:], axis=0) > options.open_share
    np.testing.assert_array_equal(np.isinf(roots), is_open)
    expected = np.linalg.norm(right[:rank] / values[:rank, None], axis=0) / size
    np.testing.assert_allclose(roots[~is_open], expected[~is_open], rtol=1e-6)
