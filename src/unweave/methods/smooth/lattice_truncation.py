"""The truncation error of lattice differences, predicted from a fitted network.

A neuron g(w . x + b) on a lattice of step h is a power series in h, and the differences of its n-th power are

    second   D2_n(i,j)   = (w_i + w_j)^n - w_i^n - w_j^n
    third    D3_n(i,j,k) = (w_i + w_j + w_k)^n - (w_i + w_j)^n - (w_i + w_k)^n - (w_j + w_k)^n
                           + w_i^n + w_j^n + w_k^n,

so that with g_n the n-th derivative

    mirrored lattices   H  off by  h^2 g_4 D2_4 / 4!             T  off by  h^2 g_5 D3_5 / 5!
    forward lattices    T  off by  h g_4 D3_4 / 4! + h^2 g_5 D3_5 / 5!
                        H  off by  the same terms of D2, minus h/2 times T's at (i,i,j) and (i,j,j).

A network known to relative accuracy e predicts its own truncation to the same accuracy; without it, neurons
a thousand times weaker than the others come out of the spectrum. No queries, n m d p flops.
"""

from __future__ import annotations

from math import factorial

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.lattice_jets import LatticeJets
from unweave.networks.activations import Activation
from unweave.networks.parameters import NetworkParameters
from unweave.subspace.symmetric import symmetric_packing

_DIFFERENCE = 1e-2  # step of the differences of g''': errors of 1e-4 in terms that are small already


def without_truncation(
    jets: LatticeJets, model: NetworkParameters, step: float, mirrored: bool
) -> LatticeJets:
    """The jets without the truncation of ``model``, in whose coordinates ``step`` is measured."""
    weights, outgoing = model.weights
    packing = symmetric_packing(len(weights))
    i, j, k = weights[packing.rows], weights[packing.columns], weights[:, None, :]
    fourth, fifth = _higher_derivatives(jets.sites @ weights + model.biases[0], model.activation)
    hessians, thirds = jets.hessians.copy(), jets.thirds.copy()
    for order, derivative in ((4, fourth), (5, fifth)):
        factor = step ** (order - 3) / factorial(order)
        if order == 5 or not mirrored:
            by_third = factor * packing.scale[:, None] * _third_difference(i, j, k, order)
            thirds -= _summed(derivative, outgoing, by_third)
        if order == 4 or not mirrored:
            by_second = step * factor * ((i + j) ** order - i**order - j**order)
            if not mirrored:
                doubled = _third_difference(i, i, j, order) + _third_difference(i, j, j, order)
                by_second -= step / 2 * factor * doubled
            hessians -= _summed(derivative, outgoing, packing.scale[:, None] * by_second)
    return LatticeJets(jets.sites, hessians, thirds)


def _third_difference(i: Array, j: Array, k: Array, order: int) -> Array:
    pairs = (i + j) ** order + (i + k) ** order + (j + k) ** order
    return np.asarray((i + j + k) ** order - pairs + i**order + j**order + k**order)


def _summed(derivative: Array, outgoing: Array, powers: Array) -> Array:
    """sum_k g_n(z_k) a_k powers_k over the neurons: (n, K, ...) for powers (..., m)."""
    terms = derivative[:, None, :] * outgoing.T  # (n, K, m)
    return np.asarray(np.tensordot(terms, powers, axes=(2, powers.ndim - 1)))


def _higher_derivatives(z: Array, activation: Activation) -> tuple[Array, Array]:
    """Fourth and fifth derivatives of the activation."""
    above, centre, below = (activation.jet(z + shift, 3)[3] for shift in (_DIFFERENCE, 0.0, -_DIFFERENCE))
    return (above - below) / (2 * _DIFFERENCE), (above - 2 * centre + below) / _DIFFERENCE**2
