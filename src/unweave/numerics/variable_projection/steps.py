"""Steps of variable projection: three ways to solve (J^T J + lambda D) s = J^T r.

    J = P B,    B v = sum_i H_i (g'(z_i) (X_1 v_i)),    P = I - Q_0 Q_0^T - Q Q^T

(`problem` explains the symbols.) Small systems are formed: the Gram matrix of B is a
product of pairs of slopes with pairs of inputs, both symmetric, and what lies in the span of Q_0 and Q is
subtracted. Large ones are solved by conjugate gradients in single precision, preconditioned with

    ((H H^T) * (S^T S) + lambda D)  (x)  X_1^T X_1 / n,        S = g'(Z),

which B^T B would be if slopes and inputs were independent.

J^T J loses directions in which J is 1e-8 times smaller than in others. Where units nearly depend on each
other these decide, and J itself is factored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, qr
from scipy.linalg.blas import dsyrk

from unweave.arrays import Array, RealArray
from unweave.numerics.clock import check, out_of_time
from unweave.numerics.variable_projection.orthonormal import OrthonormalSpan, row_blocks

Solve = Callable[[float], Array]
"""The step (d+1, m) as a function of the damping."""

SMALLEST_DAMPING = 1e-14
SINGLE_DAMPING = 1e-6
"""Damping below which single precision sees none."""
_LARGEST_DAMPING = 1e10
_GRAM_BLOCK_ENTRIES = 1_000_000  # numbers in one temporary of the Gram matrix (8 MB)
_DEAD_DIAGONAL = 1e-12  # of the largest diagonal entry: a smaller one is damped like one of this size
FACTORED_DAMPING = 1e-26
"""Damping below which the factors of J see none."""
_MOST_CG_STEPS = 60  # of conjugate gradients: single precision gains little beyond
_SINGLE_RIDGE = 1e-7  # keeps the preconditioner positive definite in the presence of rounding


@dataclass(frozen=True, eq=False)
class Linearised:
    """Everything that J and r are made of, at one point."""

    units: Array
    """V, (d+1, m)"""
    inputs: Array
    """X_1, (n, d+1)"""
    polynomial: OrthonormalSpan
    """Q_0"""
    basis: Array
    """Q, orthonormal columns (n, m)"""
    slopes: RealArray
    """g'(Z), (n, m)"""
    heights: Array
    """H, (m, K)"""
    residual: Array
    """r, (n, K)"""
    free_lengths: bool = True
    """Whether growing along itself changes nothing for a unit"""

    def gram(self) -> Array:
        """J^T J (P, P), parameters ordered unit by unit, (w_i, b_i) together.

        (J^T J)_(i a),(j b) = (H H^T)_ij (B^T B - C^T C)_(i a),(j b) with B_n,(i a) = g'_ni x_na and
        C = Q^T B, by blocks of rows.
        """
        slopes, inputs = self.slopes, self.inputs
        (rows, width), size = slopes.shape, inputs.shape[1]
        count = width * size
        basis = np.hstack([self.polynomial.formed(), self.basis])
        crossing = np.zeros((basis.shape[1], count))
        gram = np.zeros((count, count), order="F")
        step = min(rows, max(256, _GRAM_BLOCK_ENTRIES // count))
        block = np.empty((step, width, size))
        for begin in range(0, rows, step):
            check()
            part = slice(begin, min(begin + step, rows))
            product = block[: part.stop - begin]
            np.multiply(slopes[part, :, None], inputs[part, None, :], out=product)
            flat = product.reshape(len(product), count)
            crossing += basis[part].T @ flat
            gram = dsyrk(1.0, flat.T, beta=1.0, c=gram, overwrite_c=1)
        gram = dsyrk(-1.0, crossing.T, beta=1.0, c=gram, overwrite_c=1)
        lower = np.triu(gram, 1).T  # only the upper triangle was formed
        coupling = self.heights @ self.heights.T
        full = (np.triu(gram) + lower).reshape(width, size, width, size) * coupling[:, None, :, None]
        return np.asarray(full.reshape(count, count))

    def jacobian(self) -> Array:
        """J (n K, P), output by output, parameters ordered as in `gram`."""
        (rows, width), size = self.slopes.shape, self.inputs.shape[1]
        product = (self.slopes[:, :, None] * self.inputs[:, None, :]).reshape(rows, width * size)
        product = self.polynomial.removed(product)
        product -= self.basis @ (self.basis.T @ product)
        return np.concatenate([product * np.repeat(heights, size) for heights in self.heights.T])


def factored_solver(at: Linearised) -> Solve:
    """Singular values of J, whose columns are scaled; units of free length are not for it."""
    jacobian = at.jacobian()
    if not np.isfinite(jacobian).all():
        raise LinAlgError("units ran away")
    sizes = np.linalg.norm(jacobian, axis=0)
    sizes = np.maximum(sizes, np.sqrt(_DEAD_DIAGONAL) * (float(sizes.max()) or 1.0))
    both = np.column_stack([jacobian / sizes, at.residual.T.reshape(-1)])
    triangle = qr(both, mode="r", overwrite_a=True, check_finite=False)[0][: both.shape[1]]
    left, values, right = np.linalg.svd(triangle[:, :-1], full_matrices=False)
    projected = left.T @ triangle[:, -1]

    def solve(damping: float) -> Array:
        factors = values / (values**2 + max(damping, FACTORED_DAMPING))
        step = (right.T @ (factors * projected)) / sizes
        return np.asarray(step.reshape(at.slopes.shape[1], -1).T)

    return solve


def gram_solver(at: Linearised) -> Solve:
    """Cholesky factors of the damped Gram matrix."""
    gram = at.gram()
    if not np.isfinite(gram).all():
        raise LinAlgError("units ran away")
    gradient = (at.slopes * (at.residual @ at.heights.T)).T @ at.inputs  # (m, d+1)
    size = at.inputs.shape[1]
    diagonal = gram.diagonal().copy()
    diagonal = np.maximum(diagonal, _DEAD_DIAGONAL * (float(diagonal.max()) or 1.0))
    # Unit i may grow along itself without effect: give that direction the unit's own weight.
    own = at.units / np.linalg.norm(at.units, axis=0)
    for i in range(own.shape[1] if at.free_lengths else 0):
        part = slice(i * size, (i + 1) * size)
        gram[part, part] += diagonal[part].mean() * np.outer(own[:, i], own[:, i])

    def solve(damping: float) -> Array:
        while damping < _LARGEST_DAMPING:
            damped = gram.copy()
            damped[np.diag_indices_from(damped)] += damping * diagonal
            try:
                factor = cho_factor(damped, lower=True, overwrite_a=True, check_finite=False)
            except LinAlgError:
                damping = max(10 * damping, SMALLEST_DAMPING)
                continue
            return np.asarray(cho_solve(factor, gradient.reshape(-1)).reshape(gradient.shape).T)
        return np.zeros_like(at.units)

    return solve


@dataclass(frozen=True, eq=False)
class SingleInputs:
    """X_1 and the polynomials in single precision: Q_0 Q_0^T = M G M^T."""

    inputs: RealArray
    """X_1, (n, d+1)"""
    monomials: RealArray
    """M, (n, q); the inputs themselves where the polynomials are affine"""
    metric: Array
    """G, (q, q)"""
    moments: RealArray
    """X_1^T X_1 / n, (d+1, d+1)"""

    @classmethod
    def of(cls, inputs: Array, polynomial: OrthonormalSpan) -> SingleInputs:
        """From those in double precision."""
        single = inputs.astype(np.float32)
        affine = polynomial.columns is inputs
        monomials = single if affine else polynomial.columns.astype(np.float32)
        metric = polynomial.triangle @ polynomial.triangle.T
        return cls(single, monomials, metric, single.T @ single / len(single))


@dataclass(frozen=True, eq=False)
class SingleSpan:
    """Polynomials and features in single precision, and the small matrices that project onto both."""

    polynomial: SingleInputs
    features: RealArray
    """F, (n, m)"""
    crossing: Array
    """M^T F, (q, m)"""
    inverse: Array
    """Inverse (m, m) of the Gram matrix of the features with the polynomials projected out"""

    @classmethod
    def orthonormal(cls, polynomial: SingleInputs, basis: Array) -> SingleSpan:
        """The span of orthonormal columns Q beside the polynomials' own."""
        count = basis.shape[1]
        crossing = np.zeros((polynomial.monomials.shape[1], count))
        return cls(polynomial, basis.astype(np.float32), crossing, np.eye(count))

    def coefficients(self, by_monomials: RealArray, by_features: RealArray) -> tuple[RealArray, RealArray]:
        """Coefficients of the projection of v (n, K) in M and F, from M^T v (q, K) and F^T v (m, K)."""
        first = self.polynomial.metric @ by_monomials
        of_features = self.inverse @ (by_features - self.crossing.T @ first)
        of_monomials = first - self.polynomial.metric @ (self.crossing @ of_features)
        return of_monomials.astype(np.float32), of_features.astype(np.float32)


class SingleJacobian:
    """Products with J in single precision, by blocks of rows that stay in the cache."""

    def __init__(self, span: SingleSpan, slopes: RealArray, heights: Array) -> None:
        self._span, self._heights = span, heights.astype(np.float32)
        self._one_output = heights.shape[1] == 1
        self._slopes = slopes * self._heights[:, 0] if self._one_output else slopes

    def adjoint(self, image: RealArray) -> RealArray:
        """J^T r (d+1, m) for r (n, K) in the range of P."""
        inputs = self._span.polynomial.inputs
        result = np.zeros((inputs.shape[1], self._slopes.shape[1]), np.float32)
        for rows in row_blocks(len(image)):
            result += inputs[rows].T @ self._back(rows, image[rows])
        return result

    def squared(self, step: RealArray) -> RealArray:
        """J^T J v (d+1, m) for v (d+1, m)."""
        span, inputs, monomials = self._span, self._span.polynomial.inputs, self._span.polynomial.monomials
        image = np.empty((len(inputs), self._heights.shape[1]), np.float32)
        by_monomials = np.zeros((monomials.shape[1], image.shape[1]))
        by_features = np.zeros((span.features.shape[1], image.shape[1]))
        for rows in row_blocks(len(inputs)):
            image[rows] = self._forth(rows, inputs[rows] @ step)
            by_monomials += monomials[rows].T @ image[rows]
            by_features += span.features[rows].T @ image[rows]
        of_monomials, of_features = span.coefficients(by_monomials, by_features)
        result = np.zeros_like(step)
        for rows in row_blocks(len(inputs)):
            kept = image[rows] - monomials[rows] @ of_monomials
            kept -= span.features[rows] @ of_features
            result += inputs[rows].T @ self._back(rows, kept)
        return result

    def _forth(self, rows: slice, moved: RealArray) -> RealArray:
        """sum_i g'_ni (X_1 v_i)_n H_i, (k, K)."""
        if self._one_output:
            return np.asarray(np.einsum("ni,ni->n", moved, self._slopes[rows])[:, None])
        moved *= self._slopes[rows]
        return moved @ self._heights

    def _back(self, rows: slice, image: RealArray) -> RealArray:
        """g'_ni sum_k H_ik r_nk, (k, m)."""
        if self._one_output:
            return self._slopes[rows] * image
        return self._slopes[rows] * (image @ self._heights.T)


def conjugate_gradient_solver(
    span: SingleSpan, slopes: RealArray, heights: Array, rest: Array, tolerance: float
) -> Solve:
    """Conjugate gradients in single precision to a relative ``tolerance``.

    Parameters
    ----------
    slopes : g'(Z), (n, m)      heights : H, (m, K)      rest : r, (n, K)
    """
    coupling = (heights @ heights.T).astype(np.float32) * (slopes.T @ slopes)
    jacobian, moments = SingleJacobian(span, slopes, heights), span.polynomial.moments
    size = float(np.linalg.norm(rest)) or 1.0
    scale = np.sqrt(np.maximum(moments.diagonal(), 1e-6))[:, None]
    weight = np.maximum(coupling.diagonal(), _DEAD_DIAGONAL * coupling.diagonal().max())
    diagonal = weight * scale**2  # D, (d+1, m)
    gradient = jacobian.adjoint((rest / size).astype(np.float32))

    def solve(damping: float) -> Array:
        damping = max(damping, SINGLE_DAMPING)
        ridge = (damping + _SINGLE_RIDGE) * weight
        try:
            kernel = cho_factor((coupling + np.diag(ridge)).astype(np.float64))
        except LinAlgError:
            kernel = cho_factor(np.diag(np.maximum(coupling.diagonal() + ridge, 1e-30)).astype(np.float64))
        metric = cho_factor(moments.astype(np.float64))

        def precondition(v: RealArray) -> RealArray:
            return np.asarray(cho_solve(metric, cho_solve(kernel, v.T).T), np.float32)

        step = np.zeros_like(gradient)
        remainder = gradient.copy()
        direction = preconditioned = precondition(remainder)
        first = old = float(np.vdot(remainder, preconditioned))
        for _ in range(_MOST_CG_STEPS):
            if out_of_time():
                break
            curved = jacobian.squared(direction) + damping * diagonal * direction
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
