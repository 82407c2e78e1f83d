"""Noise of one size, independent from row to row, is told from everything else."""

from __future__ import annotations

import numpy as np
import pytest

import unweave
from unweave.arrays import Array
from unweave.recovery.residuals import LARGEST_CORRELATION, LARGEST_GROWTH, pattern_of

SEEDS = range(1000, 1020)


def rows(seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((1500, 3)), rng.standard_normal((1500, 2))


@pytest.mark.parametrize("seed", SEEDS)
def test_noise_has_no_pattern(seed: int) -> None:
    pattern = pattern_of(*rows(seed))
    assert pattern is not None
    assert pattern.growth < LARGEST_GROWTH
    assert pattern.correlation < LARGEST_CORRELATION


@pytest.mark.parametrize("seed", SEEDS)
def test_a_hidden_unit_is_a_pattern(seed: int) -> None:
    points, noise = rows(seed)
    pattern = pattern_of(points, noise + np.tanh(3 * points[:, :1]))
    assert pattern is not None
    assert pattern.correlation > LARGEST_CORRELATION


def test_noise_that_grows_is_a_pattern() -> None:
    points, noise = rows(1000)
    pattern = pattern_of(points, noise * np.linalg.norm(points, axis=1, keepdims=True) ** 2)
    assert pattern is not None
    assert pattern.growth > LARGEST_GROWTH


def test_few_rows_say_nothing() -> None:
    points, noise = rows(1000)
    assert pattern_of(points[:100], noise[:100]) is None


def test_noise_that_grows_with_the_inputs_is_not_called_recovered() -> None:
    network = unweave.random_network([3, 2, 1], seed=1001, outer="signed")
    source = np.random.default_rng(1002)

    def target(x: Array) -> Array:
        size = 1e-3 * (1 + 3 * np.sum(x**2, axis=1, keepdims=True))
        return network(x) + size * source.standard_normal((len(x), 1))

    assert not unweave.recover(target, input_dim=3, activation="tanh").status.is_recovered
