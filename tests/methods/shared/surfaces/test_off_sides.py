"""Units of a narrow first layer told from deeper ones by gradients."""

from __future__ import annotations

import numpy as np

from planted_layers import planted, probe_of
from unweave import Network
from unweave.arrays import Array
from unweave.methods.shared.surfaces.first_layer import FirstLayer, FirstLayerOptions
from unweave.methods.shared.surfaces.off_sides import Slope, Slopes, active_sides_of, choose_units
from unweave.methods.shared.surfaces.probe import KinkPool


def slopes_of(network: Network, points: Array, count: int | None = None) -> Slopes:
    """Gradients of two hidden layers at points."""
    found = []
    for point in points[:count]:
        z = point @ network.weights[0] + network.biases[0]
        below = 0.01 if network.activations[0] == "leaky_relu" else 0.0
        first = np.where(z > 0, 1.0, below)
        z = np.where(z > 0, z, below * z) @ network.weights[1] + network.biases[1]
        back = network.weights[1] @ (np.where(z > 0, 1.0, below)[:, None] * network.weights[2])
        found.append(Slope(point, network.weights[0] @ (first[:, None] * back), 1e-12))
    return Slopes.of(found)


def planes_of(network: Network) -> Array:
    """(m, d + 1) of length one, every other one turned round."""
    sizes = np.linalg.norm(network.weights[0], axis=0)
    matrix = np.hstack([(network.weights[0] / sizes).T, (network.biases[0] / sizes)[:, None]])
    return np.where(np.arange(len(matrix)) % 2, -1.0, 1.0)[:, None] * matrix


def test_units_are_on_where_gradients_read_them() -> None:
    network = planted([8, 5, 4, 2], 1000)
    points = 2 * np.random.default_rng(0).standard_normal((60, 8))
    active = active_sides_of(planes_of(network), slopes_of(network, points))
    assert active is not None
    np.testing.assert_array_equal(active, [1, -1, 1, -1, 1])


def test_missing_units_leaky_ones_and_few_gradients_tell_nothing() -> None:
    network = planted([8, 5, 4, 2], 1000)
    points = 2 * np.random.default_rng(0).standard_normal((60, 8))
    matrix, slopes = planes_of(network), slopes_of(network, points)
    assert active_sides_of(matrix[1:], slopes) is None
    leaky = Network(network.weights, network.biases, ["leaky_relu", "leaky_relu", "identity"])
    assert active_sides_of(matrix, slopes_of(leaky, points)) is None
    few = active_sides_of(matrix, slopes_of(network, points, 1))
    assert few is not None
    assert not few.all()


def test_planes_of_deeper_units_are_no_units() -> None:
    network = planted([6, 2, 3, 1], 1000)
    points = 2 * np.random.default_rng(1).standard_normal((400, 6))
    true, slopes = planes_of(network), slopes_of(network, points)
    beside = true[:1] - np.eye(7)[6]  # where the other one is off, deeper units switch on such planes
    mixed = true[:1] + 0.7 * true[1:]
    planes = np.vstack([beside, true[:1], mixed / np.linalg.norm(mixed[:, :-1]), true[1:]])
    sets = list(choose_units(planes, slopes, 2))
    assert [chosen.tolist() for chosen, _ in sets] == [[1, 3]]
    np.testing.assert_array_equal(sets[0][1], [1, -1])


def test_a_layer_of_two_units_is_told_from_what_it_hides() -> None:
    network = planted([32, 2, 2, 1], 1003)
    layer = FirstLayer(probe_of(network), KinkPool(), np.random.default_rng(1), FirstLayerOptions())
    layer.find(np.random.default_rng(3))
    cosines = layer.weights.T @ (network.weights[0] / np.linalg.norm(network.weights[0], axis=0))
    assert layer.is_complete
    assert layer.width == 2
    np.testing.assert_allclose(np.abs(cosines).max(axis=0), 1, atol=1e-9)
    assert layer.signs is not None
    rows = np.abs(cosines).argmax(axis=0)
    np.testing.assert_allclose(layer.signs[rows], np.sign(cosines[rows, range(2)]))
