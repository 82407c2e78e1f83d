"""Collect distinct directions from the end points of many starts, round by round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class RankOneDirections:
    """Unit vectors whose squares lie in the subspace, and how the search went."""

    directions: Array
    """(found, D), each up to sign."""
    misalignment: Array
    """(found,) 1 - Phi of each."""
    restarts: int
    rejected: Array
    """1 - Phi of every end point that was refused."""

    def __len__(self) -> int:
        return len(self.directions)


@dataclass(frozen=True, kw_only=True)
class CollectorOptions:
    """When directions are accepted, and when further starts are not worth it."""

    max_restarts: float = 40.0
    """Largest number of starts, in multiples of m log(m + 2)."""
    patience: int = 30
    """Number of rounds without a new direction after which the search ends."""
    min_objective: float | None = None
    """Accept by Phi >= this instead of by the distance to the subspace."""
    angle: float = 1e-4
    """Directions closer than this (radians) are the same."""


class Collector:
    """Keep distinct directions until ``wanted`` are found, or further starts are not worth it.

    Begins with directions ``known`` (k, D), of ``misalignment`` 1 - Phi (k,). Calls ``on_round`` after every
    round with (found, wanted, starts so far).
    """

    def __init__(
        self,
        wanted: int,
        known: Array,
        misalignment: Array,
        options: CollectorOptions,
        on_round: Callable[[int, int, int], None] | None,
    ) -> None:
        self._wanted, self._options, self._on_round = wanted, options, on_round
        self._limit = int(options.max_restarts * wanted * np.log(wanted + 2)) + known.shape[1]
        self.found = known
        """(found, D)"""
        self._misalignment = misalignment
        self._rejected: list[Array] = [np.zeros(0)]
        self._fruitless = 0
        self.restarts = 0

    @property
    def goes_on(self) -> bool:
        """Whether another round is worth it."""
        missing = len(self.found) < self._wanted
        return missing and self.restarts < self._limit and self._fruitless < self._options.patience

    def add(self, ends: Array, misalignment: Array, accepted: BoolArray) -> None:
        """Take what is new of a round's end points (n, D), those with the smallest 1 - Phi (n,) first."""
        self._rejected.append(misalignment[~accepted])
        order = np.flatnonzero(accepted)[np.argsort(misalignment[accepted])]
        new = order[distinct_directions(ends[order], self.found, self._options.angle)]
        self.found = np.concatenate([self.found, ends[new]])
        self._misalignment = np.concatenate([self._misalignment, misalignment[new]])
        self.restarts += len(ends)
        self._fruitless = 0 if len(new) else self._fruitless + 1
        if self._on_round is not None:
            self._on_round(min(len(self.found), self._wanted), self._wanted, self.restarts)

    def result(self) -> RankOneDirections:
        """The ``wanted`` best of them."""
        best = np.argsort(self._misalignment)[: self._wanted]
        return RankOneDirections(
            self.found[best], self._misalignment[best], self.restarts, np.concatenate(self._rejected)
        )


def distinct_directions(candidates: Array, known: Array, angle: float) -> IntArray:
    """Indices of the unit rows of ``candidates`` (n, d) that are new, each line once, in order.

    A row is new if its angle to every row of ``known`` (k, d) and to every earlier new row, taken
    modulo sign, exceeds ``angle`` (radians, small).
    """
    closeness = 1 - angle**2 / 2
    rows = np.flatnonzero(np.abs(candidates @ known.T).max(axis=1, initial=0.0) < closeness)
    similar = np.abs(candidates[rows] @ candidates[rows].T) >= closeness
    chosen: list[int] = []
    taken = np.zeros(len(rows), dtype=bool)
    for i in range(len(rows)):
        if not taken[i]:
            chosen.append(int(rows[i]))
            taken |= similar[i]
    return np.asarray(chosen, dtype=np.int64)


def best_distinct(ranked: Array, count: int, radii: tuple[float, ...]) -> IntArray:
    """Indices of at most ``count`` unit rows of ``ranked`` (n, d), best first, no two on one line.

    Rows closer than a radius (radians) are one line. The radii are tried in turn until ``count`` rows remain.
    """
    chosen = np.zeros(0, dtype=np.int64)
    for radius in radii:
        chosen = distinct_directions(ranked, np.zeros((0, ranked.shape[1])), radius)
        if len(chosen) >= count:
            break
    return chosen[:count]
