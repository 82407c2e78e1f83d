"""Empirical Hermite coefficients from sums of raw moments that can be added up in any order.

T_k = mean y He_k(x) is a fixed combination of the raw moments R_j = mean y x^{(x) j}, j = k, k - 2, ...:

    T_k = sum over sets of disjoint pairs {s, t} of positions of (-1)^{pairs} R_{k - 2 pairs} (x) delta's,

for instance T_2 = R_2 - R_0 I and T_4 = R_4 - Sym_6(R_2 (x) I) + R_0 Sym_3(I (x) I). So only products are
summed over the data, and the correction is made once at the end. With h = ceil(K / 2) and the packed
monomials Z_j of order j, one product (y Z_h) [Z_1 .. Z_{K-h}]^T per block holds all the orders above h: 2
p_h (p_1 + .. + p_{K-h}) flops per row (d = 10: 7 000 at K = 4, 125 000 at K = 6).

A least-squares polynomial of low degree is taken off the labels before moments are formed. Hermite components
of different orders are orthogonal, so

    T_k(f) = T_k(q) + T_k(f - q)

for any q, and with q the best polynomial of degree g the mean of (f - q)(x) He_k(x) has the variance of f - q
instead of that of f: for a ReLU network the tensors' error falls about fivefold with g = 2, worth 25 times
the samples. q is fitted in the Hermite basis, where the normal equations are close to diagonal for Gaussian
rows, and its coefficients are read off: with q = sum_alpha beta_alpha He_alpha,

    T_alpha(q) = beta_alpha prod_j n_j(alpha)!.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import factorial

import numpy as np
import scipy.linalg

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.numerics.hermite.symmetric_tensors import packed_position, tensor_packing
from unweave.numerics.hermite.tensors import HermiteTensors, hermite_features, monomial_features

_FEATURE_ROWS = 4096  # rows whose features are formed at once: they stay in the cache


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums of y times products of up to ``order`` inputs, over ``rows`` samples. A value: adding makes a
    new one.

    Example:
        >>> x = np.random.default_rng(1000).standard_normal((6, 2)); y = x[:, 0] ** 2
        >>> parts = Moments.empty(2, 4).add(x[:4], y[:4]).merge(Moments.empty(2, 4).add(x[4:], y[4:]))
        >>> parts.rows
        6
    """

    dimension: int
    order: int
    rows: int
    low: tuple[Array, ...]
    """Entry k <= h: (p_k,) sums of y Z_k."""
    high: Array
    """(p_h, p_1 + .. + p_{K-h}) sums of y Z_h Z_j^T, j = 1 .. K - h."""

    @staticmethod
    def empty(dimension: int, order: int) -> Moments:
        """Sums over no rows, for moments up to ``order`` >= 1."""
        if order < 1:
            raise InvalidInput(f"order must be at least 1. Got {order} instead. Take 4 for at most d units.")
        half = (order + 1) // 2
        sizes = [tensor_packing(dimension, k).size for k in range(half + 1)]
        low = tuple(np.zeros(size) for size in sizes)
        return Moments(dimension, order, 0, low, np.zeros((sizes[half], sum(sizes[1 : order - half + 1]))))

    @property
    def half(self) -> int:
        """h"""
        return len(self.low) - 1

    def add(self, x: Array, y: Array) -> Moments:
        """These sums and those over rows x (n, d), y (n,)."""
        if x.ndim != 2 or x.shape[1] != self.dimension or y.shape != (len(x),):
            raise InvalidInput(
                f"x and y must be of shapes (n, {self.dimension}) and (n,). Got {x.shape} and {y.shape} "
                f"instead. Give one row per sample and one output at a time."
            )
        low, high = [entry.copy() for entry in self.low], self.high.copy()
        for start in range(0, len(x), _FEATURE_ROWS):
            part, labels = x[start : start + _FEATURE_ROWS], y[start : start + _FEATURE_ROWS]
            features = monomial_features(part, self.half)
            for k, entry in enumerate(features):
                low[k] += entry @ labels
            if high.size:
                right = np.concatenate(features[1 : self.order - self.half + 1])
                high += (features[self.half] * labels) @ right.T
        return Moments(self.dimension, self.order, self.rows + len(x), tuple(low), high)

    def merge(self, other: Moments) -> Moments:
        """The sums over the rows of both."""
        if (self.dimension, self.order) != (other.dimension, other.order):
            raise InvalidInput(
                f"moments must agree in dimension and order. Got {(self.dimension, self.order)} and "
                f"{(other.dimension, other.order)} instead. Start both from the same Moments.empty."
            )
        low = tuple(a + b for a, b in zip(self.low, other.low, strict=True))
        return Moments(self.dimension, self.order, self.rows + other.rows, low, self.high + other.high)

    def raw(self, order: int) -> Array:
        """(p_k,) packed mean of y x^{(x) k}."""
        if order <= self.half:
            return self.low[order] / self.rows
        indices = tensor_packing(self.dimension, order).indices
        rest = order - self.half
        before = sum(tensor_packing(self.dimension, k).size for k in range(1, rest))
        rows = packed_position(indices[:, : self.half], self.dimension)
        columns = packed_position(indices[:, self.half :], self.dimension)
        return np.asarray(self.high[rows, before + columns] / self.rows)

    def coefficients(self) -> HermiteTensors:
        """T_0, ..., T_order as means over the rows."""
        if self.rows == 0:
            raise InvalidInput(
                "rows must be positive. Got 0 instead. Add samples before asking for their means."
            )
        raw = [self.raw(k) for k in range(self.order + 1)]
        return HermiteTensors(
            self.dimension, tuple(_corrected(raw, self.dimension, k) for k in range(len(raw)))
        )


