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

On a lattice (`unweave.derivatives.lattice_jets`) the differences of the n-th power of w . x are

    second   D2_n(i,j)   = (w_i + w_j)^n - w_i^n - w_j^n
    third    D3_n(i,j,k) = (w_i + w_j + w_k)^n - (w_i + w_j)^n - (w_i + w_k)^n - (w_j + w_k)^n
                           + w_i^n + w_j^n + w_k^n,

so that with g_n the n-th derivative of g

    mirrored lattices   H  off by  h^2 g_4 D2_4 / 4!             T  off by  h^2 g_5 D3_5 / 5!
    forward lattices    T  off by  h g_4 D3_4 / 4! + h^2 g_5 D3_5 / 5!
                        H  off by  the same terms of D2, minus h/2 times T's at (i,i,j) and (i,j,j).

Without this error, units a thousand times weaker than the others come out of the spectrum. No queries,
n m d p flops.
"""

from __future__ import annotations

from dataclasses import replace
from math import factorial

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.gradient_rules import GradientRule, odd_power_gradient
from unweave.derivatives.lattice_jets import LatticeJets
from unweave.derivatives.stencils import Jets, Scheme
from unweave.networks.activations import Activation
from unweave.networks.parameters import NetworkParameters
from unweave.subspace.symmetric import symmetric_packing

_FOURTH_DERIVATIVE_STEP = 1e-4  # of the differences of g''': relative error 1e-8 + eps / 1e-4
_HIGHER_DERIVATIVE_STEP = 0.02  # gives g^(5) to 1e-6 and g^(7) to 1e-2 of itself: both enter small terms only
_LATTICE_DERIVATIVE_STEP = 1e-2  # of the differences of g''': errors of 1e-4 in terms that are small already


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


def fourth_derivative(activation: Activation, z: Array) -> Array:
    """Return the fourth derivative at ``z`` by differences of the third."""
    delta = _FOURTH_DERIVATIVE_STEP
    above, below = activation.jet(z + delta, 3)[3], activation.jet(z - delta, 3)[3]
    return np.asarray((above - below) / (2 * delta))


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
    fourth = fourth_derivative(model.activation, z)
    for output, weight in enumerate(outgoing.T):
        result[:, output] = jets.step**2 * (fourth * weight) @ quartic.T
    return result


def without_lattice_truncation(jets: LatticeJets, model: NetworkParameters) -> LatticeJets:
    """Return ``jets`` less the truncation that their differences have of ``model``."""
    step, mirrored = jets.step, jets.mirrored
    weights, outgoing = model.weights
    packing = symmetric_packing(len(weights))
    i, j, k = weights[packing.rows], weights[packing.columns], weights[:, None, :]
    fourth, fifth = _fourth_and_fifth(jets.sites @ weights + model.biases[0], model.activation)
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
    return replace(jets, hessians=hessians, thirds=thirds)


def _third_difference(i: Array, j: Array, k: Array, order: int) -> Array:
    pairs = (i + j) ** order + (i + k) ** order + (j + k) ** order
    return np.asarray((i + j + k) ** order - pairs + i**order + j**order + k**order)


def _summed(derivative: Array, outgoing: Array, powers: Array) -> Array:
    """sum_k g_n(z_k) a_k powers_k over the units: (n, K, ...) for powers (..., m)."""
    terms = derivative[:, None, :] * outgoing.T  # (n, K, m)
    return np.asarray(np.tensordot(terms, powers, axes=(2, powers.ndim - 1)))


def _fourth_and_fifth(z: Array, activation: Activation) -> tuple[Array, Array]:
    """Fourth and fifth derivatives of the activation."""
    step = _LATTICE_DERIVATIVE_STEP
    above, centre, below = (activation.jet(z + shift, 3)[3] for shift in (step, 0.0, -step))
    return (above - below) / (2 * step), (above - 2 * centre + below) / step**2
