"""Packed coordinates of symmetric tensors of any order.

A symmetric tensor T in (R^d)^{(x) k} has p = C(d + k - 1, k) free entries T_alpha, one per sorted multi-index
alpha_1 <= ... <= alpha_k, and alpha stands for k! / prod_j n_j(alpha)! entries of the full tensor, n_j being
how often j occurs. For d = 10 that is 715 instead of 10 000 numbers at k = 4, and 5005 instead of 10^6 at
k = 6. Sorted multi-indices are numbered lexicographically, so that a position is found by a formula: with
j_t = alpha_t + t - 1 (strictly increasing) and n = d + k - 1,

    position(alpha) = p - 1 - sum_t C(n - 1 - j_t, k - t + 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb, factorial

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class TensorPacking:
    """Numbering of the sorted multi-indices of symmetric tensors of one order."""

    dimension: int
    order: int
    indices: IntArray
    """(p, k) sorted multi-indices."""
    multiplicity: Array
    """(p,) entries of the full tensor that each multi-index stands for."""
    parent: IntArray
    """(p,) position of (alpha_1 .. alpha_{k-1}) in the packing of order k - 1."""
    grandparent: IntArray
    """(p,) position of (alpha_1 .. alpha_{k-2}) in the packing of order k - 2."""
    repeats: IntArray
    """(p,) how often alpha_k occurs among alpha_1 .. alpha_{k-1}."""

    @property
    def size(self) -> int:
        """p"""
        return len(self.multiplicity)

    @property
    def scale(self) -> Array:
        """(p,) sqrt(multiplicity): packed entries times this are an isometry of the Frobenius norm."""
        return np.sqrt(self.multiplicity)

    def position(self, entries: IntArray) -> IntArray:
        """Positions (...,) of multi-indices (..., k) in any order."""
        return packed_position(entries, self.dimension)

    def powers(self, weights: Array) -> Array:
        """(d, m) vectors w -> (p, m) packed entries of w (x) ... (x) w, without scale."""
        result = np.ones((self.size, weights.shape[1]))
        for column in self.indices.T:
            result *= weights[column]
        return result

    def dense(self, packed: Array) -> Array:
        """(p,) -> the full tensor, d ** k entries."""
        shape = (self.dimension,) * self.order
        entries = np.moveaxis(np.indices(shape), 0, -1) if self.order else np.zeros((0,), np.int64)
        return np.asarray(packed[self.position(entries)]).reshape(shape)


@lru_cache(maxsize=64)
def tensor_packing(dimension: int, order: int) -> TensorPacking:
    """The packing of symmetric tensors of ``order`` >= 0 over R^dimension."""
    if dimension < 1 or order < 0:
        raise InvalidInput(
            f"dimension must be positive and order not negative. Got {dimension} and {order} instead. "
            f"Take the number of inputs and the order of the tensor."
        )
    indices = np.array(list(combinations_with_replacement(range(dimension), order)), dtype=np.int64)
    indices = indices.reshape(comb(dimension + order - 1, order), order)
    occurrences = np.ones(len(indices))
    repeats = np.zeros(len(indices), dtype=np.int64)
    for t in range(1, order):
        # The number of earlier entries equal to entry t; multiplied up these give the factorials n_j!.
        repeats = np.sum(indices[:, :t] == indices[:, t : t + 1], axis=1)
        occurrences *= repeats + 1
    return TensorPacking(
        dimension=dimension,
        order=order,
        indices=indices,
        multiplicity=factorial(order) / occurrences,
        parent=packed_position(indices[:, : max(order - 1, 0)], dimension),
        grandparent=packed_position(indices[:, : max(order - 2, 0)], dimension),
        repeats=repeats.astype(np.int64),
    )


def packed_position(entries: IntArray, dimension: int) -> IntArray:
    """Positions (...,) of multi-indices (..., k), sorted or not, among the sorted ones of their order."""
    order = entries.shape[-1]
    n = dimension + order - 1
    choose = np.array([[comb(a, b) for b in range(order + 1)] for a in range(n)] or [[1]], dtype=np.int64)
    increasing = np.sort(entries, axis=-1) + np.arange(order)
    behind = sum(
        (choose[n - 1 - increasing[..., t], order - t] for t in range(order)),
        start=np.zeros(entries.shape[:-1], dtype=np.int64),
    )
    return np.asarray(comb(n, order) - 1 - behind, dtype=np.int64)


def outer_positions(dimension: int, *orders: int) -> IntArray:
    """(p_1, p_2, ...) positions, in the packing of order k_1 + k_2 + ..., of concatenated multi-indices."""
    first, *others = [tensor_packing(dimension, order) for order in orders]
    if not others:
        return np.arange(first.size)
    grid = np.meshgrid(*(np.arange(packing.size) for packing in others), indexing="ij")
    rest = np.concatenate([p.indices[g] for p, g in zip(others, grid, strict=True)], axis=-1)
    result = np.empty((first.size, *rest.shape[:-1]), dtype=np.int64)
    # One row at a time: all the multi-indices at once would need several times the tensor's own memory.
    for row, leading in enumerate(first.indices):
        shared = np.broadcast_to(leading, (*rest.shape[:-1], first.order))
        result[row] = packed_position(np.concatenate([shared, rest], axis=-1), dimension)
    return result
