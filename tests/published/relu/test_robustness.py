from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from unweave.errors import InvalidInput
from unweave.networks.comparison import compare
from unweave.numerics.hermite.tensors import hermite_polynomial, normal_density
from unweave.published.relu.relu_units import ReLUUnits, hermite_coefficients
from unweave.published.relu.robustness import (
    bounded_by,
    good_set,
    hermite_supremum,
    kept_terms,
    khatri_rao,
    khatri_rao_bound,
    kruskal_rank,
    power_columns,
    power_singular_value,
    robust_thresholds,
    scalar_accuracy,
    smoothed,
)
from unweave.published.relu.spectral_recovery import recover_from_coefficients


def planted(dimension, width, seed):
    rng = np.random.default_rng(seed)
    outer = rng.choice([-1.0, 1.0], width) * rng.uniform(0.5, 1.5, width)
    return ReLUUnits.normalised(rng.standard_normal((dimension, width)), rng.uniform(-1, 1, width), outer)


def hermite(k, z):
    """He_k of a fraction, exactly."""
    one, two = Fraction(1), z
    for j in range(1, k):
        one, two = two, z * two - j * one
    return one if k == 0 else two


@pytest.mark.parametrize("k", [2, 3, 4])
def test_scalars_within_eps_in_exact_arithmetic(k: int) -> None:
    """Errors of eps' on g_k .. g_{k+3}, which is below rounding: fractions, worst and random signs."""
    rng = np.random.default_rng(1000 + k)
    bound, eps = 2.0, 2e-8
    wanted = scalar_accuracy(k, eps, bound)
    error = Fraction(wanted.allowed_error)
    tried = 0
    for _ in range(60):
        z = Fraction(int(rng.integers(-2000, 2001)), 1000)
        outer = Fraction(int(rng.integers(500, 2001)), 1000)
        if float(outer) * normal_density(float(z)) < wanted.least_strength:
            continue
        tried += 1
        beta = outer * Fraction(float(normal_density(float(z))))
        values = [
            (-1) ** j * beta * hermite(j, z) + int(rng.choice([-1, 1])) * error for j in range(k, k + 4)
        ]
        q = max((1, 2), key=lambda i: abs(values[i]))
        found = -(values[q + 1] + (k + q) * values[q - 1]) / values[q]
        ratio = (-1) ** (k + q) * values[q] / hermite(k + q, found) / beta
        change = float(found - z) * float(found + z) / 2  # of the exponent of 1/phi
        assert abs(float(found - z)) <= eps
        assert abs(float(outer) * (float(ratio - 1) + math.expm1(change) * float(ratio))) <= eps
    assert tried > 10


def test_numbers_written_out() -> None:
    found = scalar_accuracy(2, 0.1, 3.0)
    assert found.allowed_error == pytest.approx(1e-4 / 32)
    assert found.least_strength == pytest.approx(16 * 120 * (1e-4 / 32) ** 0.25 * 16)
    assert scalar_accuracy(1, 0.1, 3.0).least_strength == pytest.approx(found.least_strength / 120)
    units = planted(5, 3, 1000)
    b = bounded_by(units)
    assert b == pytest.approx(max(1, np.abs(units.outer).max(), 1 / np.abs(units.outer).min()))
    limits = robust_thresholds(units, 0.01, 1)
    s = np.linalg.svd(units.weights)[1][-1]
    e = 0.01 / (4 * 3 * b)
    eps_3 = e**4 * s / (16 * 3**1.5 * (1 + b) ** 2)
    assert limits.eps_3 == limits.coefficient_error == pytest.approx(eps_3)
    assert limits.eps_2 == pytest.approx(eps_3 / (2 * hermite_supremum(2) * b * math.sqrt(3)))
    assert (limits.eta_2, limits.eta_3) == pytest.approx((4 * math.sqrt(limits.eps_2), 2 * limits.eps_2))
    assert limits.samples_scale == pytest.approx(5**4 * 9 * b**4 / eps_3**2)


def test_units_with_large_biases_are_not_good() -> None:
    units = planted(4, 4, 1001)
    moved = ReLUUnits(units.weights, np.array([0.0, 1.0, 6.0, -6.0]), units.outer)
    assert good_set(moved, 1e-6, 1).tolist() == [True, True, False, False]
    assert not good_set(moved, 0.5, 1).any()


