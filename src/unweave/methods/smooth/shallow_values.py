"""Fitting a one-hidden-layer network to plain values: one equation per row and output.

    f(x) = A^T g(W^T x + b) + c (+ S^T x)

Products with the Jacobian take two n x d x m matrix products; J^T J comes from the structure of the layers
(`unweave.numerics.least_squares.khatri_rao_gram`), the skip being an input of the last layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unweave.arrays import Array, RealArray
from unweave.networks.shallow_model import ShallowModel
from unweave.numerics.least_squares.khatri_rao_gram import add_gram, workspace_per_row
from unweave.numerics.least_squares.problem import Linearisation

_WORKSPACE_NUMBERS = 8_000_000  # held at once while J^T J is added up (64 MB)


@dataclass(frozen=True, eq=False)
class ShallowValueFit:
    """Least squares on answers (n, K) at points (n, d)."""

    template: ShallowModel
    points: Array
    answers: Array

    @property
    def n_equations(self) -> int:
        """n K"""
        return int(self.answers.size)

    def residual(self, vector: Array) -> Array:
        """Data minus model, (n K,)."""
        return (self.answers - self.template.from_vector(vector).values(self.points)).reshape(-1)

    def linearise(self, vector: Array) -> Linearisation:
        """The Jacobian at ``vector``."""
        return ShallowValueJacobian(self.template.from_vector(vector), self.points)


class ShallowValueJacobian(Linearisation):
    """Jacobian of the values of a `ShallowModel` with respect to its parameters, in their order."""

    def __init__(
        self, model: ShallowModel, points: Array, dtype: type[np.floating[Any]] = np.float64
    ) -> None:
        self._model, self._exact_points = model, points
        self._points = points.astype(dtype, copy=False)
        value, slope = model.activation.jet(points @ model.weights + model.biases, 1)
        self._value, self._slope = value.astype(dtype, copy=False), slope.astype(dtype, copy=False)
        self._outgoing = model.outgoing.astype(dtype, copy=False)

    def in_single_precision(self) -> ShallowValueJacobian:
        """The same Jacobian with products in float32."""
        return ShallowValueJacobian(self._model, self._exact_points, np.float32)

    def apply(self, vector: RealArray) -> RealArray:
        """J v."""
        change = self._model.from_vector(vector)
        moved = self._points @ change.weights
        moved += change.biases
        moved *= self._slope
        result = moved @ self._outgoing + self._value @ change.outgoing + change.offset
        if change.skip is not None:
            result += self._points @ change.skip
        return result.reshape(-1)

    def adjoint(self, rows: RealArray) -> RealArray:
        """J^T r."""
        rows = rows.reshape(len(self._points), -1)
        back = (rows @ self._outgoing.T) * self._slope
        parts = [self._points.T @ back, back.sum(axis=0), self._value.T @ rows, rows.sum(axis=0)]
        if self._model.skip is not None:
            parts.append(self._points.T @ rows)
        return np.concatenate([part.reshape(-1) for part in parts])

    def dense(self) -> Array:
        """J itself, (n K, P)."""
        n, outputs = len(self._points), self._outgoing.shape[1]
        eye = np.eye(outputs)
        sensitivity = self._slope[:, None, :] * self._outgoing.T  # (n, K, m)
        read = self._extended(self._points)
        parts = [
            (read[:, None, :, None] * sensitivity[:, :, None, :]).reshape(n * outputs, -1),
            (self._extended(self._value)[:, None, :, None] * eye[:, None, :]).reshape(n * outputs, -1),
        ]
        if self._model.skip is not None:
            parts.append((self._points[:, None, :, None] * eye[:, None, :]).reshape(n * outputs, -1))
        return np.concatenate(parts, axis=1).astype(np.float64, copy=False)

    def gram(self) -> RealArray:
        """Upper triangle of J^T J (P, P), from blocks of rows."""
        (n, d), (m, outputs) = self._points.shape, self._outgoing.shape
        size = self._model.size
        result = np.zeros((size, size), dtype=self._points.dtype)
        last = [self._extended(self._value)]
        if self._model.skip is not None:
            last.append(self._points)
        second = np.concatenate(last, axis=1)
        shapes = [(d + 1, m), (second.shape[1], outputs)]
        block = max(1, _WORKSPACE_NUMBERS // workspace_per_row(shapes, outputs))
        for start in range(0, n, block):
            part = slice(start, start + block)
            read = [np.ascontiguousarray(each[part].T) for each in (self._extended(self._points), second)]
            sensitivity = self._slope[part, None, :] * self._outgoing.T
            slopes = np.ones((len(sensitivity), outputs), dtype=result.dtype)
            add_gram(result, read, [sensitivity], slopes)
        return result

    def precondition(self, vector: RealArray) -> RealArray:
        """M^{-1} v with M the diagonal of J^T J."""
        return vector * self._inverse_diagonal.astype(vector.dtype, copy=False)

    def preconditioner_diagonal(self) -> Array:
        """Diagonal of M^{-1} in the order of the parameters."""
        return self._inverse_diagonal

    @cached_property
    def _inverse_diagonal(self) -> Array:
        outputs = self._outgoing.shape[1]
        power = np.einsum("mk,mk->m", self._outgoing, self._outgoing)
        read = self._extended(self._points) ** 2
        parts = [
            read.T @ (self._slope**2) * power,
            np.repeat((self._extended(self._value) ** 2).sum(axis=0), outputs),
        ]
        if self._model.skip is not None:
            parts.append(np.repeat((self._points**2).sum(axis=0), outputs))
        diagonal = np.concatenate([part.reshape(-1) for part in parts]).astype(np.float64)
        floor = np.finfo(np.float64).eps * float(diagonal.max(initial=1.0))
        return np.asarray(1 / np.maximum(diagonal, floor))

    @staticmethod
    def _extended(columns: RealArray) -> RealArray:
        """With a column of ones for the bias."""
        return np.concatenate([columns, np.ones((len(columns), 1), dtype=columns.dtype)], axis=1)
