"""What a second layer reads of a first one, with and without its signs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.networks.absolute_form import AbsoluteForm


@dataclass(frozen=True, eq=False)
class FirstUnits:
    """z = x W + b; what reads it is affine in (|z|, x) or (|z|, z), or in g(z) once signs are known."""

    weights: Array
    """(d, m)"""
    biases: Array
    """(m,)"""
    slope: float | None = None
    """p of g(z) = p z below zero; None where signs are open."""

    @property
    def width(self) -> int:
        """m"""
        return len(self.biases)

    @property
    def is_narrow(self) -> bool:
        """Whether z stands for x, as there are no more units than inputs."""
        return self.width <= len(self.weights)

    def values(self, points: Array) -> Array:
        """Return the features (n, F) at points (n, d)."""
        z = points @ self.weights + self.biases
        if self.slope is not None:
            return np.where(z > 0, z, self.slope * z)
        return np.hstack([np.abs(z), z if self.is_narrow else points])

    def absolute_form(self, alphas: Array, offset: Array) -> AbsoluteForm:
        """Return features alphas (F, K) + offset (K,) in terms of |z| and x, where signs are open."""
        heights, slope = alphas[: self.width], alphas[self.width :]
        if self.is_narrow:
            offset = offset + self.biases @ slope
            slope = self.weights @ slope
        return AbsoluteForm(self.weights, self.biases, heights, slope, offset)
