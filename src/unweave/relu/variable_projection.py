"""Variable projection: Levenberg-Marquardt on the hyperplanes of kinked units, all linear numbers eliminated.

    minimise over V = (w_i; b_i)_i   | y - F(V) H - Q_0 C |_F        F(V) = g(X_1 V),  X_1 = (x, 1)

where for every V the heights H (m, K) and the polynomial's coefficients C are the least-squares ones. With
P the projection onto the complement of the columns of F and of the polynomial, r = P y is the residual, and
Kaufman's Jacobian is

    J = P B,     B v = sum_i H_i (g'(z_i) (X_1 v_i)),     J^T r = ( X_1^T (g'(Z) * r H^T) )_i .

A step solves (J^T J + lambda D) s = J^T r. J^T J is formed from products of inputs and products of slopes,
each symmetric (`_gram`), while it is small; beyond, conjugate gradients apply J in single precision, with the
Kronecker product that the Gram matrix would be if signs and inputs were independent as preconditioner. The
residual is always taken in float64, so that the end does not depend on who solved.

Once every sample lies on the right side of every hyperplane, the model is bilinear and the last steps are
Newton's: a planted network comes out to rounding. Scaling a unit changes nothing, so columns are kept at
|w_i| = 1 and J has one null direction per unit, which is filled in.

Cost per step: n P^2 / 2 flops with P = m (d+1) for the Gram matrix, 8 n P per conjugate-gradient step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky, solve_triangular

from unweave.arrays import Array, RealArray
from unweave.relu.sample_features import KINK, UnitFeature

_GRAM_PARAMETERS = 250
"""Number of nonlinear parameters up to which J^T J is formed; beyond, conjugate gradients are faster."""
_BLOCK_ENTRIES = 4_000_000  # numbers in one temporary of the Gram matrix (32 MB)
_FIRST_DAMPING, _SMALLEST_DAMPING = 1e-3, 1e-14
_DAMPING_FALL, _DAMPING_RISE = 1 / 8, 4.0
_TRIES = 6  # dampings tried per step, each rise twice the one before
_DEAD = 1e-12  # part of the largest diagonal entry below which a parameter is held like one that has it
_SMALL_PROGRESS = 1e-3  # relative decrease per step that counts as none
_RANK = 1e-13  # relative size of a singular value of the features that is zero
_CG_STEPS = 150
_CG_TOLERANCE, _CG_LOOSE = 1e-3, 1e-2  # of the gradient, near the end and far from it
_FAR = 0.5  # ratio of residuals after and before a step, above which the end is far
_CG_SINGLE = 1e-6  # damping below which single precision sees none


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
    arguments: Array  # Z, (n, m)
    basis: Array  # orthonormal columns (n, m) beside the polynomial's
    heights: Array
    residual: Array  # (n, K)
    relative: float


class ProjectedProblem:
    """Samples (n, d) -> (n, K) with the polynomial part projected out once and for all."""

    def __init__(self, x: Array, y: Array, feature: UnitFeature = KINK) -> None:
        self.feature = feature
        self.inputs = np.hstack([x, np.ones((len(x), 1))])
        self.answers = y
        self.polynomial = orthonormal_columns(feature.polynomial(x))[0]
        rest = self.without_polynomial(y)
        self.rest = rest
        self.size = float(np.linalg.norm(y - y.mean(axis=0))) or 1.0
        self._single: RealArray | None = None
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
        for _ in range(2):  # twice is enough for orthogonality to rounding
            values = values - self.polynomial @ (self.polynomial.T @ values)
        return values

    def at(self, units: Array) -> _Point:
        """Eliminate the linear numbers at V = ``units`` (d+1, m)."""
        arguments = self.inputs @ units
        features = self.without_polynomial(self.feature.value(arguments))
        basis, triangle = orthonormal_columns(features)
        right = basis.T @ self.rest
        heights: Array = np.asarray(np.linalg.lstsq(triangle, right, rcond=_RANK)[0], np.float64)
        residual = self.rest - features @ heights
        residual -= basis @ (basis.T @ residual)  # what rounding left
        relative = float(np.linalg.norm(residual)) / self.size
        return _Point(units, arguments, basis, heights, residual, relative)

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
            damping = max(damping * _DAMPING_FALL, _SMALLEST_DAMPING)
            history.append(point.relative)
            if on_step is not None:
                on_step(step + 1, point.relative)
        return ProjectedFit(point.units, point.heights, point.relative, tuple(history))

    def residual_at(self, units: Array) -> Array:
        """r (n, K) at ``units``."""
        return self.at(units).residual

    def _solver(self, point: _Point, tolerance: float) -> Callable[[float], Array]:
        """A function of the damping that returns the step (d+1, m)."""
        if point.units.size <= _GRAM_PARAMETERS:
            return self._gram_solver(point)
        return self._conjugate_gradients(point, tolerance)

    # Small: J^T J and its Cholesky factor.

    def _gram_solver(self, point: _Point) -> Callable[[float], Array]:
        gram = self.gram(point)
        slopes = self.feature.slope(point.arguments)
        gradient = (slopes * (point.residual @ point.heights.T)).T @ self.inputs  # (m, d+1)
        size = len(self.inputs[0])
        diagonal = gram.diagonal().copy()
        largest = float(diagonal.max()) or 1.0
        diagonal = np.maximum(diagonal, _DEAD * largest)
        # Unit i may grow along itself without effect: give that direction the unit's own weight.
        own = point.units / np.linalg.norm(point.units, axis=0)
        for i in range(own.shape[1]):
            part = slice(i * size, (i + 1) * size)
            gram[part, part] += diagonal[part].mean() * np.outer(own[:, i], own[:, i])

        def solve(damping: float) -> Array:
            while True:
                try:
                    damped = gram.copy()
                    damped[np.diag_indices_from(damped)] += damping * diagonal
                    factor = cho_factor(damped, lower=True, overwrite_a=True, check_finite=False)
                    return np.asarray(cho_solve(factor, gradient.reshape(-1)).reshape(gradient.shape).T)
                except LinAlgError:
                    damping = max(10 * damping, _SMALLEST_DAMPING)

        return solve

    def gram(self, point: _Point) -> Array:
        """J^T J (P, P), parameters ordered unit by unit, (w_i, b_i) together.

        (B^T B)_(i a),(j b) = (H H^T)_ij sum_n g'_ni g'_nj x_na x_nb: for pairs i <= j and a <= b one product
        of (n, m(m+1)/2) with (n, p(p+1)/2), by blocks of rows; from it C^T C, C = Q^T B, is subtracted.
        """
        slopes, inputs = self.feature.slope(point.arguments), self.inputs
        width, size = slopes.shape[1], inputs.shape[1]
        unit_pairs, input_pairs = np.triu_indices(width), np.triu_indices(size)
        packed = np.zeros((len(unit_pairs[0]), len(input_pairs[0])))
        block = max(64, _BLOCK_ENTRIES // (len(unit_pairs[0]) + len(input_pairs[0])))
        for begin in range(0, len(inputs), block):
            s, x = slopes[begin : begin + block], inputs[begin : begin + block]
            packed += _pair_products(s).T @ _pair_products(x)
        by_unit = np.empty((width, width, len(input_pairs[0])))
        by_unit[unit_pairs] = packed
        by_unit[unit_pairs[1], unit_pairs[0]] = packed
        full = np.empty((width, width, size, size))
        full[:, :, input_pairs[0], input_pairs[1]] = by_unit
        full[:, :, input_pairs[1], input_pairs[0]] = by_unit
        gram = full.transpose(0, 2, 1, 3).reshape(width * size, width * size)
        for basis in (self.polynomial, point.basis):
            inside = np.empty((basis.shape[1], width, size))
            for i in range(width):
                inside[:, i] = (basis * slopes[:, i : i + 1]).T @ inputs
            flat = inside.reshape(basis.shape[1], -1)
            gram -= flat.T @ flat
        coupling = point.heights @ point.heights.T
        gram = gram.reshape(width, size, width, size) * coupling[:, None, :, None]
        return np.asarray(gram.reshape(width * size, width * size))

    # Large: products with J only, in single precision.

    def _conjugate_gradients(self, point: _Point, tolerance: float) -> Callable[[float], Array]:
        if self._single is None:
            self._single = self.inputs.astype(np.float32)
        inputs = self._single
        slopes = self.feature.slope(point.arguments).astype(np.float32)
        heights, basis = point.heights.astype(np.float32), point.basis.astype(np.float32)
        polynomial = self.polynomial.astype(np.float32)
        size = float(np.linalg.norm(point.residual)) or 1.0
        residual = (point.residual / size).astype(np.float32)
        coupling = (heights @ heights.T) * (slopes.T @ slopes)
        moments = inputs.T @ inputs / len(inputs)
        scale = np.sqrt(np.maximum(moments.diagonal(), 1e-6))[:, None]
        weight = np.maximum(coupling.diagonal(), _DEAD * coupling.diagonal().max())
        diagonal = weight * scale**2  # D, (d+1, m)

        def product(v: RealArray) -> RealArray:
            image = ((inputs @ v) * slopes) @ heights
            for columns in (polynomial, basis):
                image -= columns @ (columns.T @ image)
            return image

        def adjoint(image: RealArray) -> RealArray:
            return np.asarray(inputs.T @ (slopes * (image @ heights.T)))

        gradient = adjoint(residual)

        def solve(damping: float) -> Array:
            damping = max(damping, _CG_SINGLE)
            kernel = cho_factor(
                (coupling + damping * np.diag(weight)).astype(np.float64) + 1e-7 * np.diag(weight)
            )
            metric = cho_factor(moments.astype(np.float64))

            def precondition(v: RealArray) -> RealArray:
                return np.asarray(cho_solve(metric, cho_solve(kernel, v.T).T), np.float32)

            step = np.zeros_like(gradient)
            remainder = gradient.copy()
            direction = preconditioned = precondition(remainder)
            first = old = float(np.vdot(remainder, preconditioned))
            for _ in range(_CG_STEPS):
                image = product(direction)
                curved = adjoint(image) + damping * diagonal * direction
                curvature = float(np.vdot(direction, curved))
                if not curvature > 0:
                    break
                length = old / curvature
                step += length * direction
                remainder -= length * curved
                preconditioned = precondition(remainder)
                new = float(np.vdot(remainder, preconditioned))
                if new <= tolerance**2 * first:
                    break
                direction, old = preconditioned + new / old * direction, new
            return step.astype(np.float64) * size

        return solve


def unit_columns(units: Array) -> Array:
    """Columns (w; b) scaled to |w| = 1."""
    length = np.linalg.norm(units[:-1], axis=0)
    return np.asarray(units / np.where(length > 0, length, 1.0))


def orthonormal_columns(matrix: Array) -> tuple[Array, Array]:
    """Q (n, k), R (k, k) with Q R = ``matrix``, by Cholesky factors of Gram matrices.

    Two passes are as accurate as Householder's while the condition is below 1e8; where the first Gram matrix
    is too close to singular, a shift and one more pass take its place. All of it is matrix products.
    """
    count = matrix.shape[1]
    if not count:
        return matrix, np.zeros((0, 0))
    scale = np.linalg.norm(matrix, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    basis, triangle = matrix / scale, np.diag(scale)
    shift = 11 * np.finfo(np.float64).eps * (sum(matrix.shape) + 1) * max(count, 1)
    passes, done = 2, 0
    while done < passes:
        gram = basis.T @ basis
        try:
            factor = cholesky(gram, check_finite=False)
        except LinAlgError:
            gram[np.diag_indices_from(gram)] += shift
            factor = cholesky(gram, check_finite=False)
            passes = min(passes + 1, 4)
        # R^{-1} of so small a triangle is as good as solving, and a product is faster
        basis = basis @ solve_triangular(factor, np.eye(count), check_finite=False)
        triangle = factor @ triangle
        done += 1
    return basis, triangle


def _pair_products(columns: Array) -> Array:
    """Products of columns i <= j: (n, k(k+1)/2)."""
    first, second = np.triu_indices(columns.shape[1])
    return np.asarray(columns[:, first] * columns[:, second])
