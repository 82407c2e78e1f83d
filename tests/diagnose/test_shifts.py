from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from unweave.diagnose import shift_gram, shift_problem, weight_error_terms
from unweave.errors import InvalidInput
from unweave.networks.activations import get_activation
from unweave.networks.random import random_network

TANH = get_activation("tanh")


def parts(dimension: int, width: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    network = random_network([dimension, width, 1], seed=seed)
    return network.weights[0], network.biases[0]


def test_the_gram_is_the_gauss_newton_matrix_of_the_fit() -> None:
    weights, shifts = parts(4, 6, 1000)
    inputs = np.random.default_rng(1001).standard_normal((5000, 4))
    h = 1e-5

    def output(t: np.ndarray) -> np.ndarray:
        return np.tanh(inputs @ weights + t).sum(axis=1)

    jacobian = np.stack(
        [(output(shifts + h * e) - output(shifts - h * e)) / (2 * h) for e in np.eye(6)], axis=1
    )
    assert_allclose(shift_gram(weights, shifts, TANH, inputs), jacobian.T @ jacobian / 5000, atol=1e-8)


def test_samples_tend_to_the_expectation() -> None:
    weights, shifts = parts(6, 8, 1002)
    inputs = np.random.default_rng(1003).standard_normal((50_000, 6))
    sampled = shift_problem(weights, shifts, TANH, inputs)
    expected = shift_problem(weights, shifts, TANH)
    assert_allclose(sampled.smallest, expected.smallest, rtol=0.1)
    assert_allclose(sampled.largest, expected.largest, rtol=0.02)


def test_step_rate_and_condition_follow_from_the_eigenvalues() -> None:
    weights, shifts = parts(5, 7, 1004)
    inputs = np.random.default_rng(1005).standard_normal((200, 5))
    values = np.linalg.eigvalsh(shift_gram(weights, shifts, TANH, inputs))
    figures = shift_problem(weights, shifts, TANH, inputs)
    assert_allclose([figures.smallest, figures.largest], [values[0], values[-1]], rtol=1e-10)
    assert_allclose(figures.step, 1 / values[-1])
    assert_allclose(figures.rate, 1 - values[0] / values[-1])
    assert_allclose(figures.condition, values[-1] / values[0])
    assert_allclose(figures.rate**figures.steps_per_digit, 0.1)


def test_the_known_figures_of_a_wide_network() -> None:
    # D = 20, m = 100: lambda_min about 0.03, lambda_max about 35, so a rate of 1 - 1e-3.
    figures = shift_problem(*parts(20, 100, 1006), TANH)
    assert 0.015 < figures.smallest < 0.06
    assert 28 < figures.largest < 42
    assert 0.998 < figures.rate < 0.9999


def test_a_single_unit_is_solved_in_one_step() -> None:
    figures = shift_problem(np.array([[1.0], [0.0]]), np.array([0.2]), TANH)
    assert figures.rate == 0.0
    assert figures.condition == 1.0
    assert figures.steps_per_digit == 1.0


def test_two_equal_units_cannot_be_told_apart() -> None:
    weights = np.array([[1.0, 1.0], [0.0, 0.0]])
    inputs = np.random.default_rng(1007).standard_normal((50, 2))
    figures = shift_problem(weights, np.array([0.2, 0.2]), TANH, inputs)
    assert figures.smallest < 1e-15
    assert figures.condition > 1e14
    assert figures.rate > 1 - 1e-14
    assert figures.steps_per_digit > 1e13


def test_error_terms_of_a_known_perturbation() -> None:
    weights = np.eye(4)[:, :3]
    estimate = weights.copy()
    estimate[:, 0] = [np.cos(0.1), 0.0, 0.0, np.sin(0.1)]
    terms = weight_error_terms(weights, estimate)
    size = 2 * np.sin(0.05)
    assert_allclose([terms.largest, terms.frobenius, terms.accumulated], [size] * 3)
    assert terms.cross == 0.0
    log = np.log(3)
    assert_allclose(terms.admissible, 2 / (3 * np.sqrt(log)))
    assert terms.initialisation_covered
    assert_allclose(terms.initial_second, 3**1.5 * (log / 4) ** 0.75 * size)
    assert_allclose(terms.initial_third, 3**1.5 * (log / 4) ** 1.25 * size)
    assert_allclose(terms.floor, np.sqrt(3) * log**0.75 * 4**-0.25 * 2 * size)


@settings(deadline=None, max_examples=20)
@given(size=st.floats(1e-8, 1e-2), seed=st.integers(1000, 10**6))
def test_the_terms_are_ordered_and_scale_with_the_error(size: float, seed: int) -> None:
    weights, _ = parts(6, 9, seed)
    noise = np.random.default_rng(seed + 1).standard_normal(weights.shape) / np.sqrt(6)
    terms = weight_error_terms(weights, weights + size * noise)
    assert terms.largest <= terms.frobenius <= 3 * terms.largest * (1 + 1e-12)
    assert terms.accumulated <= 9 * terms.largest
    assert terms.cross <= 9 * 8 * terms.largest**2
    half = weight_error_terms(weights, weights + size / 2 * noise)
    for name in ("largest", "frobenius", "accumulated", "floor", "initial_second", "initial_third"):
        assert_allclose(getattr(half, name), getattr(terms, name) / 2, rtol=1e-6)


def test_exact_weights_have_no_floor() -> None:
    weights, _ = parts(5, 8, 1008)
    terms = weight_error_terms(weights, weights)
    assert terms.floor == terms.initial_second == terms.largest == 0.0


def test_estimates_must_be_matched() -> None:
    weights, _ = parts(5, 8, 1009)
    with pytest.raises(InvalidInput, match="matched to the weights"):
        weight_error_terms(weights, weights[:, :7])
