"""Points where the units of a first layer act, in normalised inputs."""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.targets.region import Region

_ACTING_PREACTIVATION = 2.0  # largest size of a pre-activation at a point placed at a unit
_PLACEMENT_ATTEMPTS = 20  # draws per point before it is left where it is
REACH = 2.0
"""Placed points stay within this many typical radii of the region by default."""


def points_at_units(
    weights: Array,
    biases: Array,
    units: IntArray,
    region: Region,
    rng: np.random.Generator,
    margin: float = 0.0,
    reach: float = REACH,
) -> Array:
    """Return one point (n, D) of the region per entry of ``units``, moved along its weight until it acts.

    ``weights`` (D, m) and ``biases`` (m,) are in normalised inputs; ``reach`` is the largest norm of a point,
    in typical radii of the region. Points that would leave the region are drawn again. Where that keeps
    failing, the unit acts nowhere in the region, and any point will do.
    """
    points = region.sample(len(units), rng, margin=margin)
    length = np.einsum("dm,dm->m", weights, weights)[units]
    open_rows = np.flatnonzero(length > 0)
    for attempt in range(_PLACEMENT_ATTEMPTS):
        if len(open_rows) == 0:
            break
        drawn = region.sample(len(open_rows), rng, margin=margin) if attempt else points[open_rows]
        chosen = units[open_rows]
        direction = weights[:, chosen].T
        current = np.einsum("nd,nd->n", drawn, direction) + biases[chosen]
        wanted = rng.uniform(-_ACTING_PREACTIVATION, _ACTING_PREACTIVATION, len(open_rows))
        moved = drawn + direction * ((wanted - current) / length[open_rows])[:, None]
        usable = np.linalg.norm(moved, axis=1) < reach * np.sqrt(moved.shape[1])
        usable &= region.contains(moved + margin) & region.contains(moved - margin)
        points[open_rows[usable]] = moved[usable]
        open_rows = open_rows[~usable]
    return points
