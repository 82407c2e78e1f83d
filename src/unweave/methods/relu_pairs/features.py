"""The units of a first layer, with and without their signs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array


@dataclass(frozen=True, eq=False)
class FirstUnits:
    """z = x W + b, and g(z) once signs are known."""

    weights: Array
    """(d, m)"""
    biases: Array
    """(m,)"""
    slope: float = 0.0
    """p of g(z) = p z below zero."""

    @property
    def width(self) -> int:
        """m"""
        return len(self.biases)

    def values(self, points: Array) -> Array:
        """Return g(z) (n, m) at points (n, d)."""
        z = points @ self.weights + self.biases
        return np.where(z > 0, z, self.slope * z)
