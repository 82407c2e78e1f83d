from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from planted_spaces import unit_rows

from unweave.subspace.hessian_span import CLEAR_GAP, hessian_span
from unweave.subspace.symmetric import symmetric_packing


def packed_hessians(width: int, count: int, seed: int, dimension: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    squares = symmetric_packing(dimension).outer(unit_rows(width, dimension, rng))
    return rng.standard_normal((count, width)) @ squares, squares


def test_the_basis_is_orthonormal_and_spans_the_squares() -> None:
    packed, squares = packed_hessians(12, 30, 1000)
    basis = hessian_span(packed).basis(12)
    assert_allclose(basis.T @ basis, np.eye(12), atol=1e-13)
    assert_allclose(squares @ basis @ basis.T, squares, atol=1e-11)


@pytest.mark.parametrize("width", [1, 5, 20, 35])
def test_the_width_stands_out_of_the_spectrum(width: int) -> None:
    packed, _ = packed_hessians(width, 40, 1001)
    rank, gap = hessian_span(packed).clearest_rank()
    assert rank == width
    assert gap > 1e6
    assert_allclose(hessian_span(packed).gap(width), gap)


def test_a_spectrum_that_has_not_ended_shows_no_width() -> None:
    packed, _ = packed_hessians(20, 12, 1002)
    assert hessian_span(packed).clearest_rank()[1] < CLEAR_GAP


def test_the_gap_is_infinite_where_the_spectrum_ends_with_the_samples() -> None:
    packed, _ = packed_hessians(20, 12, 1003)
    assert hessian_span(packed).gap(12) == np.inf


def test_singular_values_and_learnability_are_those_of_the_sample() -> None:
    packed, _ = packed_hessians(6, 25, 1004)
    span = hessian_span(packed)
    values = np.linalg.svd(packed, compute_uv=False)
    assert_allclose(span.singular_values, values, atol=1e-12)
    assert_allclose(span.learnability(6), values[5] ** 2 / 25)
    assert span.columns == 25


@pytest.mark.parametrize("size", [1e-3, 1e-5, 1e-7])
def test_the_error_of_the_span_obeys_wedin(size: float) -> None:
    packed, _ = packed_hessians(10, 25, 1005)
    noise = size * np.random.default_rng(1006).standard_normal(packed.shape)
    exact, noisy = hessian_span(packed).basis(10), hessian_span(packed + noise)
    outside = noisy.basis(10) - exact @ (exact.T @ noisy.basis(10))
    sine = np.linalg.norm(outside, 2)
    assert sine <= np.linalg.norm(noise) / noisy.singular_values[9]
    assert sine > 0.01 * size
    assert 0.02 < sine * noisy.gap(10) < 50  # 1/gap is the estimate of the error that the route uses


def test_no_hessian_at_all_has_width_nothing_clear() -> None:
    rank, gap = hessian_span(np.zeros((5, 10))).clearest_rank()
    assert gap == 1.0
    assert rank == 5
