"""Attacks with made-up outcomes, for tests of what is said about them."""

from __future__ import annotations

import math

import numpy as np

from unweave.audits import Level
from unweave.audits.curve import EXACT, LevelSummary, Point

ALARM = 0.01
LEVELS = (Level(), *(Level(decimals=digits) for digits in (4, 3, 2)), Level(noise=0.1))
BUDGETS = (100, 1_000, 10_000)


def point(level, budget, error, way="averaging", alike=0.5, fresh=0.5, queries=None):
    status = "FAILED" if math.isnan(error) else "RECOVERED"
    asked = budget if queries is None else queries
    return Point(level, budget, way, status, asked, error, error, error, fresh, alike, None, "")


def summary(level, points):
    """What the curve makes of the points, written down once more."""

    def fewest(there):
        return min((p.queries for p in points if p.level == level and there(p)), default=None)

    exact = fewest(lambda p: p.median_weight_error <= EXACT)
    errors = [p.median_weight_error for p in points if p.level == level and p.queries == exact]
    return LevelSummary(
        level,
        fewest(lambda p: p.has_network),
        fewest(lambda p: p.leak(ALARM) != "nothing"),
        exact,
        min(errors, default=math.nan),
        fewest(lambda p: p.median_weight_error <= ALARM),
        False,
        10 * BUDGETS[-1],
        "too coarse",
    )


def random_points(seed, levels=LEVELS):
    """Attacks with any outcome, as long as each asks no more than it may."""
    rng = np.random.default_rng(seed)
    points = []
    for level in levels:
        for budget in (*BUDGETS, 10 * BUDGETS[-1]):
            for way in ("averaging", "bisection")[: rng.integers(1, 3)]:
                queries = int(rng.integers(1, budget + 1))
                failed = rng.random() < 0.35
                error = math.nan if failed else float(10 ** rng.uniform(-16, 0))
                alike, fresh = float(rng.random()), float(10 ** rng.uniform(-6, 0))
                points.append(point(level, budget, error, way, alike, fresh, queries))
    return points
