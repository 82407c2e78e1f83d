from __future__ import annotations

import numpy as np
import pytest

from unweave.numerics.least_squares.normal_equations import solve_near


@pytest.mark.parametrize("rank", [3, 5])
def test_steps_are_those_of_an_svd_where_columns_depend_on_each_other(rank: int) -> None:
    rng = np.random.default_rng(1006)
    matrix = rng.standard_normal((20, rank)) @ rng.standard_normal((rank, 5)) * np.geomspace(1.0, 1e4, 5)
    right = rng.standard_normal(20)
    wanted = np.linalg.lstsq(matrix, right, rcond=None)[0]
    np.testing.assert_allclose(solve_near(matrix, right), wanted, rtol=1e-6)
