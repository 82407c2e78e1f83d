"""From units to a network."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from planted_layers import planted, probe_of, second_preactivations, slope_of
from unweave import Network
from unweave.methods.relu_layers.graft import GraftOptions, graft
from unweave.methods.relu_layers.last_layer import LastLayerOptions, assemble, take_back
from unweave.methods.relu_layers.layer_units import Unit
from unweave.methods.relu_layers.open_weights import OpenWeightOptions, resolve_open_weights
from unweave.methods.relu_layers.tower import FoundLayer, Tower
from unweave.methods.relu_layers.trace import TraceOptions, Tracer
from unweave.methods.shared.surfaces.frame import FrameOptions, in_all_inputs
from unweave.methods.shared.surfaces.output_fit import OutputFit, OutputFitOptions, fit_outputs
from unweave.methods.shared.surfaces.probe import KinkPool
from unweave.methods.shared.surfaces.sight import SightOptions


def tower_of(network: Network, turned: bool = True) -> Tower:
    """The true layers; every other unit of the last one is turned round."""
    tower = Tower(network.n_inputs, KinkPool(), SightOptions(), slope_of(network))
    for weights, biases in zip(network.weights[:-1], network.biases[:-1], strict=True):
        rows = np.hstack([weights.T, biases[:, None]])
        units = [Unit(row, np.zeros((len(row), 0)), []) for row in rows]
        tower.layers.append(FoundLayer(units, np.zeros((0, rows.shape[1]))))
    for unit in tower.top.units[1::2] if turned else ():
        unit.alpha = -unit.alpha
    return tower


def fitted(tower: Tower, points: np.ndarray, answers: np.ndarray) -> OutputFit:
    lifted = tower.unsigned_sight(len(tower.layers)).known
    return fit_outputs(lifted, points, answers, np.random.default_rng(0), OutputFitOptions())


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
@pytest.mark.parametrize("layers", [[6, 5, 4, 1], [4, 7, 5, 2], [8, 7, 7, 5, 1]])
def test_layers_without_the_last_signs_become_the_network(layers: list[int], activation: str) -> None:
    network = planted(layers, 1009, activation)
    tower, points = tower_of(network), 3 * np.random.default_rng(1).standard_normal((300, layers[0]))
    fit = fitted(tower, points, network(points))
    assert fit.misfits.max() < 1e-10
    assembled = assemble(tower, fit, activation, LastLayerOptions())
    assert (assembled.signs.solved, assembled.always_active) == (True, 0)
    assert unweave.compare(network, assembled.network).parameter_error < 1e-9
    take_back(tower, assembled.network, assembled.signs.signs, points)
    assert fitted(tower, points, network(points)).misfits.max() < 1e-10


def test_rows_that_a_missing_unit_changes_are_told() -> None:
    network = planted([6, 5, 4, 1], 1001)
    points = 3 * np.random.default_rng(2).standard_normal((400, 6))
    active = second_preactivations(network, points)[:, 1] > 0
    points = np.concatenate([points[~active], points[active][:10]])
    tower = tower_of(network)
    del tower.top.units[1]
    fit = fitted(tower, points, network(points))
    assert (fit.misfits[:-10] < 1e-7).all()
    assert (fit.misfits[-10:] > 1e-5).all()


def test_an_affine_rest_is_explained_wherever_it_is_asked() -> None:
    network = planted([6, 5, 4, 1], 1002)
    biases = [network.biases[0], np.append(network.biases[1][:-1], 1e3), network.biases[2]]
    network = Network(network.weights, biases, network.activations)  # the last unit is always active
    tower, points = tower_of(network, turned=False), np.random.default_rng(3).standard_normal((300, 6))
    del tower.top.units[-1]
    assembled = assemble(tower, fitted(tower, points, network(points)), "relu", LastLayerOptions())
    assert assembled.always_active > 0
    np.testing.assert_allclose(assembled.network(points), network(points), atol=1e-9)


def test_channels_are_units_that_are_always_active() -> None:
    network = planted([8, 7, 7, 5, 1], 1050)
    biases = [network.biases[0], np.append(network.biases[1][:-1], 1e3), *network.biases[2:]]
    network = Network(network.weights, biases, network.activations)
    tower, points = tower_of(network), np.random.default_rng(4).standard_normal((300, 8))
    second = tower.layers[1]
    second.channels = second.units.pop().alpha[None]
    assembled = assemble(tower, fitted(tower, points, network(points)), "relu", LastLayerOptions())
    assert assembled.always_active == 1
    assert assembled.network.hidden == (7, 7, 5)
    np.testing.assert_allclose(assembled.network(points), network(points), atol=1e-8)


def test_rows_tell_what_is_open_of_a_unit() -> None:
    network = planted([6, 5, 4, 1], 1010)
    tower, points = tower_of(network, turned=False), 3 * np.random.default_rng(5).standard_normal((600, 6))
    states = tower.below(1).values(points)
    unit = tower.top.units[0]
    free = np.eye(6)[:, 2:3]
    unit.open, unit.alpha = free, unit.alpha + 0.5 * free[:, 0]
    wrong = states @ np.stack([each.alpha for each in tower.top.units]).T
    guess = Network(
        [
            *network.weights[:1],
            np.stack([each.alpha[:-1] for each in tower.top.units], axis=1),
            network.weights[2],
        ],
        network.biases,
        network.activations,
    )
    assert not np.allclose(wrong[:, 0], second_preactivations(network, points)[:, 0])
    rng = np.random.default_rng(6)
    options = OpenWeightOptions()
    assert resolve_open_weights(tower, guess, np.ones(4), points, network(points), rng, options)
    np.testing.assert_allclose(unit.alpha[:-1], network.weights[1][:, 0], atol=1e-8)


def without_middle_unit(network: Network, unit: int, turn: float) -> tuple[Tower, Unit, np.ndarray, Tracer]:
    """The tower of three hidden layers but for one unit of the second, and points at which that is off."""
    tower, probe = tower_of(network), probe_of(network)
    tracer = Tracer(probe, np.random.default_rng(8), TraceOptions())
    missing = tower.layers[1].units.pop(unit)
    for reader in tower.top.units:
        reader.alpha = np.delete(reader.alpha, unit)
        reader.open = np.zeros((len(reader.alpha), 0))
    tower.top.channels = np.zeros((0, len(tower.top.units[0].alpha)))
    tower.changed(1)
    points = 3 * np.random.default_rng(9).standard_normal((1000, network.n_inputs))
    heights = tower.below(1).values(points) @ missing.alpha
    around = points[:20]
    missing.places = list(tracer.zeros(tower.below(1), missing.alpha, around))
    missing.alpha = turn * missing.alpha
    return tower, missing, points[heights < 0], tracer


@pytest.mark.parametrize("turn", [1.0, -1.0])
def test_a_missing_unit_of_a_middle_layer_is_grafted(turn: float) -> None:
    network = planted([6, 6, 5, 4, 2], 1012)
    tower, missing, off, tracer = without_middle_unit(network, 2, turn)
    probe = probe_of(network)
    fit = fitted(tower, off, probe(off))
    rng = np.random.default_rng(10)
    found = graft(probe, tower, tracer, fit, 2, missing, rng, GraftOptions())
    assert found is not None
    assert found.sign == turn
    turned = np.array([1.0, -1.0, 1.0, -1.0])  # `tower_of` turns every other unit
    shown = ~found.open_units  # a reader that switches nowhere is like a part of the outputs
    assert shown.sum() >= 2
    np.testing.assert_allclose(found.units[shown], (turned * network.weights[2][2])[shown], atol=1e-7)


def test_nothing_is_grafted_where_the_tower_is_wrong_on_both_sides() -> None:
    network = planted([6, 6, 5, 4, 2], 1012)
    tower, missing, off, tracer = without_middle_unit(network, 2, 1.0)
    probe = probe_of(network)
    wrong = fitted(tower, off, probe(off) + np.sin(off[:, :2]))
    assert graft(probe, tower, tracer, wrong, 2, missing, np.random.default_rng(10), GraftOptions()) is None


def test_the_frame_is_put_right_from_rows_beside_it() -> None:
    network = planted([30, 4, 3, 1], 1011)
    probe = probe_of(network)
    exact = np.linalg.qr(network.weights[0])[0]
    frame = np.linalg.qr(exact + 1e-7 * np.random.default_rng(7).standard_normal(exact.shape))[0]
    probe.reduce(frame)
    weights = [frame.T @ network.weights[0], *network.weights[1:]]
    spread = network(np.random.default_rng(0).standard_normal((500, 30))).std(axis=0)
    weights[-1], last = weights[-1] / spread, network.biases[-1] / spread
    inside = Network(weights, [*network.biases[:-1], last], network.activations)
    whole = in_all_inputs(inside, probe, np.random.default_rng(8), FrameOptions())
    assert np.abs(frame @ inside.weights[0] - network.weights[0]).max() > 1e-8
    np.testing.assert_allclose(whole.weights[0], network.weights[0], atol=1e-12)