def _corrected(raw: list[Array], dimension: int, order: int) -> Array:
    """(p_k,) packed T_k from the packed raw moments of orders k, k - 2, ..."""
    indices = tensor_packing(dimension, order).indices
    result = raw[order].copy()
    for pairs in _pairings(tuple(range(order))):
        if not pairs:
            continue
        equal = np.ones(len(indices), dtype=bool)
        for s, t in pairs:
            equal &= indices[:, s] == indices[:, t]
        paired = {position for pair in pairs for position in pair}
        rest = [position for position in range(order) if position not in paired]
        left = packed_position(indices[equal][:, rest], dimension)
        result[equal] += (-1) ** len(pairs) * raw[len(rest)][left]
    return result


def _pairings(positions: tuple[int, ...]) -> list[tuple[tuple[int, int], ...]]:
    """All sets of disjoint pairs of positions, the empty one included."""
    if len(positions) < 2:
        return [()]
    first, others = positions[0], positions[1:]
    result = list(_pairings(others))
    for i, partner in enumerate(others):
        remaining = others[:i] + others[i + 1 :]
        result += [((first, partner), *pairs) for pairs in _pairings(remaining)]
    return result


@dataclass(frozen=True, eq=False)
class LowDegreeSums:
    """Sums of the normal equations of the fit over ``rows`` samples; mergeable like `Moments`."""

    dimension: int
    degree: int
    rows: int
    gram: Array
    """(p, p) sums of feature products, p = C(d + degree, degree)."""
    right: Array
    """(p,) sums of features times labels."""

    @staticmethod
    def empty(dimension: int, degree: int) -> LowDegreeSums:
        """Sums over no rows."""
        size = sum(tensor_packing(dimension, k).size for k in range(degree + 1))
        return LowDegreeSums(dimension, degree, 0, np.zeros((size, size)), np.zeros(size))

    def add(self, x: Array, y: Array) -> LowDegreeSums:
        """These sums and those over rows x (n, d), y (n,)."""
        gram, right = self.gram.copy(), self.right.copy()
        for start in range(0, len(x), _FEATURE_ROWS):
            features = np.concatenate(hermite_features(x[start : start + _FEATURE_ROWS], self.degree))
            gram += features @ features.T
            right += features @ y[start : start + _FEATURE_ROWS]
        return replace(self, rows=self.rows + len(x), gram=gram, right=right)

    def merge(self, other: LowDegreeSums) -> LowDegreeSums:
        """The sums over the rows of both."""
        gram, right = self.gram + other.gram, self.right + other.right
        return replace(self, rows=self.rows + other.rows, gram=gram, right=right)

    def solve(self) -> HermiteTensors:
        """The fitted polynomial, as its Hermite coefficients: call it for values, add it to other ones."""
        if self.rows < len(self.right):
            raise InvalidInput(
                f"rows must be at least {len(self.right)} for a polynomial of degree {self.degree} in "
                f"{self.dimension} variables. Got {self.rows} instead. Lower the degree or add samples."
            )
        entries = [tensor_packing(self.dimension, k).multiplicity for k in range(self.degree + 1)]
        factorials = np.concatenate([factorial(k) / multiplicity for k, multiplicity in enumerate(entries)])
        # E He_alpha^2 = prod n_j!: features of that length have the identity as Gram matrix, up to sampling.
        length = np.sqrt(factorials)
        scaled = self.gram / np.outer(length, length) / self.rows
        beta = scipy.linalg.solve(scaled, self.right / length / self.rows, assume_a="sym") / length
        packed = np.split(beta * factorials, np.cumsum([len(entry) for entry in entries])[:-1])
        return HermiteTensors(self.dimension, tuple(packed))
