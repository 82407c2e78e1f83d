"""Hermite polynomials of one variable, and the density they are orthogonal for."""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array

_ROOT_TWO_PI = np.sqrt(2 * np.pi)


def hermite_polynomial(order: int, x: Array) -> Array:
    """He_k(x), probabilists' normalisation: He_{r+1} = x He_r - r He_{r-1}."""
    previous, current = np.zeros_like(x, dtype=np.float64), np.ones_like(x, dtype=np.float64)
    for r in range(order):
        previous, current = current, x * current - r * previous
    return current


def normal_density(x: Array) -> Array:
    """phi(x) = exp(-x^2 / 2) / sqrt(2 pi)."""
    return np.asarray(np.exp(-0.5 * np.square(x)) / _ROOT_TWO_PI)
