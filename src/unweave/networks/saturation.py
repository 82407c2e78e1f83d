"""Activations that level off at -1 and 1, and the logistic one rewritten as tanh.

Recovery layer by layer needs an odd g with g(+-inf) = +-1 and its inverse: far out every unit is a sign,
and a known layer is undone by z = g^{-1}(y). The logistic function is (1 + tanh(z/2))/2, so its networks
are tanh networks with other numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.networks.activations import Activation, get_activation
from unweave.networks.network import Network


@dataclass(frozen=True)
class Saturating:
    """An odd activation with limits +-1 and its inverse."""

    activation: Activation

    @property
    def name(self) -> str:
        """Registered name."""
        return self.activation.name

    def inverse(self, y: Array) -> Array:
        """Return z with g(z) = y, elementwise."""
        assert self.activation.inverse is not None
        return self.activation.inverse(y)

    def values(self, z: Array) -> Array:
        """Return g(z)."""
        return self.activation.jet(z, 0)[0]

    def slopes(self, z: Array) -> tuple[Array, Array]:
        """Return g'(z) and g''(z)."""
        _, first, second = self.activation.jet(z, 2)
        return first, second

    def bending(self, z: Array) -> tuple[Array, Array]:
        """Return r(z) = g''(z) / g'(z) and r'(z), which stay finite where g' vanishes."""
        if self.name == "tanh":
            y = np.tanh(z)
            return -2 * y, -2 * (1 - y) * (1 + y)
        return -2 * z, np.full_like(z, -2.0)  # erf


TANH = Saturating(get_activation("tanh"))
ERF = Saturating(get_activation("erf"))


def as_logistic(network: Network) -> Network:
    """Rewrite a tanh network with logistic hidden units instead of tanh: tanh(z) = 2 logistic(2z) - 1.

    W' = 2 W and b' = 2 b feed the units; a layer that reads them has 2 W and b - colsum(W) instead.
    """
    weights = [np.array(w) for w in network.weights]
    biases = [np.array(b) for b in network.biases]
    for layer in range(len(weights) - 1):
        weights[layer] *= 2
        biases[layer] *= 2
        biases[layer + 1] -= weights[layer + 1].sum(axis=0)
        weights[layer + 1] *= 2
    hidden = ["sigmoid"] * (len(weights) - 1)
    return Network(weights, biases, [*hidden, network.activations[-1]])
