from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.access.region import Region
from unweave.deep.base_points import PointSource
from unweave.deep.reading_frame import GradientSample, reading_frame, sample_gradients
from unweave.derivatives.closed_form import network_gradients
from unweave.network import Network
from unweave.random_networks import random_network


def planted(layers: list[int], seed: int = 1000) -> Network:
    return random_network(layers, seed=seed, outer="normal", norms=(0.7, 1.4))


def frame_of(
    network: Network, width: int | None, region: Region | None = None
) -> tuple[np.ndarray, GradientSample | None]:
    region = Region.standard(network.n_inputs) if region is None else region
    points = PointSource(region, np.random.default_rng(1001))
    return reading_frame(network, points, network.n_inputs, network.n_outputs, width)


def assert_reads(network: Network, frame: np.ndarray) -> None:
    assert frame.shape == (network.n_inputs, network.hidden[0])
    assert_allclose(frame.T @ frame, np.eye(network.hidden[0]), atol=1e-13)
    # The gradients' differences have errors h^4 within the range as well: nothing leaves it.
    assert_allclose(frame @ (frame.T @ network.weights[0]), network.weights[0], rtol=0, atol=1e-8)


@pytest.mark.parametrize("layers", [[9, 4, 3, 2], [12, 5, 3, 1], [30, 10, 4, 3], [20, 15, 6, 2]])
@pytest.mark.parametrize("told", [True, False])
def test_what_the_first_layer_reads(layers: list[int], told: bool) -> None:
    network = planted(layers)
    frame, sample = frame_of(network, layers[1] if told else None)
    assert_reads(network, frame)
    assert sample is not None
    exact = network_gradients(network, sample.points).transpose(0, 2, 1)
    assert_allclose(sample.gradients, exact, rtol=0, atol=1e-6)


@pytest.mark.parametrize("told", [2, 3, 7])
def test_a_width_that_is_said_wrongly_does_not_matter(told: int) -> None:
    network = planted([9, 4, 3, 2])
    assert_reads(network, frame_of(network, told)[0])


def test_a_layer_as_wide_as_the_inputs_costs_nothing() -> None:
    def never(x: np.ndarray) -> np.ndarray:
        raise AssertionError("asked")

    points = PointSource(Region.standard(5), np.random.default_rng(1001))
    frame, sample = reading_frame(never, points, 5, 2, 5)
    assert_allclose(frame, np.eye(5))
    assert sample is None


def test_all_inputs_are_read() -> None:
    frame, _ = frame_of(planted([6, 6, 3, 2]), None)
    assert_allclose(frame, np.eye(6))


def test_a_wider_first_layer_reads_all_inputs() -> None:
    frame, _ = frame_of(planted([5, 8, 3, 2]), None)
    assert_allclose(frame, np.eye(5))


def test_inside_a_box() -> None:
    network = planted([8, 4, 3, 2])
    asked = []
    region = Region.from_domain(-1.0, 1.0, 8)

    def ask(u: np.ndarray) -> np.ndarray:
        asked.append(u)
        return network(u)

    points = PointSource(region, np.random.default_rng(1001))
    frame, _ = reading_frame(ask, points, 8, 2, None)
    assert_reads(network, frame)
    assert region.contains(np.concatenate(asked)).all()


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_outputs_that_say_nothing_or_hardly_anything(value: float) -> None:
    """A constant output and one that is a millionth of the other."""
    base = planted([9, 4, 3, 3])
    outer = base.weights[-1] * [1.0, 1e-6, 0.0]
    biases = [*base.biases[:-1], np.array([0.1, 0.0, value])]
    network = Network([*base.weights[:-1], outer], biases, base.activations)
    assert_reads(network, frame_of(network, None)[0])


def test_gradients_cost_four_rows_per_input_and_point() -> None:
    network, asked = planted([6, 4, 3, 2]), []

    def ask(x: np.ndarray) -> np.ndarray:
        asked.append(len(x))
        return network(x)

    points = np.random.default_rng(1002).standard_normal((7, 6))
    sample = sample_gradients(ask, points)
    assert sum(asked) == 7 * 4 * 6
    assert sample.gradients.shape == (7, 6, 2)
    assert_allclose(sample.gradients, network_gradients(network, points).transpose(0, 2, 1), atol=1e-7)


@pytest.mark.xfail(
    strict=True,
    reason="all outputs count as equations, also where a bottleneck leaves fewer gradients per point",
)
@pytest.mark.parametrize("layers", [[12, 10, 2, 10], [10, 8, 4, 2, 8]])
def test_more_outputs_than_a_bottleneck_lets_through(layers: list[int]) -> None:
    network = planted(layers)
    assert_reads(network, frame_of(network, layers[1])[0])


@pytest.mark.xfail(strict=True, reason="constant outputs count as equations")
def test_nine_constant_outputs() -> None:
    base = planted([9, 4, 3, 1])
    outer = np.c_[base.weights[-1], np.zeros((3, 9))]
    biases = [*base.biases[:-1], np.ones(10)]
    network = Network([*base.weights[:-1], outer], biases, base.activations)
    assert_reads(network, frame_of(network, 4)[0])
