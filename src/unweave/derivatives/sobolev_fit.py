"""Fit a one-hidden-layer network to values and gradients.

Values and difference gradients at n sites are D + 1 equations per output and site that share the
site's pre-activations, so a product with the Jacobian costs a few n x D x m matrix products, where the
same number of plain values would cost D + 1 times as much. The model's side of each gradient equation
is its own difference quotient,

    (f(x + h e) - f(x - h e)) / 2h = f'(x) e + h^2/6 f'''(x) e^3 + h^4/120 f^(5)(x) e^5 + ...

(or the gradient rule's combination of such), so the truncation of the differences is no error of the
fit. The Jacobian takes its leading term along, of power 3 for central differences and 2 for forward ones, so
that ill-conditioned fits converge as well. Exact gradients have no such terms.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import factorial
from typing import Any

import numpy as np

from unweave.arrays import Array, RealArray
from unweave.derivatives.gradient_rules import LEADING_POWERS, power_gradient, power_jacobian
from unweave.derivatives.stencils import Jets
from unweave.derivatives.truncation import difference_gradients, fourth_derivative
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.least_squares.problem import Linearisation

_BLOCK_VALUES = 1 << 17  # units times sites of a product: 0.5 MB of float32, which stays in cache
_FEWEST_BLOCK_ROWS = 64  # sites that a matrix product needs to be efficient


@dataclass(frozen=True, eq=False)
class SobolevFit:
    """Least squares on values and gradients: the problem that Gauss-Newton solves.

    Rows are ordered by jets, site and output: the value, then the d gradient entries.
    """

    template: NetworkParameters
    jets: tuple[Jets, ...]

    @cached_property
    def _data(self) -> Array:
        parts = [np.concatenate([part.values[:, :, None], part.gradients], axis=2) for part in self.jets]
        return np.concatenate([part.reshape(-1) for part in parts])

    @property
    def n_equations(self) -> int:
        """Number of rows."""
        return int(self._data.size)

    def residual(self, vector: Array) -> Array:
        """Data minus model, (rows,)."""
        model = self.template.from_vector(vector)
        rows = []
        for part in self.jets:
            gradients = difference_gradients(model, part.sites, part.step, part.rule)
            values = model.values(part.sites)
            rows.append(np.concatenate([values[:, :, None], gradients], axis=2).reshape(-1))
        residual: Array = self._data - np.concatenate(rows)
        return residual

    def linearise(self, vector: Array) -> Linearisation:
        """Return the Jacobian at ``vector``."""
        return SobolevJacobian(self.template.from_vector(vector), self.jets)


class SobolevJacobian(Linearisation):
    """Jacobian of values and difference gradients of a `NetworkParameters` with respect to its parameters.

    ``dtype`` float32 makes products twice as fast; a linear solve to a few digits needs no more.
    """

    def __init__(
        self,
        model: NetworkParameters,
        jets: tuple[Jets, ...],
        dtype: type[np.floating[Any]] = np.float64,
        truncation: bool = True,
    ) -> None:
        self._model, self._dtype, self._truncation = model, dtype, truncation
        self._jets = tuple(block for part in jets for block in _blocks_of(part, model.width))
        self._ends = np.cumsum([part.values.size * (1 + part.sites.shape[1]) for part in self._jets])[:-1]

    @cached_property
    def _parts(self) -> list[_PartJacobian]:
        return [_PartJacobian(self._model, part, self._dtype, self._truncation) for part in self._jets]

    def in_single_precision(self) -> SobolevJacobian:
        """Return the same Jacobian with products in float32, without small truncation terms."""
        return SobolevJacobian(self._model, self._jets, np.float32, truncation=False)

    def apply(self, vector: RealArray) -> RealArray:
        """J v."""
        hidden, last = self._model.split(vector)
        return np.concatenate([part.apply(hidden, last) for part in self._parts])

    def adjoint(self, rows: RealArray) -> RealArray:
        """J^T r."""
        pieces = np.split(rows, self._ends)
        result = self._parts[0].adjoint(pieces[0])
        for part, piece in zip(self._parts[1:], pieces[1:], strict=True):
            result += part.adjoint(piece)
        return result

    def dense(self) -> Array:
        """J itself, (rows, parameters)."""
        return np.concatenate([part.dense() for part in self._parts])

    def precondition(self, vector: RealArray) -> RealArray:
        """Approximate (J^T J)^{-1} v: exact inverses of the units' own blocks, truncation left out."""
        (hidden, last), (read, m) = self._model.split(vector), self._model.shapes[0]
        stacked = np.concatenate([hidden.T, last[:m]], axis=1)
        solved = np.matmul(self._blocks, stacked[:, :, None])[:, :, 0]
        linear = last[m:].reshape(-1) * self._linear_diagonal.astype(vector.dtype, copy=False)
        return np.concatenate([solved[:, :read].T.reshape(-1), solved[:, read:].reshape(-1), linear])

    def preconditioner_diagonal(self) -> Array:
        """Diagonal of M^{-1} in the order of the parameters."""
        read = self._model.shapes[0][0]
        diagonal = np.einsum("mii->mi", self._blocks)
        parts = [diagonal[:, :read].T, diagonal[:, read:], self._linear_diagonal]
        return np.concatenate([part.reshape(-1) for part in parts]).astype(np.float64)

    @cached_property
    def _linear_diagonal(self) -> Array:
        """Inverse diagonal of J^T J for the skip and the offset."""
        sites = sum(len(part) for part in self._jets)
        outputs = self._model.n_outputs
        parts = [np.full(outputs, 1 / sites)]
        if self._model.skip is not None:
            squares = sum(np.einsum("nd,nd->d", part.sites, part.sites) for part in self._jets)
            parts.insert(0, np.repeat(1 / (sites + squares), outputs))
        return np.concatenate(parts)

    @cached_property
    def _blocks(self) -> Array:
        """(m, d+1+K, d+1+K) inverse diagonal blocks of J^T J, one per unit (its w, b and row of A)."""
        gram = np.sum([part.unit_blocks() for part in self._parts], axis=0)
        index = np.arange(gram.shape[1])
        # A relative ridge keeps the inverse finite for units that hardly act; it only slows them down.
        trace = np.einsum("mii->m", gram) / gram.shape[1]
        gram[:, index, index] += (1e-12 * np.maximum(trace, np.finfo(np.float64).tiny))[:, None]
        scale = 1 / np.sqrt(gram[:, index, index])
        inverse = np.linalg.inv(gram * scale[:, :, None] * scale[:, None, :])
        inverse *= scale[:, :, None] * scale[:, None, :]
        return np.asarray(inverse, dtype=self._dtype)


