from __future__ import annotations

import numpy as np
import pytest
from planted_spaces import direction_errors, unit_rows

from unweave.subspace.joint_diagonal import jointly_diagonalise
from unweave.subspace.symmetric import symmetric_packing


def hessians(weights: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """(count, p) random combinations of the squares of the rows."""
    return rng.standard_normal((count, len(weights))) @ symmetric_packing(weights.shape[1]).outer(weights)


@pytest.mark.parametrize("dimension", [2, 5, 15])
def test_as_many_directions_as_inputs_are_found_from_a_few_matrices(dimension: int) -> None:
    rng = np.random.default_rng(1000 + dimension)
    weights = unit_rows(dimension, dimension, rng)
    found = jointly_diagonalise(hessians(weights, 4, rng), dimension, rng)
    assert found is not None
    assert found.residual < 1e-10
    assert direction_errors(weights, found.directions).max() < 1e-8


def test_more_units_than_inputs_leave_a_residual_of_order_one() -> None:
    rng = np.random.default_rng(1020)
    weights = unit_rows(9, 6, rng)
    found = jointly_diagonalise(hessians(weights, 8, rng), 6, rng)
    assert found is None or found.residual > 0.05


def test_error_in_the_matrices_moves_the_directions_in_proportion() -> None:
    rng = np.random.default_rng(1021)
    weights = unit_rows(6, 6, rng)
    exact = hessians(weights, 5, rng)
    error = rng.standard_normal(exact.shape)
    moved = []
    for size in (1e-9, 1e-7):
        found = jointly_diagonalise(exact + size * error, 6, np.random.default_rng(1022))
        assert found is not None
        assert found.residual < 100 * size
        moved.append(direction_errors(weights, found.directions).max())
    assert moved[1] < 1e-4
    assert moved[1] > 10 * moved[0]


def test_the_scale_of_a_matrix_does_not_matter() -> None:
    rng = np.random.default_rng(1023)
    weights = unit_rows(5, 5, rng)
    scaled = hessians(weights, 4, rng) * np.array([1e-6, 1.0, 1e3, 1e8])[:, None]
    found = jointly_diagonalise(scaled, 5, rng)
    assert found is not None
    assert direction_errors(weights, found.directions).max() < 1e-8


def test_zero_matrices_have_no_directions() -> None:
    assert jointly_diagonalise(np.zeros((3, 10)), 4, np.random.default_rng(1024)) is None


def test_singular_pencils_have_no_directions_or_say_so_by_their_residual() -> None:
    # Matrices of rank two in three dimensions: no invertible combination.
    rng = np.random.default_rng(1025)
    singular = hessians(np.array([[1.0, 0, 0], [0, 1.0, 0]]), 4, rng)
    found = jointly_diagonalise(singular, 3, rng)
    assert found is None or found.residual < 1e-8
