"""Section 2.7 of the dissertation: the power method finds all m = 2/5 D^2 rank-one matrices of a span.

The subspace is the exact span of w w^T over random unit vectors; 5 m log m starts were allowed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np

from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.planted import distances, unit_rows
from unweave.experiments.rules import at_most, equal, shown
from unweave.subspace import RankOneSpace, orthonormal_basis, subspace_power_method, symmetric_packing

SETTINGS = ((20, 160), (35, 490))
"""D and m = 2/5 D^2; the second is the smallest published."""
FOUND = 1e-6
"""Distance at which a direction counts as found; random ones are of order one apart."""


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """One span per setting."""
    for dimension, rank in SETTINGS:
        cell = f"D = {dimension}, m = {rank}"
        progress(cell)
        planted = unit_rows(np.random.default_rng([seed, dimension]), rank, dimension)
        packing = symmetric_packing(dimension)
        space = RankOneSpace(orthonormal_basis(packing.outer(planted).T), packing)
        began = time.perf_counter()
        found = subspace_power_method(space, np.random.default_rng([seed, dimension, 1]))
        taken = round(time.perf_counter() - began, 2)
        yield equal(
            f"{cell}: components found", rank, int((distances(planted, found.directions) < FOUND).sum())
        )
        yield equal(f"{cell}: others", 0, int((distances(found.directions, planted) >= FOUND).sum()))
        yield at_most(f"{cell}: starts", 5 * rank * math.log(rank), found.restarts)
        yield shown(f"{cell}: seconds", "seconds, on a GPU", taken)
