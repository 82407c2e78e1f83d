"""How many neurons stand out of the noise: the spectrum of Hessians against that of their own error.

With M the packed Hessians of all sites and E the sample of their error that every stencil carries, the
identity projected out of both (truncation is mostly a multiple of it),

    width = #{ i : s_i(M) > c s_1(E) }.

E has the noise of M and its truncation level, so no model of either is needed (parallel analysis).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.methods.smooth_coarse.rotated_hessians import RotatedHessians
from unweave.subspace.symmetric import symmetric_packing

STANDS_OUT = 1.15
"""Singular values of the Hessians count from this many times the largest of their error."""


@dataclass(frozen=True, eq=False)
class NoisySpan:
    """The span of noisy Hessians."""

    basis: Array
    """(p, q) left singular vectors, largest first, orthogonal to the identity"""
    singular_values: Array
    """(q,)"""
    noise_level: float
    """Largest singular value of their error"""
    columns: int

    @property
    def width(self) -> int:
        """Number of singular values that stand out."""
        return int(np.sum(self.singular_values > STANDS_OUT * self.noise_level))

    @property
    def gap(self) -> float:
        """s_m over the noise level, for the width m."""
        width = self.width
        if width == 0:
            return 0.0
        level = max(self.noise_level, float(np.finfo(np.float64).tiny))
        return float(self.singular_values[width - 1] / level)

    def with_identity(self, rank: int) -> Array:
        """(p, rank + 1) orthonormal basis of the first ``rank`` directions and the identity."""
        dimension = _dimension_of(len(self.basis))
        identity = symmetric_packing(dimension).pack(np.eye(dimension)) / np.sqrt(dimension)
        return np.concatenate([self.basis[:, :rank], identity[:, None]], axis=1)


def noisy_span(taken: RotatedHessians, weights: Array) -> NoisySpan:
    """The span of the Hessians, outputs weighted by ``weights`` (K,) (one over their noise)."""
    size = taken.hessians.shape[2]
    dimension = _dimension_of(size)
    identity = symmetric_packing(dimension).pack(np.eye(dimension)) / np.sqrt(dimension)
    columns, errors = ((part * weights[:, None]).reshape(-1, size) for part in (taken.hessians, taken.errors))
    columns = columns - np.outer(columns @ identity, identity)
    errors = errors - np.outer(errors @ identity, identity)
    _, values, right = np.linalg.svd(columns, full_matrices=False)
    noise = np.linalg.svdvals(errors)
    # The identity was taken out: one dimension of Sym(D) less.
    keep = min(len(values), size - 1)
    return NoisySpan(np.ascontiguousarray(right[:keep].T), values[:keep], float(noise[0]), len(columns))


def _dimension_of(size: int) -> int:
    return round(float((np.sqrt(8 * size + 1) - 1) / 2))
