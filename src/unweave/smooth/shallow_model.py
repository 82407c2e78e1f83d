"""A one-hidden-layer network as a point of parameter space, and its least-squares problem.

    f(x) = A^T g(W^T x + b) + c (+ S^T x)

is fitted to values and central-difference gradients at n sites: D + 1 equations per output and site
that share the site's pre-activations, so a product with the Jacobian costs three n x D x m matrix
products where the same number of plain values would cost D + 1 times as much. The model's side of each
gradient equation is its own difference quotient,

    (f(x + h e) - f(x - h e)) / 2h = f'(x) e + h^2/6 f'''(x) e^3 + h^4/120 f^(5)(x) e^5 + ...

(or the gradient rule's combination of such), so the truncation of the differences is no error of the
fit; only the Jacobian leaves it out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from unweave.activations import Activation
from unweave.arrays import Array
from unweave.derivatives.stencils import GradientRule, Jets, odd_power_gradient
from unweave.network import Network
from unweave.optimize.least_squares import Linearisation

_FIFTH_DERIVATIVE_STEP = 1e-3  # g^(5) only enters with h^4/120: 1e-6 relative is ample


@dataclass(frozen=True, eq=False)
class ShallowModel:
    """Parameters of a one-hidden-layer network with d inputs, m neurons and K outputs."""

    activation: Activation
    weights: Array
    """W (d, m)"""
    biases: Array
    """b (m,)"""
    outgoing: Array
    """A (m, K)"""
    offset: Array
    """c (K,)"""
    skip: Array | None = None
    """S (d, K), or None"""

    @property
    def width(self) -> int:
        """Number of neurons m."""
        return int(self.weights.shape[1])

    @property
    def size(self) -> int:
        """Number of parameters."""
        skip = 0 if self.skip is None else self.skip.size
        return self.weights.size + self.biases.size + self.outgoing.size + self.offset.size + skip

    def to_vector(self) -> Array:
        """All parameters in one vector: W row by row, b, A row by row, c, S row by row."""
        parts = [self.weights, self.biases, self.outgoing, self.offset]
        if self.skip is not None:
            parts.append(self.skip)
        return np.concatenate([part.reshape(-1) for part in parts])

    def from_vector(self, vector: Array) -> ShallowModel:
        """The model of the same shape with these parameters."""
        d, m = self.weights.shape
        k = self.outgoing.shape[1]
        ends = np.cumsum([d * m, m, m * k, k])
        w, b, a, c, s = np.split(vector, ends)
        return replace(
            self,
            weights=w.reshape(d, m),
            biases=b,
            outgoing=a.reshape(m, k),
            offset=c,
            skip=None if self.skip is None else s.reshape(d, k),
        )

    def keep(self, neurons: Array) -> ShallowModel:
        """The model with only these neurons (indices or mask)."""
        return replace(
            self,
            weights=np.ascontiguousarray(self.weights[:, neurons]),
            biases=self.biases[neurons],
            outgoing=self.outgoing[neurons],
        )

    def values(self, points: Array) -> Array:
        """f at points (n, d): (n, K)."""
        result = self.activation(points @ self.weights + self.biases) @ self.outgoing + self.offset
        return result if self.skip is None else result + points @ self.skip

    def difference_gradients(self, points: Array, step: float, rule: GradientRule = "axes") -> Array:
        """Central-difference gradients of step ``step``, to fifth order: (n, K, d)."""
        z = points @ self.weights + self.biases
        _, first, _, third = self.activation.jet(z, 3)
        delta = _FIFTH_DERIVATIVE_STEP
        above, below = self.activation.jet(z + delta, 3)[3], self.activation.jet(z - delta, 3)[3]
        fifth = (above - 2 * third + below) / delta**2
        terms = (
            (first, self.weights),
            (third, step**2 / 6 * odd_power_gradient(self.weights, 3, rule)),
            (fifth, step**4 / 120 * odd_power_gradient(self.weights, 5, rule)),
        )
        result = np.empty((len(points), self.outgoing.shape[1], points.shape[1]))
        for output, weight in enumerate(self.outgoing.T):
            result[:, output] = sum(((factor * weight) @ power.T for factor, power in terms), start=0.0)
        return result if self.skip is None else result + self.skip.T

    def to_network(self) -> Network:
        """The same function as a `Network`."""
        return Network(
            [self.weights, self.outgoing],
            [self.biases, self.offset],
            [self.activation.name, "identity"],
            skip=self.skip,
        )


@dataclass(frozen=True, eq=False)
class SobolevFit:
    """Least squares on values and gradients: the problem that Gauss-Newton solves.

    Rows are ordered site by site, output by output: the value, then the d gradient entries, times the
    site's weight.
    """

    template: ShallowModel
    jets: tuple[Jets, ...]

    @cached_property
    def _sites(self) -> Array:
        return np.concatenate([part.sites for part in self.jets])

    @cached_property
    def _data(self) -> Array:
        """(n, K, 1 + d)"""
        parts = [np.concatenate([part.values[:, :, None], part.gradients], axis=2) for part in self.jets]
        return np.concatenate(parts)

    @property
    def n_equations(self) -> int:
        """Number of rows."""
        return int(self._data.size)

    def residual(self, vector: Array) -> Array:
        """Data minus model, (rows,)."""
        model = self.template.from_vector(vector)
        gradients = [model.difference_gradients(part.sites, part.step, part.rule) for part in self.jets]
        prediction = np.concatenate([model.values(self._sites)[:, :, None], np.concatenate(gradients)], axis=2)
        return (self._data - prediction).reshape(-1)

    def linearise(self, vector: Array) -> Linearisation:
        """The Jacobian at ``vector``."""
        return SobolevJacobian(self.template.from_vector(vector), self._sites)


class SobolevJacobian(Linearisation):
    """Jacobian of values and gradients of a `ShallowModel` with respect to its parameters.

    ``dtype`` float32 makes products twice as fast; a linear solve to a few digits needs no more.
    """

    def __init__(self, model: ShallowModel, sites: Array, dtype: type[np.floating[Any]] = np.float64) -> None:
        self._model = model
        self._sites = sites.astype(dtype, copy=False)
        jet = model.activation.jet(sites @ model.weights + model.biases, 2)
        self._value, self._first, self._second = (part.astype(dtype, copy=False) for part in jet)
        self._weights = model.weights.astype(dtype, copy=False)
        self._transposed = np.ascontiguousarray(self._weights.T)
        self._outgoing = model.outgoing.astype(dtype, copy=False)
        # a_ko g'(z_ik) and a_ko g''(z_ik) for every output o, used by every product.
        self._slopes = [self._first * row for row in self._outgoing.T]
        self._bends = [self._second * row for row in self._outgoing.T]

    def in_single_precision(self) -> SobolevJacobian:
        """The same Jacobian with products in float32."""
        return SobolevJacobian(self._model, np.asarray(self._sites, dtype=np.float64), np.float32)

    def apply(self, vector: Array) -> Array:
        """J v: with dz = X dW + db,  d value = (g' dz) A + g dA + dc,
        d gradient = W (g'' dz A + g' dA) + dW (g' A).
        """
        change = self._model.from_vector(vector)
        x = self._sites
        dz = x @ change.weights
        dz += change.biases
        (n, d), k = x.shape, len(self._slopes)
        result = np.empty((n, k, 1 + d), dtype=x.dtype)
        by_outgoing = self._value @ change.outgoing + change.offset
        for o in range(k):
            result[:, o, 0] = np.einsum("nm,nm->n", self._slopes[o], dz) + by_outgoing[:, o]
            inner = self._bends[o] * dz
            inner += self._first * change.outgoing[:, o]
            result[:, o, 1:] = inner @ self._transposed + self._slopes[o] @ change.weights.T
        if change.skip is not None:
            result[:, :, 0] += x @ change.skip
            result[:, :, 1:] += change.skip.T
        return result.reshape(-1)

    def adjoint(self, rows: Array) -> Array:
        """J^T r."""
        x, w = self._sites, self._weights
        (n, d), k = x.shape, len(self._slopes)
        rows = rows.reshape(n, k, 1 + d)
        by_value = np.ascontiguousarray(rows[:, :, 0])
        by_z = self._first * (by_value @ self._outgoing.T)
        by_weights = np.zeros_like(w)
        by_outgoing = self._value.T @ by_value
        for o in range(k):
            by_gradient = np.ascontiguousarray(rows[:, o, 1:])
            along = by_gradient @ w
            by_z += self._bends[o] * along
            by_weights += by_gradient.T @ self._slopes[o]
            by_outgoing[:, o] += np.einsum("nm,nm->m", self._first, along)
        by_weights += x.T @ by_z
        parts = [by_weights, by_z.sum(axis=0), by_outgoing, by_value.sum(axis=0)]
        if self._model.skip is not None:
            parts.append(x.T @ by_value + rows[:, :, 1:].sum(axis=0).T)
        return np.concatenate([part.reshape(-1) for part in parts])

    def dense(self) -> Array:
        """J itself, (rows, parameters)."""
        x, w, a = self._sites, self._model.weights, self._model.outgoing
        n, d, k, m = len(x), x.shape[1], a.shape[1], w.shape[1]
        extended = np.concatenate([x, np.ones((n, 1))], axis=1)
        by_hidden = np.zeros((n, k, 1 + d, d + 1, m))
        by_outgoing = np.zeros((n, k, 1 + d, m, k))
        for o in range(k):
            by_hidden[:, o, 0] = extended[:, :, None] * (self._first * a[:, o])[:, None, :]
            bent = (self._second * a[:, o])[:, None, :] * w  # (n, d, m)
            by_hidden[:, o, 1:] = bent[:, :, None, :] * extended[:, None, :, None]
            diagonal = np.arange(d)
            by_hidden[:, o, 1 + diagonal, diagonal] += (self._first * a[:, o])[:, None, :]
            by_outgoing[:, o, 0, :, o] = self._value
            by_outgoing[:, o, 1:, :, o] = self._first[:, None, :] * w
        by_offset = np.zeros((n, k, 1 + d, k))
        by_offset[:, np.arange(k), 0, np.arange(k)] = 1.0
        blocks = [
            by_hidden.reshape(n * k * (1 + d), -1),
            by_outgoing.reshape(n * k * (1 + d), -1),
            by_offset.reshape(n * k * (1 + d), -1),
        ]
        if self._model.skip is not None:
            by_skip = np.zeros((n, k, 1 + d, d, k))
            for o in range(k):
                by_skip[:, o, 0, :, o] = x
                by_skip[:, o, 1:, :, o] = np.eye(d)
            blocks.append(by_skip.reshape(n * k * (1 + d), -1))
        return np.concatenate(blocks, axis=1)

    @cached_property
    def _blocks(self) -> Array:
        """(m, d+1+K, d+1+K) inverse diagonal blocks of J^T J, one per neuron (its w, b and row of A)."""
        x, w, a = self._sites.astype(np.float64, copy=False), self._model.weights, self._model.outgoing
        (n, d), (m, k) = x.shape, a.shape
        extended = np.concatenate([x, np.ones((n, 1))], axis=1)
        power = np.einsum("mk,mk->m", a, a)
        length = np.einsum("dm,dm->m", w, w)
        gram = np.zeros((m, d + 1 + k, d + 1 + k))
        products = (extended[:, :, None] * extended[:, None, :]).reshape(n, -1)
        curved = self._first**2 + length * self._second**2
        gram[:, : d + 1, : d + 1] = (curved.T @ products).reshape(m, d + 1, d + 1) * power[:, None, None]
        cross = (self._second * self._first).T @ extended  # (m, d+1)
        mixed = cross[:, :, None] * w.T[:, None, :] * power[:, None, None]
        gram[:, : d + 1, :d] += mixed
        gram[:, :d, : d + 1] += mixed.transpose(0, 2, 1)
        squares = np.einsum("nm,nm->m", self._first, self._first)
        diagonal = np.arange(d)
        gram[:, diagonal, diagonal] += (squares * power)[:, None]
        outer = (self._first * self._value).T @ extended + length[:, None] * cross
        outer[:, :d] += squares[:, None] * w.T
        gram[:, : d + 1, d + 1 :] = outer[:, :, None] * a[:, None, :]
        gram[:, d + 1 :, : d + 1] = gram[:, : d + 1, d + 1 :].transpose(0, 2, 1)
        own = np.einsum("nm,nm->m", self._value, self._value) + length * squares
        last = d + 1 + np.arange(k)
        gram[:, last, last] = own[:, None]
        # A relative ridge keeps the inverse finite for neurons that hardly act; it only slows them down.
        trace = np.einsum("mii->m", gram) / gram.shape[1]
        ridge = 1e-12 * np.maximum(trace, np.finfo(np.float64).tiny)
        index = np.arange(gram.shape[1])
        gram[:, index, index] += ridge[:, None]
        scale = 1 / np.sqrt(gram[:, index, index])
        inverse = np.linalg.inv(gram * scale[:, :, None] * scale[:, None, :])
        inverse *= scale[:, :, None] * scale[:, None, :]
        return inverse.astype(self._sites.dtype, copy=False)

    def preconditioner_diagonal(self) -> Array:
        """Diagonal of M^{-1} in the order of the parameters, for the neurons' parameters."""
        d = self._sites.shape[1]
        diagonal = np.einsum("mii->mi", self._blocks)
        parts = [diagonal[:, :d].T, diagonal[:, d], diagonal[:, d + 1 :]]
        return np.concatenate([part.reshape(-1) for part in parts])

    def precondition(self, vector: Array) -> Array:
        """Approximate (J^T J)^{-1} v: exact inverses of the neurons' own blocks."""
        g = self._model.from_vector(vector)
        n, d = self._sites.shape
        stacked = np.concatenate([g.weights.T, g.biases[:, None], g.outgoing], axis=1)
        solved = np.matmul(self._blocks, stacked[:, :, None])[:, :, 0]
        parts = [solved[:, :d].T, solved[:, d], solved[:, d + 1 :], g.offset / n]
        if g.skip is not None:
            squares = np.einsum("nd,nd->d", self._sites, self._sites)
            parts.append(g.skip / (n + squares)[:, None])
        return np.concatenate([part.reshape(-1) for part in parts])
