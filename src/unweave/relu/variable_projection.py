"""Variable projection: Levenberg-Marquardt on the hyperplanes of kinked units, all linear numbers eliminated.

    minimise over V = (w_i; b_i)_i   | y - F(V) H - Q_0 C |_F        F(V) = g(X_1 V),  X_1 = (x, 1)

where for every V the heights H (m, K) and the polynomial's coefficients C are the least-squares ones. With
P the projection onto the complement of the columns of F and of the polynomial, r = P y is the residual, and
Kaufman's Jacobian is

    J = P B,     B v = sum_i H_i (g'(z_i) (X_1 v_i)),     J^T r = ( X_1^T (g'(Z) * r H^T) )_i .

A step solves (J^T J + lambda D) s = J^T r: through J^T J while it is small, by conjugate gradients in single
precision beyond (`unweave.relu.sample_steps`). The residual is always taken in float64, so that the end does
not depend on who solved.

Once every sample lies on the right side of every hyperplane, the model is bilinear and the last steps are
Newton's: a planted network comes out to rounding. Scaling a unit changes nothing, so columns are kept at
|w_i| = 1 and J has one null direction per unit, which is filled in.

Cost per step: n P^2 / 2 flops with P = m (d+1) for the Gram matrix, 8 n P per conjugate-gradient step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, RealArray
from unweave.relu.sample_features import KINK, UnitFeature
from unweave.relu.sample_orthonormal import orthonormal_columns
from unweave.relu.sample_steps import (
    SMALLEST_DAMPING,
    Linearised,
    Solve,
    conjugate_gradient_solver,
    gram_solver,
)

_GRAM_PARAMETERS = 250
"""Number of nonlinear parameters up to which J^T J is formed; beyond, conjugate gradients are faster."""
_FIRST_DAMPING = 1e-3
_DAMPING_FALL, _DAMPING_RISE = 1 / 8, 4.0
_TRIES = 6  # dampings tried per step, each rise twice the one before
_SMALL_PROGRESS = 1e-3  # relative decrease per step that counts as none
_RANK = 1e-13  # relative size of a singular value of the features that is zero
_CG_TOLERANCE, _CG_LOOSE = 1e-3, 1e-2  # of the gradient, near the end and far from it
_FAR = 0.5  # ratio of residuals after and before a step, above which the end is far
_BLOCK_ROWS = 8192


@dataclass(frozen=True)
class ProjectionOptions:
    """When to stop."""

    steps: int = 100
    floor: float = 1e-13
    """Residual relative to the answers at which the fit is as good as rounding or noise allow."""
    patience: int = 6
    """Steps in a row without worthwhile progress after which it stops."""
    worthwhile: float = _SMALL_PROGRESS


@dataclass(frozen=True, eq=False)
class ProjectedFit:
    """Where the minimisation ended."""

    units: Array
    """V, (d+1, m): directions of length one above their biases."""
    heights: Array
    """H, (m, K)."""
    residual: float
    """|r| / |y|, with y after subtraction of its polynomial part's mean only."""
    history: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class _Point:
    units: Array
    basis: Array  # orthonormal columns (n, m) beside the polynomial's
    heights: Array
    residual: Array  # (n, K)
    relative: float


