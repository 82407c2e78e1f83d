"""The truncation error of mirrored lattice differences, predicted from a fitted network.

For a neuron g(w . x + b) with v_i = w_i the differences of a mirrored lattice of step h are, to leading order,

    H_ij   off by   h^2 g^(4) [(v_i + v_j)^4 - v_i^4 - v_j^4] / 24
    T_ijk  off by   h^2 g^(5) [(v_i + v_j + v_k)^5 - (v_i + v_j)^5 - (v_i + v_k)^5 - (v_j + v_k)^5
                               + v_i^5 + v_j^5 + v_k^5] / 120.

A network known to relative accuracy e predicts its own truncation to the same accuracy; without it, neurons
a thousand times weaker than the others come out of the spectrum. No queries, n m d p flops.
"""

from __future__ import annotations

import numpy as np

from unweave.activations import Activation
from unweave.arrays import Array
from unweave.derivatives.lattice_jets import LatticeJets
from unweave.smooth.shallow_model import ShallowModel
from unweave.subspace.symmetric import symmetric_packing

_DIFFERENCE = 1e-2  # step of the differences of g''': errors of 1e-4 in terms that are small already


def without_truncation(jets: LatticeJets, model: ShallowModel, step: float) -> LatticeJets:
    """The jets without the truncation of ``model``, in whose coordinates ``step`` is measured."""
    d = len(model.weights)
    packing = symmetric_packing(d)
    v = model.weights
    first, second, third = v[packing.rows], v[packing.columns], v[:, None, :]  # (p, m), (p, m), (d, 1, m)
    pair = first + second
    scale = packing.scale[:, None]
    quartic = scale * (pair**4 - first**4 - second**4) / 24
    quintic = (pair + third) ** 5 - (first + third) ** 5 - (second + third) ** 5 + third**5
    quintic = scale * (quintic - pair**5 + first**5 + second**5) / 120  # (d, p, m)
    fourth, fifth = _higher_derivatives(jets.sites @ v + model.biases, model.activation)
    hessians, thirds = np.empty_like(jets.hessians), np.empty_like(jets.thirds)
    for output, outgoing in enumerate(model.outgoing.T):
        hessians[:, output] = (fourth * outgoing) @ quartic.T
        thirds[:, output] = ((fifth * outgoing) @ quintic.reshape(-1, len(outgoing)).T).reshape(
            thirds[:, output].shape
        )
    return LatticeJets(jets.sites, jets.hessians - step**2 * hessians, jets.thirds - step**2 * thirds)


def _higher_derivatives(z: Array, activation: Activation) -> tuple[Array, Array]:
    """Fourth and fifth derivatives of the activation."""
    above, centre, below = (activation.jet(z + shift, 3)[3] for shift in (_DIFFERENCE, 0.0, -_DIFFERENCE))
    return (above - below) / (2 * _DIFFERENCE), (above - 2 * centre + below) / _DIFFERENCE**2
