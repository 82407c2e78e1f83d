"""One hidden layer of ReLU units in normal form, its Hermite coefficients, and the risk they give.

    f(x) = sum_i a_i relu(w_i . x + b_i) + c,        |w_i| = 1.

A ReLU is homogeneous, (a, w, b) and (a t, w / t, b / t) are the same unit for t > 0, so the length of w is
free and is taken to be one. The offset c is the output's own bias.

Its Hermite coefficients have a closed form ([hermite] Lemma 3.5). With phi and Phi the normal density and
distribution,

    T_0 = c + sum_i a_i (b_i Phi(b_i) + phi(b_i)),
    T_1 = sum_i a_i Phi(b_i) w_i,
    T_k = sum_i (-1)^k a_i He_{k-2}(b_i) phi(b_i) w_i^{(x) k},    k >= 2.

So T_2 sees every unit, T_3 not those with b = 0, T_4 not those with b = +-1. The risk of g in place of f
under standard Gaussian inputs is E (f - g)^2 = sum_k |T_k(f) - T_k(g)|_F^2 / k! (Prop. B.1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.networks.network import Network
from unweave.numerics.hermite.symmetric_tensors import tensor_packing
from unweave.numerics.hermite.tensors import HermiteTensors, hermite_polynomial, normal_density
from unweave.numerics.whitening import Whitening

ROOT_SEPARATION = (1.0, 0.618, 0.903, 1.428, 2.784, 5.985, 14.16, 36.70, 100.2)
"""Entry k: the least value of max(|He_k|, |He_{k+1}|) over the line, rounded down in the last digit. It is
what [hermite] Lemma 4.3 bounds; as printed, with sqrt(k! / 2), the bound fails for k >= 1."""


@dataclass(frozen=True, eq=False)
class ReLUUnits:
    """m units on d inputs with one output."""

    weights: Array
    """w, (d, m); columns of length one."""
    biases: Array
    """b, (m,)."""
    outer: Array
    """a, (m,)."""
    offset: float = 0.0
    """c"""

    def __call__(self, x: Array) -> Array:
        """Values (n,) at x (n, d)."""
        return np.asarray(np.maximum(x @ self.weights + self.biases, 0) @ self.outer + self.offset)

    @property
    def width(self) -> int:
        """m"""
        return len(self.biases)

    @property
    def dimension(self) -> int:
        """d"""
        return len(self.weights)

    def lifted(self, basis: Array) -> ReLUUnits:
        """The units on x whose inputs are basis^T x, for orthonormal columns of ``basis`` (D, d)."""
        return ReLUUnits(basis @ self.weights, self.biases, self.outer, self.offset)

    def unwhitened(self, whitening: Whitening) -> ReLUUnits:
        """The units on x whose inputs are whitening(x), renormalised."""
        return ReLUUnits.normalised(
            *whitening.affine_back(self.weights, self.biases), self.outer, self.offset
        )

    def to_network(self) -> Network:
        """The same function as a `Network` with one hidden layer."""
        return Network(
            [self.weights, self.outer[:, None]], [self.biases, np.array([self.offset])], ["relu", "identity"]
        )

    @staticmethod
    def normalised(weights: Array, biases: Array, outer: Array, offset: float = 0.0) -> ReLUUnits:
        """Units with weights (d, m) of any length; those without weights only move the offset."""
        lengths = np.linalg.norm(weights, axis=0)
        alive = lengths > 0
        constant = float(np.maximum(biases[~alive], 0) @ outer[~alive])
        lengths = lengths[alive]
        return ReLUUnits(
            weights[:, alive] / lengths, biases[alive] / lengths, outer[alive] * lengths, offset + constant
        )

    @staticmethod
    def of_network(network: Network) -> ReLUUnits:
        """The units of a network with one hidden ReLU layer, one output and no skip."""
        if network.activations != ("relu", "identity") or network.n_outputs != 1 or network.skip is not None:
            raise InvalidInput(
                f"network must have one hidden relu layer, one identity output and no skip. "
                f"Got {network!r} instead. Take one output at a time, and fit the affine part away first."
            )
        (inner, outer), (biases, offset) = network.weights, network.biases
        return ReLUUnits.normalised(inner, biases, outer[:, 0], float(offset[0]))


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
