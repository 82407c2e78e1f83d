r"""Sums of trees: a sparse polynomial in steps, one counterexample after the other.

With s_t(x) = 1 where x_j > t and 0 elsewhere, a sum of trees of depth d is

    f(x) = sum_A c_A prod_{t in A} s_t(x),        |A| <= d,

and a tree of depth 3 has at most 22 terms. c_A is the mixed difference of f across the thresholds of A with
all other inputs at the bottom, where every step is 0: 2^|A| rows, whatever else is known. A row on which the
terms found so far are wrong leads to a term that is missing: inputs that do not matter go to the bottom, the
others down to the threshold where the error begins, until all corners below are right.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.trees.rows import Answers, TestRows
from unweave.methods.trees.thresholds import Thresholds
from unweave.numerics import clock

_NUMBERS_AT_ONCE = 20_000_000  # comparisons of rows with thresholds


class Terms:
    """The terms found so far."""

    def __init__(self, n_outputs: int, constant: Array) -> None:
        self.inputs: list[tuple[int, ...]] = [()]
        self.thresholds: list[tuple[float, ...]] = [()]
        self.coefficients: list[Array] = [constant]
        self._known: dict[tuple[tuple[int, ...], tuple[float, ...]], int] = {((), ()): 0}
        self._packed: tuple[IntArray, Array, Array] | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def put(self, inputs: tuple[int, ...], thresholds: tuple[float, ...], coefficient: Array) -> bool:
        """Set a term, ``inputs`` in growing order; return whether it is new."""
        place = self._known.setdefault((inputs, thresholds), len(self))
        self._packed = None
        if place < len(self):
            self.coefficients[place] = coefficient
            return False
        self.inputs.append(inputs)
        self.thresholds.append(thresholds)
        self.coefficients.append(coefficient)
        return True

    def __call__(self, x: Array) -> Array:
        """Return the sum (n, K) at rows ``x`` (n, D)."""
        inputs, thresholds, coefficients = self._pack()
        at_once = max(1, _NUMBERS_AT_ONCE // inputs.size)
        parts = []
        for start in range(0, len(x), at_once):
            piece = x[start : start + at_once]
            acts = np.ones((len(piece), len(inputs)), dtype=np.bool_)
            for column in range(inputs.shape[1]):
                acts &= piece[:, inputs[:, column]] > thresholds[:, column]
            parts.append(acts @ coefficients)
        return np.concatenate([np.empty((0, coefficients.shape[1])), *parts])

    def _pack(self) -> tuple[IntArray, Array, Array]:
        if self._packed is None:
            width = max(1, *(len(each) for each in self.inputs))
            inputs = np.zeros((len(self), width), dtype=np.int64)
            thresholds = np.full((len(self), width), -np.inf)
            for row, (features, values) in enumerate(zip(self.inputs, self.thresholds, strict=True)):
                inputs[row, : len(features)], thresholds[row, : len(features)] = features, values
            self._packed = inputs, thresholds, np.array(self.coefficients)
        return self._packed


class SumOfTrees:
    """Terms of a target, found from rows on which they are wrong."""

    def __init__(
        self,
        ask: Answers,
        rows: TestRows,
        thresholds: Thresholds,
        rng: np.random.Generator,
        most_order: int,
        descents: int,
    ) -> None:
        self._descents = descents
        self._ask, self._thresholds, self._rng = ask, thresholds, rng
        self._bottom, self._most_order = rows.low, most_order
        first = ask(self._bottom[None])
        self.terms = Terms(first.shape[1], first[0])
        self.too_high = 0
        """Rows whose term had more inputs than allowed."""

    def wrong(self, x: Array) -> BoolArray:
        """Return where the terms are wrong. Shape (n,)."""
        return self._ask.differ(self._ask(x), self.terms(x))

    def learn(self, x: Array) -> int:
        """Find the terms that are missing at wrong rows ``x`` (n, D); return how many are new."""
        x, support = self._reduced(x)
        few = support.sum(axis=1) <= self._most_order
        self.too_high += int((~few).sum())
        x, support = x[few], support[few]
        new = 0
        for _ in range(self._descents):
            if not len(x):
                break
            low, x, support = self._lowered(x, support)
            x, support, found = self._corners(x, low, support)
            new += found
        return new

    def _reduced(self, x: Array) -> tuple[Array, BoolArray]:
        """Move inputs to the bottom that are not needed for the error; return the rows and what is needed."""
        x, (n, inputs) = x.copy(), x.shape
        order = self._rng.permuted(np.tile(np.arange(inputs), (n, 1)), axis=1)
        rank = np.argsort(order, axis=1)
        needed = np.zeros((n, inputs), dtype=np.bool_)
        position, rows = np.zeros(n, dtype=np.int64), np.arange(n)

        def dropped(rows: IntArray, until: IntArray) -> Array:
            gone = (rank[rows] >= position[rows][:, None]) & (rank[rows] < until[:, None])
            return np.where(gone, self._bottom, x[rows])

        while len(rows):
            clock.check()
            trial = dropped(rows, np.full(len(rows), inputs))
            done = self.wrong(trial)
            x[rows[done]] = trial[done]
            rows = rows[~done]
            low, high = position[rows].copy(), np.full(len(rows), inputs)
            while (open_rows := np.flatnonzero(high - low > 1)).size:
                middle = (low[open_rows] + high[open_rows]) // 2
                still = self.wrong(dropped(rows[open_rows], middle))
                low[open_rows[still]], high[open_rows[~still]] = middle[still], middle[~still]
            x[rows] = dropped(rows, low)
            needed[rows, order[rows, low]] = True
            position[rows] = low + 1
            rows = rows[needed[rows].sum(axis=1) <= self._most_order]  # the others are given up
        return x, needed

    def _lowered(self, x: Array, support: BoolArray) -> tuple[Array, Array, BoolArray]:
        """Move every needed input down to where the error begins; return the inputs below, and these."""
        x, kept, low = x.copy(), support.copy(), np.tile(self._bottom, (len(x), 1))
        for turn in range(int(support.sum(axis=1).max(initial=0))):
            rows = np.flatnonzero(support.sum(axis=1) > turn)
            feature = np.argsort(~support[rows], axis=1, kind="stable")[:, turn]
            trial = x[rows].copy()
            trial[np.arange(len(rows)), feature] = self._bottom[feature]
            gone = self.wrong(trial)  # not needed any more
            x[rows[gone]], kept[rows[gone], feature[gone]] = trial[gone], False
            rows, feature = rows[~gone], feature[~gone]

            def differs(
                values: Array, which: IntArray, rows: IntArray = rows, at: IntArray = feature
            ) -> BoolArray:
                points = x[rows[which]].copy()
                points[np.arange(len(which)), at[which]] = values
                return self.wrong(points)

            near, far = self._thresholds.bisect(feature, self._bottom[feature], x[rows, feature], differs)
            x[rows, feature], low[rows, feature] = far, near
            self._thresholds.add(feature, near)
        return low, x, kept

    def _corners(self, x: Array, low: Array, support: BoolArray) -> tuple[Array, BoolArray, int]:
        """Set the terms of rows whose lower corners are all right; return the others, moved to wrong ones."""
        left, left_support, new = [], [], 0
        for size in np.unique(support.sum(axis=1)):
            rows = np.flatnonzero(support.sum(axis=1) == size)
            features = np.nonzero(support[rows])[1].reshape(len(rows), size)
            bits = (np.arange(2**size)[:, None] >> np.arange(size)) & 1  # 1: just below
            corners = np.repeat(x[rows][:, None, :], 2**size, axis=1)
            at = np.arange(len(rows))[:, None]
            for column in range(size):
                values = np.where(
                    bits[:, column],
                    low[rows, features[:, column]][:, None],
                    x[rows, features[:, column]][:, None],
                )
                corners[at, np.arange(2**size), features[:, [column]]] = values
            flat = corners.reshape(-1, x.shape[1])
            answers = self._ask(flat)
            wrong = self._ask.differ(answers, self.terms(flat)).reshape(len(rows), -1)
            answers = answers.reshape(len(rows), 2**size, -1)
            coefficient = np.einsum("c,nck->nk", (-1.0) ** bits.sum(axis=1), answers)
            minimal = ~wrong[:, 1:].any(axis=1)
            for row in np.flatnonzero(minimal):
                values = low[rows[row], features[row]]
                new += self.terms.put(tuple(features[row].tolist()), tuple(values.tolist()), coefficient[row])
            # The lowest wrong corner: most inputs below.
            down = np.where(wrong, bits.sum(axis=1), -1).argmax(axis=1)
            for row in np.flatnonzero(~minimal):
                left.append(corners[row, down[row]])
                left_support.append(support[rows[row]])
        if not left:
            return np.empty((0, x.shape[1])), np.empty((0, x.shape[1]), dtype=np.bool_), new
        return np.array(left), np.array(left_support), new
