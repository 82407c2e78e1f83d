from __future__ import annotations

import numpy as np
import pytest

from unweave.methods.shared.far_field import (
    CircleOptions,
    Crossing,
    FarFieldReason,
    Unit,
    _directions,
    _merge,
    units_on_circle,
)
from unweave.networks.network import Network
from unweave.networks.random import random_network
from unweave.search import GaveUp

CIRCLES = 4
OPTIONS = CircleOptions()


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
        for crossing in unit.crossings:
            point = crossing.point
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


def test_a_circle_crosses_every_unit_once() -> None:
    network, answers = planted([5, 4, 3, 2]), []

    def ask(x: np.ndarray) -> np.ndarray:
        answers.append(network(x))
        return answers[-1]

    units: list[Unit] = []
    rng = np.random.default_rng(1002)
    assert units_on_circle(ask, 5, units, rng) == np.abs(answers[0]).max()  # the size of the answers
    assert [len(unit.crossings) for unit in units] == [1] * 4
    units_on_circle(ask, 5, units, rng)
    assert [len(unit.crossings) for unit in units] == [2] * 4


@pytest.mark.parametrize("layers", [[6, 5, 1], [6, 5, 3, 2]])
def test_heights_are_what_the_answers_change_by(layers: list[int]) -> None:
    network = planted(layers)
    for unit in seen(network):
        assert unit.height == unit.crossings[0].height
        for crossing in unit.crossings:
            ends = network(crossing.point + np.outer([-50.0, 50.0], unit.direction))
            change = np.abs(ends[1] - ends[0]).max()
            # What a cell changes by less than 1e-7 of the answers does not count.
            if len(layers) == 3:
                assert crossing.height == pytest.approx(change, abs=1e-5)
            else:  # a profile may go up and down, and outputs change at different places
                assert change - 1e-5 < crossing.height < 10 * change


@pytest.mark.parametrize(
    ("outer", "measured", "again"),
    [
        (1.0, 1e-4, True),  # now the step is 2, of answers of size 1
        (1.0, 2e-3, False),  # much lower, but high enough for an exact direction
        (4e-4, 7e-5, True),  # both are feeble, and the new step is 11 times as high
        (4e-4, 9e-5, False),  # 9 times
    ],
)
def test_a_direction_measured_at_a_feeble_step_is_measured_again_at_a_high_one(
    outer: float, measured: float, again: bool
) -> None:
    truth = np.array([0.6, 0.0, 0.8])
    offset = 1.0 if outer < 1 else 0.0
    network = Network(
        [truth[:, None], np.array([[outer]])], [np.zeros(1), np.full(1, offset)], ["tanh", "identity"]
    )
    # Off by 1e-5: the crossings at a distance of 1e4 still lie within the width of the step.
    inexact = truth + 1e-5 * np.array([0.0, 1.0, 0.0])
    first = Crossing(np.array([0.8, 1.0, -0.6]), measured)
    units = [Unit(inexact, 2.0, [first])]
    assert units_on_circle(network, 3, units, np.random.default_rng(1006)) == pytest.approx(1, abs=1e-3)
    (unit,) = units
    assert len(unit.crossings) == 2
    assert first in unit.crossings
    if again:
        assert unit.crossings[1] is first
        assert unit.height == pytest.approx(2 * outer, rel=1e-3)
        # Rounding of the answers, 1e-16, over the differences' step of 0.01 and the slope
        assert np.abs(np.cross(unit.direction, truth)).max() < 1e-7
    else:
        assert unit.crossings[0] is first
        assert unit.height == measured
        assert unit.direction is inexact


def test_a_feeble_side_is_forgotten_once_the_other_is_seen() -> None:
    """One unit hides another on one side of its hyperplane: there the step is 1e-5 of the answers."""
    noise = np.random.default_rng(1006)
    axes = np.linalg.qr(noise.standard_normal((4, 4)))[0]

    def gated(x: np.ndarray) -> np.ndarray:
        shown, gate = np.tanh(x @ axes[:, :2]).T
        answers = ((1 + gate) / 2 + 1e-5) * shown + 3 * gate
        return np.asarray(answers + 1e-14 * noise.standard_normal(len(x)))[:, None]

    def off(unit: Unit) -> float:
        return float(np.linalg.norm(unit.direction @ axes[:, 1:]))

    def hidden(units: list[Unit]) -> list[Unit]:
        return [unit for unit in units if abs(unit.direction @ axes[:, 0]) > 0.9]

    improved = 0
    for seed in range(1007, 1015):
        units: list[Unit] = []
        rng = np.random.default_rng(seed)
        units_on_circle(gated, 4, units, rng)
        before = hidden(units)
        if len(before) != 1 or before[0].height > 1e-3:
            continue
        # Cells that change by less than 1e-7 of the answers, 4, do not count: the step's tails.
        assert 5e-6 < before[0].height < 2.1e-5
        rough = off(before[0])
        for _ in range(6):
            units_on_circle(gated, 4, units, rng)
        (after,) = hidden(units)
        assert after.height == pytest.approx(2, rel=1e-3)
        assert after.height > 0.1 * max(crossing.height for crossing in after.crossings)
        assert len(after.crossings) == len({id(crossing) for crossing in after.crossings}) >= 5
        # Noise of 1e-14 over the differences' step of 0.01 and a slope of 1e-5: 1e-7. Later the slope is one.
        assert off(after) < 2e-9 < 2e-8 < rough
        improved += 1
    assert improved >= 2


