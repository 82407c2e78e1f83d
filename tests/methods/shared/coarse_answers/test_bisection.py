"""Flips of rounded answers: found to the last bit, and fitted exactly."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import unweave
from coarse_targets import planted, rounded
from unweave.methods.shared.coarse_answers.bisection import Flips, find_flips, fit_flips
from unweave.networks.parameters import NetworkParameters
from unweave.targets.region import Region


def one_dimensional() -> unweave.Network:
    """tanh(x): its inverse is known."""
    return unweave.Network(
        [np.ones((1, 1)), np.ones((1, 1))], [np.zeros(1), np.zeros(1)], ["tanh", "identity"]
    )


def test_the_flip_of_a_function_of_one_variable() -> None:
    network = one_dimensional()
    points = np.linspace(-0.8, 0.8, 9)[:, None]
    answers = np.round(network(points), 2)
    flips = find_flips(
        rounded(network, 2),
        NetworkParameters.from_network(network),
        Region.standard(1),
        points,
        answers,
        0.01,
    )
    assert len(flips.values) == 9
    # tanh(x*) = y + g/2 exactly: known to the rounding of x and of tanh.
    assert_allclose(flips.points[:, 0], np.arctanh(flips.values), rtol=0, atol=1e-15)
    assert_allclose(flips.values, answers[:, 0] + 0.005, rtol=0, atol=1e-16)
    assert flips.widths.max() <= 1e-15


def test_a_rough_model_finds_the_same_flips() -> None:
    network = one_dimensional()
    rough = unweave.Network(
        [1.1 * np.ones((1, 1)), np.ones((1, 1))], [np.array([0.03]), np.zeros(1)], ["tanh", "identity"]
    )
    points = np.linspace(-0.8, 0.8, 9)[:, None]
    answers = np.round(network(points), 2)
    flips = find_flips(
        rounded(network, 2), NetworkParameters.from_network(rough), Region.standard(1), points, answers, 0.01
    )
    assert len(flips.values) >= 5  # ways that it puts much too near or too far are given up
    # From beyond the next multiple the way back leads to it: never another flip's equation.
    assert_allclose(np.tanh(flips.points[:, 0]), flips.values, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("outputs", "output"), [(1, "identity"), (2, "identity"), (1, "sigmoid"), (3, "softmax")]
)
def test_flips_are_exact_equations_of_every_output(outputs: int, output: str) -> None:
    network = planted(5, 4, outputs, 1000, output=output)
    model = NetworkParameters.from_network(network)
    points = np.random.default_rng(1001).standard_normal((60, 5))
    answers = np.round(network(points), 3)
    flips = find_flips(rounded(network, 3), model, Region.standard(5), points, answers, 1e-3)
    assert len(flips.values) >= 50
    assert set(flips.outputs) == set(range(outputs))
    seen = network(flips.points)[np.arange(len(flips.values)), flips.outputs]
    # The last bracket is 4 units in the last place of inputs up to 4, and slopes are at most 4.
    assert_allclose(seen, flips.values, rtol=0, atol=5e-14)


def test_nothing_outside_the_box_is_asked(recorder) -> None:
    network = planted(4, 3, 1, 1002, norm=2.0)
    region = Region.from_domain(-1.0, 1.0, 4)
    points = region.sample(80, np.random.default_rng(1003))
    bounds = region.normalised_bounds
    assert bounds is not None
    points[::2] = np.where(points[::2] > 0, bounds[1], bounds[0])  # corners: most ways uphill lead out
    target = recorder(lambda u: np.round(network(region.to_inputs(u)), 2))
    answers = target(points)
    model = NetworkParameters.from_network(
        unweave.Network(
            [network.weights[0] * region.scale[:, None], network.weights[1]],
            network.biases,
            network.activations,
        )
    )
    flips = find_flips(target, model, region, points, answers, 0.01)
    assert region.contains(target.rows).all()
    assert 20 < len(flips.values) < 80


def test_all_lines_are_halved_together() -> None:
    network = planted(5, 4, 1, 1004)
    points = np.random.default_rng(1005).standard_normal((50, 5))
    calls, told = [], []

    def ask(x: np.ndarray) -> np.ndarray:
        calls.append(len(x))
        return np.round(network(x), 2)

    answers = np.round(network(points), 2)
    model = NetworkParameters.from_network(network)
    find_flips(ask, model, Region.standard(5), points, answers, 0.01, lambda *done: told.append(done))
    # One call per bit: from a step of 0.1 or so down to 1e-15, 50 or fewer, and some tries before.
    assert len(calls) <= 12 + 55
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert told[-1][1] == 0
    assert sum(calls) <= 60 * len(points)


def test_a_flat_function_has_no_flips() -> None:
    network = planted(3, 2, 1, 1006)
    model = NetworkParameters.from_network(network)
    flat = NetworkParameters.from_network(
        unweave.Network([np.zeros((3, 2)), network.weights[1]], network.biases, network.activations)
    )
    points = np.random.default_rng(1007).standard_normal((5, 3))
    answers = np.zeros((5, 1))
    assert (
        len(
            find_flips(
                lambda x: np.zeros((len(x), 1)), model, Region.standard(3), points, answers, 0.01
            ).values
        )
        == 0
    )
    assert len(find_flips(network, flat, Region.standard(3), points, answers, 0.01).values) == 0


@pytest.mark.parametrize("outputs", [1, 2])
def test_flips_give_all_parameters_exactly(outputs: int) -> None:
    network = planted(5, 4, outputs, 1008)
    truth = NetworkParameters.from_network(network)
    rng = np.random.default_rng(1009)
    start = truth.from_vector(truth.to_vector() + 1e-3 * rng.standard_normal(truth.size))
    points = rng.standard_normal((int(1.5 * truth.size), 5))
    answers = np.round(network(points), 2)
    flips = find_flips(rounded(network, 2), start, Region.standard(5), points, answers, 0.01)
    fit = fit_flips(start, flips)
    assert fit.residual <= 1e-14
    assert fit.equations == len(flips.values)
    off = np.abs(fit.model.to_vector() - truth.to_vector())
    # From 2 decimals: rounding alone, times the condition of the equations.
    assert off.max() <= 1e-11
    assert fit.standard_errors is not None
    assert np.median(off / fit.standard_errors) < 3


def test_flips_of_another_function_do_not_fit() -> None:
    network = planted(5, 4, 1, 1010, activation="erf")
    wrong = NetworkParameters.from_network(planted(5, 4, 1, 1010))
    points = np.random.default_rng(1011).standard_normal((60, 5))
    answers = np.round(network(points), 3)
    flips = find_flips(rounded(network, 3), wrong, Region.standard(5), points, answers, 1e-3)
    assert len(flips.values) > 30
    assert fit_flips(wrong, flips).residual > 1e-6


def test_selected_numbers_stand_at_their_outputs() -> None:
    flips = Flips(np.zeros((2, 3)), np.array([1, 0]), np.array([5.0, 7.0]), np.zeros(2))
    assert_array_equal(flips.selected(flips.values, 2), [[0, 5], [7, 0]])
    assert_array_equal(flips.selected(1.0, 3), [[0, 1, 0], [1, 0, 0]])
