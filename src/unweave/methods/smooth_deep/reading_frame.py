"""The subspace of the inputs that the first layer reads, from gradients.

All gradients lie in the range of the first layer's weights, and at spread points they span it. Whatever
follows works in an orthonormal frame of it: as many coordinates as the first layer has units.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.derivatives.site_differences import GRADIENT_REACH, gradients_around
from unweave.methods.smooth_deep.base_points import PointSource
from unweave.methods.smooth_deep.known_layers import Ask
from unweave.methods.smooth_deep.options import FrameOptions
from unweave.numerics.clock import check


@dataclass(frozen=True, eq=False)
class GradientSample:
    """Gradients (n, D, K) at points (n, D)."""

    points: Array
    gradients: Array


def sample_gradients(ask: Ask, points: Array, step: float) -> GradientSample:
    """Take gradients at ``points`` (n, D): 4 D rows each."""

    def around(sites: IntArray, moves: Array) -> Array:
        return ask(points[sites] + moves)

    steps = np.full(len(points), step)
    return GradientSample(points, gradients_around(around, steps, points.shape[1]))


def reading_frame(
    ask: Ask,
    points: PointSource,
    n_inputs: int,
    n_outputs: int,
    width: int | None,
    options: FrameOptions | None = None,
) -> tuple[Array, GradientSample | None]:
    """Return an orthonormal frame (D, d) of what the first layer reads, and the gradients that show it.

    A layer whose ``width`` is that of the inputs reads them all, and nothing is asked.
    """
    options = options or FrameOptions()
    if width is not None and width >= n_inputs:
        return np.eye(n_inputs), None
    sample = GradientSample(np.zeros((0, n_inputs)), np.zeros((0, n_inputs, n_outputs)))
    wanted, per_site = min(n_inputs, width or options.first_guess), n_outputs
    while True:
        check()
        missing = int(np.ceil((wanted + options.spare) / per_site)) + 1 - len(sample.points)
        if missing > 0:
            drawn = points.inputs(missing, margin=GRADIENT_REACH * options.step)
            more = sample_gradients(ask, drawn, options.step)
            sample = GradientSample(
                np.concatenate([sample.points, more.points]),
                np.concatenate([sample.gradients, more.gradients]),
            )
        per_site = independent_outputs(sample, options.rank)
        columns = sample.gradients.transpose(1, 0, 2).reshape(n_inputs, -1)
        lengths = np.linalg.norm(columns, axis=0)
        seen = columns[:, lengths > 0] / lengths[lengths > 0]
        left, values, _ = np.linalg.svd(seen, full_matrices=False)
        rank = int(np.sum(values > options.rank * values[0])) if len(values) else 0
        if rank >= n_inputs:
            return np.eye(n_inputs), sample
        if rank + options.spare <= per_site * len(sample.points):
            return np.asarray(left[:, :rank]), sample
        wanted = min(n_inputs, max(2 * wanted, rank + options.spare))


def independent_outputs(sample: GradientSample, rank: float) -> int:
    """Count the outputs with independent gradients: a bottleneck or equal outputs leave fewer.

    Singular values below ``rank`` times the first do not count.
    """
    values = np.linalg.svd(sample.gradients, compute_uv=False)
    return max(1, int((values > rank * values[:, :1]).sum(axis=1).max(initial=1)))
