"""All dichotomies of points by hyperplanes, in general position and not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from unweave.errors import InvalidInput
from unweave.exact import cover_count, hyperplane_dichotomies


def separable(x, pattern):
    """Whether a hyperplane with a margin has the points of the pattern on its positive side."""
    sides = np.where(pattern, 1.0, -1.0)
    rows = -sides[:, None] * np.column_stack([x, np.ones(len(x))])
    answer = linprog(np.zeros(rows.shape[1]), A_ub=rows, b_ub=-np.ones(len(x)), bounds=(None, None))
    return answer.status == 0


def by_linear_programs(x):
    patterns = itertools.product((False, True), repeat=len(x))
    return np.array([pattern for pattern in patterns if separable(x, np.array(pattern))])


@pytest.mark.parametrize(
    ("inputs", "points"), [(1, 10), (1, 400), (2, 10), (2, 60), (3, 12), (3, 30), (4, 14), (5, 12), (5, 4)]
)
def test_count_is_covers(inputs, points):
    x = np.random.default_rng(1000).standard_normal((points, inputs))
    found = hyperplane_dichotomies(x)
    assert len(found) == cover_count(points, inputs)
    assert len(np.unique(found, axis=0)) == len(found)


def test_cover_counts_by_hand():
    # A line: N + 1 cuts, two orientations, the two constant ones once. The plane: three points, all subsets.
    assert [cover_count(n, 1) for n in (1, 2, 3)] == [2, 4, 6]
    assert (cover_count(3, 2), cover_count(4, 2), cover_count(100, 2)) == (8, 14, 9902)
    with pytest.raises(InvalidInput, match="points must be at least 1"):
        cover_count(0, 2)


DEGENERATE = {
    "grid": np.array(list(itertools.product(range(3), range(2))), dtype=float),
    "line in space": np.outer([0.0, 3.0, 1.0, 7.0, 2.5], [1.0, -2.0, 0.5]) + 5,
    "duplicates": np.random.default_rng(1001).standard_normal((4, 2))[[0, 1, 2, 3, 0, 2, 2]],
    "collinear triple": np.array([[0, 0], [1, 1], [2, 2], [0.3, 1.9], [2.0, 0.1], [-1.0, 0.7]], dtype=float),
    "cube": np.array(list(itertools.product((0.0, 1.0), repeat=3)))[:7],
    "one point": np.array([[2.0, 3.0]]),
    "equal points": np.ones((3, 2)),
    "coplanar": np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0.3, 0.4, 1.0], [0.1, 0.9, 0.0]]),
    "units apart": np.random.default_rng(1002).standard_normal((7, 2)) * [1e-6, 1e6],
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_points(name):
    x = DEGENERATE[name]
    size = np.abs(x - x.mean(axis=0)).max(axis=0)
    expected = by_linear_programs((x - x.mean(axis=0)) / np.where(size > 0, size, 1.0))
    np.testing.assert_array_equal(hyperplane_dichotomies(x), np.unique(expected, axis=0))


def test_affine_maps_change_nothing():
    rng = np.random.default_rng(1003)
    x = rng.standard_normal((20, 2))
    moved = x @ rng.standard_normal((2, 2)) + 100
    np.testing.assert_array_equal(hyperplane_dichotomies(x), hyperplane_dichotomies(moved))


def test_too_many_points_are_refused_at_once():
    with pytest.raises(InvalidInput, match=r"few enough points.*Use fewer points"):
        hyperplane_dichotomies(np.random.default_rng(1000).standard_normal((3000, 3)))
