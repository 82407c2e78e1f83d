"""Check the data of an exact fit, and map it to standardized coordinates.

Dichotomies and losses do not change under affine maps of the inputs, so all work is done in

    t = (x - mean) V / sigma,        z = (t, 1),

with the r nonzero singular directions V of the centered points. Points on a line thus become a
one-dimensional problem, and N points in more than N - 1 dimensions one in at most N - 1. A unit c . z of
these coordinates is the unit with weights V / sigma c and, of all that agree on the data, smallest norm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from unweave.arrays import Array, real_numbers
from unweave.errors import InvalidInput
from unweave.networks.network import Network

_FLAT_EXTENT = 1e-12  # extent over the largest: thinner directions hold rounding, not data
_COORDINATE_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)  # of a centered coordinate over its size


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The affine map from inputs x (N, d) to coordinates t (N, r) of unit variance."""

    mean: Array
    """(d,)."""
    basis: Array
    """(d, r): t = (x - mean) @ basis."""

    def __call__(self, x: Array) -> Array:
        """t (N, r)."""
        return np.asarray((x - self.mean) @ self.basis)

    def network(self, units: Array, signs: Array) -> Network:
        """The network sum_i s_i relu(c_i . (t, 1)), units (w, r + 1), signs (w,), on inputs x."""
        weights = self.basis @ units[:, :-1].T
        biases = units[:, -1] - self.mean @ weights
        return Network([weights, signs[:, None]], [biases, np.zeros(1)], ["relu", "identity"])


def affine_coordinates(x: Array) -> Coordinates:
    """Coordinates of unit variance on the affine hull of the rows of x (N, d); r may be 0."""
    size = np.abs(x).max(axis=0)
    size[size == 0] = 1.0
    mean = (x / size).mean(axis=0) * size
    centered = x / size - mean / size
    spread = np.abs(centered).max(axis=0)
    varies = spread > _COORDINATE_ROUNDING
    unit = size[varies] * spread[varies]  # columns in their own units: they may differ by orders of magnitude
    if not varies.any():
        return Coordinates(mean, np.zeros((x.shape[1], 0)))
    _, extents, directions = np.linalg.svd(centered[:, varies] / spread[varies], full_matrices=False)
    # Points far from the origin carry the rounding of their distance.
    floor = max(
        _FLAT_EXTENT * extents[0], _COORDINATE_ROUNDING * float(np.sqrt(len(x)) / spread[varies].min())
    )
    kept = extents > floor
    basis = np.zeros((x.shape[1], int(kept.sum())))
    basis[varies] = directions[kept].T * (np.sqrt(len(x)) / extents[kept]) / unit[:, None]
    return Coordinates(mean, basis)


def checked_points(x: ArrayLike) -> Array:
    """x as a finite float64 matrix (N, d)."""
    points = real_numbers(x, "x")
    if points.ndim != 2 or not points.size:
        raise InvalidInput(
            f"x must be of shape (N, d), N and d at least 1. Got shape {points.shape} instead. "
            f"Give one row per sample; reshape(-1, 1) makes a single input a column."
        )
    return _finite(points, "x")


def checked_labels(y: ArrayLike, samples: int) -> Array:
    """y as a finite float64 vector (N,)."""
    labels = real_numbers(y, "y")
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.shape != (samples,):
        raise InvalidInput(
            f"y must be of shape ({samples},), one label per row of x. Got shape {labels.shape} instead. "
            f"An exact fit has one output; fit several one by one."
        )
    return _finite(labels, "y")


def _finite(array: Array, name: str) -> Array:
    bad = int(np.sum(~np.isfinite(array)))
    if bad:
        raise InvalidInput(
            f"{name} must be finite. Got {bad} NaN or infinite entries instead. Drop the samples they are in."
        )
    return array
