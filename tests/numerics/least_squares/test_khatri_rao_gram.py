from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from unweave.numerics.least_squares.khatri_rao_gram import add_gram, gram_flops

ROWS = 13


def parts(shapes: list[tuple[int, int]]) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(1000)
    outputs = shapes[-1][1]
    inputs = [rng.standard_normal((p, ROWS)) for p, _ in shapes]
    sensitivities = [rng.standard_normal((ROWS, outputs, m)) for _, m in shapes[:-1]]
    return inputs, sensitivities, rng.standard_normal((ROWS, outputs))


def jacobian(inputs: list[np.ndarray], sensitivities: list[np.ndarray], slopes: np.ndarray) -> np.ndarray:
    full = [*sensitivities, slopes[:, :, None] * np.eye(slopes.shape[1])]
    blocks = [np.einsum("in,nor->noir", y, d) for y, d in zip(inputs, full, strict=True)]
    return np.concatenate([block.reshape(ROWS * slopes.shape[1], -1) for block in blocks], axis=1)


@pytest.mark.parametrize("shapes", [[(4, 3)], [(5, 4), (5, 1)], [(6, 5), (6, 4), (5, 3)], [(3, 2)] * 4])
@pytest.mark.parametrize("product_rows", [1, 7, 10_000])
def test_the_upper_triangle_is_added(shapes: list[tuple[int, int]], product_rows: int) -> None:
    given = parts(shapes)
    matrix = jacobian(*given)
    size = matrix.shape[1]
    start = np.random.default_rng(1001).standard_normal((size, size))
    result = start.copy()
    add_gram(result, *given, product_rows)
    assert_allclose(np.triu(result), np.triu(start + matrix.T @ matrix), rtol=0, atol=1e-12)


def test_flops_save_the_outputs_and_the_symmetric_half() -> None:
    shapes = [(51, 50), (51, 25), (26, 10)]
    size = sum(p * m for p, m in shapes)
    dense = 10 * 600 * size**2  # half of the product of J with itself, 6000 rows
    assert 10 < dense / gram_flops(shapes, 600) < 20
