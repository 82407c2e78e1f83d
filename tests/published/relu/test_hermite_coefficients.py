"""Lemma 3.5 and its companions against quadrature."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

import unweave
from unweave.errors import InvalidInput
from unweave.numerics.hermite.tensors import hermite_features, hermite_polynomial, normal_density
from unweave.published.relu.relu_units import (
    ROOT_SEPARATION,
    ReLUUnits,
    affine_surrogate_risk,
    gaussian_risk,
    hermite_coefficients,
    relu_coefficient,
)


def random_units(dimension, width, seed, offset=0.0):
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((dimension, width))
    outer = rng.choice([-1.0, 1.0], width) * rng.uniform(0.5, 1.5, width)
    return ReLUUnits.normalised(weights, rng.uniform(-1, 1, width), outer, offset)


@pytest.mark.parametrize("bias", [-2.0, -1.0, -0.3, 0.0, 0.7, 1.0, 1.9])
def test_one_unit_matches_quadrature(bias):
    # Gauss-Legendre on panels of length one, from the kink to where the density is 1e-43.
    nodes, weights = np.polynomial.legendre.leggauss(40)
    z = (-bias + np.arange(15)[:, None] + (nodes + 1) / 2).reshape(-1)
    mass = np.tile(weights / 2, 15) * normal_density(z)
    for order in range(9):
        expected = mass @ ((z + bias) * hermite_polynomial(order, z))
        found = relu_coefficient(order, np.array([bias]))[0]
        assert found == pytest.approx(expected, abs=1e-12)


def test_coefficients_of_a_network_match_quadrature_in_two_variables():
    units = random_units(2, 3, 1000, offset=0.4)
    step = 0.02
    nodes = np.arange(-8, 8 + step / 2, step)
    x = np.stack(np.meshgrid(nodes, nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    values = units(x) * normal_density(x[:, 0]) * normal_density(x[:, 1]) * step**2
    exact = hermite_coefficients(units, 4)
    for order, features in enumerate(hermite_features(x, 4)):
        # Across a kink the rule is off by at most step^2 / 8 per unit jump of slope and length of kink.
        np.testing.assert_allclose(exact.packed[order], features @ values, atol=step**2)


def test_vanishing_orders():
    assert relu_coefficient(3, np.array([0.0]))[0] == 0
    assert relu_coefficient(4, np.array([1.0, -1.0])) == pytest.approx([0, 0])
    assert (np.abs(relu_coefficient(2, np.linspace(-3, 3, 50))) > 1e-3).all()


def test_risk_identity_matches_quadrature():
    first, second = random_units(1, 3, 1006, offset=0.1), random_units(1, 2, 1007)
    kinks = sorted(
        float(-b / w) for u in (first, second) for w, b in zip(u.weights[0], u.biases, strict=True)
    )

    def integrand(z):
        x = np.array([[z]])
        return float((first(x) - second(x))[0]) ** 2 * float(normal_density(x)[0, 0])

    expected = quad(integrand, -12, 12, points=kinks, limit=500, epsabs=1e-12)[0]
    # Terms fall like k^{-5/2}: what 3000 orders leave out is at most (sum |a|)^2 / (pi 3000^{3/2}).
    left_out = (np.abs(first.outer).sum() + np.abs(second.outer).sum()) ** 2 / (np.pi * 3000**1.5)
    assert gaussian_risk(first, second, orders=3000) == pytest.approx(expected, abs=left_out)
    assert gaussian_risk(first, first) == pytest.approx(0, abs=1e-13)


def test_risk_does_not_overflow():
    units = ReLUUnits(np.ones((1, 1)), np.array([1.0]), np.array([1.0]))
    zero = ReLUUnits(np.ones((1, 1)), np.array([1.0]), np.array([0.0]))
    # E relu(z + 1)^2 = 2 Phi(1) + phi(1); (1 + b^2) Phi(b) + b phi(b) at b = 1.
    expected = 2 * 0.8413447460685429 + 0.24197072451914337
    assert gaussian_risk(units, zero, orders=2000) == pytest.approx(expected, abs=2000**-1.5)


@pytest.mark.parametrize("bias", [-1.5, 0.0, 2.0])
def test_affine_surrogate(bias):
    z = np.linspace(-12, 12, 200_001)
    surrogate = z + bias if bias > 0 else np.zeros_like(z)
    error = np.sum((np.maximum(z + bias, 0) - surrogate) ** 2 * normal_density(z)) * (z[1] - z[0])
    assert affine_surrogate_risk(np.array([bias]))[0] == pytest.approx(error, rel=1e-6)


def test_root_separation_table():
    x = np.linspace(-12, 12, 240_001)
    for k, bound in enumerate(ROOT_SEPARATION):
        least = np.maximum(np.abs(hermite_polynomial(k, x)), np.abs(hermite_polynomial(k + 1, x))).min()
        assert least == pytest.approx(bound, rel=2e-3)
        if k:  # the bound as printed fails
            assert least < math.sqrt(math.factorial(k) / 2)


def test_units_and_networks():
    network = unweave.random_network([4, 3, 1], activation="relu", seed=1000)
    units = ReLUUnits.of_network(network)
    x = np.random.default_rng(1008).standard_normal((50, 4))
    np.testing.assert_allclose(units(x), network(x)[:, 0], atol=1e-14)
    assert unweave.compare(network, units.to_network()).is_same
    with pytest.raises(InvalidInput, match="one hidden relu layer"):
        ReLUUnits.of_network(unweave.random_network([4, 3, 1], activation="tanh", seed=1000))
    dead = ReLUUnits.normalised(np.array([[0.0, 2.0]]), np.array([3.0, 1.0]), np.array([2.0, 1.0]))
    assert (dead.width, dead.offset) == (1, 6.0)
