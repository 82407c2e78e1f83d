"""A function that needs a high sign rank, and circuits that cannot have one.

The matrix of f(x, y), rows x and columns y in {-1, 1}^m, has as its *sign rank* the least rank of a matrix
with the same signs. The Chattopadhyay-Mande function, an odd-max-bit of ORs of XORs, has a high one and a
small circuit of threshold gates ([mathematics] (2.9), Thm. 2.5.6).

Circuits whose first layer reads x and y with whole numbers up to W, all of its weight vectors ordering the
vertices of the cube alike (Def. 12), have a low one: in that order <a, x> takes at most m W + 1 values in
contiguous runs, w_1 gates cut the rows into at most w_1 m W + 1 runs, and deeper layers, reading nothing
else, cut none of them. So the matrix has at most

    rank <= w_1 m W + 1,

whatever the depth. (The source's Lemma 2.E.1 multiplies the widths of all layers; only the first one counts.)
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.errors import InvalidInput
from unweave.networks.network import Network

_MOST_BITS = 12  # of x, and of y: a matrix of 4096 x 4096


def odd_max_bit(bits: Any) -> IntArray:
    """-1 where the last input that is 1 has an odd place (counted from 1), else 1; of rows (N, n) in {-1, 1}.

    Example:
        >>> odd_max_bit([[1, -1, -1], [1, 1, -1], [-1, -1, -1]]).tolist()
        [-1, 1, 1]
    """
    rows = _signs(bits)
    ones = rows == 1
    last = rows.shape[1] - np.argmax(ones[:, ::-1], axis=1)  # its place; meaningless where there is none
    return np.where(ones.any(axis=1) & (last % 2 == 1), -1, 1)


def chattopadhyay_mande(x: Any, y: Any, blocks: int) -> IntArray:
    """odd_max_bit of ``blocks`` ORs of XORs of x and y (N, m) in {-1, 1}: (N,). 1 stands for true.

    The source takes n blocks of n^(1/3) + log n pairs; here m / blocks pairs each, whatever they are.
    """
    one, other = _signs(x), _signs(y)
    if one.shape != other.shape or blocks < 1 or one.shape[1] % blocks:
        raise InvalidInput(
            f"x and y must be of one shape (N, m), and blocks divide m. Got {one.shape}, {other.shape} and "
            f"{blocks} instead. For example m = 6 and 3 blocks."
        )
    differs = (one != other).reshape(len(one), blocks, -1)
    return odd_max_bit(np.where(differs.any(axis=2), 1, -1))


def communication_matrix(function: Any, m: int) -> Array:
    """(2^m, 2^m): f(x, y), rows x and columns y in the order of itertools.product((-1, 1), repeat=m).

    ``function`` takes rows (N, m) of x and of y and returns (N,); a `Network` takes both side by side.
    """
    if not 1 <= m <= _MOST_BITS:
        raise InvalidInput(f"m must be 1 to {_MOST_BITS}. Got {m} instead. The matrix has 4^m entries.")
    cube = np.array(list(product((-1, 1), repeat=m)))
    x, y = np.repeat(cube, len(cube), axis=0), np.tile(cube, (len(cube), 1))
    values = function(np.hstack([x, y])) if isinstance(function, Network) else function(x, y)
    return np.asarray(values, dtype=np.float64).reshape(len(cube), len(cube))


def forster_bound(matrix: Any) -> float:
    """A lower bound for the sign rank of a matrix of -1 and 1: sqrt(entries) / largest singular value.

    Example:
        >>> hadamard = np.array([[1.0]])
        >>> for _ in range(4):
        ...     hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
        >>> float(round(forster_bound(hadamard), 6))        # 16 x 16, of rank 16
        4.0
    """
    signs = np.asarray(matrix, dtype=np.float64)
    return float(np.sqrt(signs.size) / np.linalg.norm(signs, 2))


def restricted_rank_bound(width: int, m: int, largest: int) -> int:
    """w_1 m W + 1: the largest rank of a circuit with such a first layer, at any depth."""
    return width * m * largest + 1


def orders_alike(weights: Any) -> bool:
    """Whether all columns of ``weights`` (m, w) order {-1, 1}^m alike (Def. 11), ties aside."""
    matrix = np.asarray(weights, dtype=np.float64)
    cube = np.array(list(product((-1, 1), repeat=len(matrix))))
    values = cube @ matrix
    sides = np.sign(values[:, None, :] - values[None, :, :])
    return bool(np.all((sides.max(axis=2) <= 0) | (sides.min(axis=2) >= 0)))


def _signs(values: Any) -> IntArray:
    rows = np.asarray(values)
    if rows.ndim != 2 or not rows.size or not np.isin(rows, (-1, 1)).all():
        raise InvalidInput(f"rows must be (N, m) with entries -1 and 1. Got shape {rows.shape} instead.")
    return rows.astype(np.int64)
