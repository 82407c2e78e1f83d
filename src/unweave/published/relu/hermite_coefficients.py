"""Hermite coefficients of a ReLU network in closed form ([hermite] Lemma 3.5), and the risk they give.

For f(x) = sum_i a_i relu(w_i . x + b_i) + c with unit w_i, phi and Phi the normal density and distribution,

    T_0 = c + sum_i a_i (b_i Phi(b_i) + phi(b_i)),
    T_1 = sum_i a_i Phi(b_i) w_i,
    T_k = sum_i (-1)^k a_i He_{k-2}(b_i) phi(b_i) w_i^{(x) k},    k >= 2.

So T_2 sees every unit, T_3 not those with b = 0, T_4 not those with b = +-1. The risk of g in place of f
under standard Gaussian inputs is E (f - g)^2 = sum_k |T_k(f) - T_k(g)|_F^2 / k! (Prop. B.1).
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from unweave.arrays import Array
from unweave.numerics.hermite.symmetric_tensors import tensor_packing
from unweave.numerics.hermite.tensors import HermiteTensors, hermite_polynomial, normal_density
from unweave.published.relu.relu_units import ReLUUnits

ROOT_SEPARATION = (1.0, 0.618, 0.903, 1.428, 2.784, 5.985, 14.16, 36.70, 100.2)
"""Entry k: the least value of max(|He_k|, |He_{k+1}|) over the line, rounded down in the last digit. It is
what [hermite] Lemma 4.3 bounds; as printed, with sqrt(k! / 2), the bound fails for k >= 1."""


def relu_coefficient(order: int, biases: Array) -> Array:
    """E[relu(z + b) He_k(z)] for standard normal z, at each of ``biases`` (m,)."""
    if order == 0:
        return np.asarray(biases * ndtr(biases) + normal_density(biases))
    if order == 1:
        return np.asarray(ndtr(biases))
    return np.asarray((-1) ** order * hermite_polynomial(order - 2, biases) * normal_density(biases))


def hermite_coefficients(units: ReLUUnits, order: int) -> HermiteTensors:
    """T_0, ..., T_order of the units' function, exactly. O(m C(d + k - 1, k)) flops at order k.

    Example:
        >>> units = ReLUUnits(np.eye(2), np.array([0.0, 1.0]), np.array([1.0, -2.0]))
        >>> hermite_coefficients(units, 2).dense(2).round(3)
        array([[ 0.399,  0.   ],
               [ 0.   , -0.484]])
    """
    packed = []
    for k in range(order + 1):
        terms = units.outer * relu_coefficient(k, units.biases)
        packed.append(tensor_packing(units.dimension, k).powers(units.weights) @ terms)
    packed[0] = packed[0] + units.offset
    return HermiteTensors(units.dimension, tuple(packed))


def gaussian_risk(units: ReLUUnits, other: ReLUUnits, orders: int = 400) -> float:
    """E (f(x) - g(x))^2 for standard Gaussian x, by the first ``orders`` terms of the identity.

    The inner products <w^{(x) k}, v^{(x) k}> = (w . v)^k keep every order at (m + m')^2 flops. The terms fall
    like k^{-5/2}, so what is left out is of size orders^{-3/2}.
    """
    weights = np.concatenate([units.weights, other.weights], axis=1)
    biases = np.concatenate([units.biases, other.biases])
    outer = np.concatenate([units.outer, -other.outer])
    gram = weights.T @ weights
    constant = outer @ relu_coefficient(0, biases) + units.offset - other.offset
    linear = outer * relu_coefficient(1, biases)
    risk = float(constant**2 + linear @ gram @ linear)
    # h_k = He_k / sqrt(k!) stays bounded where He_k and k! overflow: He_{k-2}^2 / k! = h_{k-2}^2 / (k (k -
    # 1)).
    previous, current = np.zeros_like(biases), np.ones_like(biases)
    power = gram.copy()
    for k in range(2, orders):
        power *= gram
        terms = outer * current * normal_density(biases)
        risk += float(terms @ power @ terms) / (k * (k - 1))
        r = k - 2
        previous, current = current, (biases * current - np.sqrt(r) * previous) / np.sqrt(r + 1)
    return risk


def affine_surrogate_risk(biases: Array) -> Array:
    """E (relu(z + b) - surrogate)^2, surrogate z + b for b > 0 and 0 for b < 0 ([hermite] Lemma D.13).

    (1 + b^2) Phi(-|b|) - |b| phi(b): what is lost by calling a strongly biased unit affine.
    """
    size = np.abs(biases)
    return np.asarray((1 + size**2) * ndtr(-size) - size * normal_density(size))