class ProjectedProblem:
    """Samples (n, d) -> (n, K) with the polynomial part projected out once and for all."""

    def __init__(self, x: Array, y: Array, feature: UnitFeature = KINK, inputs: Array | None = None) -> None:
        """``inputs`` is X_1 = (x, 1) where it is there already: large data need not be copied."""
        self.feature = feature
        self.inputs = with_ones(x) if inputs is None else inputs
        self.answers = y
        self.polynomial = orthonormal_columns(feature.polynomial(x))[0]
        rest = self.without_polynomial(y)
        self.rest = rest
        self.size = float(np.linalg.norm(y - y.mean(axis=0))) or 1.0
        self._single: tuple[RealArray, RealArray] | None = None
        self.reached: Array | None = None
        """Units of the last step of `minimise`, for a caller that interrupts it."""

    @property
    def rows(self) -> int:
        """n"""
        return len(self.inputs)

    @property
    def polynomial_residual(self) -> float:
        """Relative residual of the polynomial alone."""
        return float(np.linalg.norm(self.rest)) / self.size

    def without_polynomial(self, values: Array) -> Array:
        """Values (n, k) less their projection onto the polynomials."""
        values = values.copy()
        for _ in range(2):  # twice: orthogonal to rounding
            coefficients = self.polynomial.T @ values
            for rows in _blocks(len(values)):  # no second array of this size
                values[rows] -= self.polynomial[rows] @ coefficients
        return values

    def at(self, units: Array) -> _Point:
        """Eliminate the linear numbers at V = ``units`` (d+1, m)."""
        features = self.without_polynomial(self.feature.value(self.inputs @ units))
        basis, triangle = orthonormal_columns(features)
        right = basis.T @ self.rest
        heights: Array = np.asarray(np.linalg.lstsq(triangle, right, rcond=_RANK)[0], np.float64)
        residual = self.rest - features @ heights
        residual -= basis @ (basis.T @ residual)  # what rounding left
        relative = float(np.linalg.norm(residual)) / self.size
        return _Point(units, basis, heights, residual, relative)

    def project(self, values: Array, point: _Point) -> Array:
        """P applied to (n, k)."""
        values = values - self.polynomial @ (self.polynomial.T @ values)
        return values - point.basis @ (point.basis.T @ values)

    def gain(self, candidates: Array, residual: Array) -> Array:
        """Share of the residual (n, K) that each of the units (d+1, c) would explain alone, about, (c,)."""
        features = self.without_polynomial(self.feature.value(self.inputs @ candidates))
        size = np.maximum(np.einsum("ni,ni->i", features, features), np.finfo(np.float64).tiny)
        return np.asarray(((features.T @ residual) ** 2).sum(axis=1) / size)

    def minimise(
        self,
        units: Array,
        options: ProjectionOptions | None = None,
        on_step: Callable[[int, float], None] | None = None,
    ) -> ProjectedFit:
        """Levenberg-Marquardt from ``units`` (d+1, m); ``on_step`` gets (steps, residual) and may raise."""
        options = options or ProjectionOptions()
        point = self.at(unit_columns(units))
        history, damping, idle = [point.relative], _FIRST_DAMPING, 0
        for step in range(options.steps if units.size else 0):
            if point.relative <= options.floor or idle >= options.patience:
                break
            far = len(history) < 2 or history[-1] > _FAR * history[-2]
            solve = self._solver(point, _CG_LOOSE if far else _CG_TOLERANCE)
            trial, rise = point, _DAMPING_RISE
            for _ in range(_TRIES):
                trial = self.at(unit_columns(point.units + solve(damping)))
                if trial.relative < point.relative:
                    break
                damping, rise = damping * rise, 2 * rise
            else:
                break
            idle = idle + 1 if trial.relative > (1 - options.worthwhile) * point.relative else 0
            point, self.reached = trial, trial.units
            damping = max(damping * _DAMPING_FALL, SMALLEST_DAMPING)
            history.append(point.relative)
            if on_step is not None:
                on_step(step + 1, point.relative)
        return ProjectedFit(point.units, point.heights, point.relative, tuple(history))

    def residual_at(self, units: Array) -> Array:
        """r (n, K) at ``units``."""
        return self.at(units).residual

    def linearised(self, point: _Point) -> Linearised:
        """What the Jacobian at ``point`` is made of."""
        # The arguments are formed again rather than kept: they are as large as the data.
        slopes, bases = self.feature.slope(self.inputs @ point.units), (self.polynomial, point.basis)
        return Linearised(point.units, self.inputs, bases, slopes, point.heights, point.residual)

    def _solver(self, point: _Point, tolerance: float) -> Solve:
        if point.units.size <= _GRAM_PARAMETERS:
            return gram_solver(self.linearised(point))
        return conjugate_gradient_solver(self.linearised(point), self.single(), tolerance)

    def single(self) -> tuple[RealArray, RealArray]:
        """Inputs and polynomial basis in single precision, kept."""
        if self._single is None:
            self._single = self.inputs.astype(np.float32), self.polynomial.astype(np.float32)
        return self._single


def with_ones(x: Array) -> Array:
    """X_1 = (x, 1), (n, d+1)."""
    return np.hstack([x, np.ones((len(x), 1))])


def _blocks(rows: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK_ROWS) for start in range(0, rows, _BLOCK_ROWS))


def unit_columns(units: Array) -> Array:
    """Columns (w; b) scaled to |w| = 1."""
    length = np.linalg.norm(units[:-1], axis=0)
    return np.asarray(units / np.where(length > 0, length, 1.0))