def _blocks_of(jets: Jets, width: int) -> list[Jets]:
    """Split ``jets`` into sites whose units stay in cache; rows keep their order."""
    rows = max(_BLOCK_VALUES // width, _FEWEST_BLOCK_ROWS)
    if jets.rule == "pairs" or len(jets) <= rows:  # all pairs of inputs are bent by a matrix of their own
        return [jets]
    return [jets.keep(slice(start, start + rows)) for start in range(0, len(jets), rows)]


class _PartJacobian:
    """The rows of the Jacobian that belong to the sites of one `Jets`.

    With dz = X dW + db, C = h^(q-1)/q! times the rule's q-th powers of the weights and T its derivative,

        d value    = (g' dz) A + g dA + dc
        d gradient = W (g'' dz A + g' dA) + dW (g' A) + C (g^(q+1) dz A + g^(q) dA) + (T dW) (g^(q) A).
    """

    def __init__(
        self, model: NetworkParameters, jets: Jets, dtype: type[np.floating[Any]], truncation: bool
    ) -> None:
        truncation = truncation and jets.rule != "exact"
        self._model, self._jets, self._truncation = model, jets, truncation
        self._sites = jets.sites.astype(dtype, copy=False)
        z = jets.sites @ model.weights[0] + model.biases[0]
        derivatives = model.activation.jet(z, 3 if truncation else 2)
        self._weights = model.weights[0].astype(dtype, copy=False)
        self._outgoing = model.weights[1].astype(dtype, copy=False)
        if truncation:
            power = self._power = LEADING_POWERS[jets.rule]
            if power == 3:
                derivatives = (*derivatives, fourth_derivative(model.activation, z))
            factor = jets.step ** (power - 1) / factorial(power)
            self._powers = (factor * power_gradient(model.weights[0], power, jets.rule)).astype(dtype)
            if jets.rule == "pairs":
                bend = factor * power_jacobian(model.weights[0], power, jets.rule)
            else:  # differences along the axes bend every weight by itself: a diagonal, (m, d)
                bend = factor * power * model.weights[0].T ** (power - 1)
            self._bend = bend.astype(dtype, copy=False)
        self._g = [part.astype(dtype, copy=False) for part in derivatives]
        # a_ko g^(n)(z_ik), n >= 1, for every output o: used by every product.
        self._scaled = [[part * row for part in self._g[1:]] for row in self._outgoing.T]

    def apply(self, hidden: RealArray, last: RealArray) -> RealArray:
        """J v for v given as [dW; db] (d + 1, m) and [dA; dS; dc] (m + 1, K), d more with a skip."""
        x, w = self._sites, self._weights
        value, first = self._g[:2]
        m = w.shape[1]
        by_weights, by_outgoing = hidden[:-1], last[:m]
        dz = x @ by_weights
        dz += hidden[-1]
        if self._truncation:
            bent = self._bent(by_weights.T)
        result = np.empty((len(x), len(self._scaled), 1 + x.shape[1]), dtype=x.dtype)
        by_value = value @ by_outgoing + last[-1]
        for o, (slope, bend, *_) in enumerate(self._scaled):
            result[:, o, 0] = np.einsum("nm,nm->n", slope, dz) + by_value[:, o]
            rows = slope @ by_weights.T
            inner = bend * dz
            inner += first * by_outgoing[:, o]
            rows += inner @ w.T
            if self._truncation:
                skew, kurt = self._scaled[o][self._power - 1 : self._power + 1]
                rows += skew @ bent
                rows += (kurt * dz + self._g[self._power] * by_outgoing[:, o]) @ self._powers.T
            result[:, o, 1:] = rows
        if self._model.skip is not None:
            by_skip = last[m:-1]
            result[:, :, 0] += x @ by_skip
            result[:, :, 1:] += by_skip.T
        return result.reshape(-1)

    def _bent(self, changes: RealArray) -> RealArray:
        """T dW, (m, d); a diagonal T where every difference is along an axis."""
        if self._jets.rule == "pairs":
            return np.asarray(np.matmul(self._bend, changes[:, :, None])[:, :, 0])
        return self._bend * changes

    def _bent_back(self, rows: RealArray) -> RealArray:
        """The same with T transposed."""
        if self._jets.rule == "pairs":
            return np.asarray(np.matmul(rows[:, None, :], self._bend)[:, 0, :])
        return self._bend * rows

    def adjoint(self, rows: RealArray) -> RealArray:
        x, w = self._sites, self._weights
        value, first = self._g[:2]
        rows = rows.reshape(len(x), len(self._scaled), 1 + x.shape[1])
        by_value = np.ascontiguousarray(rows[:, :, 0])
        by_z = first * (by_value @ self._outgoing.T)
        by_weights, by_bent = np.zeros_like(w), np.zeros_like(w)
        by_outgoing = value.T @ by_value
        for o, (slope, bend, *_) in enumerate(self._scaled):
            by_gradient = np.ascontiguousarray(rows[:, o, 1:])
            along = by_gradient @ w
            by_z += bend * along
            by_weights += by_gradient.T @ slope
            by_outgoing[:, o] += np.einsum("nm,nm->m", first, along)
            if self._truncation:
                skew, kurt = self._scaled[o][self._power - 1 : self._power + 1]
                along = by_gradient @ self._powers
                by_z += kurt * along
                by_bent += by_gradient.T @ skew
                by_outgoing[:, o] += np.einsum("nm,nm->m", self._g[self._power], along)
        by_weights += x.T @ by_z
        if self._truncation:
            by_weights += self._bent_back(by_bent.T).T
        parts = [by_weights, by_z.sum(axis=0), by_outgoing]
        if self._model.skip is not None:
            parts.append(x.T @ by_value + rows[:, :, 1:].sum(axis=0).T)
        parts.append(by_value.sum(axis=0))
        return np.concatenate([part.reshape(-1) for part in parts])

    def dense(self) -> Array:
        """Return the rows as a matrix, with their truncation terms where there are any."""
        x, w = self._sites, self._weights
        value, first = self._g[:2]
        (n, d), (m, k) = x.shape, self._outgoing.shape
        extended = np.concatenate([x, np.ones((n, 1))], axis=1)
        by_hidden = np.zeros((n, k, 1 + d, d + 1, m))
        by_outgoing = np.zeros((n, k, 1 + d, m, k))
        by_offset = np.zeros((n, k, 1 + d, k))
        axes = np.arange(d)
        for o, (slope, bend, *_) in enumerate(self._scaled):
            by_hidden[:, o, 0] = extended[:, :, None] * slope[:, None, :]
            curved = bend[:, None, :] * w  # (n, d, m)
            by_outgoing[:, o, 0, :, o] = value
            by_outgoing[:, o, 1:, :, o] = first[:, None, :] * w
            if self._truncation:
                skew, kurt = self._scaled[o][self._power - 1 : self._power + 1]
                curved += kurt[:, None, :] * self._powers
                by_outgoing[:, o, 1:, :, o] += self._g[self._power][:, None, :] * self._powers
            by_hidden[:, o, 1:] = curved[:, :, None, :] * extended[:, None, :, None]
            if self._truncation:
                bend = self._bend if self._bend.ndim == 3 else self._bend[:, :, None] * np.eye(d)
                by_hidden[:, o, 1:, :d] += skew[:, None, None, :] * bend.transpose(1, 2, 0)  # (d, d, m)
            by_hidden[:, o, 1 + axes, axes] += slope[:, None, :]
            by_offset[:, o, 0, o] = 1.0
        blocks = [by_hidden, by_outgoing]
        if self._model.skip is not None:
            by_skip = np.zeros((n, k, 1 + d, d, k))
            for o in range(k):
                by_skip[:, o, 0, :, o] = x
                by_skip[:, o, 1:, :, o] = np.eye(d)
            blocks.append(by_skip)
        blocks.append(by_offset)
        return np.concatenate([block.reshape(n * k * (1 + d), -1) for block in blocks], axis=1)

    def unit_blocks(self) -> Array:
        """Return (m, d+1+K, d+1+K) diagonal blocks of J^T J without the truncation terms."""
        x, (w, a) = self._jets.sites, self._model.weights
        value, first, second = (part.astype(np.float64, copy=False) for part in self._g[:3])
        (n, d), (m, k) = x.shape, a.shape
        extended = np.concatenate([x, np.ones((n, 1))], axis=1)
        power = np.einsum("mk,mk->m", a, a)
        length = np.einsum("dm,dm->m", w, w)
        gram = np.zeros((m, d + 1 + k, d + 1 + k))
        products = (extended[:, :, None] * extended[:, None, :]).reshape(n, -1)
        curved = first**2 + length * second**2
        gram[:, : d + 1, : d + 1] = (curved.T @ products).reshape(m, d + 1, d + 1) * power[:, None, None]
        cross = (second * first).T @ extended  # (m, d+1)
        mixed = cross[:, :, None] * w.T[:, None, :] * power[:, None, None]
        gram[:, : d + 1, :d] += mixed
        gram[:, :d, : d + 1] += mixed.transpose(0, 2, 1)
        squares = np.einsum("nm,nm->m", first, first)
        axes = np.arange(d)
        gram[:, axes, axes] += (squares * power)[:, None]
        outer = (first * value).T @ extended + length[:, None] * cross
        outer[:, :d] += squares[:, None] * w.T
        gram[:, : d + 1, d + 1 :] = outer[:, :, None] * a[:, None, :]
        gram[:, d + 1 :, : d + 1] = gram[:, : d + 1, d + 1 :].transpose(0, 2, 1)
        last = d + 1 + np.arange(k)
        gram[:, last, last] = (np.einsum("nm,nm->m", value, value) + length * squares)[:, None]
        return gram
