"""Signs decoded from the center of a box."""

from __future__ import annotations

import numpy as np
import pytest

from unweave.arrays import Array
from unweave.numerics.sign_decoding import decoded_signs, few_adding_to


def planted(equations: int, width: int, seed: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((equations, width))
    matrix /= np.linalg.norm(matrix)
    signs = rng.choice([-1.0, 1.0], width)
    return matrix, matrix @ signs, signs


@pytest.mark.parametrize(("equations", "width"), [(30, 50), (40, 80), (60, 120)])
@pytest.mark.parametrize("seed", [1000, 1001, 1002])
def test_half_as_many_equations_as_signs_are_enough(equations: int, width: int, seed: int) -> None:
    matrix, right, signs = planted(equations, width, seed)
    found = decoded_signs(matrix, right, 1e-9, np.random.default_rng(1), tries=60)
    np.testing.assert_array_equal(found, signs)


def test_errors_of_the_equations_are_allowed_for() -> None:
    matrix, right, signs = planted(40, 70, 1003)
    right = right + 1e-9 * np.random.default_rng(1004).standard_normal(40)
    found = decoded_signs(matrix, right, 1e-6, np.random.default_rng(1), tries=60)
    np.testing.assert_array_equal(found, signs)


def test_equations_that_no_signs_fulfil_are_seen_at_once() -> None:
    matrix, right, _ = planted(40, 70, 1005)
    assert decoded_signs(matrix, 3 * right, 1e-6, np.random.default_rng(1), tries=1000) is None  # off the box
    other = matrix @ np.random.default_rng(1006).uniform(-0.9, 0.9, 70)  # in the box, not at its corners
    assert decoded_signs(matrix, other, 1e-6, np.random.default_rng(1), tries=3) is None


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_up_to_four_columns_are_found_by_their_sum(count: int) -> None:
    rng = np.random.default_rng(1008)
    columns = rng.standard_normal((20, 30))
    assert few_adding_to(columns, np.zeros(20), 1e-9) is None
    wanted = np.sort(rng.permutation(30)[:count])
    found = few_adding_to(columns, columns[:, wanted].sum(axis=1), 1e-9)
    assert (found is None) if count == 5 else (found.tolist() == wanted.tolist())  # type: ignore[union-attr]
    columns[:, wanted[0]] -= columns[:, wanted].sum(axis=1)  # now they cancel
    found = few_adding_to(columns, np.zeros(20), 1e-9)
    assert (found is None) if count == 5 else (found.tolist() == wanted.tolist())  # type: ignore[union-attr]


def test_a_tolerance_that_tells_no_sums_apart_finds_nothing() -> None:
    columns = np.random.default_rng(1009).standard_normal((5, 60))
    found = few_adding_to(columns, np.zeros(5), 10.0)
    assert found is not None  # so that nobody takes it for "there are none"
    assert not len(found)
