"""Normalised coordinates go there and back, and nothing outside a box is ever sent."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unweave.errors import InvalidInput
from unweave.targets import NormalisedQueries, Queries, Region

EPS = np.finfo(np.float64).eps


@settings(deadline=None, max_examples=40)
@given(st.integers(1000, 5000), st.integers(1, 8))
def test_round_trip(seed, n_inputs):
    rng = np.random.default_rng(seed)
    scale = 10.0 ** rng.uniform(-6, 6, n_inputs)
    region = Region(100 * scale * rng.standard_normal(n_inputs), scale)
    u = rng.standard_normal((5, n_inputs))
    # x is rounded at the size of location, so u comes back to eps times location / scale.
    bound = 4 * EPS * (np.abs(region.location) / scale + np.abs(u))
    assert (np.abs(region.to_normalised(region.to_inputs(u)) - u) <= bound).all()


@settings(deadline=None, max_examples=40)
@given(st.integers(1000, 5000))
def test_box_samples_and_corners_are_inside(seed):
    rng = np.random.default_rng(seed)
    low = 10.0 ** rng.uniform(-3, 6, 4) * rng.standard_normal(4)
    region = Region.from_domain(low, low + 10.0 ** rng.uniform(-3, 6, 4), 4)
    bounds = region.normalised_bounds
    assert bounds is not None
    rounding = 8 * EPS * (1 + np.abs(low) / region.scale)  # of location, in units of scale
    assert (np.abs(bounds[1] - bounds[0] - np.sqrt(12.0)) <= rounding).all()
    assert region.contains(np.stack(bounds)).all()
    assert region.contains(region.sample(50, rng)).all()
    assert not region.contains(1.01 * np.stack(bounds)).any()
    inner = region.sample(50, rng, margin=0.5)
    assert region.contains(inner + 0.499).all()
    assert region.contains(inner - 0.499).all()
    x = region.to_inputs(np.stack(bounds))
    assert (x >= region.low).all()
    assert (x <= region.high).all()


def test_uniform_law_of_a_box_has_unit_variance():
    u = Region.from_domain(-3.0, 11.0, 2).sample(20_000, np.random.default_rng(1000))
    # The variance of n uniform samples has standard deviation sqrt(0.8 / n) = 0.0063.
    np.testing.assert_allclose(u.var(axis=0), 1.0, atol=0.035)
    np.testing.assert_allclose(u.mean(axis=0), 0.0, atol=0.036)


def test_standard_region_is_the_identity():
    region = Region.standard(3)
    u = region.sample(4, np.random.default_rng(1000))
    np.testing.assert_array_equal(region.to_inputs(u), u)
    assert not region.has_box
    assert region.contains(1e9 * u).all()


def test_examples_give_mean_and_deviation_and_constants_keep_their_value():
    x = np.array([[1.0, 5.0, 0.1, 0.0], [3.0, 5.0, 0.1, 0.0], [5.0, 5.0, 0.1, 0.0]])
    region = Region.from_examples(x)
    np.testing.assert_allclose(region.location, [3.0, 5.0, 0.1, 0.0], rtol=4 * EPS)
    np.testing.assert_allclose(region.scale, [np.sqrt(8 / 3), 5.0, 1.0, 1.0], rtol=4 * EPS)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Region.from_domain(1.0, 1.0, 2),
        lambda: Region.from_domain([0.0, 2.0], [1.0, 1.0], 2),
        lambda: Region.from_domain(0.0, np.inf, 2),
        lambda: Region.from_domain([0.0, 0.0, 0.0], 1.0, 2),
        lambda: Region.from_examples([[1.0, 2.0]]),
        lambda: Region.from_examples([[1.0, np.nan], [0.0, 1.0]]),
        lambda: Region(np.zeros(2), np.array([1.0, 0.0])),
        lambda: Region(np.zeros(2), np.ones(3)),
        lambda: Region(np.zeros(2), np.ones(2), low=np.zeros(2)),
        lambda: Region.from_domain(0.0, 1.0, 2).sample(3, np.random.default_rng(0), margin=2.0),
    ],
)
def test_unusable_regions_are_refused(build):
    with pytest.raises(InvalidInput, match=r"must (be|have)"):
        build()


def test_region_cannot_be_changed():
    region = Region.standard(2)
    with pytest.raises(ValueError, match="read-only"):
        region.location[0] = 1.0


def test_view_asks_in_normalised_coordinates_and_delegates_the_counts():
    ledger = Queries(lambda x: x, 2, max_queries=10)
    view = NormalisedQueries(ledger, Region(np.array([10.0, 20.0]), np.array([1.0, 2.0])))
    assert view.n_outputs is None
    np.testing.assert_array_equal(view([[1.0, -1.0]]), [[11.0, 18.0]])
    view([[1.0, -1.0]])
    view([[1.0, -1.0]], fresh=True)
    assert (view.n_inputs, view.n_outputs, view.sent, view.cache_hits, view.remaining) == (2, 2, 2, 1, 8)
    assert view.seconds_left is None
    assert view.seconds_in_target >= 0


def test_nothing_outside_the_box_is_sent():
    ledger = Queries(lambda x: x[:, 0], 2)
    view = NormalisedQueries(ledger, Region.from_domain(0.0, 1.0, 2))
    with pytest.raises(InvalidInput, match="Got 1 of 2 points outside"):
        view([[0.0, 0.0], [0.0, 1.8]])
    assert ledger.sent == 0
    with pytest.raises(InvalidInput, match="shape"):
        view([0.0, 0.0])
    with pytest.raises(InvalidInput, match="must have 2 inputs"):
        NormalisedQueries(ledger, Region.standard(3))
