"""The truncation error of difference Hessians, predicted from a fitted network and taken away.

For a neuron g(w . x + b) the second difference along q is

    S(q)/h^2 = g'' (w.q)^2 + h^2/12 g'''' (w.q)^4 + O(h^4),

so the compact Hessian is off by h^2 g'''' times (w_i^4)/12 on the diagonal and
((w_i+w_j)^4 - w_i^4 - w_j^4)/24 beside it; the four-point one by (w_i^3 w_j + w_i w_j^3)/6 there. A network
that is known to relative accuracy e predicts its own truncation to the same accuracy: subtracting it
leaves e times the old error. One n x m x p matrix product, no queries. With it the step may be large,
where round-off is small.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.stencils import Jets, Scheme
from unweave.networks.shallow_model import ShallowModel
from unweave.subspace.symmetric import symmetric_packing

_FOURTH_DERIVATIVE_STEP = 1e-4


def hessian_truncation(model: ShallowModel, jets: Jets, scheme: Scheme) -> Array:
    """Leading truncation error (n, K, p) of the packed Hessians of ``jets`` if ``model`` were the target."""
    packing = symmetric_packing(model.weights.shape[0])
    w = model.weights
    first, second = w[packing.rows], w[packing.columns]
    diagonal = (packing.rows == packing.columns)[:, None]
    if scheme == "four-point":
        beside = (first**3 * second + first * second**3) / 6
    else:
        beside = ((first + second) ** 4 - first**4 - second**4) / 24
    quartic = np.where(diagonal, first**4 / 12, beside) * packing.scale[:, None]  # (p, m)
    z = jets.sites @ w + model.biases
    delta = _FOURTH_DERIVATIVE_STEP
    above, below = model.activation.jet(z + delta, 3)[3], model.activation.jet(z - delta, 3)[3]
    fourth = (above - below) / (2 * delta)
    if scheme == "richardson":
        return np.zeros((len(jets), model.outgoing.shape[1], packing.size))  # cancelled already
    result = np.empty((len(jets), model.outgoing.shape[1], packing.size))
    for output in range(model.outgoing.shape[1]):
        result[:, output] = jets.step**2 * (fourth * model.outgoing[:, output]) @ quartic.T
    return result
