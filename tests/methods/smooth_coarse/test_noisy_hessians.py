"""Rotated Hessians: exact on quadratics, their error and the sample of it that they carry."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.methods.smooth_coarse.noisy_hessians import RotatedHessians, random_rotations, rotated_hessians
from unweave.subspace.symmetric import symmetric_packing


def quadratics(dimension: int, outputs: int, seed: int):
    """``outputs`` quadratic functions, and their Hessians (K, D, D)."""
    rng = np.random.default_rng(seed)
    matrices = rng.standard_normal((outputs, dimension, dimension))
    matrices = matrices + matrices.transpose(0, 2, 1)
    slopes = rng.standard_normal((dimension, outputs))
    return lambda x: np.einsum("ni,kij,nj->nk", x, matrices, x) / 2 + x @ slopes + 3.0, matrices


@pytest.mark.parametrize("dimension", [1, 2, 5, 8])
@pytest.mark.parametrize("radius", [0.01, 2.0])
def test_exact_on_quadratics(dimension: int, radius: float) -> None:
    function, matrices = quadratics(dimension, 3, 1000)
    rng = np.random.default_rng(1001)
    sites = rng.standard_normal((4, dimension))
    taken = rotated_hessians(function, sites, radius, random_rotations(4, dimension, rng))
    packing = symmetric_packing(dimension)
    # Values of order 30 with rounding eps each, divided by r^2.
    tolerance = 100 * np.finfo(float).eps / min(radius, 1) ** 2
    expected = np.broadcast_to(packing.pack(matrices), taken.hessians.shape)
    assert_allclose(taken.hessians, expected, rtol=0, atol=10 * tolerance)
    assert_allclose(taken.errors, 0, rtol=0, atol=10 * tolerance)


def test_in_a_subspace_it_is_the_hessian_in_its_coordinates() -> None:
    function, matrices = quadratics(7, 1, 1002)
    rng = np.random.default_rng(1003)
    frames = np.linalg.qr(rng.standard_normal((2, 7, 3)))[0].transpose(0, 2, 1)
    sites = rng.standard_normal((2, 7))
    taken = rotated_hessians(function, sites, 0.5, random_rotations(2, 3, rng), frames)
    expected = symmetric_packing(3).pack(frames @ matrices[0] @ frames.transpose(0, 2, 1))
    assert_allclose(taken.hessians[:, 0], expected, rtol=0, atol=1e-12)


def test_cost_is_twice_the_square_and_one() -> None:
    asked = []

    def count(x: np.ndarray) -> np.ndarray:
        asked.append(len(x))
        return x[:, :1]

    rng = np.random.default_rng(1004)
    rotated_hessians(count, np.zeros((3, 6)), 1.0, random_rotations(3, 6, rng))
    assert sum(asked) == 3 * (2 * 6**2 + 1)


@pytest.mark.parametrize("dimension", [3, 6, 12])
def test_error_has_the_variance_that_the_formula_says(dimension: int) -> None:
    """Pure noise: H_ij has the variance sigma^2 / r^4 off the diagonal, e_ij 1 - 2/k + 2/k^2 of it."""
    rng = np.random.default_rng(1005)
    sites, radius, sigma = 400, 0.7, 3.0
    identity = np.broadcast_to(np.eye(dimension), (sites, dimension, dimension))
    taken = rotated_hessians(
        lambda x: sigma * rng.standard_normal((len(x), 1)), np.zeros((sites, dimension)), radius, identity
    )
    packing = symmetric_packing(dimension)
    off = packing.rows != packing.columns
    unit = sigma / radius**2
    hessians = taken.hessians[:, 0, off] / np.sqrt(2) / unit
    errors = taken.errors[:, 0, off] / np.sqrt(2) / unit
    count = hessians.size
    # Mean squares of n (nearly) independent normal numbers vary by sqrt(2/n), relatively; 5 of these.
    slack = 5 * np.sqrt(2 / count)
    assert np.mean(hessians**2) == pytest.approx(1, rel=slack)
    factor = 1 - 2 / dimension + 2 / dimension**2
    assert np.mean(errors**2) == pytest.approx(factor, rel=1.5 * slack)  # those of a site share its diagonal
    assert abs(np.mean(hessians * errors)) < slack  # the sample is independent of what it stands for


def test_rotations_are_orthogonal_and_spread_evenly() -> None:
    rotations = random_rotations(2000, 3, np.random.default_rng(1006))
    identity = np.broadcast_to(np.eye(3), rotations.shape)
    assert_allclose(rotations @ rotations.transpose(0, 2, 1), identity, rtol=0, atol=1e-14)
    # Entries have mean 0 and variance 1/3 under Haar measure: 5 standard errors.
    assert_allclose(rotations.mean(axis=0), 0, rtol=0, atol=5 * np.sqrt(1 / 3 / 2000))


def test_parts_are_put_together() -> None:
    one = RotatedHessians(np.zeros((2, 3)), np.ones((2, 1, 6)), np.zeros((2, 1, 6)))
    both = RotatedHessians.concatenate([one, one])
    assert len(both) == 4
    assert both.selectors is None
    assert both.hessians.shape == (4, 1, 6)
