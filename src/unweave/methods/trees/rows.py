"""Rows on which a model of steps is put to the test, and the answers to them.

A step that is missing shows only where it acts, so rows are drawn in four ways: as inputs come, from the
user's examples, from the cells between known thresholds (each as likely as any other, however narrow), and
right beside a known threshold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.trees.thresholds import Thresholds
from unweave.networks.links import Link
from unweave.probing.findings import Findings
from unweave.search import GaveUp, Reason
from unweave.targets.region import NormalisedQueries


@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """Where rows are drawn, and when two answers differ."""

    farthest: float = 1e10
    """Scales of the region within which all thresholds lie, where nothing bounds the inputs."""
    magnitudes: tuple[float, float] = (-4.0, 4.0)
    """Powers of ten of inputs whose scale nobody knows."""
    rounding_of_doubles: float = 1e4
    """Rounding of a sum of some hundred leaves in float64, in eps and generously."""
    rounding_of_singles: float = 30.0
    """The same in float32, which is summed in float64 more often than not."""
    through_link: float = 30.0
    """Factor by which undoing a link multiplies it."""


class TreesReason(Reason):
    """Why no tree, or no sum of trees, was found."""

    SATURATED = "the answers reach the ends of their range, where what is behind them cannot be read"
    TOO_LARGE = (
        "the target answers in steps, as a tree or a sum of trees does, but more than {limit} {what} are "
        "needed: the model found so far is only a part of it"
    )


class Answers:
    """What is behind the link of a target, in its own inputs, and whether two of these are the same."""

    def __init__(self, view: NormalisedQueries, findings: Findings, link: Link, options: RowOptions) -> None:
        self._ask, self._link = view.ledger, link
        kind = findings.noise.kind
        rounding = options.rounding_of_singles if kind == "float32" else options.rounding_of_doubles
        self._eps = np.finfo(kind).eps * rounding
        self._eps *= 1.0 if link.name == "identity" else options.through_link
        self._size = np.zeros(findings.n_outputs)

    def __call__(self, x: Array) -> Array:
        """Ask rows ``x`` (n, D): (n, K)."""
        z = self._link.inverse(self._ask(x)) if self._link.name != "identity" else self._ask(x)
        if not np.isfinite(z).all():
            raise GaveUp(TreesReason.SATURATED)
        self._size = np.maximum(self._size, np.abs(z).max(axis=0, initial=0.0))
        return z

    def differ(self, first: Array, second: Array) -> BoolArray:
        """Return whether rows of (n, K) differ by more than rounding. Shape (n,)."""
        level = self._eps * np.maximum(self._size, self._size.max())
        return np.asarray((np.abs(first - second) > level).any(axis=1))


class TestRows:
    """Draws rows in the target's own inputs."""

    def __init__(
        self, findings: Findings, thresholds: Thresholds, rng: np.random.Generator, options: RowOptions
    ) -> None:
        region = findings.region
        self._options = options
        self._region, self._thresholds, self._rng = region, thresholds, rng
        self._examples = findings.examples
        self.unplaced = self._examples is None and not region.has_box
        """Whether nothing tells the scale of the inputs."""
        if region.low is None or region.high is None:
            self.low = region.location - options.farthest * region.scale
            self.high = region.location + options.farthest * region.scale
        else:
            self.low, self.high = region.low, region.high

    def draw(self, n: int) -> Array:
        """Return ``n`` rows (n, D), a mixture of all ways."""
        way = self._rng.integers(4, size=n)
        rows = self._cells(n)
        rows[way == 0] = self._typical(int((way == 0).sum()))
        mixed = self._rng.random(rows.shape) < 0.5
        typical = self._typical(n)
        rows = np.where(mixed & (way == 1)[:, None], typical, rows)
        self._pin(rows, np.flatnonzero(way == 2))
        return rows

    def within(self, low: Array, high: Array) -> Array:
        """Return one row in each of the boxes between ``low`` and ``high`` (n, D), from any of its cells."""
        cells, typical = self._cells(len(low), low, high), self._typical(len(low))
        usual = (typical >= low) & (typical <= high) & (self._rng.random((len(low), 1)) < 0.5)
        return np.where(usual, typical, cells)

    def examples(self) -> Array:
        """Return the user's examples (n, D), perhaps none."""
        kept = self._examples
        if kept is None:
            return np.empty((0, len(self.low)))
        return self.bounded(kept)

    def bounded(self, rows: Array) -> Array:
        """Return those of ``rows`` (n, D) that lie within the bounds."""
        return np.asarray(rows[((rows >= self.low) & (rows <= self.high)).all(axis=1)])

    def _typical(self, n: int) -> Array:
        region, rng = self._region, self._rng
        rows = region.to_inputs(region.sample(n, rng))
        known = self.examples()
        if len(known):  # whole rows, rows mixed of two, and Gaussian ones
            one, other = known[rng.integers(len(known), size=(2, n))]
            crossed = np.where(rng.random(rows.shape) < 0.3, other, one)
            which = rng.random(n)
            rows = np.where(which[:, None] < 0.4, crossed, np.where(which[:, None] < 0.7, one, rows))
        elif self.unplaced:
            size = 10.0 ** rng.uniform(*self._options.magnitudes, rows.shape)
            rows = np.where(rng.random((n, 1)) < 0.5, rows, rng.choice([-1.0, 1.0], rows.shape) * size)
        return self.admitted(rows)

    def _cells(self, n: int, low: Array | None = None, high: Array | None = None) -> Array:
        """Draw every input from a cell between its known thresholds, all as likely, within bounds (n, D)."""
        low = np.broadcast_to(self.low, (n, len(self.low))) if low is None else low
        high = np.broadcast_to(self.high, (n, len(self.high))) if high is None else high
        rows = np.clip(self._typical(n), low, high)
        for feature, known in enumerate(self._thresholds.of):
            if len(known):
                beyond = max(float(np.ptp(known)), 1e-3 * float(np.abs(known).max()), 1e-300)
                edges = np.concatenate([[known[0] - beyond], known, [known[-1] + beyond]])
                first = np.searchsorted(known, low[:, feature], "left")
                last = np.searchsorted(known, high[:, feature], "left")
                cell = self._rng.integers(first, last + 1)
                share = 1 - self._rng.random(n)
                rows[:, feature] = edges[cell] + share * (edges[cell + 1] - edges[cell])
        return np.clip(self.admitted(rows), low, high)

    def _pin(self, rows: Array, which: IntArray) -> None:
        """Move one input of some rows right beside a known threshold."""
        used = np.array([j for j, known in enumerate(self._thresholds.of) if len(known)], dtype=np.int64)
        if not len(used):
            return
        for row, feature in zip(which, self._rng.choice(used, len(which)), strict=True):
            value = self._rng.choice(self._thresholds.of[feature])
            above = self._rng.random() < 0.5
            rows[row, feature] = self._thresholds.after(value, int(feature)) if above else value

    def admitted(self, rows: Array) -> Array:
        """Return ``rows`` (n, D) moved to where the target may be asked."""
        rows = np.where(self._thresholds.whole, np.ceil(rows), rows)
        return np.clip(rows, self.low, self.high)
