"""Sign patterns against all of them, gone through one by one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from unweave.numerics.clock import time_limit
from unweave.numerics.sign_search import (
    box_point,
    branch_and_bound,
    longest_point,
    meet_in_the_middle,
    narrowed_signs,
)


@pytest.mark.parametrize("seed", range(1000, 1006))
@pytest.mark.parametrize("same", [False, True])
def test_narrowed_signs_are_those_of_every_pattern(seed: int, same: bool) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((6, 13))
    matrix[:, 0] = matrix[:, 1] if same else matrix[:, 0]  # then these two may exchange their signs
    signs = rng.choice([-1.0, 1.0], 13)
    signs[:2] = (1, -1) if same else signs[:2]
    right = matrix @ signs
    every = np.array(list(product((-1.0, 1.0), repeat=13)))
    fitting = every[np.linalg.norm(every @ matrix.T - right, axis=1) < 1e-9]
    assert len(fitting) == 1 + same
    known = narrowed_signs(matrix, right, rng)
    assert known.any()
    if known.all():
        assert (fitting == known).all(axis=1).any()
    else:
        assert (fitting[:, known != 0] == known[known != 0]).all()
    found, ended = branch_and_bound(matrix, right, [fitting[0]], known if same else None)
    assert ended
    assert found is None if len(fitting) == 1 else found is None or (found == fitting[1]).all()


def test_the_longest_point_is_a_pattern_that_fits() -> None:
    met = 0
    for seed in range(1000, 1010):
        rng = np.random.default_rng(seed)
        matrix, signs = rng.standard_normal((20, 42)), rng.choice([-1.0, 1.0], 42)
        start = box_point(matrix, matrix @ signs)
        found = longest_point(matrix, matrix @ signs, start, rng)
        if found is not None:
            met += 1
            np.testing.assert_array_equal(found, signs)
    assert met >= 5


@pytest.mark.parametrize("equations", [1, 3])
def test_halves_that_meet_are_all_patterns_that_fit(equations: int) -> None:
    """Few equations leave many pairs of halves to look at, in several blocks."""
    rng = np.random.default_rng(1000)
    matrix, allowed = rng.standard_normal((equations, 18)), 0.4
    right = matrix @ rng.choice([-1.0, 1.0], 18)
    every = np.array(list(product((-1.0, 1.0), repeat=18)))
    fitting = every[np.linalg.norm(every @ matrix.T - right, axis=1) <= allowed]
    assert len(fitting) > 10
    found = meet_in_the_middle(matrix, right, allowed)
    assert found is not None
    assert {row.tobytes() for row in found} == {row.tobytes() for row in fitting}
    assert len(found) == len(fitting)


def test_halves_meet_no_more_once_the_time_is_over() -> None:
    """A wide system with one equation has millions of pairs: they must not hold a run that has ended."""
    rng = np.random.default_rng(1000)
    matrix = rng.standard_normal((1, 30))
    looks = iter([1.0, 1.0, 1.0])
    with time_limit(lambda: next(looks, 0.0)):
        assert meet_in_the_middle(matrix, np.zeros(1), 1e-2) is None
    assert next(looks, None) is None  # it was the clock that ended it, after some blocks
