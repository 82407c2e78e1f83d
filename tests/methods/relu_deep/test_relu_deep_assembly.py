"""From units to a network."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from planted_layers import first_layer, planted, second_preactivations, slope_of
from unweave import Network
from unweave.arrays import Array
from unweave.methods.relu_deep.assembly import (
    absolute_form,
    assemble,
    behind_units,
    output_signs,
    signed_layers,
    signed_unit,
    signs_from_next_layer,
    with_always_active,
)
from unweave.methods.relu_deep.trace import Unit
from unweave.methods.shared.surfaces.lifted import LiftedLayers
from unweave.methods.shared.surfaces.output_fit import OutputFit, OutputFitOptions, fit_outputs


def units_of(network: Network, known: LiftedLayers, turned: bool = True) -> list[Unit]:
    """The true units of the second layer, every other one turned round."""
    points = np.random.default_rng(0).standard_normal((400, network.n_inputs))
    truth = second_preactivations(network, points)
    alphas = np.linalg.lstsq(known.values(points), truth, rcond=None)[0]
    turn = np.where(np.arange(alphas.shape[1]) % 2, -1.0, 1.0) if turned else 1.0
    return [Unit(alpha, (), 1, 0) for alpha in (alphas * turn).T]


def fitted(lifted: LiftedLayers, points: Array, answers: Array) -> OutputFit:
    return fit_outputs(lifted, points, answers, np.random.default_rng(0), OutputFitOptions())


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
@pytest.mark.parametrize("layers", [[6, 5, 4, 1], [4, 7, 5, 2]])
def test_units_without_signs_become_the_network(layers: list[int], activation: str) -> None:
    network = planted(layers, 1004, activation)
    known = first_layer(network, signed=False)
    found = units_of(network, known)
    solution = signs_from_next_layer(known, found, activation)
    assert solution.solved
    assert solution.unique
    slope = slope_of(network)
    signed = signed_layers(known, solution.signs, slope)
    units = [signed_unit(unit, known, solution.signs, slope) for unit in found]
    points = 3 * np.random.default_rng(1).standard_normal((300, layers[0]))
    lifted = behind_units(signed, units)
    fit = fitted(lifted, points, network(points))
    assert fit.misfits.max() < 1e-10
    form = absolute_form(lifted, fit.solution)
    np.testing.assert_allclose(form(signed.values(points)[:, :-1]), network(points), atol=1e-10)
    signs = output_signs(form, units, signed, activation)
    assert signs.solved
    result, rest = assemble(signed, units, form, signs.signs, activation)
    assert np.abs(rest).max() < 1e-9
    assert unweave.compare(network, result).parameter_error < 1e-9


def test_rows_that_a_missing_unit_changes_are_told() -> None:
    network = planted([6, 5, 4, 1], 1001)
    known = first_layer(network, signed=True)
    points = 3 * np.random.default_rng(2).standard_normal((400, 6))
    active = second_preactivations(network, points)[:, 1] > 0
    points = np.concatenate([points[~active], points[active][:10]])
    units = units_of(network, known, turned=False)
    fit = fitted(behind_units(known, [units[0], *units[2:]]), points, network(points))
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
