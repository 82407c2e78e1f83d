"""The Jacobian of a network's values by its parameters, as an operator.

A product with the Jacobian is one pass through the layers, forwards for J v and backwards for J^T r. J itself
is never needed, and J^T J comes from the layers' structure (`khatri_rao_gram`). Where even that is too large,
the normal equations are preconditioned layer by layer with the Kronecker product (K-FAC, [kfac])

    J_l^T J_l  ~  (1/n sum_n y y^T)  (x)  (sum_n,o delta delta^T)

of what a layer reads and its sensitivities, whose inverse is a product of two small inverses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unweave.arrays import Array, RealArray
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.clock import check
from unweave.numerics.least_squares.khatri_rao_gram import add_gram, workspace_per_row
from unweave.numerics.least_squares.problem import Linearisation

GRAM_WORKSPACE_NUMBERS = 8_000_000
"""Numbers held at once while J^T J is added up, at least: 64 MB of float64."""
_WORKSPACE_SHARE = 0.5  # of J^T J itself that the same may take: every block of rows is a pass through it

_KRONECKER_RIDGE = 1e-10  # of the mean eigenvalue: keeps both factors invertible when a unit hardly acts


class ValueJacobian(Linearisation):
    """Jacobian of the (weighted) values of a `NetworkParameters` with respect to its parameters."""

    def __init__(
        self,
        model: NetworkParameters,
        points: Array,
        factors: Array | None = None,
        dtype: type[np.floating[Any]] = np.float64,
    ) -> None:
        self._model, self._points, self._factors, self._dtype = model, points, factors, dtype
        self._weights: list[RealArray] = [weight.astype(dtype, copy=False) for weight in model.weights]
        states = model.forward(points)
        self._slopes: list[RealArray] = [slope.astype(dtype, copy=False) for slope in states.slopes]
        if factors is not None:
            last = states.slopes[-1]
            scaled = last * (factors if last.ndim == 2 else factors[:, :, None])
            self._slopes[-1] = scaled.astype(dtype, copy=False)
        # What each layer reads, with the constant one of the bias: (n, m_{l-1} + 1).
        self._inputs: list[RealArray] = []
        read = list(states.inputs)
        if model.skip is not None:
            read[-1] = np.hstack([read[-1], points])
        for state in read:
            extended = np.ones((len(state), state.shape[1] + 1), dtype=dtype)
            extended[:, :-1] = state
            self._inputs.append(extended)

    def in_single_precision(self) -> ValueJacobian:
        """The same Jacobian with products in float32."""
        return ValueJacobian(self._model, self._points, self._factors, np.float32)

    def apply(self, vector: RealArray) -> RealArray:
        """J v: one pass forwards."""
        changes = self._model.split(vector)
        moved = self._inputs[0] @ changes[0]
        for layer in range(1, self._model.depth):
            moved *= self._slopes[layer - 1]
            moved = moved @ self._weights[layer]
            moved += self._inputs[layer] @ changes[layer]
        last = self._slopes[-1]
        moved = moved * last if last.ndim == 2 else np.einsum("nkj,nj->nk", last, moved)
        return moved.reshape(-1)

    def adjoint(self, rows: RealArray) -> RealArray:
        """J^T r: one pass backwards."""
        last = self._slopes[-1]
        by_point = rows.reshape(last.shape[:2])
        back = by_point * last if last.ndim == 2 else np.einsum("nk,nkj->nj", by_point, last)
        parts = []
        for layer in reversed(range(self._model.depth)):
            parts.append((self._inputs[layer].T @ back).reshape(-1))
            if layer:
                back = back @ self._weights[layer].T
                back *= self._slopes[layer - 1]
        return np.concatenate(parts[::-1])

    def dense(self) -> Array:
        """J itself, (n K, P)."""
        return self._matrix().astype(np.float64, copy=False)

    def _matrix(self) -> RealArray:
        """J in the precision of the products."""
        n, outputs = self._slopes[-1].shape[:2]
        result = np.empty((n, outputs, self._model.size), dtype=self._dtype)
        begin = 0
        sensitivities = self._model.sensitivities(self._slopes)
        for read, sensitivity, end in zip(self._inputs, sensitivities, self._model.ends, strict=True):
            part = result[:, :, begin:end].reshape(n, outputs, read.shape[1], -1)
            np.multiply(read[:, None, :, None], sensitivity[:, :, None, :], out=part)
            begin = end
        return result.reshape(n * outputs, -1)

    def gram(self, workspace: int | None = None) -> RealArray:
        """Upper triangle of J^T J (P, P), from blocks of rows that take ``workspace`` numbers each."""
        outputs = self._slopes[-1].shape[1]
        if workspace is None:
            workspace = max(GRAM_WORKSPACE_NUMBERS, int(_WORKSPACE_SHARE * self._model.size**2))
        result = np.zeros((self._model.size, self._model.size), dtype=self._dtype)
        rows = max(1, workspace // workspace_per_row(self._model.shapes, outputs))
        for start in range(0, len(self._points), rows):
            part = slice(start, start + rows)
            read = [np.ascontiguousarray(each[part].T) for each in self._inputs]
            slopes = [slope[part] for slope in self._slopes]
            sensitivities = self._model.sensitivities(slopes)
            if slopes[-1].ndim == 3:
                add_gram(result, read, sensitivities, None)
            else:
                add_gram(result, read, sensitivities[:-1], slopes[-1])
        return result

    def precondition(self, vector: RealArray) -> RealArray:
        """Inverse of the Kronecker products, layer by layer."""
        parts = zip(self._kronecker, self._model.split(vector), strict=True)
        return np.concatenate([(inner @ part @ outer).reshape(-1) for (inner, outer), part in parts])

    def precondition_with_ridge(self, vector: RealArray, ridge: Array) -> RealArray:
        """The same with the mean ridge of a layer's parameters added to its product."""
        parts = zip(self._spectra, self._model.split(vector), self._model.split(ridge), strict=True)
        solved = (spectrum.solve(part, float(added.mean())) for spectrum, part, added in parts)
        return np.concatenate([part.reshape(-1) for part in solved])

    def typical_squares(self) -> Array:
        """Mean of the diagonal of J^T J over each layer's parameters."""
        means = [float(spectrum.values.mean()) for spectrum in self._spectra]
        return np.concatenate(
            [
                np.full(w.size, mean)
                for w, mean in zip(self._model.split(np.zeros(self._model.size)), means, strict=True)
            ]
        )

    def preconditioner_diagonal(self) -> Array:
        """Diagonal of M^{-1} in the order of the parameters."""
        parts = [np.outer(np.diag(inner), np.diag(outer)) for inner, outer in self._kronecker]
        return np.concatenate([part.reshape(-1) for part in parts]).astype(np.float64)

    @cached_property
    def _kronecker(self) -> list[tuple[RealArray, RealArray]]:
        """Inverses of the two factors of every layer."""
        inverses = [(_inverse(inner), _inverse(outer)) for inner, outer in self._factors_of_layers()]
        return [(inner.astype(self._dtype), outer.astype(self._dtype)) for inner, outer in inverses]

    @cached_property
    def _spectra(self) -> list[KroneckerSpectrum]:
        """Eigenvalues and vectors of the two factors of every layer."""
        return [KroneckerSpectrum.of(*factors, self._dtype) for factors in self._factors_of_layers()]

    def _factors_of_layers(self) -> list[tuple[Array, Array]]:
        """The two factors of every layer: (m_{l-1} + 1, ) * 2 and (m_l, ) * 2."""
        n, outputs = len(self._points), self._slopes[-1].shape[1]
        squares: list[Any] = [0.0] * self._model.depth  # of the sensitivities, by layer
        at_once = max(1, 2 * GRAM_WORKSPACE_NUMBERS // (outputs * sum(w for _, w in self._model.shapes)))
        for start in range(0, n, at_once):
            check()
            slopes = [slope[start : start + at_once].astype(np.float64) for slope in self._slopes]
            for layer, sensitivity in enumerate(self._model.sensitivities(slopes)):
                flat = sensitivity.reshape(-1, sensitivity.shape[2])
                squares[layer] = squares[layer] + flat.T @ flat
        result = []
        for read, square in zip(self._inputs, squares, strict=True):
            exact = read.astype(np.float64, copy=False)
            result.append((np.asarray(exact.T @ exact / n), np.asarray(square)))
        return result


@dataclass(frozen=True, eq=False)
class KroneckerSpectrum:
    """A Kronecker product A (x) B by its eigenvectors, which a ridge leaves alone."""

    left: RealArray
    right: RealArray
    values: RealArray
    """Products of the eigenvalues, (rows of A, rows of B)."""

    @classmethod
    def of(cls, left: Array, right: Array, dtype: type[np.floating[Any]]) -> KroneckerSpectrum:
        """Decompose ``left`` (x) ``right``, both symmetric."""
        (of_left, by_left), (of_right, by_right) = np.linalg.eigh(left), np.linalg.eigh(right)
        values = np.outer(np.maximum(of_left, 0.0), np.maximum(of_right, 0.0))
        return cls(by_left.astype(dtype), by_right.astype(dtype), values.astype(dtype))

    def solve(self, part: RealArray, ridge: float) -> RealArray:
        """Return X with A X B + ``ridge`` X = part."""
        turned = self.left.T @ part @ self.right
        turned /= self.values + self.values.dtype.type(ridge)
        return np.asarray(self.left @ turned @ self.right.T)


def _inverse(matrix: RealArray) -> Array:
    """Inverse of a symmetric positive semidefinite matrix, made definite by a small ridge."""
    values, vectors = np.linalg.eigh(matrix)
    mean = max(float(values.mean()), float(np.finfo(np.float64).tiny))
    raised = np.maximum(values, 0.0) + _KRONECKER_RIDGE * mean
    return np.asarray((vectors / raised) @ vectors.T)