@pytest.mark.parametrize("order", range(7))
def test_suprema_of_hermite_functions(order: int) -> None:
    z = np.linspace(-9, 9, 4001)
    values = np.abs(hermite_polynomial(order, z)) * normal_density(z)
    assert values.max() <= hermite_supremum(order) + 1e-6
    assert hermite_supremum(order) <= math.sqrt(math.factorial(order) / (2 * math.pi)) + 1e-12


def test_singular_values_of_khatri_rao_products() -> None:
    rng = np.random.default_rng(1000)
    for _ in range(30):
        u, v = rng.standard_normal((6, 4)), rng.standard_normal((3, 4))
        assert np.linalg.svd(khatri_rao(u, v))[1].min() >= khatri_rao_bound(u, v)
    weights = rng.standard_normal((3, 5))
    for order in (1, 2, 3):
        exact = np.linalg.svd(power_columns(weights, order))[1]
        wanted = exact.min() if len(exact) >= 5 else 0.0
        assert power_singular_value(weights, order) == pytest.approx(wanted, abs=1e-7)
    # Claim D.5: powers cannot be better separated than by sqrt(2 l).
    for _ in range(30):
        pair, order = rng.standard_normal((4, 2)), int(rng.integers(1, 6))
        assert power_singular_value(pair, 1) >= power_singular_value(pair, order) / math.sqrt(2 * order)


def test_terms_kept_by_a_cut_of_the_flattening() -> None:
    rng = np.random.default_rng(1000)
    for rest in (1, 2):
        for _ in range(10):
            weights = rng.standard_normal((4, 4))
            weights /= np.linalg.norm(weights, axis=0)
            strengths = 10.0 ** rng.uniform(-4, 0, 4)
            flat = weights * strengths @ power_columns(weights, 1 + rest).T
            eta = 10.0 ** rng.uniform(-4, -1)
            rank = int(np.sum(np.linalg.svd(flat)[1] >= eta))
            kept = np.sort(strengths)[::-1][:rank]
            least, sure = kept_terms(eta, weights, 1, rest)
            assert (kept >= least).all()
            assert np.sum(strengths > sure) <= rank


def test_kruskal_ranks() -> None:
    rng = np.random.default_rng(1000)
    assert kruskal_rank(np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])) == 1
    assert kruskal_rank(rng.standard_normal((3, 6))) == 3
    assert kruskal_rank(np.zeros((2, 2))) == 0
    for a, b, m in ((2, 2, 3), (2, 3, 5), (3, 3, 6)):
        u, v = rng.standard_normal((a, m)), rng.standard_normal((b, m))
        assert kruskal_rank(khatri_rao(u, v)) >= min(kruskal_rank(u) + kruskal_rank(v) - 1, m)
    u, v = rng.standard_normal((2, 4)), rng.standard_normal((2, 4))
    assert kruskal_rank(khatri_rao(u, v)) == 4  # and not 2 + 2 - 1


def test_smoothing_separates_what_an_adversary_made_equal() -> None:
    rng = np.random.default_rng(1000)
    units = planted(6, 6, 1002)
    equal = ReLUUnits(np.repeat(units.weights[:, :1], 6, axis=1), units.biases, units.outer)
    assert power_singular_value(equal.weights, 2) < 1e-6
    values = [power_singular_value(smoothed(equal, tau, rng).weights, 1) for tau in (0.3, 0.03)]
    assert 3 < values[0] / values[1] < 40
    found = smoothed(equal, 0.3, rng)
    back = recover_from_coefficients(hermite_coefficients(found, 4), rng, width=6)
    assert compare(found.to_network(), back.to_network()).parameter_error < 1e-3


def test_order_three_by_default() -> None:
    """More units than order two allows in two dimensions: 4 > 3, which third powers separate."""
    angles = np.array([0.1, 0.8, 1.7, 2.5])
    weights = np.stack([np.cos(angles), np.sin(angles)])
    units = ReLUUnits(weights, np.array([0.3, -0.4, 0.6, -0.2]), np.array([1.0, -0.8, 1.2, 0.7]))
    found = recover_from_coefficients(
        hermite_coefficients(units, 8), np.random.default_rng(0), width=4, order=3
    )
    overlap = np.abs(found.form.weights.T @ weights).max(axis=0)
    assert overlap.min() > 1 - 1e-8


def test_errors() -> None:
    with pytest.raises(InvalidInput, match="order"):
        scalar_accuracy(0, 0.1, 2.0)
    with pytest.raises(InvalidInput, match="zero"):
        bounded_by(ReLUUnits(np.eye(2), np.zeros(2), np.array([1.0, 0.0])))
