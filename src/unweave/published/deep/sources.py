"""Sources of values, gradients and Hessians: differences of answers, or a known network."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.entangled import network_gradients, network_hessians
from unweave.derivatives.stencils import Function, Scheme, gradient_jets, hessian_jets
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.subspace.symmetric import symmetric_packing

_POINTS_PER_BLOCK = 4  # points whose K full D x D Hessians are formed at once: limits memory


@runtime_checkable
class DerivativeSource(Protocol):
    """Values and derivatives of a function of D inputs and K outputs."""

    rows: int
    """Rows asked of the function so far; what was computed without asking does not count."""

    def values(self, points: Array) -> Array:
        """(n, K) at ``points`` (n, D)."""

    def gradients(self, points: Array) -> Array:
        """(n, K, D) at ``points`` (n, D)."""

    def hessians(self, points: Array) -> Array:
        """(n, K, p) packed (`unweave.subspace.SymmetricPacking`) at ``points`` (n, D)."""


class DifferencedFunction:
    """Derivatives by central differences of answers, rows counted.

    With the four-point scheme a Hessian of all outputs costs 2 D^2 + 1 rows, a gradient 2 D + 1.
    """

    def __init__(self, function: Function, step: float = 5e-3, scheme: Scheme = "four-point") -> None:
        self._function, self._step, self._scheme = function, step, scheme
        self.rows = 0

    def values(self, points: Array) -> Array:
        """(n, K)."""
        answers = np.asarray(self._function(points), dtype=np.float64)
        self.rows += len(points)
        if answers.ndim != 2 or len(answers) != len(points):
            raise InvalidInput(
                f"function must map (n, D) to (n, K). Got {answers.shape} for {points.shape} instead. "
                "Return one row per point, also for a single output."
            )
        return answers

    def gradients(self, points: Array) -> Array:
        """(n, K, D), error O(step^2)."""
        return gradient_jets(self.values, points, self._step).gradients

    def hessians(self, points: Array) -> Array:
        """(n, K, p), error O(step^2) + rounding / step^2."""
        hessians = hessian_jets(self.values, points, self._step, self._scheme).hessians
        assert hessians is not None
        return hessians


class ExactDerivatives:
    """Closed-form derivatives of a network that is known: the source's "exact" columns."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.rows = 0

    def values(self, points: Array) -> Array:
        """(n, K)."""
        self.rows += len(points)
        return self._network(points)

    def gradients(self, points: Array) -> Array:
        """(n, K, D)."""
        return network_gradients(self._network, points)

    def hessians(self, points: Array) -> Array:
        """(n, K, p)."""
        packing = symmetric_packing(self._network.n_inputs)
        result = np.empty((len(points), self._network.n_outputs, packing.size))
        for start in range(0, len(points), _POINTS_PER_BLOCK):
            block = slice(start, start + _POINTS_PER_BLOCK)
            result[block] = packing.pack(network_hessians(self._network, points[block]))
        return result
