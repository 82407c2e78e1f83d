"""What differences make of a network with one hidden layer: its gradients, and the error of its Hessians.

Central differences of step h are the network's own difference quotients

    (f(x + h e) - f(x - h e)) / 2h = f'(x) e + h^2/6 f'''(x) e^3 + h^4/120 f^(5)(x) e^5 + ...

For a unit g(w . x + b) the second difference along q is

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
from unweave.derivatives.gradient_rules import GradientRule, odd_power_gradient
from unweave.derivatives.stencils import Jets, Scheme
from unweave.networks.activations import Activation
from unweave.networks.parameters import NetworkParameters
from unweave.subspace.symmetric import symmetric_packing

_FOURTH_DERIVATIVE_STEP = 1e-4  # of the differences of g''': relative error 1e-8 + eps / 1e-4
_HIGHER_DERIVATIVE_STEP = 0.02  # gives g^(5) to 1e-6 and g^(7) to 1e-2 of itself: both enter small terms only


def difference_gradients(
    model: NetworkParameters, points: Array, step: float, rule: GradientRule = "axes"
) -> Array:
    """Gradients (n, K, d) by ``rule`` with ``step``, to seventh order, of ``model`` at ``points`` (n, d)."""
    weights, outgoing = model.weights
    z = points @ weights + model.biases[0]
    if rule == "exact":
        terms = [(model.activation.jet(z, 1)[1], weights)]
    else:
        first, third, fifth, seventh = _odd_derivatives(model.activation, z)
        terms = [
            (first, weights),
            (third, step**2 / 6 * odd_power_gradient(weights, 3, rule)),
            (fifth, step**4 / 120 * odd_power_gradient(weights, 5, rule)),
            (seventh, step**6 / 5040 * odd_power_gradient(weights, 7, rule)),
        ]
    result = np.empty((len(points), outgoing.shape[1], points.shape[1]))
    for output, weight in enumerate(outgoing.T):
        result[:, output] = sum(((factor * weight) @ power.T for factor, power in terms), start=0.0)
    return result if model.skip is None else result + model.skip.T


def _odd_derivatives(activation: Activation, z: Array) -> tuple[Array, Array, Array, Array]:
    """Derivatives of order 1 and 3 and, by differences of the third, of order 5 and 7."""
    delta = _HIGHER_DERIVATIVE_STEP
    _, first, _, third = activation.jet(z, 3)
    near, far = (activation.jet(z + k * delta, 3)[3] + activation.jet(z - k * delta, 3)[3] for k in (1, 2))
    fifth = (16 * near - far - 30 * third) / (12 * delta**2)
    seventh = (far - 4 * near + 6 * third) / delta**4
    return first, third, fifth, seventh


def hessian_truncation(model: NetworkParameters, jets: Jets, scheme: Scheme) -> Array:
    """Leading truncation error (n, K, p) of the packed Hessians of ``jets`` if ``model`` were the target."""
    w, outgoing = model.weights
    packing = symmetric_packing(len(w))
    result = np.zeros((len(jets), outgoing.shape[1], packing.size))
    if scheme == "richardson":
        return result  # cancelled already
    first, second = w[packing.rows], w[packing.columns]
    diagonal = (packing.rows == packing.columns)[:, None]
    if scheme == "four-point":
        beside = (first**3 * second + first * second**3) / 6
    else:
        beside = ((first + second) ** 4 - first**4 - second**4) / 24
    quartic = np.where(diagonal, first**4 / 12, beside) * packing.scale[:, None]  # (p, m)
    z = jets.sites @ w + model.biases[0]
    delta = _FOURTH_DERIVATIVE_STEP
    above, below = model.activation.jet(z + delta, 3)[3], model.activation.jet(z - delta, 3)[3]
    fourth = (above - below) / (2 * delta)
    for output, weight in enumerate(outgoing.T):
        result[:, output] = jets.step**2 * (fourth * weight) @ quartic.T
    return result
