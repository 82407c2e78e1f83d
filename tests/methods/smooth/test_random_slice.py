from __future__ import annotations

import numpy as np
import pytest

from unweave.arrays import Array
from unweave.methods.smooth.random_slice import RandomSlice, SliceOptions, lattice_step
from unweave.targets.region import Region


def identity(x: Array) -> Array:
    return x


def slices_of(region: Region, reach: float = 0.1) -> RandomSlice:
    return RandomSlice(identity, region, reach, np.random.default_rng(1000))


def test_slices_are_nested_and_orthogonal() -> None:
    slices = slices_of(Region.standard(7))
    np.testing.assert_allclose(slices.frame.T @ slices.frame, np.eye(7), atol=1e-12)
    y = np.random.default_rng(0).standard_normal((4, 3))
    padded = np.concatenate([y, np.zeros((4, 2))], axis=1)
    np.testing.assert_allclose(slices.ask(y), slices.ask(padded), atol=1e-14)


def test_asking_beside_moves_along_the_other_directions() -> None:
    slices = slices_of(Region.standard(6))
    y = np.random.default_rng(0).standard_normal((3, 4))
    moved = slices.ask_beside(y, 0.5) - slices.ask(y)[:, None]
    assert moved.shape == (3, 2, 6)
    np.testing.assert_allclose(moved @ slices.frame, np.tile(np.eye(6)[4:] * 0.5, (3, 1, 1)), atol=1e-12)


def test_points_are_as_far_out_as_those_of_the_region() -> None:
    slices = slices_of(Region.standard(40))
    points = slices.draw(4000, 8)
    # A unit of norm one varies by one there: the mean of 32 000 squares has a relative error of 1 %.
    assert np.mean(points**2) * 8 / 40 == pytest.approx(1, rel=0.05)


def test_no_point_leaves_the_box_by_any_way_that_is_gone() -> None:
    region = Region.from_domain(-1.0, 2.0, 15)
    slices = slices_of(region, reach=0.4)
    points = slices.draw(300, 6)
    for column in slices.frame.T:
        for sign in (1, -1):
            assert region.contains(slices.ask(points) + sign * 0.4 * column).all()
    assert slices.has_room(0.5)
    assert not slices.has_room(2.0)


def test_margin_bounds_how_far_an_input_moves() -> None:
    slices = slices_of(Region.standard(9))
    ways = np.random.default_rng(0).standard_normal((200, 4))
    ways *= 0.7 / np.linalg.norm(ways, axis=1, keepdims=True)
    moved = np.abs(slices.ask(ways)).max()
    assert moved <= slices.margin(0.7, 4) < 0.7


def test_the_step_follows_the_sharpness() -> None:
    def wave(sharpness: float) -> float:
        rng = np.random.default_rng(1001)
        direction = rng.standard_normal(10)
        slices = RandomSlice(
            lambda x: np.sin(sharpness * x @ direction)[:, None], Region.standard(10), 0.1, rng
        )
        return lattice_step(slices, 6, rng, SliceOptions())

    assert wave(0.5) / wave(1.0) == pytest.approx(2, rel=0.1)
    narrow = RandomSlice(identity, Region.from_domain(-1e-9, 1e-9, 10), 0.1, np.random.default_rng(0))
    assert lattice_step(narrow, 6, np.random.default_rng(0), SliceOptions()) > 0  # a box is normalised


def test_costs_add_up_and_the_cheapest_is_cheapest() -> None:
    options = SliceOptions()
    cost = options.cost(20, 40, 1, 11, mirrored=False)
    assert cost.rows == cost.lattice + cost.values + cost.other_inputs
    assert cost.lattice == options.lattices_needed(40, 11, 1) * 364
    best = options.cheapest(20, 40, 1)
    assert best is not None
    assert options.most_units(best.dimension, 20) >= 40
    assert all(
        best.rows <= options.cost(20, 40, 1, d, False).rows
        for d in range(6, 21)
        if options.most_units(d, 20) >= 40
    )
    assert options.cheapest(10, 41, 1) is None
    assert options.cheapest(10, 40, 1) is not None  # of all inputs, a larger share is trusted
    assert next(options.dimensions(20, 40)) == 11
    assert next(options.dimensions(10, 41), None) is None
    assert options.lattices_needed(5, 8, 10) == options.fewest_sites
