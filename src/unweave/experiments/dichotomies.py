"""The patterns that exact risk minimisation goes through (Theorem 2.4.1 of the mathematics of deep learning).

A ReLU unit splits N points of R^d into active and inactive ones by a hyperplane. In general position there
are 2 sum_{i<=d} C(N-1, i) such splits (Cover); the source counts at most 2 C(N, d), which is too few.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import numpy as np

from unweave.exact import hyperplane_dichotomies
from unweave.experiments.experiment import Figure, Progress
from unweave.experiments.rules import equal

SETTINGS = ((1, 100), (2, 10), (2, 40), (2, 100), (3, 12), (3, 40), (4, 16), (5, 12))
"""Inputs d, points N."""


def run(seed: int, progress: Progress) -> Iterator[Figure]:
    """Gaussian points: in general position with probability one."""
    for inputs, points in SETTINGS:
        progress(f"d = {inputs}, N = {points}")
        x = np.random.default_rng([seed, inputs, points]).standard_normal((points, inputs))
        cover = 2 * sum(comb(points - 1, i) for i in range(inputs + 1))
        note = "corrected: Cover's number; the printed 2 C(N, d) is another"
        yield equal(f"d = {inputs}, N = {points}: splits", cover, len(hyperplane_dichotomies(x)), note)
