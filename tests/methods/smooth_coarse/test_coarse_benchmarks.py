"""What the benchmarks of coarse answers count: neurons matched, wrong networks found out, all cases met."""

from __future__ import annotations

import importlib
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import unweave

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def load(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


def shuffled(network: unweave.Network, seed: int) -> unweave.Network:
    """The same function, neurons in another order, some with both signs changed."""
    rng = np.random.default_rng(seed)
    width = network.hidden[0]
    order, signs = rng.permutation(width), rng.choice([-1.0, 1.0], width)
    return unweave.Network(
        [network.weights[0][:, order] * signs, network.weights[1][order] * signs[:, None]],
        [network.biases[0][order] * signs, network.biases[1]],
        network.activations,
    )


def result_of(network: unweave.Network, bar: float) -> SimpleNamespace:
    bars = unweave.Network(
        [np.full_like(each, bar) for each in network.weights],
        [np.full_like(each, bar) for each in network.biases],
        network.activations,
    )
    return SimpleNamespace(network=network, standard_errors=bars, stages=(), message="", queries=100)


def test_neurons_are_matched_whatever_their_order_and_sign(load) -> None:
    script = load("coarse_answers")
    truth = script.planted(6, 5, 2, 1000)
    figures = script.coarse_figures(truth, result_of(shuffled(truth, 1001), 1e-3))
    assert figures["neuron_largest"] == 0
    assert figures["covered"] == 1
    assert script.matched(truth, script.planted(6, 4, 2, 1000)) is None


def test_the_error_of_a_neuron_and_the_coverage(load) -> None:
    script = load("coarse_answers")
    truth = script.planted(6, 5, 1, 1002)
    biases = [truth.biases[0].copy(), truth.biases[1]]
    biases[0][2] += 0.01
    moved = unweave.Network(truth.weights, biases, truth.activations)
    figures = script.coarse_figures(truth, result_of(shuffled(moved, 1003), 0.001))
    length = np.hypot(1.0, truth.biases[0][2])
    assert figures["neuron_largest"] == pytest.approx(0.01 / length, rel=1e-9)
    assert figures["neuron_median"] == 0
    assert figures["covered"] == pytest.approx(1 - 1 / truth.n_parameters)
    assert figures["farthest"] == pytest.approx(10)


def test_wrong_means_off_by_more_than_standard_errors(load) -> None:
    script, harness = load("coarse_answers"), load("harness")
    right = harness.Run(0, True, 1e-3, extra={"activation": "tanh", "largest_bar": 5e-4})
    truth = script.planted(3, 2, 1, 1004)
    assert script.judged(truth, right, "tanh").same
    assert not script.judged(truth, right, "erf").same
    assert not script.judged(truth, replace(right, parameter_error=5e-3), "tanh").same
    assert not script.judged(truth, replace(right, parameter_error=math.inf), "tanh").same
    exact = harness.Run(0, True, 1e-14, extra={"activation": "tanh"})
    assert script.judged(truth, exact, "tanh").same


def test_every_combination_has_its_turn(load) -> None:
    script = load("not_told")
    combinations = len(script.MODES) * len(script.UNITS) * len(script.SIZES)
    assert len({script.case_of(seed) for seed in range(combinations)}) == combinations
    assert {script.case_of(seed).mode for seed in range(script.CASES)} == set(script.MODES)
    assert script.case_of(0).kind == "float64"
    assert {script.case_of(seed).kind for seed in range(42)} == {"float64", "float32", "rounded", "noisy"}


@pytest.mark.parametrize("mode", ["f64", "f32", "d2", "n1e-2"])
def test_targets_are_as_coarse_as_they_say(load, mode: str) -> None:
    script = load("coarse_answers")
    network = script.planted(6, 5, 1, 1005)
    x = np.random.default_rng(1006).standard_normal((400, 6))
    off = np.abs(script.coarse(network, mode, 1007)(x) - network(x))
    # float32: some roundings of 6e-8 of numbers up to 10; two decimals: half a unit; noise: five sigmas.
    low, high = {"f64": (0, 0), "f32": (1e-9, 1e-5), "d2": (0.004, 0.005), "n1e-2": (0.02, 0.05)}[mode]
    assert low <= off.max() <= high
