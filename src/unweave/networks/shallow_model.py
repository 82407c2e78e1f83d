"""A one-hidden-layer network as a point of parameter space.

f(x) = A^T g(W^T x + b) + c (+ S^T x)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from unweave.arrays import Array, BoolArray, RealArray
from unweave.derivatives.gradient_rules import GradientRule, odd_power_gradient
from unweave.networks.activations import Activation
from unweave.networks.network import Network

_HIGHER_DERIVATIVE_STEP = (
    0.02  # the fifth comes out to 1e-6, the seventh to 1e-2 of itself: both are small terms
)


@dataclass(frozen=True, eq=False)
class ShallowModel:
    """Parameters of a one-hidden-layer network with d inputs, m neurons and K outputs."""

    activation: Activation
    weights: Array
    """W (d, m)"""
    biases: Array
    """b (m,)"""
    outgoing: Array
    """A (m, K)"""
    offset: Array
    """c (K,)"""
    skip: Array | None = None
    """S (d, K), or None"""

    @property
    def width(self) -> int:
        """Number of neurons m."""
        return int(self.weights.shape[1])

    @property
    def size(self) -> int:
        """Number of parameters."""
        skip = 0 if self.skip is None else self.skip.size
        return self.weights.size + self.biases.size + self.outgoing.size + self.offset.size + skip

    def to_vector(self) -> Array:
        """All parameters in one vector: W row by row, b, A row by row, c, S row by row."""
        parts = [self.weights, self.biases, self.outgoing, self.offset]
        if self.skip is not None:
            parts.append(self.skip)
        return np.concatenate([part.reshape(-1) for part in parts])

    def from_vector(self, vector: RealArray) -> ShallowModel:
        """The model of the same shape with these parameters."""
        d, m = self.weights.shape
        k = self.outgoing.shape[1]
        ends = np.cumsum([d * m, m, m * k, k])
        w, b, a, c, s = np.split(cast(Array, vector), ends)  # float32 inside the solver's products
        return replace(
            self,
            weights=w.reshape(d, m),
            biases=b,
            outgoing=a.reshape(m, k),
            offset=c,
            skip=None if self.skip is None else s.reshape(d, k),
        )

    def keep(self, neurons: BoolArray) -> ShallowModel:
        """The model with only the neurons of this mask (m,)."""
        return replace(
            self,
            weights=np.ascontiguousarray(self.weights[:, neurons]),
            biases=self.biases[neurons],
            outgoing=self.outgoing[neurons],
        )

    def values(self, points: Array) -> Array:
        """f at points (n, d): (n, K)."""
        result = self.activation(points @ self.weights + self.biases) @ self.outgoing + self.offset
        return result if self.skip is None else result + points @ self.skip

    def difference_gradients(self, points: Array, step: float, rule: GradientRule = "axes") -> Array:
        """Central-difference gradients of step ``step``, to seventh order, or exact ones: (n, K, d)."""
        z = points @ self.weights + self.biases
        if rule == "exact":
            terms = [(self.activation.jet(z, 1)[1], self.weights)]
        else:
            first, third, fifth, seventh = self._odd_derivatives(z)
            terms = [
                (first, self.weights),
                (third, step**2 / 6 * odd_power_gradient(self.weights, 3, rule)),
                (fifth, step**4 / 120 * odd_power_gradient(self.weights, 5, rule)),
                (seventh, step**6 / 5040 * odd_power_gradient(self.weights, 7, rule)),
            ]
        result = np.empty((len(points), self.outgoing.shape[1], points.shape[1]))
        for output, weight in enumerate(self.outgoing.T):
            result[:, output] = sum(((factor * weight) @ power.T for factor, power in terms), start=0.0)
        return result if self.skip is None else result + self.skip.T

    def _odd_derivatives(self, z: Array) -> tuple[Array, Array, Array, Array]:
        """Derivatives of order 1 and 3 and, by differences of the third, of order 5 and 7."""
        delta = _HIGHER_DERIVATIVE_STEP
        _, first, _, third = self.activation.jet(z, 3)
        near, far = (
            self.activation.jet(z + k * delta, 3)[3] + self.activation.jet(z - k * delta, 3)[3]
            for k in (1, 2)
        )
        fifth = (16 * near - far - 30 * third) / (12 * delta**2)
        seventh = (far - 4 * near + 6 * third) / delta**4
        return first, third, fifth, seventh

    def to_network(self) -> Network:
        """The same function as a `Network`."""
        return Network(
            [self.weights, self.outgoing],
            [self.biases, self.offset],
            [self.activation.name, "identity"],
            skip=self.skip,
        )
