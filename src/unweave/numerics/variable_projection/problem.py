"""Variable projection: Levenberg-Marquardt on the weights of units, all linear numbers eliminated.

    minimise over V = (w_i; b_i)_i   | y - F(V) H - Q_0 C |_F        F(V) = g(X_1 V),  X_1 = (x, 1)

where for every V the heights H (m, K) and the polynomial's coefficients C are the least-squares ones. With
P the projection onto the complement of the columns of F and of the polynomial, r = P y is the residual, and
Kaufman's Jacobian is

    J = P B,     B v = sum_i H_i (g'(z_i) (X_1 v_i)),     J^T r = ( X_1^T (g'(Z) * r H^T) )_i .

A step solves (J^T J + lambda D) s = J^T r: through J^T J while it is small, by conjugate gradients in single
precision beyond (`steps`). There features and residuals are in single precision, too, while they are far from
the end; near it they are always in float64, so that the end does not depend on who solved.

Once every sample lies on the right side of every hyperplane, the model of kinked units is bilinear and the
last steps are Newton's: a planted network comes out to rounding. Scaling such a unit changes nothing, so
columns are kept at |w_i| = 1 and J has one null direction per unit, which is filled in. Smooth units have
none.

Cost per step: n P^2 / 2 flops with P = m (d+1) for the Gram matrix, 8 n P per conjugate-gradient step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from unweave.arrays import Array, BoolArray, RealArray
from unweave.numerics.least_squares import LevenbergMarquardtOptions, Steps, minimise
from unweave.numerics.variable_projection.features import KINK, UnitFeature
from unweave.numerics.variable_projection.orthonormal import OrthonormalSpan, orthonormal_columns, row_blocks
from unweave.numerics.variable_projection.steps import (
    FACTORED_DAMPING,
    SINGLE_DAMPING,
    SMALLEST_DAMPING,
    Linearised,
    SingleInputs,
    SingleSpan,
    Solve,
    conjugate_gradient_solver,
    factored_solver,
    gram_solver,
)

_PROJECTION_SCHEDULE = LevenbergMarquardtOptions(
    refusals=6,
    round_off=0.0,
    damping=1e-3,
    damping_rise=4.0,
    rise_growth=2.0,  # features cost as much as a solve: after few refusals the damping must fit
    least_damping=SMALLEST_DAMPING,
    least_raised=0.0,
    max_damping=np.inf,
)
FEATURE_RANK = 1e-13
"""Relative size of a singular value of the features that is zero."""
_NEAR_TOLERANCE, _LAST_TOLERANCE = 1e-2, 1e-3  # of the gradient, near the end with surplus units, and at it
_ROUNDING = 2e-15  # relative residual that no step lowers: digits beyond it are not asked of a step
_FAR_RATIO = 0.5  # of residuals after and before a step, above which the end is far
_NEAR_RESIDUAL = 1e-3  # relative residual of a fit that is near its end
_SINGLE_RESIDUAL = 3e-3  # relative residual above which single precision shows it well enough
_SINGLE_SHIFT = 1e-6  # of unit columns' Gram matrix, whose rounding is smaller
_GAIN_ENTRIES = 8_000_000  # features of candidates formed at once (64 MB)


@dataclass(frozen=True)
class ProjectionOptions:
    """When to stop."""

    steps: int = 100
    floor: float = 1e-13
    """Residual relative to the answers at which the fit is as good as rounding or noise allow."""
    patience: int = 6
    """Steps in a row without worthwhile progress after which it stops."""
    worthwhile: float = 1e-3
    """Relative decrease of the residual below which a step counts as no progress."""
    gram_parameters: int = 250
    """Nonlinear parameters up to which J^T J is formed; beyond, conjugate gradients are faster."""
    factored: bool = False
    """Whether J is factored instead: four times the work, and nearly dependent units converge."""
    far_tolerance: float = 0.1
    """Of the gradient, at which conjugate gradients end far from the end of the fit."""


@dataclass(frozen=True, eq=False)
class ProjectedFit:
    """Where the minimisation ended."""

    units: Array
    """V, (d+1, m): directions, of length one for kinked units, above their biases."""
    heights: Array
    """H, (m, K)."""
    residual: float
    """|r| / |y|, with y after subtraction of its polynomial part's mean only."""
    history: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class _Point:
    units: Array
    heights: Array
    residual: Array  # (n, K)
    size: float  # |r| / |y|


@dataclass(frozen=True, eq=False)
class _ExactPoint(_Point):
    basis: Array  # Q, orthonormal columns (n, m) beside the polynomial's
    triangle: Array  # R (m, m): Q R are the features, the polynomial projected out
    right: Array  # Q^T y (m, K)


@dataclass(frozen=True, eq=False)
class _RoughPoint(_Point):
    span: SingleSpan
    slopes: RealArray


