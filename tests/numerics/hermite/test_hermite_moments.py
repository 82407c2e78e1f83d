"""Moments, fits and contractions of samples against the definitions."""

from __future__ import annotations

import numpy as np
import pytest

from unweave.errors import InvalidInput
from unweave.numerics.hermite.contractions import (
    SampleContractions,
    directional_coefficients,
)
from unweave.numerics.hermite.estimated_coefficients import (
    EstimateOptions,
    estimate_coefficients,
    fit_low_degree,
    in_batches,
)
from unweave.numerics.hermite.moments import LowDegreeSums, Moments
from unweave.numerics.hermite.tensors import HermiteTensors, hermite_features
from unweave.published.relu.relu_units import ReLUUnits, hermite_coefficients


def sample(rows, dimension, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, dimension)), rng.standard_normal(rows)


def planted(dimension, width, seed):
    rng = np.random.default_rng(seed)
    outer = rng.choice([-1.0, 1.0], width) * rng.uniform(0.5, 1.5, width)
    return ReLUUnits.normalised(rng.standard_normal((dimension, width)), rng.uniform(-1, 1, width), outer)


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 6])
def test_moments_are_means_of_hermite_tensors(order):
    x, y = sample(300, 4, 1000)
    found = Moments.empty(4, order).add(x, y).coefficients()
    for k, features in enumerate(hermite_features(x, order)):
        # Products of k numbers of size about 3, averaged: rounding of size 3^k eps.
        np.testing.assert_allclose(found.packed[k], features @ y / len(y), atol=3.0**k * 1e-14)


def test_moments_add_up_in_any_order():
    x, y = sample(10_000, 3, 1001)  # more than a block
    empty = Moments.empty(3, 6)
    whole = empty.add(x, y)
    parts = empty.add(x[7000:], y[7000:]).merge(empty.add(x[:7000], y[:7000]))
    assert parts.rows == whole.rows == 10_000
    assert empty.rows == 0
    for a, b in zip(whole.coefficients().packed, parts.coefficients().packed, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)


def test_moments_refuse_what_does_not_fit():
    x, y = sample(10, 3, 1002)
    with pytest.raises(InvalidInput, match="one row per sample"):
        Moments.empty(4, 4).add(x, y)
    with pytest.raises(InvalidInput, match="agree in dimension and order"):
        Moments.empty(3, 4).merge(Moments.empty(3, 3))
    with pytest.raises(InvalidInput, match="Got 0 instead"):
        Moments.empty(3, 4).coefficients()


def test_contractions_match_the_tensors():
    x, y = sample(4000, 6, 1003)
    tensors = Moments.empty(6, 4).add(x, y).coefficients()
    rng = np.random.default_rng(1004)
    vector, matrix = rng.standard_normal(6), rng.standard_normal((6, 6))
    matrix = matrix + matrix.T
    third, fourth = tensors.dense(3) @ vector, np.tensordot(tensors.dense(4), matrix, 2)
    np.testing.assert_allclose(SampleContractions(x, y).third(vector), third, atol=1e-12)
    np.testing.assert_allclose(SampleContractions(x, y).fourth(matrix), fourth, atol=1e-12)
    both = SampleContractions(x, y)
    np.testing.assert_allclose(both.second, tensors.dense(2), atol=1e-13)
    np.testing.assert_allclose(both.third(vector), third, atol=1e-12)
    np.testing.assert_allclose(both.fourth(matrix), fourth, atol=1e-12)
    weights = np.linalg.qr(rng.standard_normal((6, 3)))[0]
    for order in (1, 2, 3, 4):
        np.testing.assert_allclose(
            directional_coefficients(x, y, weights, order), tensors.along(order, weights), atol=1e-12
        )


def test_low_degree_fit_is_exact_on_polynomials():
    rng = np.random.default_rng(1005)
    x = rng.standard_normal((500, 3))
    truth = HermiteTensors(3, tuple(rng.standard_normal(size) for size in (1, 3, 6, 10)))
    sums = LowDegreeSums.empty(3, 3)
    fitted = sums.add(x[:200], truth(x[:200])).merge(sums.add(x[200:], truth(x[200:]))).solve()
    for a, b in zip(fitted.packed, truth.packed, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-11)
    with pytest.raises(InvalidInput, match="rows must be at least 20"):
        sums.add(x[:19], truth(x[:19])).solve()


def test_residualised_estimate_is_closer_and_its_noise_known():
    units = planted(5, 4, 1006)
    x = np.random.default_rng(1007).standard_normal((60_000, 5))
    exact = hermite_coefficients(units, 4)
    errors = {}
    for degree in (None, 2, 3):
        found = estimate_coefficients(in_batches(x, units(x)), 4, EstimateOptions(degree=degree))
        assert found.rows == len(x)
        errors[degree] = [found.coefficients.plus(exact, -1).norm(k) for k in range(5)]
        for k in (2, 3, 4):
            error = np.linalg.norm(found.coefficients.plus(exact, -1).flattened(1, k - 1), 2)
            # Both are norms of matrices with as many as independent entries of the same variance.
            assert 0.4 < error / found.noise(1, k - 1) < 2.5
    # The polynomial holds most of the variance of a ReLU network; measured factors are 3 to 6.
    assert all(errors[2][k] < errors[None][k] / 2 for k in (1, 2, 3, 4))
    assert errors[3][4] < errors[None][4] / 2


def test_estimate_falls_like_the_root_of_the_sample_size():
    units = planted(4, 3, 1008)
    exact = hermite_coefficients(units, 4)
    rng = np.random.default_rng(1009)
    errors = []
    for rows in (4_000, 64_000):
        runs = []
        for _ in range(4):
            x = rng.standard_normal((rows, 4))
            runs.append(
                estimate_coefficients(in_batches(x, units(x)), 4).coefficients.plus(exact, -1).norm(4)
            )
        errors.append(np.mean(runs))
    slope = np.log(errors[1] / errors[0]) / np.log(16)
    # Norm of 35 entries, four runs: the logarithm of each mean is good to about 0.1.
    assert slope == pytest.approx(-0.5, abs=0.1)


def test_estimate_in_a_subspace_is_the_projected_one():
    units = planted(5, 2, 1010)
    x = np.random.default_rng(1011).standard_normal((3_000, 5))
    basis = np.linalg.qr(np.random.default_rng(1012).standard_normal((5, 2)))[0]
    options = EstimateOptions(degree=None)
    full = estimate_coefficients(in_batches(x, units(x)), 3, options).coefficients.dense(3)
    small = estimate_coefficients(in_batches(x, units(x), 700), 3, options, basis).coefficients.dense(3)
    np.testing.assert_allclose(small, np.einsum("abc,ai,bj,ck->ijk", full, basis, basis, basis), atol=1e-12)


def test_empty_sources_are_refused():
    with pytest.raises(InvalidInput, match="at least two samples"):
        estimate_coefficients(lambda: [], 4, EstimateOptions(degree=None))
    with pytest.raises(InvalidInput, match="must hold samples"):
        fit_low_degree(lambda: [], 2, 100)
