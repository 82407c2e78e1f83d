"""One tree, of any depth: a leaf with two answers is split where they part.

Two rows of one leaf with different answers differ in some inputs; one of these, moved alone, changes the
answer, and bisection tells where. That threshold may belong to a node far below the one that ought to split
the leaf. A node is visible exactly from the rows that come to it: where a threshold is visible from one row
of the leaf and not from another, the way between them crosses a threshold that lies above it. Climbing so
from node to node ends at one that is visible from everywhere. A wrong order costs further leaves, never a
wrong answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.trees.rows import Answers, TestRows
from unweave.methods.trees.thresholds import Thresholds
from unweave.numerics import clock


@dataclass(frozen=True, kw_only=True)
class SplittingOptions:
    """How a node is judged to lie above another."""

    sightings: tuple[int, ...] = (6, 42)
    """Rows from which the visibility of a threshold is judged; the later ones if all of the first see it."""
    share_error: float = 0.2
    """Error of the visible share, which is counted on few rows."""
    few_values: int = 4
    """Different answers up to which many leaves are alike, and nodes hidden by chance."""
    climbs: int = 12
    """Nodes that are climbed at most."""


Differing = Callable[[Array, IntArray], BoolArray]
"""(points (n, D), which of the rows they stand for (n,)) -> (n,)"""


@dataclass(frozen=True, eq=False)
class _Threshold:
    """Thresholds of inputs (n,), and rows (n, D) from which they are visible."""

    feature: IntArray
    value: Array
    base: Array

    def take(self, which: Any) -> _Threshold:
        return _Threshold(self.feature[which], self.value[which], self.base[which])

    def replaced(self, which: IntArray, others: _Threshold) -> _Threshold:
        feature, value, base = self.feature.copy(), self.value.copy(), self.base.copy()
        feature[which], value[which], base[which] = others.feature, others.value, others.base
        return _Threshold(feature, value, base)


class GrowingTree:
    """A binary tree whose leaves hold one row each, with its answer."""

    def __init__(
        self,
        ask: Answers,
        rows: TestRows,
        thresholds: Thresholds,
        rng: np.random.Generator,
        start: Array,
        options: SplittingOptions,
    ) -> None:
        self._options = options
        self._ask, self._rows, self._thresholds, self._rng = ask, rows, thresholds, rng
        self.feature, self.threshold = [-1], [np.nan]
        self.left, self.right = [-1], [-1]
        self.row, self.value = [start], [ask(start[None])[0]]
        self.low, self.high = [rows.low.copy()], [rows.high.copy()]

    @property
    def leaves(self) -> IntArray:
        """Numbers of the leaves."""
        return np.flatnonzero(np.array(self.feature) < 0)

    def leaf_of(self, x: Array) -> IntArray:
        """Return the leaf (n,) of every row ``x`` (n, D)."""
        feature, threshold = np.array(self.feature), np.array(self.threshold)
        left, right = np.array(self.left), np.array(self.right)
        node = np.zeros(len(x), dtype=np.int64)
        rows = np.flatnonzero(feature[node] >= 0)
        while len(rows):
            at = node[rows]
            goes_right = x[rows, feature[at]] > threshold[at]
            node[rows] = np.where(goes_right, right[at], left[at])
            rows = rows[feature[node[rows]] >= 0]
        return node

    def __call__(self, x: Array) -> Array:
        """Return the values (n, K) at rows ``x`` (n, D)."""
        return np.array(self.value)[self.leaf_of(x)]

    def wrong(self, x: Array) -> BoolArray:
        """Return where the tree is wrong. Shape (n,)."""
        return self._ask.differ(self._ask(x), self(x))

    def inside(self, leaves: IntArray, spread: bool = False) -> Array:
        """Return one row (n, D) of each of ``leaves``, anywhere in it; or, half of them, near its own."""
        low, high = (np.array([side[leaf] for leaf in leaves]) for side in (self.low, self.high))
        rows = self._rows.within(low, high)
        if spread:
            return rows
        share = self._rng.choice([0.2, 0.5, 1.0, 1.0], size=(len(rows), 1))
        own = np.array([self.row[leaf] for leaf in leaves])
        return np.where(self._rng.random(rows.shape) < share, rows, own)

    def learn(self, x: Array) -> int:
        """Split the leaves of rows ``x`` (n, D), all of them wrong; return the number of splits."""
        leaf, first = np.unique(self.leaf_of(x), return_index=True)
        x, own = x[first], np.array([self.row[each] for each in leaf])
        value = np.array([self.value[each] for each in leaf])
        found = self._parted(own, x, lambda points, which: self._ask.differ(self._ask(points), value[which]))
        # Where all leaves differ, a node that was climbed to lies above the one before, whatever is counted.
        alike = len(np.unique(self._ask(x), axis=0)) <= self._options.few_values
        slack = 0.0 if alike else self._options.share_error
        best, seen = found, np.full(len(leaf), -1.0)
        climbing = np.arange(len(leaf))
        for _ in range(self._options.climbs):
            share, hidden = self._visibility(leaf[climbing], found)
            better = share > seen[climbing] - slack
            best = best.replaced(climbing[better], found.take(better))
            seen[climbing[better]] = share[better]
            more = better & (share < 1)
            if not more.any():
                break
            # From the row where the threshold was found to one from which it is hidden.
            node, hidden, climbing = found.take(more), hidden[more], climbing[more]

            def differs(points: Array, which: IntArray, node: _Threshold = node) -> BoolArray:
                return ~self._steps(points, node.take(which))

            found = self._seen_from(self._parted(node.base, hidden, differs), node)
        self._thresholds.add(best.feature, best.value)
        for place, each in enumerate(leaf):
            self._split(
                int(each), int(best.feature[place]), float(best.value[place]), x[place], best.base[place]
            )
        return len(leaf)

    def _parted(self, own: Array, x: Array, differs: Differing) -> _Threshold:
        """Return a threshold that parts each row of ``x`` (n, D) from that of ``own``, and where it was seen.

        ``differs`` tells it of points: False at ``own``, True at ``x``.
        """
        n, inputs = x.shape
        order = self._rng.permuted(np.tile(np.arange(inputs), (n, 1)), axis=1)
        rank = np.argsort(order, axis=1)

        def mixed(rows: IntArray, until: IntArray) -> Array:
            return np.where(rank[rows] < until[:, None], x[rows], own[rows])

        low, high = np.zeros(n, dtype=np.int64), np.full(n, inputs)
        while (rows := np.flatnonzero(high - low > 1)).size:
            clock.check()
            middle = (low[rows] + high[rows]) // 2
            other = differs(mixed(rows, middle), rows)
            high[rows[other]], low[rows[~other]] = middle[other], middle[~other]
        every = np.arange(n)
        feature, base = order[every, low], mixed(every, low)

        def at(values: Array, which: IntArray) -> BoolArray:
            points = base[which].copy()
            points[np.arange(len(which)), feature[which]] = values
            return differs(points, which)

        near, far = self._thresholds.bisect(feature, base[every, feature], x[every, feature], at)
        self._thresholds.add(feature, np.minimum(near, far))
        base[every, feature] = near
        return _Threshold(feature, np.minimum(near, far), base)

    def _seen_from(self, found: _Threshold, below: _Threshold) -> _Threshold:
        """Return thresholds that hide those ``below`` them, with rows on the side of these that sees them."""
        every, base = np.arange(len(found.value)), found.base.copy()
        base[every, below.feature] = below.value
        hidden = ~self._steps(base, found)
        base[hidden, below.feature[hidden]] = self._thresholds.after(below.value, below.feature)[hidden]
        return _Threshold(found.feature, found.value, base)

    def _steps(self, points: Array, at: _Threshold) -> BoolArray:
        """Return whether the answers at ``points`` (n, D) change across the thresholds ``at``."""
        below, above, every = points.copy(), points.copy(), np.arange(len(points))
        below[every, at.feature] = at.value
        above[every, at.feature] = self._thresholds.after(at.value, at.feature)
        answers = self._ask(np.concatenate([below, above]))
        return self._ask.differ(answers[: len(points)], answers[len(points) :])

    def _visibility(self, leaf: IntArray, at: _Threshold) -> tuple[Array, Array]:
        """Return the share (n,) of rows of its leaf from which each threshold is visible.

        And a row (n, D) from which it is not; any row where there is none.
        """
        share, hidden = np.ones(len(leaf)), at.base.copy()
        rows = np.arange(len(leaf))
        for count in self._options.sightings:
            which = np.repeat(rows, count)
            views = self.inside(leaf[which], spread=True)
            visible = self._steps(views, at.take(which)).reshape(-1, count)
            share[rows] = visible.mean(axis=1)
            hidden[rows] = views.reshape(len(rows), count, -1)[np.arange(len(rows)), visible.argmin(axis=1)]
            rows = rows[share[rows] == 1]
            if not len(rows):
                break
        return share, hidden

    def _split(self, leaf: int, feature: int, threshold: float, *candidates: Array) -> None:
        """Make ``leaf`` an inner node; one of ``candidates`` may lie in the new leaf, or is moved there."""
        own, value = self.row[leaf], self.value[leaf]
        above = own[feature] > threshold
        other = next((row for row in candidates if (row[feature] > threshold) != above), None)
        if other is None:
            other = own.copy()
            other[feature] = threshold if above else self._thresholds.after(np.array(threshold), feature)
        answer = self._ask(other[None])[0]
        pairs = [(other, answer), (own, value)] if above else [(own, value), (other, answer)]
        for side, (row, answered) in zip((self.left, self.right), pairs, strict=True):
            side[leaf] = len(self.feature)
            low, high = self.low[leaf].copy(), self.high[leaf].copy()
            if side is self.left:
                high[feature] = threshold
            else:
                low[feature] = self._thresholds.after(np.array(threshold), feature)
            self.feature.append(-1)
            self.threshold.append(np.nan)
            self.left.append(-1)
            self.right.append(-1)
            self.row.append(row)
            self.value.append(answered)
            self.low.append(low)
            self.high.append(high)
        self.feature[leaf], self.threshold[leaf] = feature, threshold
