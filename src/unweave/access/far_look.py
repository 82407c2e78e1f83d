"""A look at the target far outside the region: do its units level off, and is there more than one hidden
layer?

Where every hidden unit of the first layer is saturated, a network is constant along rays: f(2x) = f(x).
With one hidden layer of odd units (up to a constant) f(x) + f(-x) is then the same for all x; deeper
networks have no such rule, unless all their deeper biases vanish.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.access.region import NormalisedQueries

_RADIUS = 1e4
_PAIRS = 12
_SAME = 1e-6  # difference relative to the spread of the answers


@dataclass(frozen=True)
class FarLook:
    """What the far field shows."""

    saturates: bool
    """Whether the answers are constant along rays."""
    layered: bool
    """Whether they are, and cannot come from one hidden layer."""


def far_look(view: NormalisedQueries, relative_noise: float, rng: np.random.Generator) -> FarLook:
    """Look at antipodal points far out: 36 rows."""
    points = _RADIUS * rng.standard_normal((_PAIRS, view.n_inputs))
    answers = view(np.concatenate([points, -points, 2 * points]))
    here, opposite, beyond = np.split(answers, 3)
    spread = float(np.ptp(here, axis=0).max())
    if not (np.isfinite(answers).all() and spread > 0):
        return FarLook(False, False)
    tolerance = max(_SAME, 10 * relative_noise) * spread
    # Some pre-activation may be near zero even far out: most rays count.
    saturates = bool(np.median(np.abs(beyond - here).max(axis=1)) <= tolerance)
    sums = here + opposite
    layered = saturates and bool(np.median(np.abs(sums - np.median(sums, axis=0)).max(axis=1)) > tolerance)
    return FarLook(saturates, layered)
