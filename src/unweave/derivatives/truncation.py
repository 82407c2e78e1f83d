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

of which only the terms that hold every index are left,

    D2_4 / 4! = w_i w_j (w_i^2/6 + w_i w_j/4 + w_j^2/6)          D3_4 / 4! = w_i w_j w_k (w_i + w_j + w_k) / 2
    D3_5 / 5! = w_i w_j w_k [(w_i^2 + w_j^2 + w_k^2)/6 + (w_i w_j + w_i w_k + w_j w_k)/4],

so that with g_n the n-th derivative of g

    mirrored lattices   H  off by  h^2 g_4 D2_4 / 4!             T  off by  h^2 g_5 D3_5 / 5!
    forward lattices    T  off by  h g_4 D3_4 / 4! + h^2 g_5 D3_5 / 5!
                        H  off by  the same terms of D2, minus h/2 times T's at (i,i,j) and (i,j,j).

Without this error, units a thousand times weaker than the others come out of the spectrum. No queries,
n m d p flops.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.gradient_rules import GradientRule, power_gradient
from unweave.derivatives.lattice_jets import LatticeJets
from unweave.derivatives.stencils import Jets, Scheme
from unweave.networks.activations import Activation
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.clock import check
from unweave.subspace.symmetric import symmetric_packing

_FOURTH_DERIVATIVE_STEP = 1e-4  # of the differences of g''': relative error 1e-8 + eps / 1e-4
_HIGHER_DERIVATIVE_STEP = 0.02  # gives g^(5) to 1e-6 and g^(7) to 1e-2 of itself: both enter small terms only
_LATTICE_DERIVATIVE_STEP = 1e-2  # of the differences of g''': errors of 1e-4 in terms that are small already
_STAR_ENTRIES = 1 << 17  # moved units held at once: they stay in the second-level cache


def difference_gradients(
    model: NetworkParameters, points: Array, step: float, rule: GradientRule = "axes"
) -> Array:
    """Gradients (n, K, d) by ``rule`` with ``step`` of ``model`` at ``points`` (n, d).

    Central differences are summed to seventh order, forward ones are taken as they are.
    """
    if rule == "forward" and step > 0:
        return _forward_gradients(model, points, step)
    weights, outgoing = model.weights
    z = points @ weights + model.biases[0]
    if rule == "exact" or step == 0:
        terms = [(model.activation.jet(z, 1)[1], weights)]
    else:
        first, third, fifth, seventh = _odd_derivatives(model.activation, z)
        terms = [
            (first, weights),
            (third, step**2 / 6 * power_gradient(weights, 3, rule)),
            (fifth, step**4 / 120 * power_gradient(weights, 5, rule)),
            (seventh, step**6 / 5040 * power_gradient(weights, 7, rule)),
        ]
    result = np.empty((len(points), outgoing.shape[1], points.shape[1]))
    for output, weight in enumerate(outgoing.T):
        result[:, output] = sum(((factor * weight) @ power.T for factor, power in terms), start=0.0)
    return result if model.skip is None else result + model.skip.T


def _forward_gradients(model: NetworkParameters, points: Array, step: float) -> Array:
    """Take differences of the units' own values: a series in the step would need many terms."""
    weights, outgoing = model.weights
    (d, m), outputs = weights.shape, outgoing.shape[1]
    z, moves = points @ weights + model.biases[0], step * weights
    values, slopes = model.activation(z), outgoing / step
    result = np.empty((len(points), d, outputs))
    at_once = max(1, _STAR_ENTRIES // (d * m))
    for start in range(0, len(points), at_once):
        check()
        part = slice(start, start + at_once)
        moved = z[part, None, :] + moves
        model.activation.apply_in_place(moved)
        moved -= values[part, None, :]
        result[part] = (moved.reshape(-1, m) @ slopes).reshape(-1, d, outputs)
    gradients = np.ascontiguousarray(result.transpose(0, 2, 1))
    return gradients if model.skip is None else gradients + model.skip.T


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
    h, (weights, outgoing) = jets.step, model.weights
    (d, m), packing = weights.shape, symmetric_packing(len(weights))
    i, j = weights[packing.rows], weights[packing.columns]
    product = packing.scale[:, None] * i * j  # (p, m)
    summed, squares, mixed = product * (i + j), i**2 + j**2, product * (i**2 / 6 + i * j / 4 + j**2 / 6)
    derivatives = _fourth_and_fifth(jets.sites @ weights + model.biases[0], model.activation)
    fourth, fifth = ((each[:, None, :] * outgoing.T).reshape(-1, m) for each in derivatives)  # (n K, m)
    if jets.mirrored:
        hessians = h**2 * fourth @ mixed.T
        fourth = np.zeros_like(fourth)  # even derivatives leave third differences alone
    else:
        hessians = h**2 * fourth @ (mixed - product * (squares + i * j) / 2).T
        hessians -= h**3 * fifth @ (summed * squares / 4).T
    check()
    by_first, by_second = h * fourth[:, None, :] / 2, h**2 * fifth[:, None, :]
    thirds = np.zeros((len(fourth) * d, packing.size))
    for factor, powers in (
        (product, by_first * weights**2 + by_second / 6 * weights**3),
        (summed, by_first * weights + by_second / 4 * weights**2),
        (mixed, by_second * weights),
    ):
        thirds += powers.reshape(-1, m) @ factor.T
    return replace(
        jets,
        hessians=jets.hessians - hessians.reshape(jets.hessians.shape),
        thirds=jets.thirds - thirds.reshape(jets.thirds.shape),
    )


def _fourth_and_fifth(z: Array, activation: Activation) -> tuple[Array, Array]:
    """Fourth and fifth derivatives of the activation."""
    step = _LATTICE_DERIVATIVE_STEP
    above, centre, below = (activation.jet(z + shift, 3)[3] for shift in (step, 0.0, -step))
    return (above - below) / (2 * step), (above - 2 * centre + below) / step**2
