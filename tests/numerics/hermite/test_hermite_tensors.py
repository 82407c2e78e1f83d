"""Packed tensors against dense ones, and the features of Hermite polynomials."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unweave.errors import InvalidInput
from unweave.numerics.hermite.symmetric_tensors import packed_position, tensor_packing
from unweave.numerics.hermite.tensors import HermiteTensors, hermite_features, hermite_polynomial


def planted(dimension, width, order, seed):
    """Unit vectors w_i, numbers c_i, and the tensors sum_i c_i w_i^(x)k of all orders up to ``order``."""
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((dimension, width))
    weights /= np.linalg.norm(weights, axis=0)
    terms = rng.choice([-1.0, 1.0], width) * rng.uniform(0.5, 1.5, width)
    packed = tuple(tensor_packing(dimension, k).powers(weights) @ terms for k in range(order + 1))
    return weights, terms, HermiteTensors(dimension, packed)


def test_packed_tensors_are_the_dense_ones():
    weights, terms, tensors = planted(4, 3, 6, 1001)
    dense = np.einsum("m,am,bm,cm,dm,em->abcde", terms, *[weights] * 5)
    np.testing.assert_allclose(tensors.dense(5), dense, atol=1e-15)
    assert tensors.norm(5) == pytest.approx(np.linalg.norm(dense), rel=1e-13)
    w = planted(4, 2, 0, 1002)[0]
    np.testing.assert_allclose(
        tensors.along(5, w), np.einsum("abcde,am,bm,cm,dm,em->m", dense, w, w, w, w, w), atol=1e-14
    )


@pytest.mark.parametrize("orders", [(1, 4), (2, 3), (2, 2, 1)])
def test_flattening_keeps_singular_values(orders):
    _, _, tensors = planted(4, 3, 5, 1003)
    sizes = [4**order for order in orders]
    full = tensors.dense(5).reshape(sizes)
    packed = tensors.flattened(*orders)
    found = np.linalg.svd(packed.reshape(len(packed), -1), compute_uv=False)
    expected = np.linalg.svd(full.reshape(sizes[0], -1), compute_uv=False)
    np.testing.assert_allclose(found[:3], expected[:3], rtol=1e-12)
    assert found[3] < 1e-14


@pytest.mark.parametrize(("dimension", "order"), [(1, 3), (3, 0), (4, 1), (3, 4), (5, 3)])
def test_positions_number_the_sorted_indices(dimension, order):
    packing = tensor_packing(dimension, order)
    assert packing.size == math.comb(dimension + order - 1, order)
    np.testing.assert_array_equal(packing.position(packing.indices), np.arange(packing.size))
    np.testing.assert_array_equal(packing.position(packing.indices[:, ::-1]), np.arange(packing.size))
    assert packing.multiplicity.sum() == pytest.approx(dimension**order)
    if order > 1:
        np.testing.assert_array_equal(
            packing.parent, packed_position(packing.indices[:, : order - 1], dimension)
        )


def test_hermite_features_are_products_of_polynomials():
    x = np.random.default_rng(1004).standard_normal((7, 3))
    for order, features in enumerate(hermite_features(x, 5)):
        for index, row in zip(tensor_packing(3, order).indices, features, strict=True):
            counts = [int((index == j).sum()) for j in range(3)]
            expected = np.prod([hermite_polynomial(c, x[:, j]) for j, c in enumerate(counts)], axis=0)
            np.testing.assert_allclose(row, expected, rtol=1e-12, atol=1e-12)


def test_projection_identity():
    """He_k(P^T x) = He_k(x)[P, ..., P] for orthonormal columns."""
    rng = np.random.default_rng(1005)
    basis = np.linalg.qr(rng.standard_normal((5, 2)))[0]
    x = rng.standard_normal((6, 5))
    small, large = hermite_features(x @ basis, 4)[4], hermite_features(x, 4)[4]
    for row in range(len(x)):
        dense = tensor_packing(5, 4).dense(large[:, row])
        projected = np.einsum("abcd,ai,bj,ck,dl->ijkl", dense, basis, basis, basis, basis)
        np.testing.assert_allclose(tensor_packing(2, 4).dense(small[:, row]), projected, atol=1e-12)


def test_missing_orders_are_named():
    with pytest.raises(InvalidInput, match="between 0 and 2"):
        planted(3, 2, 2, 1009)[2].dense(3)
