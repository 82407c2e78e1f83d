"""Mini-batches, momentum, falling steps, and tuning as published."""

from __future__ import annotations

import math

import numpy as np
import pytest

import unweave
from unweave.optimize import (
    ADAPTIVE_STEPS,
    HeavyBall,
    MiniBatches,
    RMSProp,
    certified_step,
    descend,
    in_one_orthant,
    interpolation_constant,
    tune_step,
)

DIMENSION = 4


def terms_of(count, seed):
    """f_p(x) = sum_i a_pi x_i^2 / (1 + x_i^2), a_pi > 0: all gradients point into one orthant."""
    scales = np.random.default_rng(seed).uniform(0.5, 1.5, (count, DIMENSION))

    def gradient(x, chosen):
        return scales[chosen].mean(axis=0) * 2 * x / (1 + x**2) ** 2

    return scales, gradient


def test_heavy_ball_by_hand():
    method = HeavyBall(0.1, 0.5)
    x, v = np.array([1.0, -2.0]), np.zeros(2)
    state = method.begin(x)
    for _ in range(4):
        v = 0.5 * v + 2 * x
        x = x - 0.1 * v
        state = method.step(state, 2 * state.x)
        np.testing.assert_allclose(state.x, x, rtol=1e-14)


def test_a_round_visits_every_term_once():
    seen = []
    batches = MiniBatches(lambda x, chosen: seen.append(chosen) or x, terms=10, batch=4)
    for _ in range(5):
        batches(np.zeros(1))
    visits = np.bincount(np.concatenate(seen), minlength=10)
    assert np.all(visits == 2)
    seen.clear()
    drawn = MiniBatches(lambda x, chosen: seen.append(chosen) or x, 10, 4, with_replacement=True)
    for _ in range(500):
        drawn(np.zeros(1))
    assert np.bincount(np.concatenate(seen)).min() > 150


def test_stochastic_rmsprop_reaches_its_accuracy_where_the_orthant_is_one():
    scales, gradient = terms_of(20, 1000)
    start = np.full(DIMENSION, 1.5)
    bound = 1.5 * math.sqrt(DIMENSION) * 3 * math.sqrt(3) / 8
    gap = float(np.sum(scales.mean(axis=0) * start**2 / (1 + start**2)))
    accuracy = 0.3
    step = certified_step("stochastic rmsprop", 3.0, bound, gap, accuracy, beta2=0.5)
    batches = MiniBatches(gradient, 20, 1, seed=1000, with_replacement=True)
    whole, norms = batches.whole(), []
    descend(
        batches,
        start,
        step.method(),
        min(int(step.steps), 20_000),
        on_step=lambda s, _: norms.append(whole(s.x)),
    )
    assert min(np.linalg.norm(g) for g in norms) <= accuracy
    assert in_one_orthant(np.array([gradient(start, np.array([p])) for p in range(20)]))


def test_a_falling_step_reaches_its_accuracy_within_its_bound():
    slope = lambda x: 2 * x / (1 + x**2) ** 2  # noqa: E731
    sigma = math.sqrt(DIMENSION) * 3 * math.sqrt(3) / 8
    for accuracy in (0.5, 0.2):
        step = certified_step(
            "rmsprop with falling step",
            2.0,
            sigma,
            float(DIMENSION),
            accuracy,
            beta2=0.5,
            dimension=DIMENSION,
        )
        method = step.method()
        assert isinstance(method, RMSProp)
        assert method.step_size(4, np.zeros(1)) == pytest.approx(method.step_size(1, np.zeros(1)) / 2)
        start = np.random.default_rng(1000).standard_normal(DIMENSION)
        found = descend(slope, start, method, int(step.steps), accuracy)
        assert found.reached is not None


def test_interpolation_constant_is_the_least():
    rng = np.random.default_rng(1000)
    gradients, shift = rng.standard_normal((30, 3)) + 2.0, 0.01
    c = interpolation_constant(gradients, shift)
    edge = math.sqrt(3 * shift) / 2
    left = np.mean((np.linalg.norm(gradients, axis=1) + edge) ** 2)
    slope = np.linalg.norm(gradients.mean(axis=0))
    assert left == pytest.approx((math.sqrt(c) * slope - edge) ** 2)
    assert left > (math.sqrt(0.99 * c) * slope - edge) ** 2
    # The condition keeps the gradient away from zero: the rate ends at sqrt(d xi / c).
    assert slope >= math.sqrt(3 * shift / c)
    assert interpolation_constant(np.array([[1.0], [-1.0]]), 0.0) == np.inf


@pytest.mark.parametrize("best", [1e-9, 3e-5, 2.0])
def test_the_grid_moves_until_the_best_is_inside(best):
    asked = []

    def score(step):
        asked.append(step)
        return abs(math.log(step / best))

    found = tune_step(score)
    assert found.inside
    assert abs(math.log10(found.step / best)) <= 0.3
    assert len(asked) == len(set(asked)) == len(found.tried)
    assert set(ADAPTIVE_STEPS) <= set(asked)
    ratios = [b / a for (a, _), (b, _) in zip(found.tried, found.tried[1:], strict=False)]
    assert all(3 - 1e-9 <= ratio <= 3.34 for ratio in ratios)


def test_divergence_counts_as_worst_and_the_number_of_steps_is_limited():
    found = tune_step(lambda step: np.nan if step > 1e-4 else -step)
    assert found.step == 1e-4
    endless = tune_step(lambda step: step, most=7)
    assert len(endless.tried) == 7
    assert not endless.inside


def test_refused():
    with pytest.raises(unweave.UnweaveError, match="batch"):
        MiniBatches(lambda x, chosen: x, 3, 4)
    with pytest.raises(unweave.UnweaveError, match="steps"):
        tune_step(lambda step: step, [1.0])
