"""Units from a line, and from their own hyperplanes."""

from __future__ import annotations

import numpy as np
import pytest

from unweave import Network, random_network
from unweave.methods.shared.kinked.lines import random_line
from unweave.methods.shared.kinked.refine import refine_units
from unweave.methods.shared.kinked.units import Units, merge, units_at_kinks
from unweave.numerics.line_kinks import Line, find_kinks
from unweave.targets.region import Region

EPS = float(np.finfo(np.float64).eps)


def planted(layers: list[int], seed: int = 1000) -> Network:
    return random_network(layers, "relu", seed=seed, outer="normal")


def precision(network: Network):
    size = float(np.abs(network.weights[1]).sum())
    return lambda t: 16 * EPS * size * (1 + np.abs(t))


def on_a_line(network: Network, region: Region, seed: int = 1001, known: Units | None = None):
    line = random_line(region, 1e4, np.random.default_rng(seed))
    error = precision(network)
    kinks = find_kinks(lambda t: network(line.points(t)), line.low, line.high, error).positions
    known = Units.none(network.n_inputs, network.n_outputs) if known is None else known
    return line, units_at_kinks(network, region, line, kinks, known, error)


def largest_error(units: Units, network: Network) -> float:
    """Largest error of a planted unit (w, b, half the jump) against the one found for it."""
    worst = 0.0
    for weight, bias, outer in zip(network.weights[0].T, network.biases[0], network.weights[1], strict=True):
        signs = np.sign(weight @ units.weights)
        apart = np.abs(signs * units.weights - weight[:, None]).max(axis=0)
        best = int(np.argmin(apart + np.abs(signs * units.biases - bias)))
        sign = signs[best]
        worst = max(
            worst,
            float(np.abs(sign * units.weights[:, best] - weight).max()),
            abs(sign * units.biases[best] - bias),
            float(np.abs(units.heights[best] - outer / 2).max()),
        )
    return worst


@pytest.mark.parametrize("layers", [[8, 5, 1], [5, 12, 3], [1, 4, 1]])
def test_one_line_shows_every_unit(layers: list[int]) -> None:
    network = planted(layers)
    _, (units, left) = on_a_line(network, Region.standard(layers[0]))
    assert (units.width, left) == (layers[1], 0)
    assert largest_error(units, network) < 1e-7  # rounding over a hundredth of the shortest segment
    assert not units.refined.any()


def test_known_units_cost_nothing_and_are_not_found_again() -> None:
    network = planted([8, 5, 1])
    region = Region.standard(8)
    _, (units, _) = on_a_line(network, region)
    rows = []
    line = random_line(region, 1e4, np.random.default_rng(1002))
    kinks = np.sort(units.crossings(line))

    def ask(x: np.ndarray) -> np.ndarray:
        rows.append(len(x))
        return network(x)

    new, left = units_at_kinks(ask, region, line, kinks, units, precision(network))
    assert (new.width, left, sum(rows)) == (0, 0, 0)


def test_the_same_unit_twice_is_one_and_the_better_sighting_is_kept() -> None:
    network = planted([8, 5, 1])
    region = Region.standard(8)
    _, (first, _) = on_a_line(network, region, 1001)
    _, (second, _) = on_a_line(network, region, 1002)
    both = merge(first, second)
    assert both.width == 5
    np.testing.assert_array_equal(both.seen, 2)
    assert (np.sort(both.clearance) >= np.sort(first.clearance)).all()


@pytest.mark.parametrize("layers", [[8, 5, 1], [5, 12, 3], [1, 4, 1], [30, 30, 1]])
def test_refinement_ends_at_rounding(layers: list[int]) -> None:
    network = planted(layers)
    region = Region.standard(layers[0])
    _, (units, _) = on_a_line(network, region)
    refined = refine_units(network, region, units, EPS, np.random.default_rng(1003))
    assert refined.units.refined.all()
    # The estimate is of one standard deviation; parameters are some hundreds, and steps differ.
    assert largest_error(refined.units, network) < 100 * refined.error.max() < 1e-9
    assert len(refined.points) == 2 * (layers[0] + 1) * layers[1]


def test_a_unit_that_is_not_there_is_not_refined() -> None:
    network = planted([8, 5, 1])
    region = Region.standard(8)
    _, (units, _) = on_a_line(network, region)
    rng = np.random.default_rng(1004)
    ghost = rng.standard_normal((8, 1))
    units = merge(
        units,
        Units(
            ghost / np.linalg.norm(ghost),
            np.zeros(1),
            np.ones((1, 1)),
            np.ones(1),
            np.ones(1),
            np.zeros(1, bool),
        ),
    )
    refined = refine_units(network, region, units, EPS, rng)
    assert refined.units.refined.tolist() == [True] * 5 + [False]
    assert refined.error[-1] == np.inf


def test_nothing_outside_the_box_is_asked() -> None:
    network = planted([6, 5, 1])
    region = Region.from_domain(-1.0, 1.0, 6)

    def ask(x: np.ndarray) -> np.ndarray:
        assert region.contains(x).all()
        return network(x)

    for seed in range(1001, 1006):
        line = random_line(region, 1e5, np.random.default_rng(seed))
        kinks = find_kinks(lambda t, at=line: ask(at.points(t)), line.low, line.high, precision(network))
        none = Units.none(6, 1)
        units, _ = units_at_kinks(ask, region, line, kinks.positions, none, precision(network))
        refine_units(ask, region, units, EPS, np.random.default_rng(seed))


def test_crossings_of_a_parallel_line() -> None:
    units = Units(np.eye(2), np.array([1.0, 2.0]), np.ones((2, 1)), np.ones(2), np.ones(2), np.ones(2, bool))
    crossings = units.crossings(Line(np.zeros(2), np.array([1.0, 0.0]), -5, 5))
    np.testing.assert_array_equal(crossings, [-1.0, np.inf])
