"""Starts below the energy barrier, and descent from them (the study of quadratic networks).

If m is a large multiple of d^2 and W* has random entries, a start with W_0^T W_0 = m I lies below the
barrier; descent from there keeps full rank, where every stationary point is the planted network up to
rotation, and finds it. With few units the same start is far above the barrier.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.rules import at_least, at_most, vanishes
from unweave.quadratic import (
    identity_start,
    population_barrier,
    population_risk,
    quadratic_descent,
    stationary_certificate,
)

INPUTS, WIDE, NARROW = 10, 1600, 20
SAMPLES = 10 * INPUTS * (INPUTS + 1) // 2


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """d = 10, m = 16 d^2 and m = 2 d."""
    progress("risk of the start")
    rng = np.random.default_rng(seed)
    over = {}
    for width in (WIDE, NARROW):
        weights = rng.standard_normal((INPUTS, width))
        matrix = weights @ weights.T
        over[width] = population_risk(width * np.eye(INPUTS) - matrix) / population_barrier(matrix)
        if width == WIDE:
            planted, truth = weights, matrix
    yield at_most(f"m = {WIDE}: risk of the start over the barrier", 1.0, over[WIDE])
    yield at_least(
        f"m = {NARROW}: risk of the start over the barrier", 1.0, over[NARROW], "above it: m is too small"
    )
    progress("descent")
    x = rng.standard_normal((SAMPLES, INPUTS))
    y = np.sum((x @ planted) ** 2, axis=1)
    found = quadratic_descent(x, y, identity_start(INPUTS, WIDE))
    size = float(np.linalg.norm(truth))
    error = float(np.linalg.norm(found.weights @ found.weights.T - truth)) / size
    yield vanishes(f"m = {WIDE}: relative error of W^T W after descent", error, 1e-9)
    certificate = stationary_certificate(x, y, found.weights)
    yield at_most(
        f"m = {WIDE}: that error, certified by the gradient alone", certificate.distance_bound / size, error
    )
