from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from unweave.subspace.symmetric import rank_one_coefficients, symmetric_packing

EPS = np.finfo(np.float64).eps


def symmetric_matrices(n: int, dimension: int, seed: int) -> np.ndarray:
    a = np.random.default_rng(seed).standard_normal((n, dimension, dimension))
    return a + a.transpose(0, 2, 1)


@settings(deadline=None, max_examples=30)
@given(dimension=st.integers(1, 12), seed=st.integers(1000, 2000))
def test_packing_is_an_isometry(dimension: int, seed: int) -> None:
    matrices = symmetric_matrices(4, dimension, seed)
    packed = symmetric_packing(dimension).pack(matrices)
    inner = np.einsum("aij,bij->ab", matrices, matrices)
    scale = np.linalg.norm(matrices) ** 2
    assert packed.shape == (4, dimension * (dimension + 1) // 2)
    assert_allclose(packed @ packed.T, inner, rtol=0, atol=10 * EPS * scale)


@settings(deadline=None, max_examples=30)
@given(dimension=st.integers(1, 12), seed=st.integers(1000, 2000))
def test_unpack_undoes_pack(dimension: int, seed: int) -> None:
    packing = symmetric_packing(dimension)
    matrices = symmetric_matrices(3, dimension, seed)
    assert_allclose(packing.unpack(packing.pack(matrices)), matrices, rtol=2 * EPS)
    vectors = np.random.default_rng(seed).standard_normal((3, packing.size))
    assert_allclose(packing.pack(packing.unpack(vectors)), vectors, rtol=2 * EPS)


def test_the_packed_entries_are_the_upper_triangle_with_weighted_off_diagonal() -> None:
    packing = symmetric_packing(2)
    packed = packing.pack(np.array([[1.0, 5.0], [5.0, 3.0]]))
    assert_allclose(packed, [1.0, 5.0 * np.sqrt(2), 3.0])


def test_outer_is_the_packed_square() -> None:
    packing = symmetric_packing(5)
    u = np.random.default_rng(1000).standard_normal((7, 5))
    assert_allclose(packing.outer(u), packing.pack(u[:, :, None] * u[:, None, :]), rtol=4 * EPS)


def test_columns_are_packed_and_unpacked_like_rows() -> None:
    packing, u = symmetric_packing(5), np.random.default_rng(1003).standard_normal((7, 5))
    packed = packing.outer_in_columns(u.T)
    assert_allclose(packed, packing.outer(u).T, rtol=0, atol=0)
    assert_allclose(
        packing.unpack_columns(packed), np.moveaxis(packing.unpack(packed.T), 0, -1), rtol=0, atol=0
    )


def test_outer_does_not_change_its_argument() -> None:
    u = np.random.default_rng(1001).standard_normal((3, 4))
    before = u.copy()
    symmetric_packing(4).outer(u)
    assert_array_equal(u, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_is_kept(dtype: type) -> None:
    u = np.random.default_rng(1002).standard_normal((3, 4)).astype(dtype)
    packing = symmetric_packing(4)
    assert packing.outer(u).dtype == dtype
    assert packing.unpack(packing.outer(u)).dtype == dtype


def test_torch_tensors_give_the_same_numbers() -> None:
    packing = symmetric_packing(6)
    u = np.random.default_rng(1003).standard_normal((5, 6))
    tensor = torch.from_numpy(u)
    packed = packing.outer(tensor)
    assert isinstance(packed, torch.Tensor)
    assert_array_equal(packed.numpy(), packing.outer(u))
    assert_array_equal(packing.unpack(packed).numpy(), packing.unpack(packing.outer(u)))
    assert_array_equal(
        packing.pack(packing.unpack(packed)).numpy(), packing.pack(packing.unpack(packing.outer(u)))
    )


def test_leading_axes_are_kept() -> None:
    packing = symmetric_packing(3)
    packed = np.random.default_rng(1004).standard_normal((2, 4, 6))
    assert packing.unpack(packed).shape == (2, 4, 3, 3)
    assert_allclose(packing.unpack(packed)[1, 2], packing.unpack(packed[1, 2]))


def test_coefficients_of_rank_one_terms() -> None:
    rng = np.random.default_rng(1004)
    directions = rng.standard_normal((6, 4))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    coefficients = rng.standard_normal((5, 6, 2))
    hessians = np.einsum("nmk,mp->nkp", coefficients, symmetric_packing(4).outer(directions))
    np.testing.assert_allclose(rank_one_coefficients(directions, hessians), coefficients, atol=1e-10)
