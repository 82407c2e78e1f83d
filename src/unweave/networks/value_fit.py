"""Fitting a network of any depth to values.

Minimises |w (f(x_n; theta) - a_n)|^2 over all weights and biases theta. A product with the Jacobian is one
pass through the layers, forwards for J v and backwards for J^T r; J itself is never needed, and J^T J comes
from the layers' structure (`khatri_rao_gram`). Too large for that, the normal equations are
preconditioned layer by layer with the Kronecker product

    J_l^T J_l  ~  (1/N sum_n y y^T)  (x)  (sum_n,o delta delta^T)

of what a layer reads and its sensitivities (K-FAC), whose inverse is a product of two small inverses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from unweave.arrays import Array, RealArray
from unweave.errors import InvalidInput
from unweave.networks.layered_model import LayeredModel
from unweave.numerics.least_squares import LevenbergMarquardtOptions, Linearisation, levenberg_marquardt
from unweave.numerics.least_squares.khatri_rao_gram import add_gram, workspace_per_row

_WORKSPACE_NUMBERS = 8_000_000  # held at once while J^T J is added up (64 MB)
_KRONECKER_RIDGE = 1e-10  # of the mean eigenvalue: keeps both factors invertible when a unit hardly acts
_NEAR = 1e-2  # rms residual over that of the answers, below which Gauss-Newton steps are taken in full
_DAMPING_NEAR, _DAMPING_FAR = 1e-9, 1e-3


@dataclass(frozen=True, eq=False)
class ValueFit:
    """Least squares on values: rows ordered by point and output, w (answer - model)."""

    template: LayeredModel
    points: Array
    """(n, D)"""
    answers: Array
    """(n, K)"""
    weights: Array | None = None
    """Factors on the residuals, (n,) or (n, K), for instance 1 / standard deviation; None: all one"""

    def __post_init__(self) -> None:
        shape = (len(self.points), self.template.n_outputs)
        if self.points.ndim != 2 or self.points.shape[1] != self.template.n_inputs:
            raise InvalidInput(
                f"points must be of shape (n, {self.template.n_inputs}). Got shape {self.points.shape} "
                f"instead. Give one row per point and one column per input."
            )
        if self.answers.shape != shape:
            raise InvalidInput(
                f"answers must be of shape {shape}. Got shape {self.answers.shape} instead. "
                f"Give one row per point and one column per output."
            )
        if self.weights is not None and self.weights.shape not in (shape, shape[:1]):
            raise InvalidInput(
                f"weights must be of shape {shape[:1]} or {shape}. Got shape {self.weights.shape} instead. "
                f"Give one factor per point, or per point and output."
            )

    @cached_property
    def _factors(self) -> Array | None:
        """The weights as (n, K) or (n, 1)."""
        if self.weights is None or self.weights.ndim == 2:
            return self.weights
        return self.weights[:, None]

    @property
    def n_equations(self) -> int:
        """Number of rows n K."""
        return int(self.answers.size)

    def residual(self, vector: Array) -> Array:
        """Data minus model, weighted, (n K,)."""
        difference = self.answers - self.template.from_vector(vector).values(self.points)
        if self._factors is not None:
            difference *= self._factors
        return difference.reshape(-1)

    def linearise(self, vector: Array) -> ValueJacobian:
        """The Jacobian at ``vector``."""
        return ValueJacobian(self.template.from_vector(vector), self.points, self._factors)


class ValueJacobian(Linearisation):
    """Jacobian of the (weighted) values of a `LayeredModel` with respect to its parameters."""

    def __init__(
        self,
        model: LayeredModel,
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

    def gram(self, workspace: int = _WORKSPACE_NUMBERS) -> RealArray:
        """Upper triangle of J^T J (P, P), from blocks of rows that take ``workspace`` numbers at once."""
        outputs = self._slopes[-1].shape[1]
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

    def preconditioner_diagonal(self) -> Array:
        """Diagonal of M^{-1} in the order of the parameters."""
        parts = [np.outer(np.diag(inner), np.diag(outer)) for inner, outer in self._kronecker]
        return np.concatenate([part.reshape(-1) for part in parts]).astype(np.float64)

    @cached_property
    def _kronecker(self) -> list[tuple[RealArray, RealArray]]:
        """Inverses of the two factors of every layer: (m_{l-1} + 1, ) * 2 and (m_l, ) * 2."""
        n = len(self._points)
        sensitivities = self._model.sensitivities([slope.astype(np.float64) for slope in self._slopes])
        result = []
        for read, sensitivity in zip(self._inputs, sensitivities, strict=True):
            flat = sensitivity.reshape(-1, sensitivity.shape[2])
            exact = read.astype(np.float64, copy=False)
            inner, outer = _inverse(exact.T @ exact / n), _inverse(flat.T @ flat)
            result.append((inner.astype(self._dtype), outer.astype(self._dtype)))
        return result


def _inverse(matrix: RealArray) -> Array:
    """Inverse of a symmetric positive semidefinite matrix, made definite by a small ridge."""
    values, vectors = np.linalg.eigh(matrix)
    mean = max(float(values.mean()), float(np.finfo(np.float64).tiny))
    raised = np.maximum(values, 0.0) + _KRONECKER_RIDGE * mean
    return np.asarray((vectors / raised) @ vectors.T)


@dataclass(frozen=True, eq=False)
class ValueFitResult:
    """The fitted network and how well its equations determine it."""

    model: LayeredModel
    history: tuple[float, ...]
    """Root mean square residual, step by step."""
    floor: float
    """What the answers' rounding or noise would leave of it."""
    prediction_floor: float
    """What the same leaves of a prediction, on average: floor sqrt(P / (n - P)) for n equations."""
    condition: float
    error_bar: float | None
    """Largest standard error of a parameter; None if the equations do not determine them all."""


def fit_values(
    model: LayeredModel,
    points: Array,
    answers: Array,
    noise: float = 0.0,
    on_step: Callable[[int, float], None] | None = None,
    max_memory: int | None = None,
) -> ValueFitResult:
    """Fit all parameters of ``model`` to ``answers`` (n, K) at ``points`` (n, D), until progress ends.

    ``noise`` is the standard deviation of an answer; below the rounding of float64 it counts as that.
    ``on_step`` is called with (accepted steps, rms); an exception it raises ends the fit. Matrices take at
    most ``max_memory`` bytes (None: no limit).
    """
    problem = ValueFit(model, points, answers)
    size = float(np.sqrt(np.mean(answers**2)))
    rounding = float(np.finfo(np.float64).eps) * size
    floor = max(noise, rounding)
    start = model.to_vector()
    near = float(np.sqrt(np.mean(problem.residual(start) ** 2))) < _NEAR * size
    damping = _DAMPING_NEAR if near else _DAMPING_FAR
    # Not stopped at the floor: the least residual of noisy answers lies below it.
    options = LevenbergMarquardtOptions(
        damping=damping, rounding=rounding, acceleration=True, max_memory=max_memory
    )
    fit = levenberg_marquardt(problem, start, options, on_step)
    free = max(problem.n_equations - model.size, 1)
    error_bar = None
    if fit.covariance_diagonal is not None:
        error_bar = max(fit.rms, floor) * float(np.sqrt(fit.covariance_diagonal.max()))
    return ValueFitResult(
        model=model.from_vector(fit.vector),
        history=fit.history,
        floor=floor,
        prediction_floor=floor * float(np.sqrt(model.size / free)),
        condition=fit.condition,
        error_bar=error_bar,
    )
