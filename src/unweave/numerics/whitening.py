"""Inputs of unit covariance, and the way back.

    x~ = (x - mu) A,        A^T cov(x) A = I.

`Whitening.of` takes A = U diag(1/s) from cov(x) = U diag(s^2) U^T on its range. Networks stay networks under
it, but a search is helped: random directions are then random for the data, and one damping fits all inputs.
Directions in which the inputs never vary are left out. Nothing is known about weights along them, and they
come back as zero.

`Whitening.known` and `Whitening.estimated` take A = L^{-T} from cov(x) = L L^T and refuse inputs that do not
vary in all directions: x ~ N(mu, L L^T) becomes standard Gaussian.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.errors import InvalidInput

_NO_VARIATION = 1e-12  # variance over the largest, columns scaled alike: below, a direction is left out
_CONSTANT = 1e-12  # standard deviation over the mean, below which a column never changes
_SINGULAR = 1e-10  # smallest over largest standard deviation, below which an input repeats the others
_WHITENED_ROWS = 8192  # at once: their differences from the mean stay in cache


@dataclass(frozen=True, eq=False)
class Whitening:
    """The map x -> (x - mu) A."""

    mean: Array
    """mu (d,)."""
    matrix: Array
    """A (d, r)."""

    @classmethod
    def of(cls, x: Array) -> Whitening:
        """Whiten like the samples x (n, d), in the directions in which they vary."""
        mean, spread = x.mean(axis=0), x.std(axis=0)
        scale = np.where(spread > _CONSTANT * np.abs(mean), spread, np.inf)
        centered = x - mean
        centered /= scale
        values, vectors = np.linalg.eigh(centered.T @ centered / len(x))
        del centered  # as large as the data
        largest = max(float(values.max(initial=0.0)), np.finfo(np.float64).tiny)
        kept = values > _NO_VARIATION * largest
        matrix = (vectors[:, kept] / np.sqrt(values[kept])) / scale[:, None]
        return cls(mean, matrix)

    @classmethod
    def known(cls, mean: Array, covariance: Array) -> Whitening:
        """Whiten with the true mean (d,) and covariance (d, d)."""
        deviations = np.sqrt(np.maximum(np.linalg.eigvalsh(covariance), 0))
        if deviations[0] <= _SINGULAR * deviations[-1]:
            raise InvalidInput(
                f"covariance must be positive definite. Got standard deviations from {deviations[0]:.3g} to "
                f"{deviations[-1]:.3g} instead. Drop inputs that are combinations of the others."
            )
        factor, identity = np.linalg.cholesky(covariance), np.eye(len(covariance))
        matrix = scipy.linalg.solve_triangular(factor, identity, lower=True, trans="T")
        return cls(np.asarray(mean, dtype=np.float64), np.asarray(matrix, dtype=np.float64))

    @classmethod
    def estimated(cls, x: Array) -> Whitening:
        """Whiten with mean and covariance of the rows of x (n, d), which are off by sqrt(d / n)."""
        if len(x) <= x.shape[1]:
            raise InvalidInput(
                f"x must have more rows than its {x.shape[1]} columns. Got {len(x)} instead. Add samples."
            )
        mean = x.mean(axis=0)
        centered = x - mean
        return cls.known(mean, centered.T @ centered / len(x))

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
        for start in range(0, len(x), _WHITENED_ROWS):
            rows = slice(start, start + _WHITENED_ROWS)
            result[rows, :-1] = self(x[rows])
        return result

    def units_back(self, units: Array) -> tuple[Array, Array, Array]:
        """Carry ``units`` (r + 1, m) back: directions (d, m) of length one, biases (m,), lengths (m,)."""
        weights = self.matrix @ units[:-1]
        biases = units[-1] - self.mean @ weights
        length = np.linalg.norm(weights, axis=0)
        return weights / length, biases / length, length

    def units_forth(self, weights: Array, biases: Array) -> Array:
        """Return units (r + 1, m) of whitened inputs from weights (d, m) and biases (m,) of x."""
        return np.vstack([np.linalg.pinv(self.matrix) @ weights, biases + self.mean @ weights])

    def affine_back(self, slope: Array, offset: Array) -> tuple[Array, Array]:
        """Coefficients (d, K) and (K,) on x of x~ S~ + c~, given S~ (r, K) and c~ (K,)."""
        weights = self.matrix @ slope
        return weights, np.asarray(offset - self.mean @ weights)

    def quadratic_back(self, quadratic: Array, linear: Array, constant: Array) -> tuple[Array, Array, Array]:
        """x~^T Q_k x~ + l_k x~ + c_k in terms of x: (K, d, d), (d, K), (K,)."""
        full = self.matrix @ quadratic @ self.matrix.T
        slope, offset = self.affine_back(linear, constant)
        towards = full @ self.mean  # (K, d)
        return full, slope - 2 * towards.T, np.asarray(offset + towards @ self.mean)
