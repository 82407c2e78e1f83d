"""One more unit, found in what the others leave."""

from dataclasses import replace

import numpy as np
import pytest

from unweave import random_network
from unweave.networks.missing_unit import missing_unit
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import fit_values


def _without_last(kind: str, layers: list[int], seed: int, size: float):
    """Return the network whose last unit has outgoing weights of ``size``, and its fit without that unit."""
    truth = NetworkParameters.from_network(random_network(layers, kind, seed=seed, outer="normal"))
    outgoing = truth.weights[1].copy()
    outgoing[-1] *= size / np.abs(outgoing[-1]).max()
    truth = replace(truth, weights=(truth.weights[0], outgoing))
    rng = np.random.default_rng([seed, 1])
    points = rng.standard_normal((2 * truth.size // layers[-1] + 20, layers[0]))
    answers = truth.values(points)
    fit = fit_values(truth.keep(np.arange(layers[1]) < layers[1] - 1), points, answers)
    return truth, fit.model, points, answers, rng


@pytest.mark.parametrize("kind", ["tanh", "softplus", "selu", "gelu"])
@pytest.mark.parametrize(("layers", "size"), [([6, 8, 1], 1e-3), ([6, 8, 1], 1e-9), ([5, 9, 3], 1e-6)])
def test_a_unit_that_was_taken_out_is_found_again(kind, layers, size):
    truth, model, points, answers, rng = _without_last(kind, layers, 1000, size)
    unit = missing_unit(model, points, answers, rng)
    fit = fit_values(unit.added_to(model), points, answers)
    assert fit.history[-1] < 1e-13 * np.abs(answers).max()
    direction = truth.weights[0][:, -1]
    found = fit.model.weights[0][:, -1]
    cosine = abs(found @ direction) / np.linalg.norm(found) / np.linalg.norm(direction)
    assert 1 - cosine < 1e-4  # of a unit at 1e-9 of the others


def test_a_direction_that_is_given_is_enough():
    truth, model, points, answers, rng = _without_last("tanh", [6, 8, 1], 1001, 0.1)
    unit = missing_unit(model, points, answers, rng, truth.weights[0][:, -1:])
    assert unit.left < 0.2


def test_too_few_equations_show_nothing():
    _, model, points, answers, rng = _without_last("tanh", [6, 8, 1], 1002, 0.1)
    assert missing_unit(model, points[:50], answers[:50], rng) is None


def test_nothing_is_left_of_a_network_of_this_kind():
    truth, _, points, answers, rng = _without_last("tanh", [4, 3, 1], 1003, 1.0)
    unit = missing_unit(truth, points, answers * 1.0, rng)
    assert unit is None or np.abs(unit.outgoing).max() < 1e-10
