from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.derivatives.entangled import network_gradients
from unweave.methods.smooth_deep.base_points import PointSource
from unweave.methods.smooth_deep.options import FrameOptions
from unweave.methods.smooth_deep.reading_frame import (
    GradientSample,
    independent_outputs,
    reading_frame,
    sample_gradients,
)
from unweave.networks.network import Network
from unweave.networks.random import random_network
from unweave.targets.region import Region

OPTIONS = FrameOptions()


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
    sample = sample_gradients(ask, points, OPTIONS.step)
    assert sum(asked) == 7 * 4 * 6
    assert sample.gradients.shape == (7, 6, 2)
    assert_allclose(sample.gradients, network_gradients(network, points).transpose(0, 2, 1), atol=1e-7)


@pytest.mark.parametrize("layers", [[12, 10, 2, 10], [10, 8, 4, 2, 8]])
def test_more_outputs_than_a_bottleneck_lets_through(layers: list[int]) -> None:
    network = planted(layers)
    for width in (layers[1], None):
        assert_reads(network, frame_of(network, width)[0])


def with_outer(base: Network, outer: np.ndarray) -> Network:
    """The same hidden layers with another output layer."""
    biases = [*base.biases[:-1], np.ones(outer.shape[1])]
    return Network([*base.weights[:-1], outer], biases, base.activations)


@pytest.mark.parametrize("width", [4, None])
def test_nine_constant_outputs(width: int | None) -> None:
    base = planted([9, 4, 3, 1])
    network = with_outer(base, np.c_[base.weights[-1], np.zeros((3, 9))])
    assert_reads(network, frame_of(network, width)[0])


@pytest.mark.parametrize("width", [4, None])
def test_ten_equal_outputs(width: int | None) -> None:
    base = planted([9, 4, 3, 1])
    network = with_outer(base, base.weights[-1] * np.arange(1, 11))
    assert_reads(network, frame_of(network, width)[0])


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ([9, 4, 3, 1], 1),
        ([9, 4, 3, 2], 2),
        ([9, 6, 5, 4], 4),
        ([12, 10, 2, 10], 2),  # the narrowest layer
        ([10, 8, 4, 2, 8], 2),
        ([10, 3, 3, 8], 3),
        ([3, 6, 6, 8], 3),  # no more than inputs
    ],
)
def test_independent_outputs_are_those_that_the_narrowest_layer_lets_through(
    layers: list[int], expected: int
) -> None:
    points = np.random.default_rng(1003).standard_normal((5, layers[0]))
    assert (
        independent_outputs(sample_gradients(planted(layers), points, OPTIONS.step), OPTIONS.rank) == expected
    )


def test_outputs_that_repeat_or_do_not_move_do_not_count() -> None:
    base = planted([9, 5, 4, 2])
    points = np.random.default_rng(1003).standard_normal((5, 9))
    first, second = base.weights[-1].T
    for columns, expected in (
        ([first, first, -3 * first], 1),
        ([first, 0 * first, 0 * first], 1),
        ([first, second, first - second, 0 * first], 2),
        ([0 * first, 0 * first], 1),  # never less: it is divided by
    ):
        network = with_outer(base, np.stack(columns, axis=1))
        assert independent_outputs(sample_gradients(network, points, OPTIONS.step), OPTIONS.rank) == expected


def test_one_site_that_shows_them_is_enough_and_none_counts_as_one() -> None:
    points, gradients = np.zeros((3, 6)), np.zeros((3, 6, 4))
    gradients[0, 0] = 1.0  # all outputs alike
    gradients[2, :3, :3] = np.eye(3)
    sample = GradientSample(points, gradients)
    assert independent_outputs(sample, OPTIONS.rank) == 3
    assert independent_outputs(GradientSample(points[:2], gradients[:2]), OPTIONS.rank) == 1
    assert independent_outputs(GradientSample(points[:0], gradients[:0]), OPTIONS.rank) == 1
