"""Lower bounds of any convex loss for tuples of patterns, by duality.

For v with A^T v = 0, A = [P_1 Z, ..., P_w Z],

    min_c sum_j l((A c)_j, y_j)  >=  - sum_j l*(v_j, y_j).

Such v come from reweighted least squares: at predictions f with derivatives g and weights h, the step d that
minimizes sum g_j (A d)_j + h_j (A d)_j^2 / 2 leaves v = g + h A d with A^T v = 0. Scaled into the domain of
l*, every step gives a bound; the largest is kept. A bound is never wrong for stopping early, only smaller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.exact.losses import ConvexLoss, dual_bounds
from unweave.exact.pattern_tree import Level
from unweave.exact.squared_bounds import all_signs, range_basis

_REWEIGHTED_STEPS = 6  # later steps do not raise the bound
_DESIGN_ENTRIES = 1_000_000  # entries of design matrices held at once: 8 MB


@dataclass(frozen=True, eq=False)
class ConvexBounds:
    """Dual bounds at one level."""

    level: Level
    loss: ConvexLoss

    def bounds(self, tuples: IntArray) -> Array:
        """Bounds (K,) of tuples (K, w) of patterns of the level."""
        n, q = self.level.z.shape
        block = max(1, _DESIGN_ENTRIES // (n * q * tuples.shape[1]))
        parts = [self._block(tuples[start : start + block]) for start in range(0, len(tuples), block)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def sign_bounds(self, tuples: IntArray, bounds: Array) -> Array:
        """Bounds (K, 2^w) for all signs, as `all_signs` orders them, not below ``bounds`` (K,).

        Where all active units of a point have one sign, so has its prediction; without active units the
        prediction is zero. A point that a prediction of that sign cannot help costs at least l(0, y).
        """
        y, loss = self.level.y, self.loss
        at_zero, slope = loss.value(np.zeros(len(y)), y), loss.derivative(np.zeros(len(y)), y)
        signs = all_signs(tuples.shape[1])
        result = np.repeat(bounds[:, None], len(signs), axis=1)
        block = max(1, _DESIGN_ENTRIES // tuples.shape[1] // len(y))
        for start in range(0, len(tuples), block):
            active = self.level.patterns[tuples[start : start + block]].astype(np.bool_)
            for column, sign in enumerate(signs):
                up, down = active[:, sign > 0].any(axis=1), active[:, sign < 0].any(axis=1)
                helped = (up & (slope < 0)) | (down & (slope > 0))
                part = result[start : start + block, column]
                np.maximum(part, (~helped) @ at_zero, out=part)
        return result

    def _block(self, tuples: IntArray) -> Array:
        y, loss = self.level.y, self.loss
        basis, kept = range_basis(self.level, tuples)
        basis = basis * kept[:, None, :]
        unused = np.eye(basis.shape[2]) * (~kept)[:, None, :]  # keeps the systems of deficient rank solvable
        coefficients = np.zeros((len(tuples), basis.shape[2]))
        best = np.zeros(len(tuples))
        for _ in range(_REWEIGHTED_STEPS):
            f = _times(basis, coefficients)
            weight = loss.weight(f, y)
            gradient = loss.derivative(f, y)
            matrix = np.swapaxes(basis, 1, 2) @ (weight[:, :, None] * basis) + unused
            right = _transposed_times(basis, gradient)[:, :, None]
            step = -np.asarray(np.linalg.solve(matrix, right)[:, :, 0], dtype=np.float64)
            v = gradient + weight * _times(basis, step)
            v = v - _times(basis, _transposed_times(basis, v))  # what the solve's rounding leaves
            best = np.maximum(best, dual_bounds(loss, v, y)[0])
            coefficients = coefficients + step
        return best


def _times(basis: Array, coefficients: Array) -> Array:
    return np.asarray((basis @ coefficients[:, :, None])[:, :, 0])


def _transposed_times(basis: Array, values: Array) -> Array:
    return np.asarray((np.swapaxes(basis, 1, 2) @ values[:, :, None])[:, :, 0])
