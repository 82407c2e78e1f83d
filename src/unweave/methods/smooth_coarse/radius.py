"""The radius of the stencils, from answers alone.

Small radii drown in noise, large ones in the function's own higher derivatives. Where two stencils turned
against each other agree best is in between: the radius maximises

    | H_1 + H_2 | / | H_1 - H_2 |

over a ladder, at a few sites, in random subspaces of a few dimensions (a step along a weight is as short
there as in the whole space). On a coarse grid of answers small radii give differences that are all zero, and
say nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unweave.arrays import Array
from unweave.methods.smooth_coarse.rotated_hessians import random_rotations, rotated_hessians

_DIMENSIONS = 6  # of the subspaces
_SITES = 4
_RATIO = 1.6  # from one radius of the ladder to the next
_LONGEST, _SHORTEST = 16.0, 1e-3
_MARGIN = 4.0  # radii below (relative / _MARGIN)^(1/4) cannot be best
_PAST = 2  # radii after the best so far that are tried before the ladder ends


def choose_radius(
    ask: Callable[[Array], Array],
    draw_sites: Callable[[int, float], Array],
    relative_noise: float,
    longest: float,
    rng: np.random.Generator,
) -> float:
    """Radius at which stencils of ``ask``: (N, D) -> (N, K) tell most, at most ``longest``.

    ``relative_noise`` is sigma over the spread of the answers. The ladder is climbed downwards and left when
    it gets worse. Cost: 4 x 146 rows per rung in six dimensions or more, about five rungs.
    """
    longest = min(_LONGEST, longest)
    # About 6 (sigma / F)^(1/4) is best for unit weights; weights a few times shorter are seen farther out.
    top = min(longest, max(_SHORTEST, 4 * relative_noise**0.25 * _RATIO**4))
    sites = draw_sites(_SITES, top)
    dimension = sites.shape[1]
    k = min(_DIMENSIONS, dimension)
    frames = np.linalg.qr(rng.standard_normal((_SITES, dimension, k)))[0].transpose(0, 2, 1)
    turned = [random_rotations(_SITES, k, rng) for _ in range(2)]
    best, best_ratio, past, radius = top, -np.inf, 0, top
    while radius >= _SHORTEST and past <= _PAST:
        first, second = (rotated_hessians(ask, sites, radius, each, frames).hessians for each in turned)
        ratio = _agreement(first, second)
        if ratio > best_ratio:
            best, best_ratio, past = radius, ratio, 0
        else:
            past += 1
        radius /= _RATIO
    return float(best)


def _agreement(first: Array, second: Array) -> float:
    """|H_1 + H_2| / |H_1 - H_2| over sites and outputs; minus infinity where most entries are zero."""
    if np.mean(first != 0) < 0.5:
        return -np.inf
    difference = float(np.linalg.norm(first - second))
    return float(np.linalg.norm(first + second)) / max(difference, float(np.finfo(np.float64).tiny))
