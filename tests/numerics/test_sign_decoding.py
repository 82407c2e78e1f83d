"""Signs decoded from the center of a box."""

from __future__ import annotations

import numpy as np
import pytest

from unweave.arrays import Array
from unweave.numerics.sign_decoding import decoded_signs, few_vanish


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


def test_another_pattern_is_found_beside_the_known_one() -> None:
    matrix, _, signs = planted(40, 60, 1007)
    signs[:2] = 1.0, -1.0
    matrix[:, 1] = matrix[:, 0]  # these two may change places
    found = decoded_signs(matrix, matrix @ signs, 1e-9, np.random.default_rng(1), tries=20, away_from=signs)
    assert found is not None
    np.testing.assert_allclose(matrix @ found, matrix @ signs, atol=1e-9)
    assert np.flatnonzero(found != signs).tolist() == [0, 1]


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_columns_that_cancel_are_seen_up_to_four(count: int) -> None:
    matrix = np.random.default_rng(1008).standard_normal((20, 30))
    assert not few_vanish(matrix, 1e-9)
    matrix[:, 7] = -matrix[:, 11 : 10 + count].sum(axis=1)
    assert few_vanish(matrix, 1e-9) == (count <= 4)
