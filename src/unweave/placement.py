"""Points where the neurons of a first layer act, in normalised inputs."""

from __future__ import annotations

import numpy as np

from unweave.access.region import Region
from unweave.arrays import Array, IntArray

_NEAR = 2.0  # pre-activations of points placed at a neuron lie within this
_REACH = 2.0  # placed points stay within this many typical radii of the region


def points_at_neurons(
    weights: Array,
    biases: Array,
    neurons: IntArray,
    region: Region,
    rng: np.random.Generator,
    margin: float = 0.0,
) -> Array:
    """One point (n, D) of the region per entry of ``neurons``, moved along its weight until it acts.

    ``weights`` (D, m) and ``biases`` (m,) are in normalised inputs. A point that would leave the region
    for it stays where it was drawn.
    """
    points = region.sample(len(neurons), rng, margin=margin)
    direction = weights[:, neurons].T
    length = np.maximum(np.einsum("nd,nd->n", direction, direction), np.finfo(np.float64).tiny)
    current = np.einsum("nd,nd->n", points, direction) + biases[neurons]
    wanted = rng.uniform(-_NEAR, _NEAR, len(neurons))
    moved = points + direction * ((wanted - current) / length)[:, None]
    usable = np.linalg.norm(moved, axis=1) < _REACH * np.sqrt(moved.shape[1])
    usable &= region.contains(moved + margin) & region.contains(moved - margin)
    return np.where(usable[:, None], moved, points)
