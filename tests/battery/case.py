"""A case of the battery: what a target answers, what is true, and where that counts.

Nothing here or in ``families`` imports the package: what it is judged by must not share its mistakes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray
Rng = np.random.Generator
Function = Callable[[Array], Array]
"""(n, D) -> (n, K)"""

ORDINARY_REACH = 4.0
"""Standard deviations up to which the default region is searched: 1 normal number in 16,000 lies beyond."""


@dataclass(frozen=True)
class Region:
    """The inputs for which a function counts."""

    draw: Callable[[Rng, int], Array]
    """(rng, n) -> (n, D) inputs as they come."""
    centre: Array
    """(D,)"""
    scale: Array
    """(D,) typical distance from the centre."""
    low: Array
    high: Array
    """(D,) bounds that a search for wrong rows keeps to."""
    declared: bool = False
    """Whether the package was told this box, so that its corners count."""

    def distance(self, x: Array) -> Array:
        """(n,) largest entry of each row in units of the scale."""
        return np.abs((x - self.centre) / self.scale).max(axis=1)


def ordinary(inputs: int) -> Region:
    """N(0, I): where inputs are if nobody says otherwise."""
    reach = np.full(inputs, ORDINARY_REACH)
    return Region(
        lambda rng, n: rng.standard_normal((n, inputs)), np.zeros(inputs), np.ones(inputs), -reach, reach
    )


def box(low: Array, high: Array) -> Region:
    """A box that the package is told."""
    return Region(
        lambda rng, n: rng.uniform(low, high, (n, len(low))),
        (low + high) / 2,
        (high - low) / 2,
        low,
        high,
        declared=True,
    )


def around(rows: Array) -> Region:
    """Rows that the user calls typical, and what lies near them and within their range."""
    low, high, spread = rows.min(axis=0), rows.max(axis=0), rows.std(axis=0)

    def draw(rng: Rng, n: int) -> Array:
        near = 0.05 * spread * rng.standard_normal((n, rows.shape[1]))
        return np.clip(rows[rng.integers(len(rows), size=n)] + near, low, high)

    return Region(draw, rows.mean(axis=0), spread, low, high)


@dataclass(frozen=True)
class Case:
    """A target with everything that is needed to judge what is made of it."""

    truth: Function
    """What a right network answers: without noise, rounding or drift."""
    region: Region
    answer: Function | None = None
    """What the target says; the truth unless given."""
    arguments: dict[str, Any] = field(default_factory=dict)
    """What the package is told."""
    samples: tuple[Array, Array] | None = None
    """Rows and answers, where there is no target to ask."""
    absolute: float = 0.0
    relative: float = 0.0
    """How coarse answers are: in their own units, and relative to the largest."""
    hidden: tuple[int, ...] | None = None
    """The widths, where the target is a network that no smaller one equals."""
    kind: str | None = None
    """The activation of its hidden units, where that is one of the package's."""
    must_recover: bool = False
    """Whether the package claims to recover such targets."""
    foreign: bool = False
    """Whether no network of the package's kinds equals the truth in the region."""
    stepped: bool = False
    """Whether the truth changes at thresholds of single inputs only, as a sum of trees does."""
    changes: bool = False
    """Whether the answer to a row depends on more than the row."""
    witness: Array | None = None
    """(n, D) rows of the region that show what is special."""
    digit: float = 0.0
    """Unit of the last digit, where a rule other than rounding to nearest is at work, else 0."""
    rule: str = ""
    """The name of that rule."""

    @property
    def inputs(self) -> int:
        """D"""
        return len(self.region.centre)


class Asked:
    """A target that keeps every row it was asked and what it said."""

    def __init__(self, answer: Function) -> None:
        self._answer = answer
        self._rows: list[Array] = []
        self._said: list[Array] = []
        self.longest_call = 0.0
        """Seconds."""

    def __call__(self, x: Array) -> Array:
        x = np.array(x, dtype=np.float64)
        start = time.perf_counter()
        with np.errstate(all="ignore"):
            said = self._answer(x)
        self.longest_call = max(self.longest_call, time.perf_counter() - start)
        self._rows.append(x)
        self._said.append(np.asarray(said, dtype=np.float64).reshape(len(x), -1))
        return said

    def log(self) -> tuple[Array, Array] | None:
        """Every row (n, D) and its answer (n, K) in order, or None."""
        if not self._rows:
            return None
        return np.concatenate(self._rows), np.concatenate(self._said)