def test_of_two_measurements_the_one_at_the_higher_step_is_kept() -> None:
    low, high = Crossing(np.array([0.0, 9e3]), 1e-6), Crossing(np.array([0.1, -8e3]), 1.0)
    rough, exact = Unit(np.array([1.0, 1e-6]), 2.5, [low]), Unit(np.array([-1.0, 0.0]), 2.0, [high])
    for one, two in ((rough, exact), (exact, rough)):
        units = [one]
        _merge(units, two, OPTIONS.same_direction)
        assert len(units) == 1
        assert units[0].direction is exact.direction
        assert (units[0].width, units[0].crossings) == (2.0, [high, low])
    units = [exact]
    _merge(units, Unit(np.array([0.0, 1.0]), 2.0, [low]), OPTIONS.same_direction)
    assert len(units) == 2


def test_the_strongest_crossings() -> None:
    points = np.arange(8.0).reshape(4, 2)
    heights = [0.2, 3.0, 0.1, 5.0]
    unit = Unit(np.array([1.0, 0.0]), 2.0, [Crossing(*pair) for pair in zip(points, heights, strict=True)])
    np.testing.assert_array_equal(unit.strongest(3), points[[3, 1, 0]])
    assert len(unit.strongest(9)) == 4
    assert unit.height == 0.2


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
    assert np.linalg.norm(np.concatenate(asked), axis=1).min() > 0.05 * OPTIONS.radius


def test_one_input() -> None:
    network = planted([1, 1, 1, 1])
    units = seen(network)
    assert len(units) == 1
    assert abs(units[0].direction[0]) == pytest.approx(1)


def test_units_that_never_level_off_are_refused() -> None:
    with pytest.raises(GaveUp, match="do not saturate") as told:
        seen(planted([5, 4, 3, 2], "softplus"))
    assert told.value.reason is FarFieldReason.NOT_FLAT


def test_nothing_moves_nothing_is_seen() -> None:
    units: list[Unit] = []
    for value in (1.0, -3.0, 0.0):
        size = units_on_circle(
            lambda x, value=value: np.full((len(x), 2), value), 4, units, np.random.default_rng(1004)
        )
        assert size == pytest.approx(abs(value), abs=1e-300)
        assert size > 0  # it is divided by
    assert units == []


@pytest.mark.parametrize(("height", "expected"), [(0.0, 0), (1e3, 1)])
def test_two_units_that_cross_together_are_not_taken_for_one(height: float, expected: int) -> None:
    # On the third axis both units are at zero; at a height on the second only the first one is.
    weights = np.array([[1.0, 1.0], [0.0, -0.5], [0.0, 0.0]])
    network = Network([weights, np.array([[1.0], [0.6]])], [np.zeros(2), np.zeros(1)], ["tanh", "identity"])
    crossing = Crossing(np.array([0.0, height, OPTIONS.radius]), 2.0)
    units = _directions(network, [crossing], np.random.default_rng(1005), OPTIONS)
    assert len(units) == expected
    assert all(unit.crossings == [crossing] for unit in units)


def test_a_unit_owns_what_lies_on_its_hyperplane() -> None:
    unit = Unit(np.array([1.0, 0.0]), 2.0, [Crossing(np.array([0.5, 9e3]), 1.0)])
    assert unit.owns(np.array([-1.0, -7e3]), OPTIONS.same_place)
    assert not unit.owns(np.array([60.0, 9e3]), OPTIONS.same_place)


def test_a_coarse_grid_is_refined_and_tails_cost_nothing() -> None:
    network = planted([6, 20, 5, 1], seed=1016)
    thrifty = CircleOptions(fewest_grid=8, grid_per_coordinate=0, most_grid=512, cell=1.0, tail=0.05)
    asked = {"thrifty": 0, "usual": 0}
    for name, options in (("thrifty", thrifty), ("usual", OPTIONS)):

        def ask(x: np.ndarray, name: str = name) -> np.ndarray:
            asked[name] += len(x)
            return network(x)

        units: list[Unit] = []
        for _ in range(2):
            units_on_circle(ask, 6, units, np.random.default_rng(1001), options)
        assert len(set(owners(network, units))) == len(units) >= 19
    assert asked["thrifty"] < 0.6 * asked["usual"]


def test_steep_steps_are_resolved() -> None:
    network = planted([5, 4, 3, 1], seed=1017)
    steep = Network([10 * network.weights[0], *network.weights[1:]], network.biases, network.activations)
    options = CircleOptions(cell=1.0, tail=0.05, resolved=0.6, steep=2.0)
    units: list[Unit] = []
    rng = np.random.default_rng(1001)
    for _ in range(3):
        units_on_circle(steep, 5, units, rng, options)
    true = steep.weights[0] / np.linalg.norm(steep.weights[0], axis=0)
    cosines = np.abs(np.array([unit.direction for unit in units]) @ true)
    assert sorted(cosines.argmax(axis=1)) == [0, 1, 2, 3]
    assert cosines.max(axis=1).min() > 1 - 1e-9
