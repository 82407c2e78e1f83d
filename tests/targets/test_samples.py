"""Samples are checked once, and what is wrong with them is said."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave import Samples


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.ones(3), np.ones(3), "x must be a matrix"),
        (np.ones((0, 2)), np.ones(0), "x must be a matrix"),
        (np.ones((3, 2)), np.ones(4), "y must have as many rows as x"),
        (np.ones((3, 2)), np.ones((3, 1, 1)), "y must be of shape"),
        (np.ones((3, 2)), np.ones((3, 0)), "y must be of shape"),
        (np.ones((3, 2)), ["a", "b", "c"], "y must hold real numbers"),
        ([["1", "2"]], [1.0], "x must hold real numbers"),
        (np.ones((3, 2)), np.array([1, None, "b"], dtype=object), "y must hold real numbers"),
        (np.ones((3, 2)), np.ones(3) + 1j, "y must hold real numbers"),
        (np.full((3, 2), np.nan), np.ones(3), "without missing or infinite"),
    ],
)
def test_bad_data_are_refused(x, y, message):
    with pytest.raises(unweave.InvalidInput, match=message):
        Samples(x, y)


def test_shapes_and_copies():
    x, y = np.arange(6.0).reshape(3, 2), np.arange(3)
    samples = Samples(x, y)
    x[0] = 99
    assert (samples.n_inputs, samples.n_outputs, len(samples)) == (2, 1, 3)
    assert samples.x[0, 0] == 0
    assert samples.y.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        samples.y[0] = 1
    assert repr(samples) == "Samples(3 rows, 2 inputs, 1 outputs)"


def test_what_is_left_out_is_noted():
    x = np.array([[0.0, 7.0], [1.0, 7.0], [1.0, 7.0], [np.nan, 7.0], [2.0, 7.0], [3.0, 7.0]])
    y = np.array([0.0, 1.0, 1.0, 2.0, np.inf, 3.0])
    samples = Samples(x, y)
    np.testing.assert_array_equal(samples.x[:, 0], [0, 1, 3])
    notes = " | ".join(samples.notes)
    assert "2 rows with missing" in notes
    assert "1 repeated rows" in notes
    assert "column 1" in notes


def test_split_keeps_equal_inputs_together():
    rng = np.random.default_rng(1000)
    x = np.repeat(rng.standard_normal((40, 3)), 3, axis=0)
    samples = Samples(x, rng.standard_normal(120))
    fitted, held = samples.split(30, rng)
    assert len(fitted) + len(held) == 120
    assert 25 <= len(held) <= 30
    assert not set(map(bytes, samples.x[fitted])) & set(map(bytes, samples.x[held]))
    assert len(samples.split(0, rng)[1]) == 0


def test_precision_of_the_answers():
    rng = np.random.default_rng(1000)
    x, y = rng.standard_normal((300, 2)), rng.standard_normal((300, 2))
    assert Samples(x, y).precision().kind == "float64"
    assert Samples(x, y.astype(np.float32)).precision().kind == "float32"
    rounded = Samples(x, y.round(3)).precision()
    assert rounded.kind == "decimals"
    np.testing.assert_allclose(rounded.sigma, 1e-3 / np.sqrt(12))
    twice = Samples(np.vstack([x, x]), np.vstack([y, y]) + 0.1 * rng.standard_normal((600, 2))).precision()
    assert twice.kind == "replicates"
    # 300 degrees of freedom: the estimate of sigma is within 4 standard errors of 1/sqrt(600)
    np.testing.assert_allclose(twice.sigma, 0.1, rtol=4 / np.sqrt(600))
