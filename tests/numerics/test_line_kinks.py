"""The kinks of a piecewise linear function of one variable: all of them, exactly, from few values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from unweave.numerics.line_kinks import KinkOptions, find_kinks

EPS = float(np.finfo(np.float64).eps)


def hats(positions: np.ndarray, heights: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    return lambda t: np.abs(t[:, None] - positions) @ heights


def precision(heights: np.ndarray, positions: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    size, far = np.abs(heights).sum(), np.abs(positions) @ np.abs(heights).sum(axis=1)
    return lambda t: 16 * EPS * (size * np.abs(t) + far)


@pytest.mark.parametrize("count", [1, 2, 7, 60])
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("reach", [10.0, 1e5])
def test_every_kink_is_found(count: int, outputs: int, reach: float) -> None:
    rng = np.random.default_rng(1000 + count)
    positions = np.sort(rng.uniform(-5, 5, count))
    heights = rng.standard_normal((count, outputs))
    found = find_kinks(hats(positions, heights), -reach, reach, precision(heights, positions))
    assert (found.piecewise_linear, found.unresolved) == (True, 0)
    # A kink is where chords of the neighbouring pieces meet: rounding over the bend, times some leverage.
    np.testing.assert_allclose(found.positions, positions, rtol=0, atol=1e-9)
    # 7 to 9 per kink, and on a long line what it takes to come near them.
    assert found.rows <= 11 * count + (80 if reach > 10 else 10)


def test_kinks_far_apart_and_close_together() -> None:
    positions = np.array([-9e3, -1.0, -1.0 + 1e-4, 0.0, 1e-3, 2e4])
    heights = np.array([[1.0], [-1.0], [1.0], [2.0], [-1.0], [0.5]])
    found = find_kinks(hats(positions, heights), -1e5, 1e5, precision(heights, positions))
    np.testing.assert_allclose(found.positions, positions, rtol=1e-9, atol=1e-7)


def test_kinks_of_which_each_output_shows_one() -> None:
    positions, heights = np.array([-1.0, 0.5]), np.array([[1.0, 0.0], [0.0, 1.0]])
    found = find_kinks(hats(positions, heights), -100, 100, precision(heights, positions))
    np.testing.assert_allclose(found.positions, positions, atol=1e-12)


def test_two_kinks_that_cancel_outside() -> None:
    # From both ends the line looks straight: only a cut in between shows that it is not.
    positions, heights = np.array([0.0, 1.0, 2.0]), np.array([[1.0], [-2.0], [1.0]])
    g, error = hats(positions, heights), precision(heights, positions)
    assert len(find_kinks(g, -3.0, 4.0, error).positions) == 0
    found = find_kinks(g, -3.0, 4.0, error, cuts=(-0.5, 0.7, 2.5))
    np.testing.assert_allclose(found.positions, positions, atol=1e-12)


def test_two_kinks_close_together_on_a_long_line_are_two() -> None:
    positions, heights = np.array([-1.43, -1.19]), np.array([[1.0], [0.7]])
    found = find_kinks(hats(positions, heights), -1e5, 1e5, precision(heights, positions))
    np.testing.assert_allclose(found.positions, positions, atol=1e-9)


def test_a_straight_line_costs_four_values() -> None:
    found = find_kinks(lambda t: 3 * t[:, None] + 1, -1e5, 1e5, lambda t: EPS * (1 + 3 * np.abs(t)))
    assert (len(found.positions), found.rows, found.piecewise_linear) == (0, 4, True)


def test_a_smooth_function_is_given_up() -> None:
    found = find_kinks(lambda t: np.tanh(t)[:, None], -10, 10, lambda t: EPS * np.ones_like(t))
    assert not found.piecewise_linear
    assert found.rows < 20_000


@pytest.mark.parametrize("seed", range(1000, 1010))
def test_rounding_that_looks_like_kinks_leads_nowhere_else(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rough = hats(rng.uniform(-1, 1, 30), rng.uniform(0.5, 1.5, (30, 1)))
    lenient = KinkOptions(window=0.2, largest_window=0.45, shorter=0.3, shortest_window=0.02, clear=1.5)
    found = find_kinks(lambda t: np.round(rough(t), 3), -10, 10, lambda t: np.full(len(t), 1e-4), (), lenient)
    assert len(found.positions) > 0
    assert np.all(np.abs(found.positions) <= 10)
