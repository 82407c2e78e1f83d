"""Does the target divide by the size of what it reads? Layer norm, RMS norm and rows of length one do.

Far out, such a target depends on the direction of its inputs alone, and smoothly: along a ray its answers
settle like 1/t, and a small turn of the ray moves them by far more, in proportion. Networks of layers do
otherwise: saturating units are constant in almost all directions far out, and others grow along rays.
"""

from __future__ import annotations

import numpy as np

from unweave.errors import NonFiniteAnswers
from unweave.targets.region import NormalisedQueries

MESSAGE = (
    "far out the answers depend on the direction of the inputs alone: the target divides by the size of what "
    "it reads (layer norm, RMS norm, or inputs scaled to length one), which no method handles"
)
FAR = 1e6
"""Normalised inputs at which rays are compared."""
TURN = 1e-3
"""Relative turn of a ray."""
_RAYS = 8
_SETTLED = 1e-4  # change along a ray, relative to the answers, of a target that has settled
_TURNS_MATTER = 30.0  # change by a turn over the change along the ray
_IN_PROPORTION = 0.2  # change that twice the turn leaves unexplained, relative to the change


def is_normalised(view: NormalisedQueries, rng: np.random.Generator) -> bool:
    """Return whether the target divides by the size of what it reads; 32 rows. False inside a box."""
    if view.region.has_box:
        return False
    rays, turns = rng.standard_normal((2, _RAYS, view.n_inputs))
    points = [FAR * rays, 2 * FAR * rays, FAR * (rays + TURN * turns), FAR * (rays + 2 * TURN * turns)]
    try:
        here, farther, turned, turned_twice = np.split(view(np.concatenate(points)), 4)
    except NonFiniteAnswers:
        return False
    size = np.abs(here).max()
    if not 0 < size < np.inf:
        return False
    along = np.abs(farther - here).max(axis=1) / size
    across = np.abs(turned - here).max(axis=1) / size
    bent = np.abs(turned_twice - here - 2 * (turned - here)).max(axis=1) / size
    matters = across > _TURNS_MATTER * along
    return bool(
        along.max() <= _SETTLED
        and np.median(across) > 0
        and matters.mean() > 0.5
        and np.median(bent) <= _IN_PROPORTION * np.median(across)
    )
