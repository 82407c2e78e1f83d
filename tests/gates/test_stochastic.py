"""Algorithm 2 and its poisoned form: the iterates, and the bounds that they must obey."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from planted_gates import planted_gate

import unweave
from unweave.gates import (
    Attack,
    ReluGateLearner,
    error_curve,
    error_floor,
    gate_constants,
    gate_update,
    poison,
    relu_gate_sgd,
    relu_gate_sgd_robust,
)
from unweave.gates.stochastic import block_update

STREAMS = 100


def heavy(rng: np.random.Generator, rows: int, inputs: int) -> np.ndarray:
    return rng.exponential(1.0, (rows, inputs)) - 0.5


def test_a_block_is_the_plain_loop() -> None:
    truth, x, y = planted_gate(6, 50, 1000)
    start = np.ones(6)
    step, theta = 0.05, 0.2
    loop = start[None, :]
    for row, label in zip(x, y, strict=True):
        loop = gate_update(loop, row[None], np.array([label]), step, theta)
    active = y > theta
    found = block_update(start, x[active], y[active], step)
    np.testing.assert_allclose(found, loop[0], rtol=0, atol=1e-13)  # some 50 products of order one
    assert np.linalg.norm(found - truth) < np.linalg.norm(start - truth)


def test_blocks_of_any_size_give_the_same_gate() -> None:
    truth, x, y = planted_gate(5, 3000, 1001)
    whole = relu_gate_sgd(x, y, truth=truth)
    learner = ReluGateLearner(truth=truth, constants=whole.constants, step=whole.step)
    for begin in range(0, 3000, 640):  # a multiple of the learner's own blocks
        learner.partial_fit(x[begin : begin + 640], y[begin : begin + 640])
    parts = learner.fit()
    np.testing.assert_allclose(parts.weights, whole.weights, rtol=0, atol=1e-13)
    assert (parts.rows, parts.used) == (whole.rows, whole.used) == (3000, int((y > 0).sum()))
    np.testing.assert_array_equal(parts.times, whole.times)


def test_rows_held_back_are_copied() -> None:
    truth, x, y = planted_gate(4, 2000, 1002)
    learner = ReluGateLearner(truth=truth)
    for begin in range(0, 2000, 50):
        block, labels = x[begin : begin + 50].copy(), y[begin : begin + 50].copy()
        learner.partial_fit(block, labels)
        block[:], labels[:] = np.nan, np.nan
    found = learner.fit()
    assert found.errors is not None
    assert found.errors[-1] < 1e-8


@pytest.mark.parametrize("law", ["gauss", "exponential"])
@pytest.mark.parametrize("rule", ["theorem", "sharper"])
def test_the_mean_square_error_is_below_its_bound(law: str, rule: str) -> None:
    inputs, rng = 5, np.random.default_rng(1003)
    draw = heavy if law == "exponential" else lambda rng, rows, n: rng.standard_normal((rows, n))
    truth = rng.standard_normal(inputs)
    sample = draw(rng, 100_000, inputs)
    constants = gate_constants(sample, np.maximum(sample @ truth, 0))
    squares = []
    for _ in range(STREAMS):
        x = draw(rng, 640, inputs)
        learner = ReluGateLearner(step=rule, constants=constants, truth=truth, start=np.full(inputs, -2.0))
        found = learner.partial_fit(x, np.maximum(x @ truth, 0)).fit()
        assert found.errors is not None
        squares.append(found.errors**2)
    runs = np.array(squares)
    mean = runs.mean(axis=0)
    # Of the mean of so many streams; at the start, where all are equal, rounding.
    slack = 4 * runs.std(axis=0, ddof=1) / math.sqrt(STREAMS) + 1e-12 * mean[0]
    factor = constants.theorem_factor if rule == "theorem" else constants.sharper_factor
    assert (mean <= mean[0] * factor**found.times + slack).all()
    assert found.bounds is not None
    assert (mean <= found.bounds**2 + slack).all()
    assert mean[-1] < 0.9 * mean[0]


def test_constants_of_gaussian_inputs() -> None:
    n = 6
    truth, x, y = planted_gate(n, 400_000, 1004)
    found = gate_constants(x, y)
    # Moments of 4e5 Gaussian rows; relative deviations of a few per mille.
    assert found.smallest == pytest.approx(1 / 2, rel=0.02)
    assert found.fourth == pytest.approx(n * (n + 2) / 2, rel=0.02)
    assert found.weighted == pytest.approx((n + 2) / 2, rel=0.02)
    assert found.theorem_factor == pytest.approx(1 - 1 / (2 * n * (n + 2)), rel=1e-3)
    assert found.sharper_factor == pytest.approx(1 - 1 / (2 * (n + 2)), rel=1e-2)
    assert found.samples_needed(0.01, 0.1) < found.samples_needed(0.01, 0.1, found.theorem_factor) / 4
    assert gate_constants(x, y, truth=truth) == found


def test_constants_seen_from_poisoned_labels_are_on_the_safe_side() -> None:
    truth, x, y = planted_gate(4, 20_000, 1005)
    noisy = y + np.random.default_rng(1005).uniform(-0.2, 0.2, len(y))
    true, seen = gate_constants(x, y, 0.2, truth), gate_constants(x, noisy, 0.2)
    assert seen.smallest <= true.smallest
    assert seen.weighted >= true.weighted
    assert seen.directional >= true.directional
    assert error_floor(seen) >= error_floor(true) > 0


@pytest.mark.parametrize("theta", [0.01, 0.1, 0.4])
@pytest.mark.parametrize("attack", get_args(Attack))
def test_a_poisoned_gate_ends_below_its_floor(theta: float, attack: Attack) -> None:
    inputs, rows = 10, 2000
    truth, sample, y = planted_gate(inputs, 50_000, 1006)
    constants = gate_constants(sample, y, theta, truth)
    rng = np.random.default_rng(1007)
    weights, late = np.zeros((STREAMS, inputs)), []
    for now in range(rows):
        x = rng.standard_normal((STREAMS, inputs))
        xi = poison(attack, theta, x, weights, truth, rng)
        assert np.abs(xi).max() <= theta
        weights = gate_update(weights, x, np.maximum(x @ truth, 0) + xi, constants.robust_step, theta)
        if now >= rows - 200:
            late.append(np.mean(np.sum((weights - truth) ** 2, axis=1)))
    error = math.sqrt(np.mean(late))
    assert error <= error_floor(constants)
    curve = error_curve(constants, constants.robust_step, 1.0, np.array([rows]))
    assert error <= curve[0]
    if attack != "random":
        assert error > 0.3 * theta  # the attack does harm: the floor is not met for nothing


def test_a_gate_at_zero_lets_the_poison_in() -> None:
    theta, inputs = 0.01, 5
    truth, x, y = planted_gate(inputs, 40_000, 1008)
    labels = y + theta
    robust = relu_gate_sgd_robust(x, labels, theta, truth=truth)
    naive = relu_gate_sgd(x, labels, truth=truth)
    assert robust.errors is not None
    assert naive.errors is not None
    assert robust.errors[-1] <= robust.floor < 0.1
    assert naive.errors[-1] > 0.3  # of order one


def test_sparse_poison_has_a_lower_floor() -> None:
    theta, share, inputs = 0.5, 0.1, 5
    truth, x, y = planted_gate(inputs, 60_000, 1009)
    rng = np.random.default_rng(1009)
    labels = y + theta * (rng.random(len(y)) < share)
    constants = gate_constants(x, y, theta, truth)
    every = ReluGateLearner(theta=theta, constants=constants, truth=truth)
    some = ReluGateLearner(theta=theta, constants=constants, truth=truth, poisoned_fraction=share)
    all_floor = every.partial_fit(x, labels).fit().floor
    found = some.partial_fit(x, labels).fit()
    assert found.errors is not None
    # One stream: averaged over its last quarter, which forgets the start.
    error = math.sqrt(np.mean(found.errors[-len(found.errors) // 4 :] ** 2))
    assert error <= found.floor < 0.5 * all_floor


def test_the_floor_is_the_fixed_point_of_the_curve() -> None:
    _, x, y = planted_gate(3, 5000, 1010)
    constants = gate_constants(x, y, 0.1)
    step = constants.robust_step
    floor = error_floor(constants, step)
    curve = error_curve(constants, step, 3.0, np.array([0, 10, 100, 100_000]))
    assert curve[0] == 3.0
    assert (np.diff(curve) < 0).all()
    assert curve[-1] == pytest.approx(floor, rel=1e-9)
    limit = constants.theta * constants.directional / constants.smallest
    assert error_floor(constants) == pytest.approx(limit, rel=1e-12)
    assert error_floor(constants, 2 * constants.sharper_step) == math.inf


def test_the_network_is_the_gate() -> None:
    truth, x, y = planted_gate(4, 4000, 1011)
    found = relu_gate_sgd(x, y, truth=truth)
    np.testing.assert_allclose(found.network(x)[:, 0], y, rtol=0, atol=1e-8)
    planted = unweave.Network([truth[:, None], [[1.0]]], [[0.0], [0.0]], ["relu", "identity"])
    assert unweave.compare(planted, found.network).is_same


def test_bounds_need_a_distance() -> None:
    truth, x, y = planted_gate(3, 500, 1012)
    assert relu_gate_sgd(x, y).bounds is None
    told = relu_gate_sgd(x, y, radius=1.0)
    known = relu_gate_sgd(x, y, truth=truth)
    assert told.errors is None
    assert told.bounds is not None
    assert known.bounds is not None
    np.testing.assert_allclose(told.bounds, known.bounds, rtol=1e-12)  # |w*| = 1 and w_1 = 0
