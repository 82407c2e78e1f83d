"""Whether what a fit leaves is noise: errors at neighboring inputs are alike where it is not."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from unweave.arrays import Array

MOST_COMPARED = 2000
"""Rows that are compared with their neighbors at most: a search for neighbors takes a tenth of a second."""


def likeness(inputs: Array, left: Array, compared: int = MOST_COMPARED) -> float:
    """Return the correlation of ``left`` (n, K) at ``inputs`` (n, d) with the same at the nearest other row.

    Noise has none. 0 where nothing is left, or there is no other row.
    """
    inputs, left = inputs[:compared], left[:compared]
    if len(inputs) < 2:
        return 0.0
    nearest = cKDTree(inputs).query(inputs, k=2)[1][:, 1]
    centred = left - left.mean(axis=0)
    size = float(np.sum(centred**2))
    return float(np.sum(centred * centred[nearest])) / size if size > 0 else 0.0
