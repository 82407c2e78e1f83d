"""The span of sampled Hessians, its spectrum and the width it shows.

Hessians of a one-hidden-layer network lie in V = span{w_k w_k^T}, of dimension m. The leading left
singular vectors of the sampled packed Hessians span V up to the sine of the largest principal angle,
bounded by || error ||_F / sigma_m (Wedin); the ratio sigma_m / sigma_{m+1} is how clearly the width
stands out of the error of the differences.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from array_api_compat import array_namespace, is_numpy_array

from unweave.arrays import AnyArray, Array, in_numpy
from unweave.numerics.clock import check, svd_flops

CLEAR_GAP = 10.0
"""A ratio of consecutive singular values above this is taken for the width. Noise alone has consecutive
ratios near one; truncation and round-off of float64 leave gaps of 1e3 and more, float32 about 100."""


@dataclass(frozen=True, eq=False)
class HessianSpan:
    """Orthonormal left singular vectors of packed Hessians and their singular values."""

    vectors: AnyArray
    """(p, min(p, N)) left singular vectors, leading first, where the Hessians are."""
    singular_values: Array
    """(min(p, N),) descending."""
    columns: int
    """N, the number of Hessians."""
    relative_floor: float = 0.0
    """Error of the Hessians relative to their size, below which singular values say nothing."""

    def basis(self, rank: int) -> AnyArray:
        """(p, rank) the leading ``rank`` vectors."""
        leading = self.vectors[:, :rank]
        return np.ascontiguousarray(leading) if is_numpy_array(leading) else leading

    def gap(self, rank: int) -> float:
        """sigma_rank / sigma_{rank+1}; infinite when there is nothing below."""
        if rank >= len(self.singular_values):
            return np.inf
        below = max(float(self.singular_values[rank]), self._floor())
        return float(self.singular_values[rank - 1]) / below if below > 0 else np.inf

    def clearest_rank(self) -> tuple[int, float]:
        """The index with the largest gap above the floor of the spectrum, and that gap.

        A spectrum that has not ended yet (fewer Hessians than units) has no large gap: (N, 1.0).
        """
        floor = np.maximum(self.singular_values, self._floor())
        if floor.size < 2 or floor[0] <= 0:
            return int(floor.size), 1.0
        ratios = floor[:-1] / floor[1:]
        best = int(np.argmax(ratios))
        return best + 1, float(ratios[best])

    def learnability(self, rank: int) -> float:
        """alpha = sigma_rank^2 / N, the estimate of the smallest eigenvalue of E[vec H vec H^T]."""
        return float(self.singular_values[rank - 1]) ** 2 / self.columns

    def _floor(self) -> float:
        rounding = float(np.finfo(np.float64).eps) * float(np.sqrt(self.vectors.shape[0]))
        return float(self.singular_values[0]) * max(rounding, self.relative_floor)


def hessian_span(packed: AnyArray, relative_floor: float = 0.0) -> HessianSpan:
    """Span of packed Hessians (N, p), by a singular value decomposition: O(p N min(p, N)) flops.

    Runs in the library, precision and device of ``packed``.

    The truncation error of differences has a spectrum of its own that ends too (after 2 m); the relative
    floor hides that second end.
    """
    xp = array_namespace(packed)
    if not bool(xp.all(xp.isfinite(packed))):
        raise np.linalg.LinAlgError("Hessians must be finite")
    check(svd_flops(*packed.shape))
    if not is_numpy_array(packed):
        vectors, values, _ = xp.linalg.svd(packed.T, full_matrices=False)
        floor = max(relative_floor, float(xp.finfo(packed.dtype).eps) * float(np.sqrt(packed.shape[1])))
        return HessianSpan(vectors, in_numpy(values), len(packed), floor)
    vectors, values, _ = scipy.linalg.svd(
        packed.T, full_matrices=False, check_finite=False, lapack_driver="gesdd"
    )
    return HessianSpan(vectors, values, len(packed), relative_floor)
