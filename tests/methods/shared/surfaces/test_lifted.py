"""Known layers as one piecewise linear map."""

from __future__ import annotations

import numpy as np
import pytest

from planted_layers import first_layer, planted, second_preactivations
from unweave import Network
from unweave.methods.shared.surfaces.lifted import LiftedLayers, zeros_between
from unweave.numerics.line_kinks import Line


@pytest.fixture(params=["signed", "unsigned", "channel"])
def lifted(request: pytest.FixtureRequest) -> tuple[Network, LiftedLayers]:
    network = planted([6, 5, 4, 1], 1000)
    if request.param != "channel":
        return network, first_layer(network, request.param == "signed")
    biases = [np.append(network.biases[0][:-1], 1e3), *network.biases[1:]]  # the last unit is always active
    network = Network(network.weights, biases, network.activations)
    matrix = np.hstack([network.weights[0].T, network.biases[0][:, None]])
    return network, LiftedLayers(6).with_signed(matrix[:-1], matrix[-1:])


def test_the_next_layer_is_affine_in_the_lifted_states(lifted: tuple[Network, LiftedLayers]) -> None:
    network, known = lifted
    points = np.random.default_rng(1).standard_normal((200, 6))
    phi = known.values(points)
    assert phi.shape[1] == known.dimension
    alphas = np.linalg.lstsq(phi, second_preactivations(network, points), rcond=None)[0]
    fresh = 5 * np.random.default_rng(2).standard_normal((50, 6))
    np.testing.assert_allclose(
        known.values(fresh) @ alphas, second_preactivations(network, fresh), atol=1e-10
    )


def test_the_jacobian_is_that_of_the_values(lifted: tuple[Network, LiftedLayers]) -> None:
    _, known = lifted
    point, move = np.random.default_rng(3).standard_normal((2, 6))
    step = 1e-3 * known.room(point, known.pattern(point)) * move / np.linalg.norm(move)
    jacobian, gradients = known.jacobian(known.pattern(point))
    both = np.stack([point, point + step])
    np.testing.assert_allclose(np.diff(known.values(both), axis=0)[0], jacobian @ step, atol=1e-12)
    np.testing.assert_allclose(np.diff(known.preactivations(both), axis=0)[0], gradients @ step, atol=1e-12)


def test_gradients_in_many_regions_are_those_of_each(lifted: tuple[Network, LiftedLayers]) -> None:
    _, known = lifted
    rng = np.random.default_rng(7)
    alpha, patterns = rng.standard_normal(known.dimension), rng.choice([-1.0, 1.0], (9, known.n_units))
    each = [known.jacobian(pattern) for pattern in patterns]
    expected = np.stack([alpha @ jacobian for jacobian, _ in each])
    np.testing.assert_allclose(known.gradients(patterns, alpha), expected, atol=1e-12)
    for unit in range(known.n_units):
        expected = np.stack([gradients[unit] for _, gradients in each])
        np.testing.assert_allclose(known.unit_gradients(patterns, unit), expected, atol=1e-12)


def test_the_first_crossing_is_where_the_pattern_changes(lifted: tuple[Network, LiftedLayers]) -> None:
    _, known = lifted
    point, direction = np.random.default_rng(4).standard_normal((2, 6))
    pattern = known.pattern(point)
    crossing = known.first_crossing(point, direction, pattern)
    before, after = (known.pattern(point + share * crossing.distance * direction) for share in (0.999, 1.001))
    assert (before == pattern).all()
    assert np.flatnonzero(after != pattern).tolist() == [crossing.unit]
    assert known.first_crossing(point, direction, pattern, skip=crossing.unit).distance > crossing.distance


def test_zeros_on_a_line_are_zeros_and_all_of_them() -> None:
    network = planted([5, 6, 4, 1], 1001)
    known = first_layer(network, signed=True)
    alpha = np.append(network.weights[1][:, 0], network.biases[1][0])
    line = Line(np.zeros(5), np.ones(5) / np.sqrt(5), -50.0, 50.0)
    zeros = known.zeros_on(line, alpha)
    np.testing.assert_allclose(known.values(line.points(zeros)) @ alpha, 0, atol=1e-11)
    signs = np.sign(known.values(line.points(np.linspace(-50, 50, 100_001))) @ alpha)
    assert len(zeros) == (np.diff(signs) != 0).sum() > 0


def test_the_basis_holds_the_gradients_of_all_that_is_behind() -> None:
    network = planted([8, 4, 5, 1], 1002)
    known = first_layer(network, signed=True)
    pattern = known.pattern(np.random.default_rng(5).standard_normal(8))
    basis = known.basis(pattern)
    assert basis.shape == (8, int((pattern > 0).sum()))
    jacobian = known.jacobian(pattern)[0]
    np.testing.assert_allclose(jacobian @ basis @ basis.T, jacobian, atol=1e-12)


def test_zeros_between_places() -> None:
    heights = np.array([[1.0, 1.0], [-1.0, 3.0], [-3.0, -3.0]])
    assert sorted(zeros_between(np.array([0.0, 2.0, 4.0]), heights)) == [1.0, 3.0]
