"""Kinked units behind a sigmoid, softmax or tanh are found on lines, as far as answers tell what is there."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from searches import looked
from unweave import Network, Status
from unweave.arrays import Array
from unweave.methods.shared.kinked.line_search import UnitsOnLines
from unweave.methods.shared.kinked.lines import LineNoise
from unweave.methods.shared.kinked.reading import Reading, open_reading
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.links import Link
from unweave.numerics.line_kinks import Line
from unweave.targets import as_queries
from unweave.targets.region import NormalisedQueries


def behind(link: str, layers: list[int], seed: int, scale: float = 1.0) -> Network:
    network = unweave.random_network(layers, "relu", seed=seed, outer="signed")
    return Network(
        [network.weights[0], scale * network.weights[1]],
        [network.biases[0], scale * network.biases[1]],
        ["relu", link],
    )


def reading_of(network: Network) -> Reading:
    seen = looked(network)
    view, findings = seen.view, seen.findings
    link = Link(network.activations[-1])
    reading = open_reading(view, findings.noise, link, findings.spread, np.random.default_rng(0))
    assert reading is not None
    return reading


@pytest.mark.parametrize(
    ("link", "scale"),
    [("sigmoid", 1.0), ("sigmoid", 20.0), ("softmax", 1.0), ("softmax", 20.0), ("tanh", 1.0), ("tanh", 3.0)],
)
def test_the_network_is_found(link: str, scale: float) -> None:
    network = behind(link, [6, 9, 1 if link != "softmax" else 3], seed=1000, scale=scale)
    result = unweave.recover(network)
    assert result.status is Status.RECOVERED
    assert "line" in [stage.name for stage in result.stages]
    assert unweave.compare(network, result.network).parameter_error < 1e-9


def test_a_hundred_units_in_four_inputs() -> None:
    network = behind("softmax", [4, 100, 3], seed=1001)
    result = unweave.recover(network)
    assert result.status is Status.RECOVERED
    assert unweave.compare(network, result.network).parameter_error < 1e-9
    assert result.queries < 10 * network.n_parameters


def test_leaky_units() -> None:
    one = unweave.random_network([5, 6, 1], "leaky_relu", seed=1002, outer="signed")
    network = Network(one.weights, one.biases, ["leaky_relu", "sigmoid"])
    result = unweave.recover(network)
    assert result.status is Status.RECOVERED
    assert result.network is not None
    assert result.network.activations == ("leaky_relu", "sigmoid")


def test_two_hidden_layers_are_not_one() -> None:
    deep = unweave.random_network([4, 5, 4, 3], "relu", seed=1003, outer="signed")
    network = Network(deep.weights, deep.biases, ["relu", "relu", "softmax"])
    assert not unweave.recover(network, method="relu").status.is_recovered


@pytest.mark.parametrize("link", ["sigmoid", "softmax", "tanh"])
def test_what_is_read_is_as_precise_as_it_is_said_to_be(link: str) -> None:
    network = behind(link, [4, 5, 1 if link != "softmax" else 3], seed=1004, scale=10.0)
    reading = reading_of(network)
    points = np.random.default_rng(1).standard_normal((2000, 4)) * 3
    z, errors = reading.with_errors(points)
    inner = Network(network.weights, network.biases, ["relu", "identity"])
    truth = inner(reading.region.to_inputs(points))
    if link == "softmax":
        truth = truth - truth.mean(axis=1, keepdims=True)
    read = np.isfinite(z).all(axis=1)
    assert 0 < read.sum() < len(points) or link == "softmax"
    off = np.abs(z - truth / reading.spread)[read]
    assert (off <= 3 * errors[read]).mean() > 0.99
    assert np.isinf(errors[~read]).all()
    values = np.where(np.isfinite(z), z, 0.0)
    assert (reading.is_read(values) == np.isfinite(reading(points)).all(axis=1))[read].all()


def test_a_complement_has_the_digits_of_one_only() -> None:
    network = behind("sigmoid", [3, 4, 1], seed=1005, scale=20.0)

    def two_columns(x: Array) -> Array:
        p = network(x)
        return np.hstack([1 - p, p])

    seen = looked(two_columns, input_dim=3)
    view, findings = seen.view, seen.findings
    reading = open_reading(view, findings.noise, Link("softmax"), findings.spread, np.random.default_rng(0))
    assert reading is not None
    points = np.random.default_rng(2).standard_normal((3000, 3)) * 2
    z, _ = reading.with_errors(points)
    p = network(reading.region.to_inputs(points))[:, 0]
    read = np.isfinite(z).all(axis=1)
    assert read[(p < 1e-20) & (p > 1e-250)].all()  # small probabilities keep all their digits ...
    assert not read[p > 1 - 1e-9].any()  # ... and what is left of nearly one has none


def test_a_line_is_followed_as_far_as_it_is_read() -> None:
    reading = reading_of(behind("tanh", [4, 5, 1], seed=1006, scale=5.0))
    found = reading.stretch(Line(np.zeros(4), np.array([1.0, 0, 0, 0]), -1e5, 1e5))
    assert found is not None
    line, noise = found
    assert -1e5 < line.low < 0 < line.high < 1e5
    ends = reading.with_errors(line.points(np.array([line.low, line.high])))[0]
    assert np.isfinite(ends).all()
    assert (noise(np.array([line.low, 0.0, line.high])) > 0).all()


def test_noise_between_two_places_is_the_larger_one() -> None:
    noise = LineNoise(np.array([-1.0, 0.0, 2.0]), np.array([3.0, 1.0, 2.0]))
    np.testing.assert_array_equal(noise(np.array([-5.0, -0.5, 0.5, 9.0])), [3.0, 3.0, 2.0, 2.0])
    np.testing.assert_array_equal(LineNoise.constant(4.0)(np.array([-1.0, 1.0])), [4.0, 4.0])


def test_nothing_is_read_behind_a_step() -> None:
    seen = looked(behind("sigmoid", [4, 5, 1], seed=1007))
    saturated = NormalisedQueries(as_queries(lambda x: np.ones((len(x), 1)), input_dim=4), seen.view.region)
    link, rng = Link("sigmoid"), np.random.default_rng(0)
    assert open_reading(saturated, seen.findings.noise, link, seen.findings.spread, rng) is None


def test_units_that_were_left_out_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_two(lines: UnitsOnLines, form: AbsoluteForm) -> AbsoluteForm:
        lines.left_out = 2
        return form

    monkeypatch.setattr(UnitsOnLines, "_without_accidents", without_two)
    result = unweave.recover(behind("sigmoid", [5, 4, 1], seed=1008))
    assert result.status is Status.RECOVERED_UP_TO_AMBIGUITY
    assert "2 units were seen" in result.message
