from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.numerics.least_squares.cholesky_factor import cholesky_factor, smallest_ridge


def gram(size: int = 25, seed: int = 1000) -> np.ndarray:
    matrix = np.random.default_rng(seed).standard_normal((3 * size, size)) * np.geomspace(1e-2, 1e2, size)
    return matrix.T @ matrix


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_it_factors_the_upper_triangle_with_its_ridge(dtype: type, ridge: float) -> None:
    exact = gram()
    given = np.triu(exact).astype(dtype)
    kept = given.copy()
    factor = cholesky_factor(given, ridge)
    assert factor is not None
    assert (given == kept).all()
    assert factor.ridge == max(ridge, smallest_ridge(given))
    expected = exact + factor.ridge * np.diag(np.diag(exact))
    inverse = np.linalg.inv(expected)
    tolerance = 1e3 * np.finfo(dtype).eps
    scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
    assert_allclose(factor.lower @ factor.lower.T / scale, expected / scale, atol=tolerance)
    vector = np.random.default_rng(1001).standard_normal(25)
    solved = factor.other_half_solve(factor.half_solve(vector))
    assert solved.dtype == dtype
    assert_allclose(solved, inverse @ vector, rtol=0, atol=tolerance * np.abs(inverse @ vector).max())
    assert_allclose(factor.inverse_diagonal(), np.diag(inverse), rtol=tolerance)


def test_the_ridge_is_raised_until_it_succeeds() -> None:
    matrix = np.array([[1.0, 1.0 + 1e-6], [0.0, 1.0]])  # indefinite by 1e-6
    factor = cholesky_factor(matrix, 0.0)
    assert factor is not None
    assert 1e-6 <= factor.ridge <= 1e-4
    assert factor.wanted == 0.0


def test_a_zero_column_does_not_disturb_the_others() -> None:
    matrix = np.diag([4.0, 0.0, 1.0])
    factor = cholesky_factor(matrix, 0.0)
    assert factor is not None
    assert_allclose(factor.scale, [2.0, 1.0, 1.0])
    assert_allclose(factor.inverse_diagonal()[[0, 2]], [0.25, 1.0])


def test_what_is_not_finite_has_no_factor() -> None:
    assert cholesky_factor(np.diag([1.0, np.nan]), 0.0) is None
