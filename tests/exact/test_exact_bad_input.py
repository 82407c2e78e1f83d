"""Degenerate and unusable data: handled, or refused with a sentence that says what to do."""

from __future__ import annotations

import numpy as np
import pytest
from planted_units import brute_force

from unweave.errors import InvalidInput
from unweave.exact import Huber, Stop, enumerate_optima, exact_erm

RNG = np.random.default_rng(1000)
X, Y = RNG.standard_normal((9, 2)), RNG.standard_normal(9)

REFUSED = {
    "NaN in x": (np.where(X > 1, np.nan, X), Y, {}, "x must be finite"),
    "infinity in y": (X, np.where(Y.mean() < Y, np.inf, Y), {}, "y must be finite"),
    "one column as a vector": (X[:, 0], Y, {}, r"reshape\(-1, 1\)"),
    "no samples": (np.zeros((0, 2)), np.zeros(0), {}, "x must be of shape"),
    "text": ([["a"]], [1.0], {}, "x must be an array of real numbers"),
    "labels missing": (X, Y[:4], {}, "one label per row"),
    "two outputs": (X, np.column_stack([Y, Y]), {}, "one output"),
    "width 0": (X, Y, {"width": 0}, "width must be 1 to 3"),
    "width 4": (X, Y, {"width": 4}, "unweave.recover"),
    "tolerance": (X, Y, {"tolerance": 0.0}, "tolerance must be between"),
    "starts": (X, Y, {"starts": 0}, "starts must be at least 1"),
    "time limit": (X, Y, {"time_limit": 0.0}, "time_limit must be positive"),
    "unknown loss": (X, Y, {"loss": "unheard of"}, "loss must be one of squared"),
    "labels of the logistic loss": (X, Y, {"loss": "logistic"}, "only -1 and 1"),
    "labels too small": (X, 1e-200 * Y, {}, "Divide them"),
    "labels too large": (X, 1e160 * Y, {}, "Divide them"),
    "too many points": (RNG.standard_normal((3000, 3)), RNG.standard_normal(3000), {}, "few enough points"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    x, y, options, message = REFUSED[name]
    with pytest.raises(InvalidInput, match=message):
        exact_erm(x, y, **options)
    with pytest.raises(InvalidInput, match="threshold must be positive"):
        Huber(-1.0)


FITTED = {
    "duplicates with other labels": (X[[0, 1, 2, 3, 0, 1]], Y[:6]),
    "points on a line": (np.outer(Y[:6], [1.0, 2.0, -0.5]) + 3, Y[::-1][:6]),
    "fewer points than inputs": (RNG.standard_normal((3, 6)), Y[:3]),
    "one point": ([[1.0, 2.0]], [3.0]),
    "equal points": (np.ones((4, 2)), Y[:4]),
    "a grid": (np.array([[i, j] for i in range(3) for j in range(2)], dtype=float), Y[:6]),
    "a column that never varies": (np.column_stack([X[:6, 0], np.full(6, 7.0)]), Y[:6]),
    "columns of other units": (X[:6] * [1e-8, 1e8], Y[:6]),
}


FEWER = {
    "points on a line": Y[:6, None],
    "equal points": np.zeros((4, 0)),
    "a column that never varies": X[:6, :1],
    "columns of other units": X[:6],
}


@pytest.mark.parametrize("name", FITTED)
def test_degenerate_data_is_fitted_exactly(name):
    x, y = (np.asarray(array, dtype=float) for array in FITTED[name])
    fit = exact_erm(x, y, 1)
    assert fit.certified
    # Brute force takes rounding off a line for another dimension, so it gets the coordinates that vary.
    plain = FEWER.get(name, x)
    assert fit.loss == pytest.approx(brute_force(plain, y, 1), abs=1e-9 * y @ y)


@pytest.mark.parametrize("value", [1.0, -2.0, 0.0])
def test_constant_labels(value):
    fit = exact_erm(X, np.full(9, value), 1)
    assert (fit.certified, fit.stop) == (True, Stop.ZERO_LOSS)
    assert fit.loss <= 1e-22 * 9 * value**2
    np.testing.assert_allclose(fit.network(X)[:, 0], value, atol=1e-11 * max(abs(value), 1))


def test_zero_labels_leave_networks_open():
    assert not enumerate_optima(X, np.zeros(9), 1).decided


def test_optimum_is_the_same_for_scaled_labels():
    one, other = exact_erm(X, Y, 2), exact_erm(X, 1e-6 * Y, 2)
    assert other.certified
    assert other.loss == pytest.approx(1e-12 * one.loss, rel=1e-6)
