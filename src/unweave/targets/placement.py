"""Points where the neurons of a first layer act, in normalised inputs."""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.targets.region import Region

_NEAR = 2.0  # pre-activations of points placed at a neuron lie within this
_ATTEMPTS = 20
REACH = 2.0
"""Placed points stay within this many typical radii of the region, unless told otherwise."""


def points_at_neurons(
    weights: Array,
    biases: Array,
    neurons: IntArray,
    region: Region,
    rng: np.random.Generator,
    margin: float = 0.0,
    reach: float = REACH,
) -> Array:
    """One point (n, D) of the region per entry of ``neurons``, moved along its weight until it acts.

    ``weights`` (D, m) and ``biases`` (m,) are in normalised inputs; ``reach`` is the largest norm of a point,
    in typical radii of the region. Points that would leave the region are
    drawn again; where that keeps failing the neuron acts nowhere in the region, and any point will do.
    """
    points = region.sample(len(neurons), rng, margin=margin)
    length = np.einsum("dm,dm->m", weights, weights)[neurons]
    open_rows = np.flatnonzero(length > 0)
    for attempt in range(_ATTEMPTS):
        if len(open_rows) == 0:
            break
        drawn = region.sample(len(open_rows), rng, margin=margin) if attempt else points[open_rows]
        chosen = neurons[open_rows]
        direction = weights[:, chosen].T
        current = np.einsum("nd,nd->n", drawn, direction) + biases[chosen]
        wanted = rng.uniform(-_NEAR, _NEAR, len(open_rows))
        moved = drawn + direction * ((wanted - current) / length[open_rows])[:, None]
        usable = np.linalg.norm(moved, axis=1) < reach * np.sqrt(moved.shape[1])
        usable &= region.contains(moved + margin) & region.contains(moved - margin)
        points[open_rows[usable]] = moved[usable]
        open_rows = open_rows[~usable]
    return points
