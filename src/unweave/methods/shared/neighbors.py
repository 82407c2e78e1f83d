"""Whether what a fit leaves is noise: errors at neighboring inputs are alike where it is not."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from unweave.arrays import Array


def likeness(inputs: Array, left: Array, compared: int) -> float:
    """Return the correlation of ``left`` (n, K) at ``inputs`` (n, d) with the same at the nearest other row.

    Noise has none. The first ``compared`` rows count. 0 where nothing is left, or there is no other row.
    """
    inputs, left = inputs[:compared], left[:compared]
    if len(inputs) < 2:
        return 0.0
    nearest = cKDTree(inputs).query(inputs, k=2)[1][:, 1]
    centred = left - left.mean(axis=0)
    size = float(np.sum(centred**2))
    return float(np.sum(centred * centred[nearest])) / size if size > 0 else 0.0
