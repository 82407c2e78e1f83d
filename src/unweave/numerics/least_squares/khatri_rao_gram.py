"""J^T J of a layered model without J, at the cost of a few large matrix products.

A parameter W^l_ir (bias: an input that is always one) enters row (n, o) of J as y^{l-1}_ni delta^l_nor:
what the layer reads times the sensitivity of output o. The block of layers l and k is therefore

    (J^T J)_(i r),(j s) = sum_n  (y^{l-1}_ni y^{k-1}_nj)  (sum_o delta^l_nor delta^k_nos),

one product of a (p_l p_k x N) with an (N x m_l m_k) matrix. Against the product of J with itself it saves
the factor K of the outputs; in diagonal blocks both factors are symmetric, and half of each suffices. The
last layer's sensitivities are diagonal, and so is that factor of its own block.

Cost: about N P^2 flops off the diagonal and N P_l^2 / 2 for each diagonal block.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np

from unweave.arrays import IntArray, RealArray
from unweave.numerics.clock import check

_PRODUCT_ROWS = 200  # rows of a product made at once, at least: efficient, and still in cache


def gram_flops(shapes: Sequence[tuple[int, int]], rows: int) -> int:
    """Flops of the products for layers of shapes (p_l, m_l), N = ``rows``, biases counted in p_l."""
    total = 0
    for layer, (inputs, width) in enumerate(shapes):
        own = width if layer == len(shapes) - 1 else width * (width + 1) // 2
        total += inputs * (inputs + 1) // 2 * own
        total += sum(inputs * width * p * m for p, m in shapes[layer + 1 :])
    return 2 * rows * total


def workspace_per_row(shapes: Sequence[tuple[int, int]], outputs: int) -> int:
    """Numbers that one more row of N occupies at the same time."""
    inputs, widths = max(p for p, _ in shapes), max(m for _, m in shapes)
    products = max(inputs * (inputs + 1) // 2, _PRODUCT_ROWS + inputs)
    return products + 2 * widths**2 + outputs * sum(m for _, m in shapes)


def add_gram(
    gram: RealArray,
    inputs: Sequence[RealArray],
    sensitivities: Sequence[RealArray],
    slopes: RealArray | None,
    product_rows: int = _PRODUCT_ROWS,
) -> None:
    """Add the upper triangle of J^T J of N rows to ``gram`` (P, P), in place.

    Parameters
    ----------
    gram
        Below the diagonal, only the insides of diagonal blocks are touched.
    inputs
        What each layer reads, the constant one included, by feature: (p_l, N).
    sensitivities
        delta^l (N, K, m_l) of every layer but the last; of all of them if ``slopes`` is None.
    slopes
        Diagonal of the last layer's sensitivities (N, K), if they are diagonal.
    product_rows
        Rows of a product made at once, at least.
    """
    widths = [part.shape[2] for part in sensitivities] + ([] if slopes is None else [slopes.shape[1]])
    ends = np.cumsum([len(own) * width for own, width in zip(inputs, widths, strict=True)])
    parts = [slice(end - len(own) * m, end) for own, m, end in zip(inputs, widths, ends, strict=True)]
    last = len(inputs) - 1
    check()
    for first, second in combinations_with_replacement(range(last + 1), 2):
        own, other = inputs[first], inputs[second]
        shape = (len(own), widths[first], len(other), widths[second])
        block = gram[parts[first], parts[second]].reshape(shape)  # a view: only axes are split
        if first == last and slopes is not None:
            _add_last_block(block, own, slopes)
        elif first == second:
            _add_diagonal_block(block, own, sensitivities[first])
        elif second == last and slopes is not None:
            coupling: RealArray = sensitivities[first].transpose(0, 2, 1) * slopes[:, None, :]
            _add_block(block, own, other, coupling, product_rows)
        else:
            coupling = _coupling(sensitivities[first], sensitivities[second])
            _add_block(block, own, other, coupling, product_rows)


def _coupling(first: RealArray, second: RealArray) -> RealArray:
    """sum_o delta^l_nor delta^k_nos: (N, m_l, m_k)."""
    if first.shape[1] == 1:
        return first[:, 0, :, None] * second[:, 0, None, :]
    result: RealArray = np.matmul(first.transpose(0, 2, 1), second)
    return result


def _half_coupling(sensitivity: RealArray) -> RealArray:
    """sum_o delta_nor delta_nos for r <= s: (N, m (m + 1) / 2)."""
    n, outputs, width = sensitivity.shape
    if outputs == 1:
        return _half_products(np.ascontiguousarray(sensitivity[:, 0].T)).T
    row, column = np.triu_indices(width)
    full = _coupling(sensitivity, sensitivity).reshape(n, -1)
    result: RealArray = np.take(full, row * width + column, axis=1)
    return result


def _add_block(
    block: RealArray, own: RealArray, other: RealArray, coupling: RealArray, product_rows: int
) -> None:
    """Add to ``block`` (p_l, m_l, p_k, m_k) the product for inputs (p_l, N), (p_k, N)."""
    n = len(coupling)
    flat = coupling.reshape(n, -1)
    together = -(-product_rows // len(other))
    for i in range(0, len(own), together):
        check()
        products = (own[i : i + together, None, :] * other).reshape(-1, n)
        result = (products @ flat).reshape(-1, len(other), *coupling.shape[1:])
        block[i : i + together] += result.transpose(0, 2, 1, 3)


def _add_diagonal_block(block: RealArray, own: RealArray, sensitivity: RealArray) -> None:
    """The same for l = k, with half of both factors; ``block`` is filled for i <= j and all r, s."""
    width = sensitivity.shape[2]
    result = np.take(_half_products(own) @ _half_coupling(sensitivity), _unpacking(width), axis=1)
    for i, part in _triangle_rows(len(own)):
        block[i, :, i:] += result[part].reshape(-1, width, width).transpose(1, 0, 2)


def _add_last_block(block: RealArray, own: RealArray, slopes: RealArray) -> None:
    result = _half_products(own) @ (slopes * slopes)
    outputs = np.arange(slopes.shape[1])
    for i, part in _triangle_rows(len(own)):
        block[i, outputs, i:, outputs] += result[part].T


def _half_products(own: RealArray) -> RealArray:
    """y_i y_j for i <= j, row by row: (p (p + 1) / 2, N)."""
    size = len(own)
    result = np.empty((size * (size + 1) // 2, own.shape[1]), dtype=own.dtype)
    for i, part in _triangle_rows(size):
        np.multiply(own[i:], own[i], out=result[part])
    return result


def _triangle_rows(size: int) -> list[tuple[int, slice]]:
    """Every i with the places of its pairs (i, j >= i) among all of them."""
    ends = np.cumsum(np.arange(size, 0, -1))
    return [(i, slice(int(end) - size + i, int(end))) for i, end in enumerate(ends)]


def _unpacking(width: int) -> IntArray:
    """Where entry (r, s) of a symmetric matrix sits among the entries with r <= s: (width^2,)."""
    row, column = np.triu_indices(width)
    index = np.empty((width, width), dtype=np.int64)
    index[row, column] = index[column, row] = np.arange(len(row))
    return index.reshape(-1)
