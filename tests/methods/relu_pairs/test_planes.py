"""Hyperplanes that are grown from one kink each."""

from __future__ import annotations

import numpy as np

from planted_pairs import planted_pair
from unweave.arrays import Array
from unweave.methods.relu_pairs.planes import Kink, Plane, PlaneOptions, grow, joined
from unweave.targets.region import Region

ERROR = 1e-7
OPTIONS = PlaneOptions()
NETWORK = planted_pair([4, 5, 4, 1])


def read(points: Array) -> tuple[Array, Array]:
    """Answers that may be off by 1e-7."""
    return NETWORK(points), np.full(len(points), ERROR)


def plane_through(point: Array, normal: Array, error: float) -> Plane:
    """A plane with the error of its normal."""
    return Plane.through(Kink(point, normal / np.linalg.norm(normal), error, 1e-6, np.array([0.3])))


def first_planes(error: float) -> list[Plane]:
    """A plane through a point of each unit of the first layer, with a normal that is off."""
    rng, planes = np.random.default_rng(0), []
    for weights, bias in zip(NETWORK.weights[0].T, NETWORK.biases[0], strict=True):
        length = np.linalg.norm(weights)
        normal, point = weights / length, -bias * weights / length**2
        off = normal + error * rng.standard_normal(4) / 2
        planes.append(plane_through(point, off, error))
    return planes


def test_hyperplanes_of_the_first_layer_are_found_and_become_precise() -> None:
    grown = grow(read, Region.standard(4), first_planes(1e-3), ERROR, np.random.default_rng(1), OPTIONS)
    assert len(grown) == 5
    truth = np.vstack([NETWORK.weights[0], NETWORK.biases[0]]) / np.linalg.norm(NETWORK.weights[0], axis=0)
    for plane in grown:
        normal, bias = plane.unit
        found = np.append(normal, bias)
        assert min(np.abs(found[:, None] * sign - truth).max(axis=0).min() for sign in (1, -1)) < 1e-5


def test_a_plane_where_there_is_no_kink_is_refused() -> None:
    rng = np.random.default_rng(2)
    normals = rng.standard_normal((6, 4))
    wrong = [plane_through(rng.standard_normal(4), normal, 1e-3) for normal in normals]
    assert grow(read, Region.standard(4), wrong, ERROR, rng, OPTIONS) == []


def test_two_sightings_of_one_hyperplane_are_one() -> None:
    planes, rng = first_planes(1e-4), np.random.default_rng(3)
    again = joined(planes, first_planes(1e-4), Region.standard(4), rng, OPTIONS)
    assert len(again) == len(planes)
