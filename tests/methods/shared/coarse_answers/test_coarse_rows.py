"""The rows that fits are made on."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import unweave
from coarse_targets import noisy, planted, rounded, rows_of
from unweave import Network
from unweave.methods.shared.coarse_answers.rows import FarRows
from unweave.networks.links import Link
from unweave.networks.parameters import NetworkParameters
from unweave.targets.region import Region


def test_rows_are_kept_when_more_are_asked() -> None:
    network = planted(4, 3, 2, 1000)
    rows = rows_of(rounded(network, 3), 4)
    rows.extend_to(50.5)
    assert len(rows) == 51
    first = rows.points.copy()
    rows.extend_to(20)
    assert len(rows) == 51
    rows.extend_to(80)
    assert_array_equal(rows.points[:51], first)
    assert_array_equal(rows.answers, np.round(network(rows.points), 3))


def test_half_of_the_rows_of_a_box_are_corners() -> None:
    rows = rows_of(rounded(planted(4, 3, 1, 1001), 3), 4, region=Region.from_domain(-1.0, 2.0, 4))
    points = rows.sample(2000)
    assert rows.region.contains(points).all()
    bounds = rows.region.normalised_bounds
    assert bounds is not None
    corners = ((points == bounds[0]) | (points == bounds[1])).all(axis=1)
    assert np.mean(corners) == pytest.approx(0.5, abs=5 * 0.5 / np.sqrt(2000))


def test_sigma_of_noise_is_measured() -> None:
    rows = rows_of(noisy(planted(4, 3, 1, 1002), 0.03, 1003), 4)
    assert rows.noise.kind == "noisy"
    rows.measure_sigma()
    # 200 differences: relative standard error 1 / sqrt(400); 4 of them.
    assert rows.largest_sigma == pytest.approx(0.03, rel=4 / 20)


def test_what_noise_explains_is_acceptable_and_little_more() -> None:
    rows = rows_of(rounded(planted(4, 3, 1, 1004), 2), 4)
    rows.extend_to(5000)
    assert 1.02 < rows.acceptable_misfit() < 1.1
    single = rows_of(lambda x: planted(4, 3, 1, 1004)(x).astype(np.float32), 4)
    assert single.acceptable_misfit() == 10  # errors of arithmetic are only roughly known


def test_half_of_the_spread_is_most_of_it() -> None:
    rows = rows_of(rounded(planted(4, 3, 1, 1005), 3), 4)
    rows.extend_to(500)
    spread = float(rows.answers.std() / rows.sigma[0])
    assert rows.leaves_most(0.6 * spread)
    assert rows.leaves_most(np.nan)
    assert not rows.leaves_most(0.4 * spread)


def test_residuals_are_taken_behind_the_link() -> None:
    network = planted(4, 3, 1, 1006, output="sigmoid")
    rows = rows_of(network, 4)
    rows.extend_to(500)
    link = Link("sigmoid")
    shift = 1e-5
    behind = link.undo(rows.answers, 0.0)
    values = 1 / (1 + np.exp(-(behind - shift)))
    left = rows.left_behind(values, link)[:, 0]
    undecided = link.sees_well(rows.answers)
    # Where the slope is above half the largest, the damping takes at most (0.1 / 0.4)^2 = 6 %.
    assert_allclose(left[undecided], shift, rtol=0.07)
    assert np.abs(left).max() <= shift * 1.01


def test_a_region_is_widened_only_before_rows_are_asked() -> None:
    rows = rows_of(rounded(planted(4, 3, 1, 1007), 3), 4)
    rows.widen(3.0)
    assert_array_equal(rows.region.scale, np.full(4, 3.0))
    rows.extend_to(10)
    with pytest.raises(RuntimeError, match="another"):
        rows.widen(2.0)


def test_rows_of_another_region_are_mixed_in() -> None:
    rows = rows_of(planted(3, 2, 1, seed=1000), 3, region=Region(np.full(3, 100.0), np.full(3, 5.0)))
    rows.mix_in(Region.standard(3))
    points = rows.region.to_inputs(rows.sample(400))
    assert np.abs(points[1::2]).max() < 6
    assert np.abs(points[::2] - 100).max() < 30


@pytest.mark.parametrize("link", ["identity", "sigmoid"])
def test_rounding_of_long_sums_is_no_miss_and_a_unit_is(link: str) -> None:
    """Where a link is flat, it passes on next to none of the rounding, and a small difference counts."""
    rng, unit = np.random.default_rng(1000), 2.0**-24
    net = unweave.random_network([200, 4, 1], "relu", seed=1000, outer="normal")
    model = NetworkParameters.from_network(Network(net.weights, net.biases, ["relu", link]))
    points = 20 * rng.standard_normal((300, 200))
    answers = model.values(points)
    slope = answers * (1 - answers) if link == "sigmoid" else np.ones_like(answers)
    rounded = answers + slope * unit * np.abs(points).sum(axis=1, keepdims=True) / 10
    rows = FarRows(points, rounded, np.ones(300), np.array([1e-10]))
    assert not len(rows.missed_beyond_rounding(model, 10.0, unit))
    flat = int(np.argmin(slope))
    shifted = rounded.copy()
    shifted[flat] += 1e-2 if link == "identity" else 1e-6
    rows = FarRows(points, shifted, np.ones(300), np.array([1e-10]))
    assert rows.missed_beyond_rounding(model, 10.0, unit).tolist() == [flat]
