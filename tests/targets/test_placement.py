from __future__ import annotations

import numpy as np
import pytest

from unweave.targets import Region
from unweave.targets.placement import points_at_units

WEIGHTS = 3 * np.linalg.qr(np.random.default_rng(1000).standard_normal((6, 6)))[0][:, :4]
BIASES = np.array([0.0, 1.0, -4.0, 6.0])
NEURONS = np.repeat(np.arange(4), 50)


def own(points: np.ndarray) -> np.ndarray:
    return np.take_along_axis(points @ WEIGHTS + BIASES, NEURONS[:, None], axis=1)[:, 0]


def test_every_point_lies_where_its_neuron_acts() -> None:
    points = points_at_units(WEIGHTS, BIASES, NEURONS, Region.standard(6), np.random.default_rng(1001))
    assert points.shape == (200, 6)
    # All but those that would have gone twice as far out as a typical point: a Gaussian tail.
    near = np.abs(own(points)) <= 2.0 + 1e-12
    assert near.mean() > 0.97
    assert own(points)[near].min() < -1.5
    assert own(points)[near].max() > 1.5


def test_points_move_along_their_neuron_only() -> None:
    # What stands at right angles to the neuron is left as it was drawn: standard Gaussian in five dimensions.
    neurons = np.zeros(4000, dtype=np.int64)
    points = points_at_units(WEIGHTS, BIASES, neurons, Region.standard(6), np.random.default_rng(1002))
    across = np.linalg.qr(np.c_[WEIGHTS[:, 0], np.eye(6)])[0][:, 1:]
    beside = points @ across
    np.testing.assert_allclose(beside.mean(axis=0), 0.0, atol=5 / np.sqrt(4000))
    # Points beyond twice the typical radius were drawn again, which takes a percent or so off the variance.
    np.testing.assert_allclose(beside.T @ beside / 4000, np.eye(5), atol=0.12)
    along = points @ WEIGHTS[:, 0] + BIASES[0]
    assert np.abs(along).max() <= 2.0 + 1e-12
    np.testing.assert_allclose(np.histogram(along, bins=4, range=(-2, 2))[0], 1000, atol=150)


@pytest.mark.parametrize("margin", [0.0, 0.2])
def test_points_stay_in_the_box_with_their_margin(margin: float) -> None:
    region = Region.from_domain(-1.0, 2.0, 6)
    points = points_at_units(WEIGHTS, BIASES, NEURONS, region, np.random.default_rng(1003), margin=margin)
    assert region.contains(points + margin).all()
    assert region.contains(points - margin).all()
    assert (np.abs(own(points)) <= 2.0 + 1e-12).mean() > 0.3


def test_a_neuron_that_cannot_be_reached_leaves_its_points_where_they_were() -> None:
    region = Region.standard(6)
    far = points_at_units(WEIGHTS, BIASES + 1e3, NEURONS, region, np.random.default_rng(1004))
    np.testing.assert_array_equal(far, region.sample(len(NEURONS), np.random.default_rng(1004)))


def test_a_neuron_without_weights_does_no_harm() -> None:
    region = Region.standard(6)
    points = points_at_units(np.zeros((6, 4)), BIASES, NEURONS, region, np.random.default_rng(1005))
    assert np.isfinite(points).all()
