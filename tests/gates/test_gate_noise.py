"""Noise that nobody chooses, gates of any shape, steps and noise that change."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.gates import NoisyDescentOptions, benign_noise, confinement, glm_tron, noisy_gd_gate


def staircase(z):
    """Non-decreasing, with flats and slopes of 1.5."""
    return 1.5 * np.clip(z, -0.5, 0.5) + 1.5 * np.clip(z - 1.0, 0.0, 0.5)


def test_any_monotone_function_obeys_the_bound():
    rng = np.random.default_rng(1000)
    x, truth = rng.standard_normal((300, 3)), np.array([1.0, -0.5, 0.3])
    y = staircase(x @ truth) + rng.uniform(-0.05, 0.05, 300)
    found = glm_tron(x, y, staircase, passes=400, theta=0.05, truth=truth, lipschitz=1.5)
    assert found.effective_loss <= found.bound
    assert found.effective_loss < 0.01
    assert found.activation == "staircase"
    for wrong in (None, 2.0, 0.0):
        with pytest.raises(unweave.UnweaveError, match="lipschitz"):
            glm_tron(x, y, staircase, lipschitz=wrong)


def test_benign_bounds_hold_and_are_sharper_than_adversarial_ones():
    truth, theta, passes = np.array([1.0, -2.0, 0.5]), 0.5, 200
    variance = theta**2 / 3
    for seed in range(1000, 1020):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((2000, 3))
        x /= np.linalg.norm(x, axis=1).max()
        errors = rng.uniform(-theta, theta, 2000)
        y = np.maximum(x @ truth, 0) + errors
        predicted = benign_noise(np.linalg.norm(truth), passes, 2000, variance, theta)
        assert np.linalg.norm(errors @ x) / 2000 <= predicted.pull < theta / 5
        found = glm_tron(x, y, passes=passes, theta=theta, truth=truth)
        assert found.effective_losses.min() <= predicted.effective_loss < found.bound / 3
        assert found.loss <= predicted.expected_loss


def test_the_term_that_the_published_proof_drops_is_not_zero():
    # With few samples the fit follows the errors: their correlation is of the order n v / S.
    truth, gains = np.array([1.0, -2.0, 0.5]), []
    for seed in range(1000, 1200):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((12, 3))
        errors = rng.uniform(-0.5, 0.5, 12)
        last = glm_tron(x, np.maximum(x @ truth, 0) + errors, passes=300).last
        gains.append(np.mean(errors * (np.maximum(x @ last, 0) - np.maximum(x @ truth, 0))))
    standard_error = np.std(gains) / np.sqrt(len(gains))
    assert np.mean(gains) > 5 * standard_error


def test_equal_steps_and_noise_change_nothing():
    rng = np.random.default_rng(1000)
    x = rng.standard_normal((50, 3))
    y = np.maximum(x @ [1, 0, 0], 0)
    step = 0.3 / (np.max(np.sum(x**2, axis=1)) * np.sqrt(40))
    options = [
        NoisyDescentOptions(steps=20, step=step, diffusion=0.2),
        NoisyDescentOptions(steps=20, step=(step,) * 20, diffusion=(0.2, 0.2, 0.2)),
    ]
    one, other = (
        noisy_gd_gate(x, y, [0, 1, 0], np.random.default_rng(7), o, truth=[1, 0, 0]) for o in options
    )
    np.testing.assert_array_equal(one.distances, other.distances)
    assert one.confinement == other.confinement


def test_noise_of_one_coordinate_moves_only_that():
    x, y = np.zeros((1, 2)), np.zeros(1)  # no gradient
    options = NoisyDescentOptions(steps=30, step=0.01, bounded_noise=0.0, diffusion=(0.0, 0.5))
    learner = unweave.gates.NoisyDescent([1.0, 2.0], 1.0, np.random.default_rng(0), options)
    for _ in range(30):
        learner.partial_fit(x, y).end_pass()
    assert learner.fit().last[0] == 1.0
    assert learner.fit().last[1] != 2.0


def test_falling_steps_leave_the_ball_no_more_often_than_predicted():
    steps = 40
    lengths = tuple(0.05 / np.sqrt(t) for t in range(1, steps + 1))
    options = NoisyDescentOptions(
        steps=steps, step=lengths, bounded_noise=0.5, diffusion=(0.9, 0.3), margin=0.5
    )
    x, left = np.zeros((1, 2)), 0
    predicted = confinement(2, 0.0, 1.0, np.array(lengths), options)
    for seed in range(400):
        learner = unweave.gates.NoisyDescent(
            [0.0, 0.0], 1.0, np.random.default_rng(seed), options, truth=[0.0, 0.0]
        )
        for _ in range(steps):
            learner.partial_fit(x, [0.0]).end_pass()
        left += learner.fit().distances.max() > predicted.radius
    assert left / 400 <= predicted.maximal < 1
    assert predicted.azuma == 1.0


@pytest.mark.parametrize(
    "options",
    [
        NoisyDescentOptions(steps=3, step=(0.01, 0.01)),
        NoisyDescentOptions(steps=2, step=(0.01, 9.0)),
        NoisyDescentOptions(steps=2, step=(0.01, 0.0)),
        NoisyDescentOptions(diffusion=(0.1, 0.1, 0.1)),
        NoisyDescentOptions(diffusion=(0.1, 1.0)),
    ],
    ids=str,
)
def test_refused(options):
    with pytest.raises(unweave.UnweaveError):
        unweave.gates.NoisyDescent([0.0, 0.0], 1.0, np.random.default_rng(0), options)


def test_impossible_noise_is_refused():
    with pytest.raises(unweave.UnweaveError, match="variance"):
        benign_noise(1.0, 10, 10, variance=2.0, theta=1.0)
