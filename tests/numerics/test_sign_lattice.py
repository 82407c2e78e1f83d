"""Signs as short vectors of a lattice, against planted patterns and all patterns gone through one by one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from unweave.numerics.clock import time_limit
from unweave.numerics.sign_lattice import search_sign_lattice


def planted(
    equations: int, width: int, error: float, seed: int = 1000
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A system in units of its error."""
    rng = np.random.default_rng(seed)
    matrix, signs = rng.standard_normal((equations, width)), rng.choice([-1.0, 1.0], width)
    right = matrix @ signs + error * rng.standard_normal(equations)
    return matrix / error, right / error, signs


@pytest.mark.parametrize("seed", range(1000, 1006))
@pytest.mark.parametrize(("equations", "width"), [(2, 16), (3, 12), (1, 10), (5, 16)])
def test_the_pattern_is_the_best_of_all(equations: int, width: int, seed: int) -> None:
    matrix, right, _ = planted(equations, width, 1e-12, seed)
    every = np.array(list(product((-1.0, 1.0), repeat=width)))
    best = every[np.argmin(np.linalg.norm(every @ matrix.T - right, axis=1))]
    found = search_sign_lattice(matrix, right)
    np.testing.assert_array_equal(found.patterns[0], best)


@pytest.mark.parametrize(
    ("equations", "width", "error"), [(10, 100, 5e-14), (4, 64, 5e-14), (5, 45, 1e-9), (4, 80, 5e-14)]
)
def test_planted_patterns_of_many_units_are_found(equations: int, width: int, error: float) -> None:
    matrix, right, signs = planted(equations, width, error)
    found = search_sign_lattice(matrix, right)
    np.testing.assert_array_equal(found.patterns[0], signs)


def test_where_no_pattern_was_planted_none_fits_and_all_effort_is_spent() -> None:
    matrix, right, _ = planted(4, 40, 1e-12)
    found = search_sign_lattice(matrix, right + 1e9, largest_block=12)
    assert all(np.linalg.norm(matrix @ signs - right - 1e9) > 1e4 for signs in found.patterns)
    assert found.block == 12


def test_vectors_of_the_kernel_are_shown() -> None:
    matrix, _, signs = planted(3, 14, 1e-12)
    matrix[:, 0] = matrix[:, 1]
    found = search_sign_lattice(matrix, matrix @ signs)
    swap = np.zeros(14)
    swap[:2] = 1, -1
    assert any((v == swap).all() or (v == -swap).all() for v in found.kernel)


def test_time_ends_the_search() -> None:
    matrix, right, _ = planted(10, 100, 5e-14)
    assert search_sign_lattice(matrix, right, seconds=0.0).patterns == ()
    with time_limit(lambda: 0.0):
        assert search_sign_lattice(matrix, right).patterns == ()
