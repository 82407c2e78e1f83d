from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.numerics.lanczos import lanczos_extremes


def test_all_steps_give_the_exact_extremes() -> None:
    rng = np.random.default_rng(1000)
    matrix = rng.standard_normal((12, 12))
    matrix += matrix.T
    values, vectors = np.linalg.eigh(matrix)
    (low, bottom), (high, top) = lanczos_extremes(lambda v: matrix @ v, 12, 12, rng)
    assert_allclose([low, high], values[[0, -1]], rtol=1e-10)
    assert abs(bottom @ vectors[:, 0]) == pytest.approx(1.0, abs=1e-8)
    assert abs(top @ vectors[:, -1]) == pytest.approx(1.0, abs=1e-8)


def test_an_isolated_eigenvalue_is_found_in_a_few_steps() -> None:
    values = np.ones(500)
    values[17] = 1e-6
    values[200:] = np.linspace(0.9, 1.0, 300)
    (low, bottom), _ = lanczos_extremes(lambda v: values * v, 500, 12, np.random.default_rng(1000))
    assert low == pytest.approx(1e-6, rel=1e-3)
    assert abs(bottom[17]) == pytest.approx(1.0, abs=1e-6)


def test_an_invariant_subspace_ends_it() -> None:
    calls = []
    rng = np.random.default_rng(1000)
    (low, _), (high, _) = lanczos_extremes(lambda v: calls.append(1) or 3.0 * v, 50, 20, rng)
    assert_allclose([low, high], [3.0, 3.0], rtol=1e-14)
    assert len(calls) == 1
