"""Piecewise linear losses: their formulas, and optima equal to linear programs over all patterns."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import unweave
from unweave.exact import Absolute, Hinge, PiecewiseLinear, exact_erm

CHECK = PiecewiseLinear((-0.8, 0.2), (0.0, 0.0))
DEAD_ZONE = PiecewiseLinear((-1.0, 0.0, 1.0), (-0.3, 0.0, -0.3))
STEEPER = PiecewiseLinear((0.0, -2.0, -0.5, -9.0), (0.0, 2.5, 0.5, -50.0), of_margin=True)  # the last counts
LOSSES = [Absolute(), Hinge(), CHECK, DEAD_ZONE, STEEPER]


def labels(loss, rng, n):
    return rng.choice([-1.0, 1.0], n) if loss.of_margin else rng.standard_normal(n)


def least_over_all_patterns(x, y, width, loss):
    """Minimum over every pattern of 2^N, every sign: each a linear program written from the definition."""
    n, q = len(y), x.shape[1] + 1
    z = np.column_stack([x, np.ones(n)])
    best = float(np.sum(loss.value(np.zeros(n), y)))
    for patterns in itertools.product(itertools.product((0, 1), repeat=n), repeat=width):
        for signs in itertools.product((1, -1), repeat=width):
            if width == 2 and (patterns, signs) > (patterns[::-1], signs[::-1]):
                continue  # the same network with its units exchanged
            rows, right = [], []
            for i, pattern in enumerate(patterns):
                for j in range(n):
                    row = np.zeros(width * q + n)
                    row[i * q : (i + 1) * q] = -z[j] if pattern[j] else z[j]
                    rows.append(row)
                    right.append(0.0)
            for j, (slope, offset) in itertools.product(
                range(n), zip(loss.slopes, loss.offsets, strict=True)
            ):
                row = np.zeros(width * q + n)
                per_prediction = slope * y[j] if loss.of_margin else slope
                for i, (pattern, sign) in enumerate(zip(patterns, signs, strict=True)):
                    row[i * q : (i + 1) * q] = per_prediction * sign * pattern[j] * z[j]
                row[width * q + j] = -1.0
                rows.append(row)
                right.append(-offset if loss.of_margin else slope * y[j] - offset)
            cost = np.concatenate([np.zeros(width * q), np.ones(n)])
            free = [(None, None)] * (width * q) + [(0, None)] * n
            best = min(best, linprog(cost, A_ub=np.array(rows), b_ub=right, bounds=free).fun)
    return best


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_formulas_agree_with_the_definition(loss):
    rng = np.random.default_rng(1000)
    y = labels(loss, rng, 40)
    f = 3 * rng.standard_normal((6, 40))
    u = y * f if loss.of_margin else f - y
    value = np.max([s * u + c for s, c in zip(loss.slopes, loss.offsets, strict=True)], axis=0)
    np.testing.assert_allclose(loss.value(f, y), value, atol=1e-15)
    step = 1e-7
    difference = (loss.value(f + step, y) - loss.value(f - step, y)) / (2 * step)
    np.testing.assert_allclose(loss.derivative(f, y), difference, atol=1e-6)
    # The parabola touches the loss at f and lies above it everywhere.
    other = f + 4 * rng.standard_normal(f.shape)
    above = value + loss.derivative(f, y) * (other - f) + loss.weight(f, y) / 2 * (other - f) ** 2
    assert np.all(loss.value(other, y) <= above + 1e-9)
    # The conjugate is the supremum over a fine grid that holds every corner.
    low, high = loss.dual_range(y)
    v = low + rng.uniform(0, 1, 40) * (high - low)
    grid = np.linspace(-50, 50, 20001)[:, None]
    supremum = np.max(v * grid - loss.value(np.broadcast_to(grid, (len(grid), 40)), y), axis=0)
    np.testing.assert_allclose(loss.conjugate(v, y), supremum, atol=5e-3)


@pytest.mark.parametrize(
    ("slopes", "offsets"),
    [((), ()), ((1.0,), (0.0,)), ((0.0,), (1.0,)), ((1.0, 2.0), (0.0, 0.0)), ((-1.0, 1.0), (-1.0, 0.0))],
)
def test_lines_without_a_least_value_are_refused(slopes, offsets):
    with pytest.raises(unweave.UnweaveError):
        PiecewiseLinear(slopes, offsets)


def test_labels_of_a_margin_are_minus_one_and_one():
    with pytest.raises(unweave.UnweaveError, match="-1 and 1"):
        exact_erm([[0.0], [1.0]], [0.0, 1.0], 1, loss="hinge")


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_one_unit_equals_all_patterns(loss):
    rng = np.random.default_rng(1001)
    x, y = rng.standard_normal((6, 2)), labels(loss, rng, 6)
    fit = exact_erm(x, y, 1, loss=loss)
    assert fit.certified
    assert fit.loss == pytest.approx(float(np.sum(loss.value(fit.network(x)[:, 0], y))), abs=1e-12)
    assert fit.loss == pytest.approx(least_over_all_patterns(x, y, 1, loss), abs=1e-7)


@pytest.mark.slow
def test_two_units_with_the_hinge_loss_equal_all_patterns():
    rng = np.random.default_rng(1000)
    x, y = rng.standard_normal((5, 1)), np.array([1.0, -1.0, 1.0, 1.0, -1.0])
    fit = exact_erm(x, y, 2, loss="hinge")
    assert fit.certified
    assert fit.loss == pytest.approx(least_over_all_patterns(x, y, 2, Hinge()), abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_hinge_equals_all_patterns(seed):
    rng = np.random.default_rng(seed)
    samples, inputs = 7 + seed % 2, 1 + seed % 2
    x, y = rng.standard_normal((samples, inputs)), rng.choice([-1.0, 1.0], samples)
    fit = exact_erm(x, y, 1, loss="hinge")
    assert fit.certified
    assert fit.loss == pytest.approx(least_over_all_patterns(x, y, 1, Hinge()), abs=1e-7)
