"""Moments of what is left point to the units that leave it, weak ones too."""

from __future__ import annotations

import numpy as np

from unweave.numerics.missing_kinks import units_in_moments


def test_missing_units_are_pointed_to():
    rng = np.random.default_rng(1000)
    weights = np.linalg.qr(rng.standard_normal((12, 2)))[0]
    biases, heights = np.array([0.3, -1.0]), np.array([2e-6, -1e-6])
    x = rng.standard_normal((20_000, 12))
    x[::4] *= 8.0  # far rows, of which a few would outweigh all others
    left = np.abs(x @ weights + biases) @ heights + 1e-3 * x[:, 0] + 1e-6 * rng.standard_normal(len(x))
    found, offsets = units_in_moments(x, left, 2)
    cosines = np.einsum("dm,dm->m", found, weights)
    np.testing.assert_allclose(np.abs(cosines), 1, atol=0.05)
    np.testing.assert_allclose(np.sign(cosines) * offsets, biases, atol=0.3)


def test_few_rows_point_nowhere():
    found, offsets = units_in_moments(np.zeros((3, 4)), np.ones(3), 2)
    assert found.shape == (4, 0)
    assert not len(offsets)
