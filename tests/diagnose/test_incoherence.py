from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from unweave.diagnose import hadamard_gram, incoherence, unit_columns, welch_bound
from unweave.errors import InvalidInput
from unweave.subspace.symmetric import symmetric_packing


def sphere(dimension: int, width: int, seed: int) -> np.ndarray:
    columns = np.random.default_rng(seed).standard_normal((dimension, width))
    return columns / np.linalg.norm(columns, axis=0)


def test_orthonormal_weights_have_the_obvious_values() -> None:
    weights = np.linalg.qr(np.random.default_rng(1000).standard_normal((6, 6)))[0]
    figures = incoherence(weights)
    assert figures.coherence < 1e-30
    assert figures.independent
    for name in (
        "gram2_smallest",
        "gram2_largest",
        "gram3_smallest",
        "gram3_largest",
        "gram2_condition",
        "gram3_condition",
        "frame_lower",
        "frame_upper",
        "gershgorin2",
        "gershgorin3",
    ):
        assert_allclose(getattr(figures, name), 1.0, atol=1e-13)
    assert abs(figures.frame_constant) < 1e-13
    assert figures.welch_bound == 0.0


def test_an_equiangular_tight_frame_meets_the_welch_bound() -> None:
    angles = np.pi / 2 + 2 * np.pi * np.arange(3) / 3
    figures = incoherence(np.stack([np.cos(angles), np.sin(angles)]))
    assert_allclose(figures.coherence, 1 / 4)
    assert_allclose(figures.welch_bound, 1 / 4)
    assert_allclose(figures.frame_constant, 3 / 2 - 1)  # tight: nu = m/D - 1


def test_parallel_weights_are_dependent() -> None:
    weights = sphere(5, 4, 1001)
    weights[:, 3] = -weights[:, 0]
    figures = incoherence(weights)
    assert_allclose(figures.coherence, 1.0)
    assert not figures.independent
    assert figures.gram2_condition == np.inf
    assert figures.gram2_smallest < 1e-14


def test_more_squares_than_the_dimension_of_symmetric_matrices_are_dependent() -> None:
    assert not incoherence(sphere(4, 11, 1002)).independent
    assert incoherence(sphere(4, 10, 1002)).independent


@settings(deadline=None, max_examples=30)
@given(dimension=st.integers(2, 10), width=st.integers(2, 25), seed=st.integers(1000, 10**6))
def test_the_inequalities_hold_for_random_weights(dimension: int, width: int, seed: int) -> None:
    figures = incoherence(sphere(dimension, width, seed))
    slack = 1e-10
    assert figures.coherence >= figures.welch_bound - slack
    assert figures.gram2_largest <= figures.gershgorin2 + slack
    assert figures.gram3_largest <= figures.gershgorin3 + slack
    assert figures.gram3_smallest >= figures.gram2_smallest - slack  # Lemma 2.22
    assert figures.gram2_largest >= width / dimension - slack
    assert figures.frame_lower <= width / dimension + slack
    assert figures.frame_upper >= width / dimension - slack
    assert_allclose(figures.coherence_constant, figures.coherence * dimension / np.log(width))
    nu = figures.frame_constant
    if nu < 1:
        assert 1 - nu - slack <= width / dimension <= 1 + nu + slack
        assert figures.gram2_smallest >= 1 - nu - slack


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(1000, 10**6))
def test_figures_do_not_depend_on_rotation_order_or_signs(seed: int) -> None:
    rng = np.random.default_rng(seed + 1)
    weights = sphere(6, 11, seed)
    rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    other = incoherence((rotation @ weights)[:, rng.permutation(11)] * rng.choice([-1.0, 1.0], 11))
    figures = incoherence(weights)
    for name in ("coherence", "gram2_smallest", "gram2_condition", "gram3_condition", "frame_constant"):
        assert_allclose(getattr(other, name), getattr(figures, name), rtol=1e-8)


def test_the_gram_matrices_are_those_of_the_tensors() -> None:
    weights = sphere(5, 7, 1003)
    squares = symmetric_packing(5).outer(weights.T)
    assert_allclose(hadamard_gram(weights, 2), squares @ squares.T, atol=1e-14)
    cubes = np.einsum("ak,bk,ck->kabc", weights, weights, weights).reshape(7, -1)
    assert_allclose(hadamard_gram(weights, 3), cubes @ cubes.T, atol=1e-14)


def test_welch_bound_is_zero_where_orthogonality_is_possible() -> None:
    assert welch_bound(5, 1) == welch_bound(5, 5) == 0.0
    assert_allclose(welch_bound(2, 4), 2 / (2 * 3))


def test_columns_are_normalised_or_refused() -> None:
    weights, norms = unit_columns(np.array([[3.0, 0.0], [4.0, 2.0]]))
    assert_allclose(norms, [5.0, 2.0])
    assert_allclose(weights, [[0.6, 0.0], [0.8, 1.0]])
    with pytest.raises(InvalidInput, match="nonzero columns"):
        unit_columns(np.zeros((3, 2)))
    with pytest.raises(InvalidInput, match="unit columns"):
        incoherence(np.ones((3, 2)))
