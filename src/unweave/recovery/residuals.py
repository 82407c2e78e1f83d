"""Whether what a network leaves of noisy answers looks like the noise it is said to be.

Independent noise of one size is as large far out as nearby, and says nothing about the noise next to it. A
unit that the noise hides is larger somewhere, and neighbours share its sign.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, IntArray

LARGEST_GROWTH = 1.5
"""Ratio of errors far out and nearby, either way, beyond which the noise is not of one size."""
LARGEST_CORRELATION = 8.0
"""Correlation of the errors of nearest neighbours, in standard errors, that chance does not explain, nor the
error of the fit that rows asked around one place share."""
_FEWEST = 200  # rows that such figures are taken from, at least ...
_MOST = 2000  # ... and at most: all pairs are looked at ...
_BLOCK = 100  # ... by this many rows at once, whose distances stay in the processor's cache


@dataclass(frozen=True)
class Pattern:
    """What the errors of noisy answers show."""

    growth: float
    """Root mean square error of the outer third of the rows over that of the inner third, or its inverse."""
    correlation: float
    """Of the errors of nearest neighbours, in standard errors."""
    rows: int


def pattern_of(points: Array, errors: Array) -> Pattern | None:
    """Look for a pattern in ``errors`` (n, K) at normalised ``points`` (n, D); None if there are too few."""
    points, errors = points[:_MOST], errors[:_MOST] / np.sqrt(np.mean(errors[:_MOST] ** 2, axis=0))
    count = len(points)
    if count < _FEWEST or not np.isfinite(errors).all():
        return None
    order = np.argsort(np.linalg.norm(points, axis=1))
    inner, outer = (
        float(np.sqrt(np.mean(errors[part] ** 2))) for part in (order[: count // 3], order[-count // 3 :])
    )
    nearest = _nearest(points)
    products = (errors * errors[nearest]).mean(axis=1)
    twice = nearest[nearest] == np.arange(count)  # pairs that are each other's nearest are met twice
    products[twice] /= np.sqrt(2)
    correlation = float(products.sum() / np.sqrt(np.sum(products**2)))
    return Pattern(max(outer / inner, inner / outer), correlation, count)


def _nearest(points: Array) -> IntArray:
    """Return the nearest other point of each of ``points`` (n, D), by |p|^2 / 2 - p . q."""
    halves, nearest = np.einsum("nd,nd->n", points, points) / 2, np.empty(len(points), np.int64)
    for start in range(0, len(points), _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, len(points)))
        distance = halves - points[rows] @ points.T
        distance[rows - start, rows] = np.inf
        nearest[rows] = distance.argmin(axis=1)
    return nearest
