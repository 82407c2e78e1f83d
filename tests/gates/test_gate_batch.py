"""Least squares on open rows, GLM-Tron and noise-assisted descent."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from planted_gates import planted_gate

from unweave.gates import (
    LIPSCHITZ,
    Attack,
    GlmTron,
    NoisyDescent,
    NoisyDescentOptions,
    ReluGateLeastSquares,
    confinement,
    glm_tron,
    noisy_gd_gate,
    poison,
    relu_gate_ols,
)


@pytest.mark.parametrize("inputs", [1, 3, 20])
def test_as_many_open_rows_as_inputs_are_enough(inputs: int) -> None:
    truth, x, y = planted_gate(inputs, 10 * inputs + 20, 1000)
    rows = np.flatnonzero(y > 0)[:inputs]
    found = relu_gate_ols(x[rows], y[rows], truth=truth)
    assert found.determined
    assert found.error is not None
    assert found.error <= found.bound < 1e-9
    fewer = relu_gate_ols(x[rows[1:]], y[rows[1:]]) if inputs > 1 else None
    if fewer is not None:
        assert (fewer.rank, fewer.determined, fewer.bound) == (inputs - 1, False, math.inf)


def test_least_squares_over_blocks() -> None:
    truth, x, y = planted_gate(7, 900, 1001)
    learner = ReluGateLeastSquares(truth=truth)
    for begin in range(0, 900, 31):
        learner.partial_fit(x[begin : begin + 31], y[begin : begin + 31])
    found, whole = learner.fit(), relu_gate_ols(x, y)
    np.testing.assert_allclose(found.weights, whole.weights, rtol=0, atol=1e-13)
    assert found.smallest == pytest.approx(whole.smallest, rel=1e-12)
    assert (found.rows, found.used) == (900, int((y > 0).sum()))
    assert found.residual < 1e-14
    np.testing.assert_allclose(found.network(x)[:, 0], y, rtol=0, atol=1e-13)


@pytest.mark.parametrize("theta", [0.01, 0.1, 0.4])
@pytest.mark.parametrize("attack", get_args(Attack))
def test_the_bound_of_poisoned_least_squares_holds_for_every_seed(theta: float, attack: Attack) -> None:
    for seed in range(1000, 1020):
        truth, x, y = planted_gate(5, 200, seed)
        xi = poison(attack, theta, x, np.zeros(5), truth, np.random.default_rng(seed))
        found = relu_gate_ols(x, y + xi, theta, truth)
        assert found.error is not None
        assert found.error <= found.bound


def test_the_bound_of_least_squares_is_attained() -> None:
    # The errors along the left singular vector of the least singular value, as far as |xi| <= theta allows.
    x = np.array([[1.0, 0.0], [0.0, 0.1]])
    found = relu_gate_ols(x, x @ [5.0, 50.0] + [0.0, 0.01], 0.01, [5.0, 50.0])
    assert found.error == pytest.approx(0.1)
    assert found.bound == pytest.approx(0.01 * math.sqrt(2) / 0.1)


@pytest.mark.parametrize("theta", [0.0, 0.1])
@pytest.mark.parametrize("activation", sorted(LIPSCHITZ))
def test_glm_tron_obeys_its_inequality_at_every_step(activation: str, theta: float) -> None:
    rng = np.random.default_rng(1002)
    x = 3 * rng.standard_normal((80, 4))
    truth = rng.standard_normal(4)
    slope = LIPSCHITZ[activation]
    clean = glm_tron(x, np.zeros(80), activation, passes=1).network.activations[0]
    assert clean == activation
    values = unit_values(activation, x @ truth)
    y = values + theta * rng.choice([-1.0, 1.0], 80)
    found = glm_tron(x, y, activation, passes=300, theta=theta, truth=truth)
    radius = np.linalg.norm(x, axis=1).max()
    assert found.errors is not None
    assert found.effective_losses is not None
    assert found.bound is not None
    distance, loss = radius * found.errors, found.effective_losses
    gain = (2 / slope - 1) * loss[:-1] - theta**2 - 2 * theta * (slope + 1) * distance[:-1]
    assert (distance[1:] ** 2 <= distance[:-1] ** 2 - gain + 1e-12 * distance[0] ** 2).all()
    assert found.effective_loss is not None
    assert found.effective_loss <= found.bound
    assert found.loss == found.losses.min()
    if theta == 0:
        assert found.losses == pytest.approx(found.effective_losses, rel=1e-9, abs=1e-25)
        assert (np.diff(distance) <= 1e-12).all()


def unit_values(activation: str, z: np.ndarray) -> np.ndarray:
    import unweave

    return np.asarray(unweave.get_activation(activation)(z))


def test_the_lipschitz_constants_are_those_of_the_activations() -> None:
    z = np.linspace(-8, 8, 4001)
    for name, slope in LIPSCHITZ.items():
        rise = np.diff(unit_values(name, z)) / np.diff(z)
        assert rise.min() >= 0
        assert rise.max() == pytest.approx(slope, rel=1e-3)


def test_glm_tron_over_blocks_is_glm_tron() -> None:
    truth, x, y = planted_gate(4, 100, 1003)
    whole = glm_tron(x, y, passes=50, truth=truth)
    learner = GlmTron(float(np.linalg.norm(x, axis=1).max()), truth=truth)
    for _ in range(50):
        for begin in range(0, 100, 30):
            learner.partial_fit(x[begin : begin + 30], y[begin : begin + 30])
        learner.end_pass()
    found = learner.fit()
    np.testing.assert_allclose(found.weights, whole.weights, rtol=0, atol=1e-13)
    np.testing.assert_allclose(found.losses, whole.losses, rtol=1e-9, atol=1e-15)
    assert found.bound == whole.bound


def test_noisy_descent_never_points_away_and_stays_inside() -> None:
    rng = np.random.default_rng(1004)
    truth, x, y = planted_gate(5, 60, 1004)
    options = NoisyDescentOptions(steps=400)
    start = rng.standard_normal(5)
    radius = float(np.linalg.norm(x, axis=1).max())
    farthest = 0.0
    for _ in range(20):
        found = noisy_gd_gate(x, y, start, rng, options, truth)
        assert found.distances is not None
        assert found.confinement is not None
        farthest = max(farthest, float(found.distances.max()))
    assert farthest <= found.confinement.radius
    assert found.confinement.maximal < 1
    assert found.confinement.azuma == 1.0  # the published bound says nothing here
    w = rng.standard_normal((200, 5))
    z = x @ w.T
    gradient = -(np.where(z >= 0, y[:, None] - np.maximum(z, 0), 0).T @ x) / len(x)
    assert (np.sum((w - truth) * gradient, axis=1) >= 0).all()
    assert (np.linalg.norm(gradient, axis=1) <= radius**2 * np.linalg.norm(w - truth, axis=1)).all()


def test_noisy_descent_leaves_a_ball_about_as_often_as_it_may() -> None:
    # One input, no data term (x = 0 almost): a random walk, for which Ville's bound is Doob's, far from tight
    # but never exceeded.
    options = NoisyDescentOptions(steps=50, step=0.05, bounded_noise=0.0, diffusion=0.9, margin=0.5)
    x, y = np.full((1, 1), 1e-3), np.zeros(1)
    rng = np.random.default_rng(1005)
    runs = [noisy_gd_gate(x, y, [0.0], rng, options, [0.0]) for _ in range(200)]
    ball = runs[0].confinement
    assert ball is not None
    left = np.mean([run.distances.max() > ball.radius for run in runs if run.distances is not None])
    assert 0 < left <= ball.maximal + 4 * math.sqrt(ball.maximal / 200)
    assert ball == confinement(1, 0.0, 1e-3, 0.05, options)


def test_noisy_descent_over_blocks_is_noisy_descent() -> None:
    truth, x, y = planted_gate(3, 50, 1006)
    options = NoisyDescentOptions(steps=30)
    whole = noisy_gd_gate(x, y, np.ones(3), np.random.default_rng(1006), options, truth)
    radius = float(np.linalg.norm(x, axis=1).max())
    learner = NoisyDescent(np.ones(3), radius, np.random.default_rng(1006), options, truth)
    for _ in range(30):
        learner.partial_fit(x[:20], y[:20]).partial_fit(x[20:], y[20:]).end_pass()
    np.testing.assert_allclose(learner.fit().last, whole.last, rtol=0, atol=1e-13)
    assert whole.network.n_inputs == 3
