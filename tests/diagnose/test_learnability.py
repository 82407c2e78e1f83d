from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from unweave.derivatives.entangled import network_hessians
from unweave.diagnose import (
    derivative_gram,
    expected_learnability,
    hermite_tail,
    learnability_estimate,
    slope_bounds,
)
from unweave.errors import InvalidInput
from unweave.networks.activations import get_activation
from unweave.networks.network import Network
from unweave.networks.random import random_network
from unweave.subspace.hessian_span import hessian_span
from unweave.subspace.symmetric import symmetric_packing

TANH = get_activation("tanh")


def parts(dimension: int, width: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    network = random_network([dimension, width, 1], seed=seed)
    return network.weights[0], network.biases[0]


def gauss_grid(nodes: int = 80) -> tuple[np.ndarray, np.ndarray]:
    """Points (n^2, 2) and weights of a product rule for two independent standard Gaussians."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    weights = weights / weights.sum()
    x, y = np.meshgrid(points, points, indexing="ij")
    return np.stack([x.ravel(), y.ravel()], axis=1), np.outer(weights, weights).ravel()


@pytest.mark.parametrize("derivative", [1, 2])
@pytest.mark.parametrize("name", ["tanh", "sigmoid", "gelu"])
def test_the_gram_of_derivatives_is_the_expectation(name: str, derivative: int) -> None:
    angles = np.array([0.1, 0.9, 2.0])
    weights = np.stack([np.cos(angles), np.sin(angles)])
    shifts = np.array([0.2, -0.4, 0.5])
    g = get_activation(name)
    points, probabilities = gauss_grid()
    slopes = g.jet(points @ weights + shifts, derivative)[derivative]
    expected = (slopes * probabilities[:, None]).T @ slopes
    assert_allclose(derivative_gram(weights, shifts, g, derivative), expected, atol=1e-6)


def test_the_gram_of_a_quadratic_is_constant() -> None:
    weights, shifts = parts(5, 4, 1000)
    assert_allclose(
        derivative_gram(weights, shifts, get_activation("quadratic"), 2), 4 * np.ones((4, 4)), atol=1e-12
    )


def test_alpha_is_what_many_hessians_show() -> None:
    network = random_network([5, 7, 1], seed=1001)
    sites = np.random.default_rng(1002).standard_normal((40_000, 5))
    packed = symmetric_packing(5).pack(network_hessians(network, sites)[:, 0])
    span = hessian_span(packed[:2000])
    moment = packed.T @ packed / len(packed)
    sampled = np.linalg.eigvalsh(moment)[-7]
    exact = expected_learnability(network.weights[0], network.biases[0], TANH)
    assert_allclose(exact.alpha, sampled, rtol=0.05)
    estimate, gap = learnability_estimate(span.singular_values, 7, 2000)
    assert_allclose(estimate, exact.alpha, rtol=0.2)
    assert_allclose(estimate, span.learnability(7))
    assert gap > 1e8


@pytest.mark.parametrize(("dimension", "width"), [(20, 100), (20, 160), (10, 10), (8, 3)])
def test_the_bound_of_theorem_3_5_holds_and_is_close(dimension: int, width: int) -> None:
    figures = expected_learnability(*parts(dimension, width, 1003), TANH)
    assert 0 < figures.alpha_lower_bound <= figures.alpha
    assert figures.alpha < 5 * figures.alpha_lower_bound
    assert 0.03 < figures.curvature_smallest < 0.5  # hardly depends on the weights


@settings(deadline=None, max_examples=20)
@given(dimension=st.integers(2, 12), width=st.integers(1, 20), seed=st.integers(1000, 10**6))
def test_the_inequalities_hold_for_random_weights(dimension: int, width: int, seed: int) -> None:
    weights, shifts = parts(dimension, width, seed)
    figures = expected_learnability(weights, shifts, TANH)
    assert figures.alpha_lower_bound <= figures.alpha * (1 + 1e-9) + 1e-14
    assert figures.slope_lower_bound <= figures.slope_smallest + 1e-12
    assert figures.omega > 0
    assert figures.curvature_smallest <= figures.curvature_largest


def test_orthonormal_weights_make_the_bound_sharp() -> None:
    weights = np.linalg.qr(np.random.default_rng(1004).standard_normal((6, 6)))[0]
    shifts = np.random.default_rng(1005).uniform(-0.5, 0.5, 6)
    figures = expected_learnability(weights, shifts, TANH)
    assert_allclose(figures.alpha, figures.alpha_lower_bound, rtol=1e-10)
    assert_allclose(figures.alpha, figures.curvature_smallest, rtol=1e-10)
    # independent pre-activations: lambda_min(E_1) is at least the smallest variance of a slope
    assert_allclose(figures.slope_lower_bound, 2 * figures.omega, rtol=1e-8)


def test_bounds_of_any_order_hold_and_the_third_is_the_lemma() -> None:
    for dimension, width, seed in ((8, 8, 1000), (30, 40, 1001)):
        weights, shifts = parts(dimension, width, seed)
        smallest = scipy.linalg.eigvalsh(derivative_gram(weights, shifts, TANH, 1))[0]
        found = slope_bounds(weights, shifts, TANH, range(9))
        assert (found <= smallest + 1e-12).all()
    weights, shifts = parts(200, 20, 1002)
    mu = np.abs(weights.T @ weights - np.eye(20)).max()
    tail = hermite_tail(TANH, shifts, 1, 4)
    found = slope_bounds(weights, shifts, TANH, range(9))
    assert_allclose(found[3], tail.min() - 19 * mu**4 * tail.max(), rtol=1e-12)
    assert found.max() >= found[3] > 0
    # A derivative that is a polynomial of degree 2 has no terms beyond it.
    assert_allclose(slope_bounds(weights, shifts, get_activation("cubic"), range(2, 4)), 0.0, atol=1e-12)


def test_outgoing_weights_scale_the_curvatures() -> None:
    weights, shifts = parts(6, 8, 1006)
    plain = expected_learnability(weights, shifts, TANH)
    doubled = expected_learnability(weights, shifts, TANH, 2 * np.ones((8, 1)))
    assert_allclose(doubled.alpha, 4 * plain.alpha)
    twice = expected_learnability(weights, shifts, TANH, np.ones((8, 2)))
    assert_allclose(twice.alpha, 2 * plain.alpha)
    faint = np.ones((8, 1))
    faint[3] = 1e-3
    assert expected_learnability(weights, shifts, TANH, faint).alpha < 1e-5 * plain.alpha


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "softplus"])
def test_the_tail_follows_the_hermite_rule(name: str) -> None:
    # mu_r(g'') = sqrt(r + 1) mu_{r+1}(g')
    g = get_activation(name)
    shifts = np.array([-0.5, 0.0, 0.3])
    first = g.hermite_coefficients(40, shifts, 1)
    r = np.arange(4, 39)
    expected = np.sum((r + 1) * first[:, 5:40] ** 2, axis=1)
    assert_allclose(hermite_tail(g, shifts, 2), expected, rtol=1e-3)
    assert_allclose(hermite_tail(g, shifts, 1), np.sum(first[:, 4:] ** 2, axis=1), rtol=1e-3)


def test_polynomials_have_no_tail() -> None:
    shifts = np.linspace(-1, 1, 5)
    assert hermite_tail(get_activation("cubic"), shifts, 1).max() < 1e-20
    assert expected_learnability(*parts(4, 5, 1007), get_activation("cubic")).omega < 1e-20


def test_the_tail_and_the_rest_make_the_whole() -> None:
    points, probabilities = np.polynomial.hermite_e.hermegauss(150)
    probabilities = probabilities / probabilities.sum()
    expected = TANH.jet(points + 0.3, 1)[1] ** 2 @ probabilities
    assert_allclose(hermite_tail(TANH, np.array([0.3]), 1, start=0), [expected], rtol=1e-6)


def test_kinks_and_wrong_ranks_are_refused() -> None:
    with pytest.raises(InvalidInput, match="smooth"):
        expected_learnability(*parts(4, 5, 1008), get_activation("relu"))
    with pytest.raises(InvalidInput, match="rank must be"):
        learnability_estimate(np.array([2.0, 1.0]), 3, 10)
    assert learnability_estimate(np.array([2.0, 1.0]), 2, 4) == (0.25, np.inf)


def test_alpha_vanishes_with_parallel_units() -> None:
    weights, shifts = parts(5, 4, 1009)
    weights = weights.copy()
    weights[:, 1] = weights[:, 0]
    assert expected_learnability(weights, shifts, TANH).alpha < 1e-14
    network = Network([weights, np.ones((4, 1))], [shifts, np.zeros(1)], ["tanh", "identity"])
    sites = np.random.default_rng(1010).standard_normal((50, 5))
    packed = symmetric_packing(5).pack(network_hessians(network, sites)[:, 0])
    assert hessian_span(packed).clearest_rank()[0] == 3
