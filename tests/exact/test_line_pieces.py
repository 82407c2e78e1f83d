"""Piecewise linear regression in one variable: equals all choices, finds planted functions."""

from __future__ import annotations

import itertools

import cvxpy
import numpy as np
import pytest

import unweave
from unweave.exact import Stop, exact_pieces


def least_over_all_choices(x, y, pieces, absolute=False):
    """Minimum over all gaps and directions of all breakpoints, by an independent solver."""
    order = np.argsort(x)
    x, y, n = x[order], y[order], len(x)
    best = np.inf
    for cuts in itertools.combinations_with_replacement(range(n - 1), pieces - 1):
        for signs in itertools.product((1, -1), repeat=pieces - 1):
            a, b = cvxpy.Variable(pieces), cvxpy.Variable(pieces)
            ends = [0, *(c + 1 for c in cuts), n]
            terms, conditions = [], []
            for j, (low, high) in enumerate(itertools.pairwise(ends)):
                if high > low:
                    residual = a[j] + b[j] * x[low:high] - y[low:high]
                    terms.append(cvxpy.norm1(residual) if absolute else cvxpy.sum_squares(residual))
            for j, (cut, sign) in enumerate(zip(cuts, signs, strict=True)):
                for place, side in ((x[cut], -sign), (x[cut + 1], sign)):
                    conditions.append(side * (a[j + 1] - a[j] + (b[j + 1] - b[j]) * place) >= 0)
            value = cvxpy.Problem(cvxpy.Minimize(sum(terms)), conditions).solve(solver=cvxpy.CLARABEL)
            best = min(best, value)
    return best


@pytest.mark.parametrize(("samples", "pieces"), [(7, 2), (5, 3)])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_equals_all_choices(samples, pieces, loss):
    rng = np.random.default_rng(1000)
    x, y = rng.uniform(-3, 5, samples), rng.standard_normal(samples)
    fit = exact_pieces(x, y, pieces, loss=loss)
    assert fit.certified
    assert len(fit.slopes) == len(fit.breakpoints) + 1 <= pieces
    residual = fit.network(x[:, None])[:, 0] - y
    reached = np.sum(np.abs(residual)) if loss == "absolute" else residual @ residual
    assert fit.loss == pytest.approx(reached, abs=1e-12)
    expected = least_over_all_choices(x, y, pieces, loss == "absolute")
    assert fit.loss == pytest.approx(expected, abs=1e-6 * (y @ y))


def test_planted_function_comes_back():
    rng = np.random.default_rng(1001)
    x = rng.uniform(0, 10, 60)
    truth = np.interp(x, [0, 2.2, 5.1, 10], [1.0, -1.0, 3.0, 2.0])
    fit = exact_pieces(x, truth, 3)
    assert fit.certified
    np.testing.assert_allclose(fit.breakpoints, [2.2, 5.1], atol=1e-9)
    np.testing.assert_allclose(fit.slopes, [-2 / 2.2, 4 / 2.9, -1 / 4.9], atol=1e-9)
    assert fit.network.hidden[0] <= 3


def test_a_step_takes_two_breakpoints_in_one_gap():
    x = np.arange(10.0)
    fit = exact_pieces(x, np.where(x < 5, 0.0, 1.0), 3)
    assert fit.certified
    assert fit.loss <= 1e-20
    assert np.all((fit.breakpoints >= 4) & (fit.breakpoints <= 5))


def test_affine_changes_of_both_axes_change_nothing():
    rng = np.random.default_rng(1002)
    x, y = rng.standard_normal(20), rng.standard_normal(20)
    one, other = exact_pieces(x, y, 3), exact_pieces(1e4 - 300 * x, 5 * y + 2, 3)
    assert other.loss == pytest.approx(25 * one.loss, rel=1e-8)
    predicted = other.network(1e4 - 300 * x[:, None])
    np.testing.assert_allclose(predicted, 5 * one.network(x[:, None]) + 2, atol=1e-7)


def test_more_pieces_are_no_worse_and_equal_inputs_are_one_place():
    rng = np.random.default_rng(1003)
    x, y = rng.integers(0, 6, 25).astype(float), rng.standard_normal(25)
    losses = [exact_pieces(x, y, pieces).loss for pieces in (1, 2, 3, 4)]
    assert all(a >= b - 1e-12 for a, b in itertools.pairwise(losses))
    means = sum(np.sum((y[x == v] - y[x == v].mean()) ** 2) for v in np.unique(x))
    assert exact_pieces(x, y, 11).loss == pytest.approx(means, rel=1e-9)


@pytest.mark.parametrize("loss", ["huber", "logistic", "hinge"])
def test_other_losses(loss):
    rng = np.random.default_rng(1004)
    x = rng.standard_normal(10)
    y = rng.choice([-1.0, 1.0], 10) if loss != "huber" else rng.standard_normal(10)
    fits = [exact_pieces(x, y, pieces, loss=loss) for pieces in (1, 2, 3)]
    assert all(fit.certified for fit in fits)
    assert fits[0].loss >= fits[1].loss >= fits[2].loss - 1e-6


def test_one_sample_and_equal_samples():
    for x in ([2.0], [2.0, 2.0, 2.0]):
        fit = exact_pieces(x, np.ones(len(x)), 3)
        assert fit.certified
        assert fit.network([[2.0]])[0, 0] == pytest.approx(1.0)


def test_time_limit_returns_the_best_so_far():
    rng = np.random.default_rng(1005)
    fit = exact_pieces(rng.standard_normal(40), rng.standard_normal(40), 4, time_limit=1e-9)
    assert fit.stop is Stop.TIME_LIMIT
    assert not fit.certified
    assert fit.lower_bound <= fit.loss


@pytest.mark.parametrize(
    ("x", "y", "pieces", "message"),
    [
        (np.zeros((3, 2)), np.zeros(3), 2, "one column"),
        ([1.0, 2.0], [1.0], 2, "one label per row"),
        ([1.0, np.nan], [1.0, 2.0], 2, "finite"),
        ([1.0, 2.0], [1.0, 2.0], 0, "positive integer"),
        (np.arange(2000.0), np.arange(2000.0), 5, "choices of breakpoints"),
    ],
)
def test_refused(x, y, pieces, message):
    with pytest.raises(unweave.UnweaveError, match=message):
        exact_pieces(x, y, pieces)
