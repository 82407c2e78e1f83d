"""What one level of a column adds to what the first layer reads, by least squares in a number per unit.

    minimise over v   | y - f(x; b_1 + v) |        beside a skip also over what it adds to the outputs

where f is the network in the free columns. Most starts at v = 0 end exact; some units may have moved far.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares

from unweave.arrays import Array
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.least_squares.formed_jacobian import FormedJacobian


@dataclass(frozen=True, eq=False)
class LevelOffset:
    """The problem at one level: rows of the free columns (n, d) and answers (n, K) there."""

    model: NetworkParameters
    points: Array
    answers: Array
    spread: Array
    """(K,) of the answers."""

    @property
    def units(self) -> int:
        """Number of units of the first layer."""
        return len(self.model.biases[0])

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self.units + (len(self.model.biases[-1]) if self.model.skip is not None else 0)

    @property
    def n_equations(self) -> int:
        """Number of rows n K."""
        return int(self.answers.size)

    def fitted(self, start: Array) -> tuple[Array, float]:
        """Return the offsets that fit best from ``start``, and the largest residual over the spread."""
        # MINPACK's trust region: random starts far away end exact more often than with our damping.
        found = least_squares(
            lambda vector: -self.residual(vector),
            start,
            jac=lambda vector: self.linearise(vector).dense(),
            method="lm",
            xtol=1e-15,
            ftol=1e-15,
            gtol=1e-15,
        )
        return np.asarray(found.x, dtype=np.float64), float(np.abs(found.fun).max())

    def residual(self, vector: Array) -> Array:
        """Data minus model over the spread (n K,)."""
        left = (self.answers - self._moved(vector).values(self.points)) / self.spread
        return np.asarray(left.reshape(-1))

    def linearise(self, vector: Array) -> FormedJacobian:
        """Derivatives of the model over the spread."""
        now = self._moved(vector)
        every = now.sensitivities(now.forward(self.points).slopes)
        parts = [every[0], every[-1]] if self.size > self.units else [every[0]]
        joined = np.concatenate(parts, axis=2) / self.spread[None, :, None]
        return FormedJacobian(np.asarray(joined.reshape(-1, self.size)))

    def _moved(self, vector: Array) -> NetworkParameters:
        biases = [self.model.biases[0] + vector[: self.units], *self.model.biases[1:]]
        if self.size > self.units:
            biases[-1] = biases[-1] + vector[self.units :]
        return replace(self.model, biases=tuple(biases))
