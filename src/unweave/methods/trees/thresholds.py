"""Find thresholds to the last number: bisection on the grid of floating-point numbers.

A threshold t is the largest input that still goes left: x <= t. Models that store their inputs in float32
round x first, so that all their thresholds lie where the rounding changes; once a few of them do, only such
numbers are looked at, which halves the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.numerics import clock

Differs = Callable[[Array, IntArray], BoolArray]
"""(values (n,), which points (n,)) -> whether the answer there is that of the far side."""

_SIGN = {np.dtype(np.float64): np.int64, np.dtype(np.float32): np.int32}


class Thresholds:
    """Known thresholds of every input, in growing order.

    ``fewest_single`` thresholds on the grid of float32 make it the grid of all.
    """

    def __init__(self, n_inputs: int, whole: BoolArray | None = None, fewest_single: int = 3) -> None:
        self._fewest_single = fewest_single
        self.of = [np.empty(0) for _ in range(n_inputs)]
        self._on_single = self._off_single = 0
        self.whole = np.zeros(n_inputs, dtype=np.bool_) if whole is None else whole
        """(D,) inputs that are whole numbers: a threshold is the largest of them that goes left."""

    def __len__(self) -> int:
        return sum(len(each) for each in self.of)

    @property
    def single(self) -> bool:
        """Whether the target rounds its inputs to float32, as far as seen."""
        return self._on_single >= self._fewest_single and self._off_single == 0

    def add(self, inputs: IntArray, values: Array) -> None:
        """Keep thresholds ``values`` (n,) of ``inputs`` (n,)."""
        for feature in np.unique(inputs):
            new = np.setdiff1d(values[inputs == feature], self.of[feature])
            if not len(new):
                continue
            self.of[feature] = np.union1d(self.of[feature], new)
            if not self.whole[feature]:
                on = int((new.astype(np.float32) != self.after(new).astype(np.float32)).sum())
                self._on_single, self._off_single = self._on_single + on, self._off_single + len(new) - on

    def after(self, values: Array, inputs: IntArray | int | None = None) -> Array:
        """Return the next inputs after ``values`` (n,) of ``inputs``."""
        following = np.nextafter(values, np.inf)
        return following if inputs is None else np.where(self.whole[inputs], values + 1, following)

    def bisect(self, inputs: IntArray, near: Array, far: Array, differs: Differs) -> tuple[Array, Array]:
        """Return neighbouring numbers (n,), (n,) between which the answer changes.

        ``near`` (n,) and ``far`` (n,) are values of ``inputs`` (n,) at which ``differs`` is False and True.
        """
        near, far = near.copy(), far.copy()
        while True:
            clock.check()
            low, high = np.minimum(near, far), np.maximum(near, far)
            rows = np.flatnonzero(self.after(low, inputs) < high)
            if not len(rows):
                return near, far
            probe = self._probes(inputs[rows], low[rows], high[rows])
            beyond = differs(probe, rows)
            far[rows[beyond]], near[rows[~beyond]] = probe[beyond], probe[~beyond]

    def _probes(self, inputs: IntArray, low: Array, high: Array) -> Array:
        """Return a number strictly between ``low`` and ``high`` (n,): at a known threshold, or the middle."""
        probe = np.full(len(low), np.nan)
        for feature in np.unique(inputs):
            own, known = inputs == feature, self.of[feature]
            first, last = np.searchsorted(known, low[own], "right"), np.searchsorted(known, high[own], "left")
            inside = last > first
            found = np.full(int(own.sum()), np.nan)
            if inside.any():
                found[inside] = known[(first[inside] + last[inside] - 1) // 2]
            at = np.isin(low[own], known) & ~inside
            found[at] = self.after(low[own][at], int(feature))
            probe[own] = found
        open_rows = np.isnan(probe)
        whole = open_rows & self.whole[inputs]
        probe[whole] = np.floor((low[whole] + high[whole]) / 2)
        rest = open_rows & ~whole
        if self.single and rest.any():
            probe[rest] = _single_probes(low[rest], high[rest])
            rest = np.isnan(probe)
        probe[rest] = _middle(low[rest], high[rest])
        return probe


def _single_probes(low: Array, high: Array) -> Array:
    """Return float32 numbers halfway, then the two numbers where the rounding changes; nan if neither."""
    first, last = low.astype(np.float32), high.astype(np.float32)
    middle = _middle(first, last).astype(np.float64)
    probe = np.where((low < middle) & (middle < high), middle, np.nan)
    edge = (first.astype(np.float64) + last.astype(np.float64)) / 2
    edge = np.where(edge.astype(np.float32) == first, edge, np.nextafter(edge, -np.inf))
    neighbours = np.nextafter(first, np.float32(np.inf)) == last
    following = np.nextafter(edge, np.inf)
    probe = np.where(neighbours & (low < edge) & (edge < high), edge, np.where(neighbours, np.nan, probe))
    return np.where(neighbours & (low == edge) & (following < high), following, probe)


def _middle(low: Any, high: Any) -> Any:
    """Return the number halfway in the order of all numbers of this format, rounded down."""
    whole = _SIGN[low.dtype]
    first, last = _ordered(low.view(whole)), _ordered(high.view(whole))
    middle = (first >> 1) + (last >> 1) + (first & last & 1)
    return _ordered(middle).view(low.dtype)


def _ordered(bits: Any) -> Any:
    """Return whole numbers in the order of the floating-point numbers with these bits, and back."""
    return np.where(bits < 0, np.iinfo(bits.dtype).min - bits, bits).astype(bits.dtype)
