"""One hidden layer under a ridge, its linear numbers eliminated.

    minimise over U = (W; b)    min over A, c  of  |y - g(X_1 U) A - c|^2 + p^2 (|U|^2 + |A|^2)

At every U the inner problem is linear least squares with the features F = (g(X_1 U), 1) above the rows of the
ridge. With P the projection onto the complement of these columns, r = P (y; 0) is what they leave, and

    J V  ~  P ( (g'(X_1 U) * X_1 V) A ; 0 )

is Kaufman's Jacobian, which gives the exact gradient. A valley that leads along U and A together is straight
then, so that steps are longer than those of all parameters at once, and conjugate gradients see a better
conditioned problem. What the projection adds to a product is small beside X_1^T.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from unweave.arrays import Array, RealArray
from unweave.networks.jacobian import KroneckerSpectrum
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.least_squares.problem import Linearisation

_RANK = 1e-12  # relative size of a singular value of the features that is zero
_BLOCK = 1024  # rows whose slopes and products stay in a core's cache


@dataclass(frozen=True, eq=False)
class _Point:
    """Everything at one U."""

    units: Array
    """U (d + 1, m)."""
    slopes: Array
    """g'(X_1 U) (n, m)."""
    basis: Array
    """Orthonormal columns of the features above those of the ridge, (n + m, q)."""
    linear: Array
    """A, what else is linear, and c: (q, K)."""
    rest: Array
    """P (y; 0), (n + m, K)."""


class ProjectedRidge:
    """Least squares over the vector of U, row by row."""

    def __init__(self, model: NetworkParameters, inputs: Array, answers: Array, pull: float) -> None:
        """``pull`` is p; ``answers`` (n, K) at ``inputs`` (n, d)."""
        self._model, self._points, self._answers, self._pull = model, inputs, answers, pull
        self._inputs = np.hstack([inputs, np.ones((len(inputs), 1))])
        self._beside = self._inputs if model.skip is not None else self._inputs[:, -1:]
        self._last: _Point | None = None

    @property
    def n_equations(self) -> int:
        """Number of rows, those of the ridge included."""
        (read, width), outputs = self._model.shapes[0], self._answers.shape[1]
        equations: int = self._answers.size + width * outputs + read * width
        return equations

    def start(self) -> Array:
        """The vector of the model."""
        return np.vstack([self._model.weights[0], self._model.biases[0]]).reshape(-1)

    def residual(self, vector: Array) -> Array:
        """What the best linear numbers leave of the answers, above the ridges of these and of U."""
        point = self._at(vector)
        return np.concatenate([point.rest.reshape(-1), -self._pull * vector])

    def linearise(self, vector: Array) -> _ProjectedLinearisation:
        """Kaufman's Jacobian at ``vector``."""
        point = self._at(vector)
        outgoing = point.linear[: self._model.width]
        return _ProjectedLinearisation(self._inputs, point.slopes, point.basis, outgoing, self._pull)

    def model_at(self, vector: Array) -> NetworkParameters:
        """The model with these units and the best linear numbers."""
        point, model = self._at(vector), self._model
        outgoing, affine = point.linear[: model.width], point.linear[model.width :]
        return NetworkParameters.shallow(
            model.activation,
            point.units[:-1],
            point.units[-1],
            outgoing,
            affine[-1],
            None if model.skip is None else affine[:-1],
        )

    def _at(self, vector: Array) -> _Point:
        units = vector.reshape(self._inputs.shape[1], -1)
        if self._last is not None and np.array_equal(self._last.units, units):
            return self._last
        width, rows = units.shape[1], len(self._inputs)
        state, slopes = self._model.activation.jet(self._inputs @ units, 1)
        design = np.zeros((rows + width, width + self._beside.shape[1]))
        design[:rows, :width], design[:rows, width:] = state, self._beside
        design[rows + np.arange(width), np.arange(width)] = self._pull
        basis, inverse = _orthonormal(design)
        right = np.zeros((rows + width, self._answers.shape[1]))
        right[:rows] = self._answers
        inside = basis.T @ right
        rest = right - basis @ inside
        again = basis.T @ rest  # what rounding left
        rest -= basis @ again
        self._last = _Point(units, slopes, basis, inverse @ (inside + again), rest)
        return self._last


