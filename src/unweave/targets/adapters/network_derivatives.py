"""The derivatives of a `Network` that was given as target, in closed form."""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.entangled import network_gradients, network_hessians
from unweave.networks.network import Network
from unweave.targets.differentiation import Derivatives

_HESSIAN_POINTS_AT_ONCE = 32  # K full D x D Hessians each are formed at once


class NetworkDerivatives:
    """What backward passes through ``network`` would give; counted by the ledger as if they were."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def __call__(self, x: Array, directions: Array | None) -> Derivatives:
        """Return derivatives at rows ``x`` (n, D), with products along ``directions`` (D, d) if given."""
        values, gradients = self._network(x), network_gradients(self._network, x)
        if directions is None:
            return Derivatives(values, gradients)
        products = np.empty((*values.shape, directions.shape[1], x.shape[1]))
        for start in range(0, len(x), _HESSIAN_POINTS_AT_ONCE):
            block = slice(start, start + _HESSIAN_POINTS_AT_ONCE)
            products[block] = directions.T @ network_hessians(self._network, x[block])
        return Derivatives(values, gradients, products)
