"""Exact gradients and Hessians of a known `Network` of any depth.

Both are read off the network's entangled weights (`unweave.derivatives.entangled`). Used as an oracle
against differences, and for whatever needs derivatives of a network that is known; never for a target.
"""

from __future__ import annotations

from unweave.arrays import Array
from unweave.derivatives.entangled import entangled_weights, hessian_terms
from unweave.networks.network import Network


def network_gradients(network: Network, points: Array) -> Array:
    """Gradients (n, K, D) of all outputs at ``points`` (n, D)."""
    return entangled_weights(network, points).gradients()


def network_hessians(network: Network, points: Array) -> Array:
    """Hessians (n, K, D, D) of all outputs at ``points`` (n, D): O(n K D^2 sum of widths) flops."""
    return hessian_terms(network, points).hessians()
