from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from planted_published import disordered, planted, true_layers

from unweave.published.deep import range_residuals, repair_by_swaps
from unweave.published.deep.range_test import swap_residuals


def swapped(layers: list[np.ndarray], lower: int, i: int, j: int) -> list[np.ndarray]:
    """Column i of layer ``lower`` and column j of the next one exchanged."""
    result = [layer.copy() for layer in layers]
    result[lower][:, i], result[lower + 1][:, j] = layers[lower + 1][:, j], layers[lower][:, i]
    return result


def test_exact_layers_pass_and_a_full_range_says_nothing() -> None:
    layers, _, _ = disordered(true_layers(planted(12, (10, 6, 8), seed=1401)), np.random.default_rng(1402))
    assert range_residuals(layers).max() < 1e-13
    full = true_layers(planted(10, (10, 6, 8), seed=1403))
    wrong = swapped(full, 0, 2, 3)
    assert range_residuals(wrong)[0] == 0
    assert range_residuals(wrong)[1] > 1e-2


@pytest.mark.parametrize("noise", [0.0, 1e-4])
@pytest.mark.parametrize("widths", [(12, 6, 8), (10, 6, 4), (11, 8, 5, 6)])
def test_swaps_are_seen_and_undone(widths: tuple[int, ...], noise: float) -> None:
    rng = np.random.default_rng(1404)
    layers, _, _ = disordered(true_layers(planted(12, widths, seed=1405)), rng)
    layers = [layer + noise * rng.standard_normal(layer.shape) for layer in layers]
    right = np.linalg.norm(range_residuals(layers))
    for lower in range(len(widths) - 2):
        wrong = swapped(layers, lower, 1, 2)
        assert np.linalg.norm(range_residuals(wrong)) > 10 * max(right, 1e-3)
        repaired = repair_by_swaps(wrong)
        assert repaired.swaps == 1
        assert_allclose(repaired.residuals_before, range_residuals(wrong))
        for found, expected in zip(repaired.layers, layers, strict=True):
            assert {*map(tuple, found.T)} == {*map(tuple, expected.T)}


def test_two_swaps_are_undone() -> None:
    layers, _, _ = disordered(true_layers(planted(14, (14, 7, 7), seed=1406)), np.random.default_rng(1407))
    wrong = swapped(swapped(layers, 0, 1, 2), 0, 4, 5)
    repaired = repair_by_swaps(wrong)
    assert repaired.swaps == 2
    assert repaired.residuals.max() < 1e-12


def test_right_layers_are_left_alone() -> None:
    layers = true_layers(planted(12, (10, 6, 8), seed=1408))
    repaired = repair_by_swaps(layers)
    assert repaired.swaps == 0
    assert all(np.array_equal(a, b) for a, b in zip(repaired.layers, layers, strict=True))


def test_quick_formula_is_the_residual_after_the_swap() -> None:
    rng = np.random.default_rng(1409)
    lower, upper, after = (rng.standard_normal((9, count)) for count in (5, 4, 3))
    quick = swap_residuals(lower, upper, after)
    for i in range(5):
        for j in range(4):
            changed = upper.copy()
            changed[:, j] = lower[:, i]
            fitted = changed @ np.linalg.lstsq(changed, after, rcond=None)[0]
            expected = np.linalg.norm(after - fitted) / np.linalg.norm(after)
            assert quick[i, j] == pytest.approx(expected, rel=1e-10)
