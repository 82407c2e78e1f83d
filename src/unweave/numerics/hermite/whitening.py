"""Gaussian inputs of any mean and covariance, made standard, and units taken back.

With x ~ N(mu, L L^T) the variable z = L^{-1} (x - mu) is standard, and

    w . x + b = (L^T w) . z + (b + w . mu),

so units found on z with weights w' and biases b' are w = L^{-T} w', b = b' - w . mu on x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.errors import InvalidInput

_SINGULAR = 1e-10  # smallest over largest standard deviation below which an input repeats the others


@dataclass(frozen=True, eq=False)
class Whitening:
    """z = L^{-1} (x - mu)."""

    mean: Array
    """mu, (d,)."""
    factor: Array
    """L, (d, d) lower triangular."""

    @staticmethod
    def known(mean: Array, covariance: Array) -> Whitening:
        """From the true mean (d,) and covariance (d, d)."""
        deviations = np.sqrt(np.maximum(np.linalg.eigvalsh(covariance), 0))
        if deviations[0] <= _SINGULAR * deviations[-1]:
            raise InvalidInput(
                f"covariance must be positive definite. Got standard deviations from {deviations[0]:.3g} to "
                f"{deviations[-1]:.3g} instead. Drop inputs that are combinations of the others."
            )
        return Whitening(
            np.asarray(mean, dtype=np.float64), np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        )

    @staticmethod
    def estimated(x: Array) -> Whitening:
        """From the rows of x (n, d). The estimate's error, sqrt(d / n), enters the coefficients."""
        if len(x) <= x.shape[1]:
            raise InvalidInput(
                f"x must have more rows than its {x.shape[1]} columns. Got {len(x)} instead. Add samples."
            )
        mean = x.mean(axis=0)
        centred = x - mean
        return Whitening.known(mean, centred.T @ centred / len(x))

    def __call__(self, x: Array) -> Array:
        """z (n, d) of x (n, d)."""
        return np.asarray(scipy.linalg.solve_triangular(self.factor, (x - self.mean).T, lower=True).T)

    def undo(self, weights: Array, biases: Array) -> tuple[Array, Array]:
        """Weights (d, m) and biases (m,) on x from those on z."""
        weights = scipy.linalg.solve_triangular(self.factor, weights, lower=True, trans="T")
        return weights, biases - self.mean @ weights
