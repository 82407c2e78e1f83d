"""From units to a network, its polish and its checks."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from planted_layers import first_layer, planted, second_preactivations, slope_of
from unweave import Network
from unweave.methods.relu_deep.assembly import (
    assemble,
    fit_outputs,
    layer_of,
    output_signs,
    signed_unit,
    signs_from_next_layer,
    with_always_active,
)
from unweave.methods.relu_deep.complete import check_points
from unweave.methods.relu_deep.polish import (
    clear_of_kinks,
    enough_rows,
    open_parameters,
    polish,
    rows_for_open_parameters,
)
from unweave.methods.relu_deep.trace import Unit
from unweave.networks.lifted_layers import LiftedLayers


def units_of(network: Network, known: LiftedLayers, turned: bool = True) -> list[Unit]:
    """The true units of the second layer, every other one turned round."""
    points = np.random.default_rng(0).standard_normal((400, network.n_inputs))
    truth = second_preactivations(network, points)
    alphas = np.linalg.lstsq(known.values(points), truth, rcond=None)[0]
    turn = np.where(np.arange(alphas.shape[1]) % 2, -1.0, 1.0) if turned else 1.0
    return [Unit(alpha, (), 1, 0) for alpha in (alphas * turn).T]


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
@pytest.mark.parametrize("layers", [[6, 5, 4, 1], [4, 7, 5, 2]])
def test_units_without_signs_become_the_network(layers: list[int], activation: str) -> None:
    network = planted(layers, 1004, activation)
    known = first_layer(network, signed=False, narrow=layers[1] <= layers[0])
    found = units_of(network, known)
    solution = signs_from_next_layer(known, found, activation)
    assert solution.solved
    assert solution.unique
    slope = slope_of(network)
    signed = known.with_signs(solution.signs, slope)
    units = [signed_unit(unit, known, solution.signs, slope) for unit in found]
    points = 3 * np.random.default_rng(1).standard_normal((300, layers[0]))
    fit = fit_outputs(signed, layer_of(units), points, network(points))
    assert fit.misfits.max() < 1e-10
    signs = output_signs(fit, units, signed, activation)
    assert signs.solved
    result, rest = assemble(signed, units, fit, signs.signs, activation)
    assert np.abs(rest).max() < 1e-9
    assert unweave.compare(network, result).parameter_error < 1e-9


def test_rows_that_a_missing_unit_changes_are_told() -> None:
    network = planted([6, 5, 4, 1], 1001)
    known = first_layer(network, signed=True)
    points = 3 * np.random.default_rng(2).standard_normal((400, 6))
    active = second_preactivations(network, points)[:, 1] > 0
    points = np.concatenate([points[~active], points[active][:10]])
    units = units_of(network, known, turned=False)
    fit = fit_outputs(known, layer_of([units[0], *units[2:]]), points, network(points))
    assert (fit.misfits[:-10] < 1e-7).all()
    assert (fit.misfits[-10:] > 1e-5).all()


def test_an_affine_rest_is_given_as_a_unit_that_is_always_active() -> None:
    network = planted([6, 5, 4, 2], 1002)
    points = np.random.default_rng(3).standard_normal((100, 6))
    rest = np.random.default_rng(4).standard_normal((5, 2))
    states = Network(network.weights[:1], network.biases[:1], ["relu"])(points)
    larger = with_always_active(network, rest, points)
    np.testing.assert_allclose(larger(points), network(points) + states @ rest, atol=1e-11)
    assert larger.hidden == (5, 6)


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
    assert points.shape == (4000, 10)
    assert seen > 2 * share[rare[0]]
