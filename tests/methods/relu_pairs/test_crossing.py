"""Kinks on short segments across a hyperplane that is expected to hold them."""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_pairs.crossing import locate

ERROR = 1e-9
AXIS = np.array([[1.0, 0.0]])


def read(points: Array) -> tuple[Array, Array]:
    """Kinks at x = 0.3 and x = 2, seen everywhere."""
    values = np.abs(points[:, :1] - 0.3) + np.abs(points[:, :1] - 2.0) + points[:, 1:]
    return values, np.full(len(points), ERROR)


def test_a_kink_is_located_to_the_error_of_an_answer() -> None:
    found = locate(read, np.array([[0.25, 1.0]]), AXIS, np.array([0.2]))
    assert found.found.all()
    assert abs(found.positions[0] - 0.05) < found.errors[0] < 1e-8


def test_a_straight_segment_is_told() -> None:
    found = locate(read, np.array([[1.0, 1.0]]), np.array([[0.6, 0.8]]), np.array([0.2]))
    assert not found.found.any()
    assert found.straight.all()


def test_two_kinks_are_neither_one_nor_none() -> None:
    found = locate(read, np.array([[1.0, 0.0]]), AXIS, np.array([1.9]))
    assert not found.found.any()
    assert not found.straight.any()


def test_a_kink_that_bends_one_of_the_two_lines_is_noticed() -> None:
    found = locate(read, np.array([[0.25, 1.0]]), AXIS, np.array([1.8]))
    assert not found.found.any()


def test_the_bend_is_told() -> None:
    found = locate(read, np.array([[0.25, 1.0]]), AXIS, np.array([0.2]))
    np.testing.assert_allclose(found.bends, [[2.0]], atol=1e-7)


def test_nothing_is_said_where_nothing_is_read() -> None:
    def blind(points: Array) -> tuple[Array, Array]:
        return np.full((len(points), 1), np.nan), np.full(len(points), np.inf)

    found = locate(blind, np.array([[0.25, 1.0]]), AXIS, np.array([0.2]))
    assert not found.found.any()
    assert not found.straight.any()
