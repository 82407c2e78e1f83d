"""Packed coordinates of symmetric matrices.

A symmetric D x D matrix has p = D(D+1)/2 free entries. Its upper triangle, with the off-diagonal
entries times sqrt(2), is an isometry from (Sym(D), Frobenius) to R^p: half the memory and half the
flops of working in R^{D x D}, and inner products stay what they were.

The functions here run on any array library that follows the array API (NumPy, torch).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.linalg
from array_api_compat import array_namespace, device

from unweave.arrays import AnyArray, Array, IntArray
from unweave.numerics.memory import require

_INDEX_COPIES = 4  # d x d numbers: the positions, and twice rows and columns of half as many


@dataclass(frozen=True, eq=False)
class SymmetricPacking:
    """Isometry between symmetric D x D matrices and vectors of length p = D(D+1)/2."""

    dimension: int
    size: int
    rows: IntArray
    """(p,) row of each packed entry, rows <= columns."""
    columns: IntArray
    """(p,) column of each packed entry."""
    scale: Array
    """(p,) 1 on the diagonal, sqrt(2) off it."""
    position: IntArray
    """(D*D,) packed position of each entry of the full matrix, row by row."""
    _cache: dict[Any, tuple[AnyArray, ...]] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process it is made again, without what was cached here."""
        return symmetric_packing, (self.dimension,)

    def pack(self, matrices: AnyArray) -> AnyArray:
        """(..., D, D) symmetric -> (..., p)."""
        xp = array_namespace(matrices)
        flat = xp.reshape(matrices, (*matrices.shape[:-2], self.dimension**2))
        upper, scale, _, _ = self._indices_like(matrices)
        return xp.take(flat, upper, axis=-1) * scale

    def unpack(self, packed: AnyArray) -> AnyArray:
        """(..., p) -> (..., D, D)."""
        xp = array_namespace(packed)
        _, scale, position, _ = self._indices_like(packed)
        full = xp.take(packed / scale, position, axis=-1)
        return xp.reshape(full, (*packed.shape[:-1], self.dimension, self.dimension))

    def outer(self, vectors: AnyArray) -> AnyArray:
        """(n, D) vectors u -> (n, p) packed u u^T."""
        xp = array_namespace(vectors)
        _, scale, _, (rows, columns) = self._indices_like(vectors)
        result = xp.take(vectors, rows, axis=-1)
        result *= xp.take(vectors, columns, axis=-1)
        result *= scale
        return result

    def outer_in_columns(self, vectors: AnyArray) -> AnyArray:
        """(D, n) vectors u -> (p, n) packed u u^T: rows of memory are copied whole, five times as fast."""
        xp = array_namespace(vectors)
        _, scale, _, (rows, columns) = self._indices_like(vectors)
        result = xp.take(vectors, rows, axis=0)
        result *= xp.take(vectors, columns, axis=0)
        result *= scale[:, None]
        return result

    def unpack_columns(self, packed: AnyArray) -> AnyArray:
        """(p, n) -> (D, D, n)."""
        xp = array_namespace(packed)
        _, scale, position, _ = self._indices_like(packed)
        full = xp.take(packed / scale[:, None], position, axis=0)
        return xp.reshape(full, (self.dimension, self.dimension, packed.shape[1]))

    def _indices_like(self, array: AnyArray) -> tuple[Any, ...]:
        """Index and scale arrays in the library, precision and device of ``array``."""
        key = (array_namespace(array), array.dtype, device(array))
        if key not in self._cache:
            xp = key[0]
            index = [
                xp.asarray(i, device=key[2])
                for i in (self.rows * self.dimension + self.columns, self.position, self.rows, self.columns)
            ]
            scale = xp.asarray(self.scale, dtype=key[1], device=key[2])
            self._cache[key] = (index[0], scale, index[1], (index[2], index[3]))
        return self._cache[key]


@lru_cache(maxsize=64)
def symmetric_packing(dimension: int) -> SymmetricPacking:
    """The packing of symmetric ``dimension`` x ``dimension`` matrices."""
    require(_INDEX_COPIES * dimension**2, f"the indices of symmetric matrices of {dimension} variables")
    rows, columns = (index.astype(np.int64) for index in np.triu_indices(dimension))
    position = np.empty((dimension, dimension), dtype=np.int64)
    position[rows, columns] = position[columns, rows] = np.arange(len(rows))
    scale = np.where(rows == columns, 1.0, np.sqrt(2.0))
    return SymmetricPacking(dimension, len(rows), rows, columns, scale, position.reshape(-1))


def rank_one_coefficients(directions: Array, hessians: Array) -> Array:
    """Least-squares coefficients (n, m, K) of Hessians (n, K, p) on the squares of directions (m, d)."""
    packing = symmetric_packing(directions.shape[1])
    terms = packing.outer(directions).T  # (p, m)
    if terms.shape[1] > terms.shape[0]:
        raise np.linalg.LinAlgError("more directions than symmetric matrices have dimensions")
    q, r = scipy.linalg.qr(terms, mode="economic", check_finite=False)
    n, outputs, size = hessians.shape
    coefficients = scipy.linalg.solve_triangular(r, q.T @ hessians.reshape(-1, size).T, check_finite=False)
    return np.ascontiguousarray(coefficients.reshape(-1, n, outputs).transpose(1, 0, 2))
