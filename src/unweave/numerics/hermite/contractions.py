"""Contractions of T_3 and T_4 from samples in O(d^2) memory.

For x (n, d), y (n,), means over the rows, s_0 = mean y, s_1 = mean y x, S_2 = mean y x x^T, and symmetric G,

    T_3[g] = mean y (g.x) x x^T - (g.s_1) I - s_1 g^T - g s_1^T,
    T_4[G] = mean q x x^T - tr(G) S_2 - mean(q) I - 2 (S_2 G + G S_2) + s_0 (tr(G) I + 2 G),   q = y x^T G x,
    T_k[w, .., w] = mean y He_k(w . x)    for unit w.

Nothing of size d^3 is formed: d = 1000 needs 8 MB per contraction, O(n d^2) flops each.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.numerics.hermite.tensors import hermite_polynomial

_CONTRACTED_ROWS = 8192  # rows multiplied at once, so that the products of a block stay small


def directional_coefficients(x: Array, y: Array, weights: Array, order: int) -> Array:
    """(m,) T_k[w_i, ..., w_i] for unit columns of ``weights`` (d, m)."""
    total = np.zeros(weights.shape[1])
    for start in range(0, len(y), _CONTRACTED_ROWS):
        projections = x[start : start + _CONTRACTED_ROWS] @ weights
        total += y[start : start + _CONTRACTED_ROWS] @ hermite_polynomial(order, projections)
    return total / len(y)


class SampleContractions:
    """T_2, T_3[g] and T_4[G] of one set of samples, with the low moments computed once."""

    def __init__(self, x: Array, y: Array) -> None:
        self._x, self._y = x, y
        self.mean = float(y.mean())
        """s_0 = T_0"""
        self.first = np.asarray(y @ x / len(y))
        """s_1 = T_1 (d,)"""
        self._second = _weighted_gram(x, y)

    @property
    def second(self) -> Array:
        """T_2 (d, d)."""
        return np.asarray(self._second - self.mean * np.eye(len(self.first)))

    def third(self, vector: Array) -> Array:
        """T_3[g] (d, d) for g (d,)."""
        cross = np.outer(self.first, vector)
        raw = _weighted_gram(self._x, self._y * (self._x @ vector))
        return np.asarray(raw - (vector @ self.first) * np.eye(len(vector)) - cross - cross.T)

    def fourth(self, matrix: Array) -> Array:
        """T_4[G] (d, d) for symmetric G (d, d)."""
        weights = self._y * np.einsum("ni,ni->n", self._x @ matrix, self._x)
        identity, trace = np.eye(len(matrix)), np.trace(matrix)
        mixed = self._second @ matrix
        correction = trace * self._second + weights.mean() * identity + 2 * (mixed + mixed.T)
        return np.asarray(
            _weighted_gram(self._x, weights) - correction + self.mean * (trace * identity + 2 * matrix)
        )


def _weighted_gram(x: Array, weights: Array) -> Array:
    """mean of weight x x^T, in blocks."""
    total = np.zeros((x.shape[1], x.shape[1]))
    for start in range(0, len(weights), _CONTRACTED_ROWS):
        part = x[start : start + _CONTRACTED_ROWS]
        total += (part * weights[start : start + _CONTRACTED_ROWS, None]).T @ part
    return total / len(weights)
