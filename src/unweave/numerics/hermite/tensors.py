"""The Hermite coefficients of a function on R^d, order by order, in packed form.

With the Hermite tensors He_k(x) = (-1)^k gamma(x)^{-1} D^k gamma(x), gamma = exp(-|x|^2 / 2), whose entry
at a multi-index with multiplicities n_j is prod_j He_{n_j}(x_j), a function of standard Gaussian inputs is

    f(x) = sum_k <T_k, He_k(x)> / k!,        T_k = E[ f(x) He_k(x) ]   (symmetric of order k).

He_k(x)[u, ..., u] = He_k(u . x) for unit u, and He_k(P^T x) = He_k(x)[P, ..., P] for orthonormal P.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.numerics.hermite.symmetric_tensors import outer_positions, tensor_packing

_ROOT_TWO_PI = np.sqrt(2 * np.pi)


def hermite_polynomial(order: int, x: Array) -> Array:
    """He_k(x), probabilists' normalisation: He_{r+1} = x He_r - r He_{r-1}."""
    previous, current = np.zeros_like(x, dtype=np.float64), np.ones_like(x, dtype=np.float64)
    for r in range(order):
        previous, current = current, x * current - r * previous
    return current


def normal_density(x: Array) -> Array:
    """phi(x) = exp(-x^2 / 2) / sqrt(2 pi)."""
    return np.asarray(np.exp(-0.5 * np.square(x)) / _ROOT_TWO_PI)


@dataclass(frozen=True, eq=False)
class HermiteTensors:
    """T_0, ..., T_K of one function."""

    dimension: int
    packed: tuple[Array, ...]
    """Entry k: (p_k,) the entries of T_k at sorted multi-indices."""

    @property
    def order(self) -> int:
        """K"""
        return len(self.packed) - 1

    def at(self, order: int) -> Array:
        """Packed T_k, or an error that says which orders there are."""
        if not 0 <= order <= self.order:
            raise InvalidInput(
                f"order must be between 0 and {self.order}, the orders that were computed. Got {order} "
                f"instead. Ask for a higher order when computing the coefficients."
            )
        return self.packed[order]

    def dense(self, order: int) -> Array:
        """The full T_k, of shape (d, ..., d)."""
        return tensor_packing(self.dimension, order).dense(self.at(order))

    def norm(self, order: int) -> float:
        """Frobenius norm of the full T_k."""
        return float(np.linalg.norm(self.isometric(order)))

    def isometric(self, order: int) -> Array:
        """(p_k,) packed T_k times sqrt(multiplicity): Euclidean norms are Frobenius norms."""
        return self.at(order) * tensor_packing(self.dimension, order).scale

    def flattened(self, *orders: int) -> Array:
        """T_k with its modes in groups of the given orders (summing to k), each group packed isometrically.

        A term lambda w^{(x) k} becomes lambda times the outer product of the packed w^{(x) k_1}, w^{(x) k_2},
        ..., all of them unit vectors for unit w. Dividing out the symmetry of every group leaves singular
        values and eigenvectors what they are in the full flattening.
        """
        result = self.at(sum(orders))[outer_positions(self.dimension, *orders)]
        for axis, order in enumerate(orders):
            shape = [1] * len(orders)
            shape[axis] = -1
            result = result * tensor_packing(self.dimension, order).scale.reshape(shape)
        return np.asarray(result)

    def along(self, order: int, weights: Array) -> Array:
        """(m,) T_k[w_i, ..., w_i] for columns of ``weights`` (d, m)."""
        packing = tensor_packing(self.dimension, order)
        return np.asarray((self.at(order) * packing.multiplicity) @ packing.powers(weights))

    def plus(self, other: HermiteTensors, factor: float = 1.0) -> HermiteTensors:
        """Coefficients of f + factor g; orders that one of them lacks count as zero."""
        longer, shorter = sorted((self.packed, other.packed), key=len, reverse=True)
        own, more = (1.0, factor) if longer is self.packed else (factor, 1.0)
        total = [own * entry for entry in longer]
        for k, entry in enumerate(shorter):
            total[k] = total[k] + more * entry
        return HermiteTensors(self.dimension, tuple(total))

    def __call__(self, x: Array) -> Array:
        """sum_k <T_k, He_k(x)> / k! at x (n, d)."""
        values = np.zeros(len(x))
        for k, features in enumerate(hermite_features(x, self.order)):
            packing = tensor_packing(self.dimension, k)
            values += (self.packed[k] * packing.multiplicity / factorial(k)) @ features
        return values


def hermite_features(x: Array, order: int) -> list[Array]:
    """Entry k: (p_k, n) the packed He_k(x), for k = 0 .. order.

    From alpha = (prefix, j) with j already c times in the prefix,
    He_alpha = x_j He_prefix - c He_{prefix without its last j}.
    """
    coordinates = np.ascontiguousarray(x.T)
    features = [np.ones((1, len(x)))]
    for k in range(1, order + 1):
        packing = tensor_packing(x.shape[1], k)
        entry = features[k - 1][packing.parent] * coordinates[packing.indices[:, -1]]
        again = np.flatnonzero(packing.repeats)
        if len(again):
            lowered = features[k - 2][packing.grandparent[again]]
            entry[again] -= packing.repeats[again, None] * lowered
        features.append(entry)
    return features


def monomial_features(x: Array, order: int) -> list[Array]:
    """Entry k: (p_k, n) the products x_{alpha_1} ... x_{alpha_k}, for k = 0 .. order."""
    coordinates = np.ascontiguousarray(x.T)
    features = [np.ones((1, len(x)))]
    for k in range(1, order + 1):
        packing = tensor_packing(x.shape[1], k)
        features.append(features[k - 1][packing.parent] * coordinates[packing.indices[:, -1]])
    return features
