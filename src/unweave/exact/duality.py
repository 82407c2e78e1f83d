"""From multipliers to lower bounds.

If A^T v = C^T lambda with lambda >= 0, then also t v and t lambda for t >= 0, and no c with C c >= 0 has

    sum_j l((A c)_j, y_j)  <  - sum_j l*(t v_j, y_j).

The bound is concave in t; a few values of t come close enough to the best.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.exact.losses import ConvexLoss

_PARTS = (0.5, 0.8, 0.95, 1.0)  # of the largest admissible multiple, or of v itself


def dual_bounds(loss: ConvexLoss, v: Array, y: Array) -> tuple[Array, Array]:
    """Largest bounds (K,) over a few multiples t v of v (K, n), and these t (K,)."""
    low, high = loss.dual_range(y)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        room = np.where(v > 0, high / v, np.where(v < 0, low / v, np.inf))
    most = np.min(room, axis=1, initial=np.inf)
    best, multiple = np.zeros(len(v)), np.zeros(len(v))
    bounded = bool(np.isfinite(most).any())
    for part in _PARTS if bounded else (1.0,):
        for t in (part * most, np.minimum(part, most)) if bounded else (most,):
            # An unbounded domain admits any multiple: there v itself is the natural one.
            t = np.where(np.isfinite(t), t, part)
            inside = np.clip(t[:, None] * v, low, high)  # rounding may carry t v over the edge
            bound = -np.sum(loss.conjugate(inside, y), axis=1)
            better = bound > best
            best, multiple = np.where(better, bound, best), np.where(better, t, multiple)
    return best, multiple
