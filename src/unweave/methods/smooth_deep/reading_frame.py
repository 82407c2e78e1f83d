"""The subspace of the inputs that the first layer reads, from gradients.

All gradients lie in the range of the first layer's weights, and at spread points they span it. Whatever
follows works in an orthonormal frame of it: as many coordinates as the first layer has units.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.methods.smooth_deep.base_points import PointSource
from unweave.methods.smooth_deep.differences import GRADIENT_REACH, gradients_around
from unweave.methods.smooth_deep.known_layers import Ask

_STEP = 0.01
_SPARE = 4  # gradients beyond the rank that show the spectrum to end
_RANK = 1e-7  # relative singular values below this are the differences' errors
_FIRST_GUESS = 8


@dataclass(frozen=True, eq=False)
class GradientSample:
    """Gradients (n, D, K) at points (n, D)."""

    points: Array
    gradients: Array


def sample_gradients(ask: Ask, points: Array) -> GradientSample:
    """Gradients at ``points``: 4 D rows each."""

    def around(sites: IntArray, moves: Array) -> Array:
        return ask(points[sites] + moves)

    steps = np.full(len(points), _STEP)
    return GradientSample(points, gradients_around(around, steps, points.shape[1]))


def reading_frame(
    ask: Ask, points: PointSource, n_inputs: int, n_outputs: int, width: int | None
) -> tuple[Array, GradientSample | None]:
    """Orthonormal frame (D, d) of what the first layer reads, and the gradients that showed it.

    A layer said to be as wide as the inputs reads them all, and nothing is asked.
    """
    if width is not None and width >= n_inputs:
        return np.eye(n_inputs), None
    sample = GradientSample(np.zeros((0, n_inputs)), np.zeros((0, n_inputs, n_outputs)))
    wanted, per_site = min(n_inputs, width or _FIRST_GUESS), n_outputs
    while True:
        missing = int(np.ceil((wanted + _SPARE) / per_site)) + 1 - len(sample.points)
        if missing > 0:
            more = sample_gradients(ask, points.inputs(missing, margin=GRADIENT_REACH * _STEP))
            sample = GradientSample(
                np.concatenate([sample.points, more.points]),
                np.concatenate([sample.gradients, more.gradients]),
            )
        per_site = independent_outputs(sample)
        columns = sample.gradients.transpose(1, 0, 2).reshape(n_inputs, -1)
        lengths = np.linalg.norm(columns, axis=0)
        seen = columns[:, lengths > 0] / lengths[lengths > 0]
        left, values, _ = np.linalg.svd(seen, full_matrices=False)
        rank = int(np.sum(values > _RANK * values[0])) if len(values) else 0
        if rank >= n_inputs:
            return np.eye(n_inputs), sample
        if rank + _SPARE <= per_site * len(sample.points):
            return np.asarray(left[:, :rank]), sample
        wanted = min(n_inputs, max(2 * wanted, rank + _SPARE))


def independent_outputs(sample: GradientSample) -> int:
    """How many outputs' gradients are independent at a site: a bottleneck or equal outputs leave fewer."""
    values = np.linalg.svd(sample.gradients, compute_uv=False)
    return max(1, int((values > _RANK * values[:, :1]).sum(axis=1).max(initial=1)))
