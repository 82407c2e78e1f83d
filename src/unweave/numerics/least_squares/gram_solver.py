"""Damped least squares with a cheap J^T J.

A Cholesky factorisation L L^T = J^T J + delta D, D = diag(J^T J), preconditions conjugate gradients on

    (J^T J + lambda D) d = J^T r

with products J v and J^T r in float64. So the factor may be inexact, and is, for three reasons:

- it is kept from step to step while the iteration stays short: near the solution J hardly changes, and
  one factorisation serves until the end;
- it is computed in float32, at half the cost, as long as that is precise enough;
- squaring J loses half of its digits, and a ridge delta must cover what is lost. The iteration, which
  never squares, puts them back: nearly singular problems are solved as precisely as by QR.

The conditioning comes from the same factor. With mu the smallest eigenvalue of L^{-1} J^T J L^{-T}, found by
Lanczos, (J^T J)^{-1} <= (L L^T)^{-1} / mu; the two agree where delta does not matter, and mu is one.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array, RealArray
from unweave.numerics.clock import check
from unweave.numerics.lanczos import lanczos_extremes
from unweave.numerics.least_squares.cholesky_factor import CholeskyFactor, cholesky_factor, smallest_ridge
from unweave.numerics.least_squares.problem import Linearisation, Solver

_WORN_OUT_ITERATIONS = 20  # after which a kept or float32 factor is replaced; a new one costs more than they
_DIVERGED_RATIO = 1e4  # of the squared gradient to its smallest: beyond, the iteration only gets worse
_OTHER_DAMPING = 4.0  # ratio of dampings from which on a factor for one is not taken for the other
_LANCZOS_STEPS = 20  # give the extremes to some ten per cent
_FAITHFUL_EIGENVALUE = 0.5  # mu from which on the factor at hand describes J^T J well enough for error bars
_SINGULAR_CONDITION = 1e10  # that Lanczos on rounded products cannot tell from an infinite one


class GramSolver(Solver):
    """Conjugate gradients with a Cholesky factor of J^T J as preconditioner, renewed when it is worn out.

    Begins with J^T J in float32, ``gram``, taken at ``linear``. Makes at most ``steps`` iterations, to the
    relative residual ``tolerance`` of the normal equations. ``fresh`` renews the factor at every point.
    """

    def __init__(
        self, linear: Linearisation, gram: RealArray, steps: int, tolerance: float, fresh: bool = False
    ) -> None:
        self._steps, self._tolerance, self._fresh = steps, tolerance, fresh
        self._home, self._gram = linear, gram
        self._single = True
        self._factor: CholeskyFactor | None = None

    def step(self, linear: Linearisation, residual: Array, damping: float) -> Array:
        """Solution of the damped normal equations."""
        scale = float(np.linalg.norm(residual))
        if scale == 0.0:
            return np.zeros(len(self._gram))
        right = residual / scale  # so that float32 neither under- nor overflows
        if self._fresh and self._home is not linear:
            self._renew(linear, damping)
        if self._factor is None:
            self._factor = cholesky_factor(self._gram, damping)
        while True:
            final = self._is_best_for(linear, damping)
            solution, done = self._iterate(
                linear, right, damping, self._steps if final else _WORN_OUT_ITERATIONS
            )
            if done or final:
                return solution * scale
            self._improve(linear, damping)

    def _is_best_for(self, linear: Linearisation, damping: float) -> bool:
        return self._home is linear and not self._single and not self._misses(damping)

    def _misses(self, damping: float) -> bool:
        """Whether the ridge is another than it would be now, so that the factor would change."""
        if self._factor is None:
            return False
        smallest = smallest_ridge(self._gram)
        ratio = max(damping, smallest) / max(self._factor.wanted, smallest)
        return not 1 / _OTHER_DAMPING < ratio < _OTHER_DAMPING

    def _improve(self, linear: Linearisation, damping: float) -> None:
        """Replace what is most likely the reason of a slow iteration: point, damping, precision."""
        if self._home is linear and self._misses(damping):
            self._factor = cholesky_factor(self._gram, damping)  # a refused step: J^T J is still right
            return
        self._single = self._single and self._home is not linear
        self._renew(linear, damping)

    def conditioning(self, linear: Linearisation) -> tuple[float, Array | None]:
        """Estimates by Lanczos; the diagonal is an upper bound where the factor is inexact."""
        if self._factor is None:
            self._factor = cholesky_factor(self._gram, 0.0)
        agreement = self._agreement(linear)
        if agreement[0] < _FAITHFUL_EIGENVALUE:
            self._single = False
            self._renew(linear, 0.0)
            agreement = self._agreement(linear)
        factor = self._factor
        if factor is None:
            return np.inf, None
        scale, rng = factor.scale, np.random.default_rng(0)

        def scaled(vector: Array) -> Array:
            return np.asarray(linear.adjoint(linear.apply(vector / scale)) / scale)

        def scaled_inverse(vector: Array) -> Array:
            return np.asarray(scale * factor.other_half_solve(factor.half_solve(scale * vector)), np.float64)

        largest = lanczos_extremes(scaled, len(scale), _LANCZOS_STEPS, rng)[1][0]
        weakest = lanczos_extremes(scaled_inverse, len(scale), _LANCZOS_STEPS, rng)[1][1] / scale
        # Both vectors are nearly annihilated by J; their images say how nearly without squaring J.
        weak = (weakest, agreement[1])
        smallest = min(float(np.linalg.norm(linear.apply(v)) / np.linalg.norm(scale * v)) for v in weak)
        condition = float(np.sqrt(largest)) / smallest if smallest > 0 else np.inf
        if condition > _SINGULAR_CONDITION or not agreement[0] > 0:
            return np.inf, None
        return condition, factor.inverse_diagonal() / min(agreement[0], 1.0)

    def _renew(self, linear: Linearisation, damping: float) -> None:
        source = linear.in_single_precision() if self._single else linear
        gram = source.gram()
        assert gram is not None  # this solver is chosen for problems that have one
        self._gram, self._home = gram, linear
        self._factor = cholesky_factor(gram, damping)

    def _agreement(self, linear: Linearisation) -> tuple[float, Array]:
        """Smallest eigenvalue mu of L^{-1} J^T J L^{-T}, and its vector taken back by L^{-T} (P,)."""
        factor = self._factor
        if factor is None:
            return 0.0, np.zeros(0)

        def product(vector: Array) -> Array:
            image = linear.apply(factor.other_half_solve(vector).astype(np.float64))
            return np.asarray(factor.half_solve(linear.adjoint(image)), np.float64)

        rng = np.random.default_rng(0)
        (smallest, vector), _ = lanczos_extremes(product, len(factor.scale), _LANCZOS_STEPS, rng)
        return smallest, factor.other_half_solve(vector).astype(np.float64)

    def _iterate(self, linear: Linearisation, right: Array, damping: float, steps: int) -> tuple[Array, bool]:
        """Preconditioned CGLS for the right-hand side J^T r; whether it reached the tolerance."""
        remainder = right.copy()
        gradient = linear.adjoint(remainder)
        solution = np.zeros(len(gradient))
        factor = self._factor
        if factor is None:
            return solution, False
        weights = damping * factor.scale**2
        direction, size = _precondition(factor, gradient)
        first = smallest = size
        best = solution.copy()
        for _ in range(steps):
            check()
            image = linear.apply(direction)
            curvature = float(image @ image) + float(direction @ (weights * direction))
            if not curvature > 0:
                return solution, True  # the gradient is zero
            length = size / curvature
            solution += length * direction
            remainder -= length * image
            gradient = linear.adjoint(remainder) - weights * solution
            previous = size
            preconditioned, size = _precondition(factor, gradient)
            self.iterations += 1
            if size < smallest:
                smallest = size
                best[:] = solution
            if size <= self._tolerance**2 * first:
                return best, True
            if not size < _DIVERGED_RATIO * smallest:
                break  # rounding has taken over
            direction = preconditioned + size / previous * direction
        return best, False


def _precondition(factor: CholeskyFactor, gradient: RealArray) -> tuple[Array, float]:
    """M^{-1} g and g^T M^{-1} g for M = L L^T."""
    half = factor.half_solve(gradient)
    return factor.other_half_solve(half).astype(np.float64), float(np.dot(half, half))
