"""Distinct directions: one representative of every cluster of lines through the origin."""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array, IntArray


def distinct_directions(candidates: Array, known: Array, angle: float) -> IntArray:
    """Indices of the unit rows of ``candidates`` (n, d) that are new, each line once, in order.

    A row is new if its angle to every row of ``known`` (k, d) and to every earlier new row, taken
    modulo sign, exceeds ``angle`` (radians, small).
    """
    closeness = 1 - angle**2 / 2
    unseen = np.abs(candidates @ known.T).max(axis=1, initial=0.0) < closeness
    rows = np.flatnonzero(unseen)
    similar = np.abs(candidates[rows] @ candidates[rows].T) >= closeness
    chosen: list[int] = []
    taken = np.zeros(len(rows), dtype=bool)
    for i in range(len(rows)):
        if not taken[i]:
            chosen.append(int(rows[i]))
            taken |= similar[i]
    return np.asarray(chosen, dtype=np.int64)
