from __future__ import annotations

import numpy as np
import pytest

from unweave.deep.far_field import RADIUS, NotFlat, Unit, _directions, units_on_circle
from unweave.network import Network
from unweave.random_networks import random_network

CIRCLES = 4


def planted(layers: list[int], activation: str = "tanh", seed: int = 1000) -> Network:
    return random_network(layers, activation, seed=seed, outer="normal", norms=(0.7, 1.4))


def seen(network: Network, circles: int = CIRCLES, seed: int = 1001) -> list[Unit]:
    units: list[Unit] = []
    rng = np.random.default_rng(seed)
    for _ in range(circles):
        units_on_circle(network, network.n_inputs, units, rng)
    return units


def owners(network: Network, units: list[Unit]) -> list[int]:
    """Number of the planted unit whose direction each seen one has, to 1e-7."""
    planted_directions = network.weights[0] / np.linalg.norm(network.weights[0], axis=0)
    result = []
    for unit in units:
        assert np.linalg.norm(unit.direction) == pytest.approx(1, abs=1e-12)
        cosines = planted_directions.T @ unit.direction
        best = int(np.argmax(np.abs(cosines)))
        away = unit.direction - cosines[best] * planted_directions[:, best]
        # Differences of step 0.01 are off by h^4, but along the unit's own direction; across it there is
        # the rounding of z, 1e-16 times the radius times sqrt(D), over h: 1e-10.
        assert np.linalg.norm(away) < 1e-7
        result.append(best)
    return result


@pytest.mark.parametrize(
    ("layers", "activation"),
    [
        ([5, 5, 3, 2], "tanh"),
        ([6, 4, 3, 1], "tanh"),
        ([5, 5, 5, 5, 3], "tanh"),
        ([4, 4, 2, 1], "sigmoid"),
        ([5, 4, 3, 2], "erf"),
        ([6, 5, 2], "tanh"),
        ([4, 7, 3, 1], "tanh"),
    ],
)
def test_every_direction_is_found_once(layers: list[int], activation: str) -> None:
    network = planted(layers, activation)
    assert sorted(owners(network, seen(network))) == list(range(layers[1]))


def test_crossings_lie_on_the_hyperplane_of_their_unit() -> None:
    network = planted([6, 5, 3, 2])
    units = seen(network)
    for unit, number in zip(units, owners(network, units), strict=True):
        assert len(unit.crossings) >= 2
        for point in unit.crossings:
            z = float(point @ network.weights[0][:, number] + network.biases[0][number])
            assert abs(z) < 5  # the radius is 1e4: the step is where the unit moves
            others = np.delete(point @ network.weights[0] + network.biases[0], number)
            assert np.abs(others).min() > 2 * abs(z)


def test_widths_are_about_two_over_the_norm() -> None:
    network = planted([5, 5, 3, 2])
    units = seen(network)
    norms = np.linalg.norm(network.weights[0], axis=0)
    for unit, number in zip(units, owners(network, units), strict=True):
        assert 0.5 < unit.width * norms[number] / 2 < 8  # the slope may be taken beside the middle


def test_the_number_of_crossings_is_that_of_the_units() -> None:
    network = planted([5, 4, 3, 2])
    assert units_on_circle(network, 5, [], np.random.default_rng(1002)) == 4


def test_rows_are_asked_far_out_and_a_known_unit_costs_no_gradient() -> None:
    network, asked = planted([5, 4, 3, 2]), []

    def ask(x: np.ndarray) -> np.ndarray:
        asked.append(x)
        return network(x)

    units: list[Unit] = []
    rng = np.random.default_rng(1003)
    units_on_circle(ask, 5, units, rng)
    first = sum(map(len, asked))
    assert len(units) == 4
    asked.clear()
    units_on_circle(ask, 5, units, rng)
    assert first - sum(map(len, asked)) >= 4 * (4 * 5) - 40  # 4 d rows for each of the four
    assert np.linalg.norm(np.concatenate(asked), axis=1).min() > 0.05 * RADIUS


def test_one_input() -> None:
    network = planted([1, 1, 1, 1])
    units = seen(network)
    assert len(units) == 1
    assert abs(units[0].direction[0]) == pytest.approx(1)


def test_units_that_never_level_off_are_refused() -> None:
    with pytest.raises(NotFlat, match="do not saturate"):
        seen(planted([5, 4, 3, 2], "softplus"))


def test_nothing_moves_nothing_is_seen() -> None:
    units: list[Unit] = []
    assert units_on_circle(lambda x: np.ones((len(x), 2)), 4, units, np.random.default_rng(1004)) == 0
    assert units == []


@pytest.mark.parametrize(("height", "expected"), [(0.0, 0), (1e3, 1)])
def test_two_units_that_cross_together_are_not_taken_for_one(height: float, expected: int) -> None:
    # On the third axis both units are at zero; at a height on the second only the first one is.
    weights = np.array([[1.0, 1.0], [0.0, -0.5], [0.0, 0.0]])
    network = Network([weights, np.array([[1.0], [0.6]])], [np.zeros(2), np.zeros(1)], ["tanh", "identity"])
    point = np.array([[0.0, height, RADIUS]])
    assert len(_directions(network, point, np.random.default_rng(1005))) == expected


def test_a_unit_owns_what_lies_on_its_hyperplane() -> None:
    unit = Unit(np.array([1.0, 0.0]), 2.0, [np.array([0.5, 9e3])])
    assert unit.owns(np.array([-1.0, -7e3]))
    assert not unit.owns(np.array([60.0, 9e3]))