class ProjectedProblem:
    """Samples (n, d) -> (n, K) with the polynomial part projected out once and for all."""

    def __init__(self, x: Array, y: Array, feature: UnitFeature = KINK, inputs: Array | None = None) -> None:
        """``inputs`` is X_1 = (x, 1) where it is there already: large data need not be copied."""
        self.feature = feature
        self.inputs = with_ones(x) if inputs is None else inputs
        self.answers = y
        monomials = self.inputs if feature.degree == 1 else feature.polynomial(x)
        self.polynomial = OrthonormalSpan(monomials)
        self.rest = self.polynomial.removed(y.copy())
        self.size = float(np.linalg.norm(y - y.mean(axis=0))) or 1.0
        self._single: SingleInputs | None = None
        self._last: _ExactPoint | None = None  # fits begin where others ended
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

    def features(self, units: Array) -> Array:
        """F (n, m), the polynomials projected out of it."""
        result = np.empty((self.rows, units.shape[1]))
        for rows in row_blocks(self.rows):
            result[rows] = self.feature.value(self.inputs[rows] @ units)
        return self.polynomial.removed(result)

    def slopes(self, units: Array, dtype: type[np.floating[Any]] = np.float64) -> RealArray:
        """g'(Z) (n, m)."""
        result = np.empty((self.rows, units.shape[1]), dtype)
        inputs = self.single().inputs if dtype is np.float32 else self.inputs
        units = units.astype(dtype)
        for rows in row_blocks(self.rows):
            result[rows] = self.feature.slope(inputs[rows] @ units)
        return result

    def at(self, units: Array) -> _ExactPoint:
        """Eliminate the linear numbers at V = ``units`` (d+1, m)."""
        if self._last is not None and self.is_last(units):
            return self._last
        self._last = None  # its basis is as large as the features to come
        basis, triangle = orthonormal_columns(self.features(units), overwrite=True)
        right = basis.T @ self.rest
        heights: Array = np.asarray(np.linalg.lstsq(triangle, right, rcond=FEATURE_RANK)[0], np.float64)
        residual = self.rest - basis @ right
        residual -= basis @ (basis.T @ residual)  # what rounding left
        size = float(np.linalg.norm(residual)) / self.size
        self._last = _ExactPoint(units, heights, residual, size, basis, triangle, right)
        return self._last

    def is_last(self, units: Array) -> bool:
        """Whether the last call of `at` was there, so that it costs nothing to be there again."""
        return self._last is not None and np.array_equal(self._last.units, units)

    def roughly_at(self, units: Array) -> _Point:
        """The same by single precision, if that shows the residual well enough."""
        single, narrow = self.single(), units.astype(np.float32)
        features = np.empty((self.rows, units.shape[1]), np.float32)
        slopes = np.empty_like(features)
        crossing = np.zeros((single.monomials.shape[1], units.shape[1]))
        gram = np.zeros((units.shape[1],) * 2)
        for rows in row_blocks(self.rows):
            arguments = single.inputs[rows] @ narrow
            slopes[rows] = self.feature.slope(arguments)
            features[rows] = self.feature.value(arguments)
            crossing += single.monomials[rows].T @ features[rows]
            gram += features[rows].T @ features[rows]
        gram -= crossing.T @ single.metric @ crossing
        scale = np.sqrt(np.maximum(gram.diagonal(), np.finfo(np.float32).tiny))
        gram /= scale[:, None] * scale
        gram[np.diag_indices_from(gram)] += _SINGLE_SHIFT
        try:
            inverse = cho_solve(cho_factor(gram), np.eye(len(gram))) / (scale[:, None] * scale)
        except (np.linalg.LinAlgError, ValueError):  # units that ran away
            return self.at(units)
        span = SingleSpan(single, features, crossing, inverse)
        heights = inverse @ (features.T @ self.rest.astype(np.float32))
        residual = self.rest - features @ heights.astype(np.float32)
        residual += single.monomials @ (single.metric @ (crossing @ heights)).astype(np.float32)
        size = float(np.linalg.norm(residual)) / self.size
        if not size > _SINGLE_RESIDUAL:
            return self.at(units)
        return _RoughPoint(units, heights, residual, size, span, slopes)

    def scaled(self, units: Array) -> Array:
        """``units`` (d+1, m) with |w| = 1 where that is no restriction."""
        return unit_columns(units) if self.feature.homogeneous else units

    def project(self, values: Array, point: _ExactPoint) -> Array:
        """P applied to (n, k)."""
        values = self.polynomial.removed(values.copy())
        return values - point.basis @ (point.basis.T @ values)

    def gain(self, candidates: Array, residual: Array) -> Array:
        """Share of the residual (n, K) that each of the units (d+1, c) would explain alone, about, (c,)."""
        at_once = max(1, _GAIN_ENTRIES // self.rows)
        result = np.empty(candidates.shape[1])
        for begin in range(0, len(result), at_once):
            part = slice(begin, begin + at_once)
            features = self.features(candidates[:, part])
            size = np.maximum(np.einsum("ni,ni->i", features, features), np.finfo(np.float64).tiny)
            result[part] = ((features.T @ residual) ** 2).sum(axis=1) / size
        return result

    def minimise(
        self,
        units: Array,
        options: ProjectionOptions | None = None,
        on_step: Callable[[int, float], None] | None = None,
    ) -> ProjectedFit:
        """Levenberg-Marquardt from ``units`` (d+1, m); ``on_step`` gets (steps, residual) and may raise."""
        options = options or ProjectionOptions()
        schedule = replace(
            _PROJECTION_SCHEDULE,
            steps=options.steps if units.size else 0,
            floor=options.floor,
            stalls=options.patience,
            worthwhile=options.worthwhile,
        )
        steps = _ProjectedSteps(self, options)
        start = steps.at(units)
        if options.factored:
            schedule = replace(schedule, least_damping=FACTORED_DAMPING)
        elif units.size > options.gram_parameters:  # smaller dampings would all give the same step
            schedule = replace(schedule, least_damping=SINGLE_DAMPING)
            if start.size < _NEAR_RESIDUAL:
                schedule = replace(schedule, damping=SINGLE_DAMPING)
        path = minimise(steps, start, schedule, on_step)
        return ProjectedFit(path.point.units, path.point.heights, path.point.size, path.history)

    def residual_at(self, units: Array) -> Array:
        """r (n, K) at ``units``."""
        return self.at(units).residual

    def linearised(self, point: _ExactPoint) -> Linearised:
        """What the Jacobian at ``point`` is made of."""
        units, slopes, free = point.units, self.slopes(point.units), self.feature.homogeneous
        return Linearised(
            units, self.inputs, self.polynomial, point.basis, slopes, point.heights, point.residual, free
        )

    def in_single_precision(self, point: _Point) -> tuple[SingleSpan, RealArray]:
        """Polynomials and features at ``point``, and g'(Z) (n, m), in single precision."""
        if isinstance(point, _RoughPoint):
            return point.span, point.slopes
        assert isinstance(point, _ExactPoint)
        return SingleSpan.orthonormal(self.single(), point.basis), self.slopes(point.units, np.float32)

    def single(self) -> SingleInputs:
        """Inputs and polynomials in single precision, kept."""
        if self._single is None:
            self._single = SingleInputs.of(self.inputs, self.polynomial)
        return self._single


class _ProjectedSteps(Steps[_Point]):
    """Solves for steps at one point after the other, through J^T J, J or by conjugate gradients."""

    def __init__(self, problem: ProjectedProblem, options: ProjectionOptions) -> None:
        self._problem, self._options = problem, options
        self._far = True
        self._solve: Solve | None = None

    def at(self, units: Array, rough: bool = True) -> _Point:
        """The point at V = ``units``, in the precision that the steps there ask for."""
        problem = self._problem
        units = problem.scaled(units)
        exact = not rough or self._formed(units) or problem.is_last(units)
        return problem.at(units) if exact else problem.roughly_at(units)

    def _formed(self, units: Array) -> bool:
        """Whether J or J^T J is small enough to be formed."""
        return self._options.factored or units.size <= self._options.gram_parameters

    def trial(self, point: _Point, damping: float | Array) -> _Point:
        problem = self._problem
        if self._solve is None:
            if self._formed(point.units) and isinstance(point, _ExactPoint):
                solver = factored_solver if self._options.factored else gram_solver
                self._solve = solver(problem.linearised(point))
            else:
                span, slopes = problem.in_single_precision(point)
                self._solve = conjugate_gradient_solver(
                    span, slopes, point.heights, point.residual, self._tolerance(point)
                )
        return self.at(point.units + self._solve(float(damping)), rough=point.size > _SINGLE_RESIDUAL)

    def accepted(self, better: bool | BoolArray, trial: _Point, point: _Point) -> _Point:
        self._far = bool(trial.size > _FAR_RATIO * point.size)
        self._solve, self._problem.reached = None, trial.units
        return trial

    def _tolerance(self, point: _Point) -> float:
        if point.size < _NEAR_RESIDUAL:
            left = _ROUNDING / max(point.size, _ROUNDING)
            return min(max(_LAST_TOLERANCE, left), self._options.far_tolerance)
        return self._options.far_tolerance if self._far else _NEAR_TOLERANCE


def with_ones(x: Array) -> Array:
    """X_1 = (x, 1), (n, d+1)."""
    return np.hstack([x, np.ones((len(x), 1))])


def unit_columns(units: Array) -> Array:
    """Columns (w; b) scaled to |w| = 1; those that have it up to rounding stay what they are."""
    length = np.linalg.norm(units[:-1], axis=0)
    kept = (length == 0) | (np.abs(length - 1) <= 4 * np.finfo(np.float64).eps)
    return np.asarray(units / np.where(kept, 1.0, length))