def _orthonormal(design: Array) -> tuple[Array, Array]:
    """Return orthonormal columns Q of the same span, and T with Q = ``design`` T.

    The ridge keeps the columns of units apart, so that a Cholesky factor is exact enough.
    """
    try:
        triangle = cholesky(design.T @ design, check_finite=False)
        inverse = solve_triangular(triangle, np.eye(len(triangle)), check_finite=False)
    except np.linalg.LinAlgError:  # columns beside the units that depend on each other
        _, sizes, rows = np.linalg.svd(design, full_matrices=False)
        inverse = (rows.T / np.where(sizes > _RANK * sizes[0], sizes, np.inf))[:, : len(sizes)]
    return design @ inverse, inverse


class _ProjectedLinearisation(Linearisation):
    def __init__(
        self,
        inputs: RealArray,
        slopes: RealArray,
        basis: RealArray,
        outgoing: RealArray,
        pull: float,
    ) -> None:
        self._inputs, self._slopes, self._basis = inputs, slopes, basis
        self._outgoing, self._pull = outgoing, pull
        self._dtype: Any = inputs.dtype.type
        self._above = basis[: len(inputs)]
        self._below = basis[len(inputs) :]
        self._blocks = [slice(begin, begin + _BLOCK) for begin in range(0, len(inputs), _BLOCK)]

    def in_single_precision(self) -> Linearisation:
        return _ProjectedLinearisation(
            self._inputs.astype(np.float32),
            self._slopes.astype(np.float32),
            self._basis.astype(np.float32),
            self._outgoing.astype(np.float32),
            self._pull,
        )

    def apply(self, vector: RealArray) -> RealArray:
        """P B v."""
        units = vector.reshape(self._inputs.shape[1], -1)
        seen = np.empty((len(self._inputs), self._outgoing.shape[1]), self._dtype)
        for rows in self._blocks:
            moved = self._inputs[rows] @ units
            moved *= self._slopes[rows]
            np.matmul(moved, self._outgoing, out=seen[rows])
        inside = self._above.T @ seen
        seen -= self._above @ inside
        below = self._below @ inside
        return np.concatenate([seen.reshape(-1), -below.reshape(-1), self._dtype(self._pull) * vector])

    def adjoint(self, rows: RealArray) -> RealArray:
        """B^T r, which is the adjoint for rows that P leaves alone: residuals and images are such rows."""
        outputs, n = self._outgoing.shape[1], len(self._inputs)
        values = rows[: n * outputs].reshape(n, outputs)
        ridge = rows[len(self._basis) * outputs :]
        result = (self._dtype(self._pull) * ridge).reshape(self._inputs.shape[1], -1)
        for part in self._blocks:
            back = values[part] @ self._outgoing.T
            back *= self._slopes[part]
            result += self._inputs[part].T @ back
        return np.asarray(result.reshape(-1))

    def dense(self) -> Array:
        size = self._inputs.shape[1] * self._slopes.shape[1]
        return np.stack([self.apply(each) for each in np.eye(size, dtype=self._dtype)], axis=1)

    def preconditioner_diagonal(self) -> Array:
        return 1 / self.typical_squares()

    def precondition_with_ridge(self, vector: RealArray, ridge: Array) -> RealArray:
        part = vector.reshape(self._inputs.shape[1], -1)
        return self._spectrum.solve(part, float(ridge.mean()) + self._pull**2).reshape(-1)

    def typical_squares(self) -> Array:
        size = self._inputs.shape[1] * self._slopes.shape[1]
        return np.full(size, float(self._spectrum.values.mean()))

    @cached_property
    def _spectrum(self) -> KroneckerSpectrum:
        read, slopes = self._inputs.astype(np.float64), self._slopes.astype(np.float64)
        outgoing = self._outgoing.astype(np.float64)
        of_inputs = read.T @ read / len(read)
        of_units = (slopes.T @ slopes) * (outgoing @ outgoing.T)
        return KroneckerSpectrum.of(of_inputs, of_units, self._dtype)
