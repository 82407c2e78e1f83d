"""Inputs of unit covariance, and the way back.

    x~ = (x - mu) A,    A = U diag(1/s),        cov(x) = U diag(s^2) U^T on its range.

The family of networks does not change under it, but the search is helped: random directions are then random
for the data, and one damping fits all inputs. Directions in which the inputs never vary are left out; nothing
is known about weights along them, and they come back as zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array

_NO_VARIATION = 1e-12  # variance relative to the largest, of columns first brought to one scale
_BLOCK_ROWS = 8192
_CONSTANT = 1e-12  # standard deviation relative to the mean, of a column that never changes


@dataclass(frozen=True, eq=False)
class Whitening:
    """mu (d,), A (d, r)."""

    mean: Array
    matrix: Array

    @classmethod
    def of(cls, x: Array) -> Whitening:
        """From samples (n, d)."""
        mean, spread = x.mean(axis=0), x.std(axis=0)
        scale = np.where(spread > _CONSTANT * np.abs(mean), spread, np.inf)
        centred = x - mean
        centred /= scale
        values, vectors = np.linalg.eigh(centred.T @ centred / len(x))
        del centred  # as large as the data
        largest = max(float(values.max(initial=0.0)), np.finfo(np.float64).tiny)
        kept = values > _NO_VARIATION * largest
        matrix = (vectors[:, kept] / np.sqrt(values[kept])) / scale[:, None]
        return cls(mean, matrix)

    @property
    def rank(self) -> int:
        """r, the number of directions in which the inputs vary."""
        return int(self.matrix.shape[1])

    def __call__(self, x: Array) -> Array:
        """x~ (n, r)."""
        return np.asarray((x - self.mean) @ self.matrix)

    def with_ones(self, x: Array) -> Array:
        """(x~, 1), (n, r+1), without a second array of that size."""
        result = np.empty((len(x), self.rank + 1))
        result[:, -1] = 1.0
        for start in range(0, len(x), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            result[rows, :-1] = self(x[rows])
        return result

    def units_back(self, units: Array) -> tuple[Array, Array, Array]:
        """Directions (d, m) of length one and biases (m,) for x, and the lengths (m,) divided out."""
        weights = self.matrix @ units[:-1]
        biases = units[-1] - self.mean @ weights
        length = np.linalg.norm(weights, axis=0)
        return weights / length, biases / length, length

    def affine_back(self, slope: Array, offset: Array) -> tuple[Array, Array]:
        """Coefficients (d, K) and (K,) on x of x~ S~ + c~."""
        weights = self.matrix @ slope
        return weights, np.asarray(offset - self.mean @ weights)

    def quadratic_back(self, quadratic: Array, linear: Array, constant: Array) -> tuple[Array, Array, Array]:
        """x~^T Q_k x~ + l_k x~ + c_k in terms of x: (K, d, d), (d, K), (K,)."""
        full = self.matrix @ quadratic @ self.matrix.T
        slope, offset = self.affine_back(linear, constant)
        towards = full @ self.mean  # (K, d)
        return full, slope - 2 * towards.T, np.asarray(offset + towards @ self.mean)
