"""The best continuous function of one variable with few straight pieces, with a certificate.

    min  sum_i l(f(x_i), y_i)     over continuous f with at most w straight pieces.

Between which data points the breakpoints lie is one of finitely many choices, and every choice is a union of
convex programs ([mathematics] (2.6)-(2.8)): with lines l_1, ..., l_w on the data between the breakpoints, a
breakpoint between t and t' asks that l_{j+1} - l_j changes its sign from t to t', upwards or downwards. Two
breakpoints between the same neighbors join any two lines, and ask nothing.

The sum of the best losses of all pieces on their own bounds a choice from below, and a table of the losses of
all runs of data gives it at once. Choices are taken in the order of their bounds. Where two lines do not meet
as they should, the program is divided into the two ways in which they can; each half has the condition added,
and its optimum is a higher bound. The search ends when no bound is below the best loss.

Departures from the published algorithm: a piece may hold no data, equal inputs are one place, and most of the
O(D^(w-1)) 2^(w-1) programs are never solved.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise

import numpy as np
from numpy.typing import ArrayLike

from unweave.arrays import Array, IntArray
from unweave.construct.pwl import pwl1d_to_relu
from unweave.errors import InvalidInput
from unweave.exact.cone_program import ConeOptimum, ConeProgram, minimize_over_cone
from unweave.exact.data import checked_labels, checked_points
from unweave.exact.linear_losses import PiecewiseLinear
from unweave.exact.losses import ConvexLoss, Squared, loss_named
from unweave.exact.result import Stop
from unweave.networks.network import Network
from unweave.numerics.clock import check

_MOST_CHOICES = 5_000_000  # places of all breakpoints: some 500 MB
_MEETS = 1e-9  # of the labels' size: lines that miss each other by less do meet
_MOMENT_ROUNDING = 1e-13  # of a sum of squares: taken off, so that its rounding raises no bound
_PROGRAM_PRECISION = 0.25  # of the certified gap, to which programs are solved


@dataclass(frozen=True, eq=False)
class PiecesFit:
    """The best function found, and how good any function with as many pieces can be."""

    network: Network
    """One input, one hidden layer of ReLU units: at most one per piece."""
    breakpoints: Array
    """(b,), in order; fewer than asked for where the data need no more."""
    values: Array
    """(b,): f there."""
    slopes: Array
    """(b + 1,)."""
    loss: float
    """Sum over the samples, recomputed from the network."""
    lower_bound: float
    """No continuous function with as many pieces has a smaller loss (in floating point)."""
    certified: bool
    """Whether loss - lower_bound is within the tolerance."""
    stop: Stop
    n_choices: int
    """Number of ways in which breakpoints can lie between the data."""
    n_programs: int
    """Number of convex programs solved."""
    seconds: float


def exact_pieces(
    x: ArrayLike,
    y: ArrayLike,
    pieces: int = 2,
    *,
    loss: str | ConvexLoss = "squared",
    tolerance: float | None = None,
    time_limit: float | None = None,
) -> PiecesFit:
    """The continuous function of at most ``pieces`` straight pieces with the least loss on x (N,), y (N,).

    Args:
        loss: as in `exact_erm`.
        tolerance: certified gap, relative to the loss of the best straight line. 1e-9 for squared and
            piecewise linear losses, 1e-6 for others.
        time_limit: seconds after which the best so far is returned, with a lower bound, not certified.

    Cost: a table of N^2 / 2 line fits, and one bound for each of the O(N^(pieces - 1)) choices; the number of
    programs grows with the noise.

    Example:
        >>> x = np.linspace(-1, 1, 21)
        >>> fit = exact_pieces(x, np.abs(x - 0.3), pieces=2)
        >>> fit.certified, fit.breakpoints.round(9).tolist(), fit.slopes.round(9).tolist()
        (True, [0.3], [-1.0, 1.0])
    """
    kind = loss_named(loss)
    if not isinstance(pieces, int) or pieces < 1:
        raise InvalidInput(f"pieces must be a positive integer. Got {pieces!r} instead. For example 3.")
    points = np.asarray(x, dtype=np.float64)
    points = checked_points(points.reshape(-1, 1) if points.ndim == 1 else points)
    if points.shape[1] != 1:
        raise InvalidInput(
            f"x must have one column. Got {points.shape[1]} instead. For several inputs use exact_erm."
        )
    labels = checked_labels(y, len(points))
    kind.check_labels(labels)
    if tolerance is None:
        tolerance = 1e-9 if isinstance(kind, Squared | PiecewiseLinear) else 1e-6
    order = np.argsort(points[:, 0], kind="stable")
    return _Search(points[order, 0], labels[order], pieces, kind, tolerance, time_limit).run()


@dataclass(frozen=True, eq=False)
class _Node:
    """A choice of breakpoints with the directions of some crossings: +1, -1, or 0 where it is open."""

    cuts: IntArray
    """(w - 1,), not falling: breakpoint j lies between places cuts[j] and cuts[j] + 1."""
    signs: tuple[int, ...]
    optimum: ConeOptimum | None


class _Search:
    def __init__(
        self, x: Array, y: Array, pieces: int, loss: ConvexLoss, tolerance: float, time_limit: float | None
    ) -> None:
        self._began = time.perf_counter()
        self._end = math.inf if time_limit is None else self._began + time_limit
        self._x, self._y, self._loss = x, y, loss
        self._places, first = np.unique(x, return_index=True)
        self._first = np.append(first, len(x))  # rows of place k are first[k] to first[k + 1]
        # Lines are a + b t in an own coordinate, of unit size around the middle.
        self._middle, half = (x[0] + x[-1]) / 2, (x[-1] - x[0]) / 2
        self._half = half if half > 0 else 1.0
        self._pieces = min(pieces, 2 * len(self._places) - 1)
        self._gap = 0.0
        line = self._solved(np.zeros(0, dtype=np.intp), (), np.inf)
        self._gap = tolerance * max(line.loss, np.finfo(np.float64).tiny)
        self._best, self._best_loss = (np.zeros(0, dtype=np.intp), line), line.loss
        self._n_programs = 1

    def run(self) -> PiecesFit:
        choices = self._choices()
        bounds = self._bounds(choices)
        order = np.argsort(bounds, kind="stable")
        heap: list[tuple[float, int, _Node]] = []
        number, taken, stop = 0, 0, Stop.EXHAUSTED
        left = math.inf
        while True:
            next_choice = bounds[order[taken]] if taken < len(order) else math.inf
            left = min(next_choice, heap[0][0] if heap else math.inf)
            if left >= self._best_loss - self._gap / 2:
                break
            if time.perf_counter() > self._end:
                stop = Stop.TIME_LIMIT
                break
            check()
            if next_choice <= left:
                cuts = choices[order[taken]]
                node, taken = _Node(cuts, (0,) * len(cuts), None), taken + 1
            else:
                _, _, node = heapq.heappop(heap)
            for child in self._children(node):
                number += 1
                assert child.optimum is not None
                heapq.heappush(heap, (child.optimum.lower_bound, number, child))
        return self._result(stop, min(left, self._best_loss - self._gap / 2), len(choices))

    def _choices(self) -> IntArray:
        """All places of w - 1 breakpoints, (M, w - 1); more than two in one gap would be idle."""
        count, cuts = len(self._places) - 1, self._pieces - 1
        number = math.comb(max(count, 0) + cuts - 1, cuts) if cuts else 1
        if number > _MOST_CHOICES:
            raise InvalidInput(
                f"pieces and x must allow at most {_MOST_CHOICES:,} choices of breakpoints. Got {number:,} "
                f"instead. Take fewer pieces or fewer samples."
            )
        listed = list(combinations_with_replacement(range(count), cuts))
        rows = np.array(listed, dtype=np.intp).reshape(len(listed), cuts)
        idle = (rows[:, 2:] == rows[:, :-2]).any(axis=1) if cuts > 2 else np.zeros(len(rows), dtype=np.bool_)
        return np.asarray(rows[~idle])

    def _bounds(self, choices: IntArray) -> Array:
        """Sum of the best losses of all pieces on their own, (M,)."""
        table = self._table()
        total = np.zeros(len(choices))
        start = np.zeros(len(choices), dtype=np.intp)
        for cut in [*choices.T, np.full(len(choices), len(self._places) - 1)]:
            total += table[start, cut + 1]
            start = cut + 1
        return total

    def _table(self) -> Array:
        """Lower bounds of the loss of one line on the places from i up to, but without, j: (P + 1, P + 1)."""
        if isinstance(self._loss, Squared):
            return self._squared_table()
        count = len(self._places)
        table = np.zeros((count + 1, count + 1))
        precision = _PROGRAM_PRECISION * self._gap / self._pieces
        for i in range(count):
            for j in range(i + 1, count + 1):
                check()
                rows = slice(self._first[i], self._first[j])
                program = ConeProgram(self._design(rows), np.zeros((0, 2)), self._y[rows])
                table[i, j] = minimize_over_cone(program, self._loss, precision).lower_bound
        return table

    def _squared_table(self) -> Array:
        """The same from means and moments of runs of data, each updated by one row after the other."""
        count = len(self._places)
        table = np.zeros((count + 1, count + 1))
        n, mean_x, mean_y, xx, xy, yy = np.zeros((6, count))
        for j in range(count):
            check()
            runs = slice(0, j + 1)  # those that begin at place j or before
            for row in range(self._first[j], self._first[j + 1]):
                x, y = (self._x[row] - self._middle) / self._half, self._y[row]
                n[runs] += 1
                from_x, from_y = x - mean_x[runs], y - mean_y[runs]
                mean_x[runs] += from_x / n[runs]
                mean_y[runs] += from_y / n[runs]
                xx[runs] += from_x * (x - mean_x[runs])
                xy[runs] += from_x * (y - mean_y[runs])
                yy[runs] += from_y * (y - mean_y[runs])
            explained = np.divide(xy[runs] ** 2, xx[runs], out=np.zeros(j + 1), where=xx[runs] > 0)
            table[: j + 1, j + 1] = np.maximum(yy[runs] * (1 - _MOMENT_ROUNDING) - explained, 0.0)
        return table

    def _design(self, rows: slice) -> Array:
        x = (self._x[rows] - self._middle) / self._half
        return np.column_stack([np.ones(len(x)), x])

    def _solved(self, cuts: IntArray, signs: tuple[int, ...], cutoff: float) -> ConeOptimum:
        """The best lines for these breakpoints, with the crossings that have a direction."""
        ends = np.concatenate([[0], self._first[cuts + 1], [len(self._x)]])
        design = np.zeros((len(self._x), 2 * (len(ends) - 1)))
        for piece, (low, high) in enumerate(pairwise(ends)):
            design[low:high, 2 * piece : 2 * piece + 2] = self._design(slice(low, high))
        conditions = []
        for j, sign in enumerate(signs):
            if sign:
                before, after = self._neighbors(cuts[j])
                for place, side in ((before, -sign), (after, sign)):
                    row = np.zeros(design.shape[1])
                    row[2 * j : 2 * j + 4] = side * np.array([-1.0, -place, 1.0, place])
                    conditions.append(row / np.linalg.norm(row))
        program = ConeProgram(design, np.array(conditions).reshape(-1, design.shape[1]), self._y)
        return minimize_over_cone(program, self._loss, _PROGRAM_PRECISION * self._gap, cutoff)

    def _neighbors(self, cut: int) -> tuple[float, float]:
        """The places on both sides of a breakpoint, in the lines' own coordinate."""
        before, after = (self._places[cut : cut + 2] - self._middle) / self._half
        return float(before), float(after)

    def _children(self, node: _Node) -> list[_Node]:
        """The node solved, if it was not; else its two halves. What is not better is dropped."""
        if node.optimum is None:
            return self._kept([node.signs], node.cuts)
        open_crossing = self._worst_miss(node)
        if open_crossing is None:
            return []
        halves = [(*node.signs[:open_crossing], s, *node.signs[open_crossing + 1 :]) for s in (1, -1)]
        return self._kept(halves, node.cuts)

    def _kept(self, signs: list[tuple[int, ...]], cuts: IntArray) -> list[_Node]:
        nodes = []
        for one in signs:
            optimum = self._solved(cuts, one, self._best_loss)
            self._n_programs += 1
            node = _Node(cuts, one, optimum)
            if self._worst_miss(node) is None and optimum.loss < self._best_loss:
                self._best, self._best_loss = (cuts, optimum), optimum.loss
            if optimum.lower_bound < self._best_loss - self._gap / 2:
                nodes.append(node)
        return nodes

    def _worst_miss(self, node: _Node) -> int | None:
        """The open crossing whose lines miss each other most; None if all meet."""
        assert node.optimum is not None
        lines = node.optimum.point.reshape(-1, 2)
        size = _MEETS * float(np.abs(self._y).max(initial=0.0))
        worst, most = None, size
        for j, cut in enumerate(node.cuts):
            if node.signs[j] or self._is_free(node.cuts, j):
                continue
            before, after = self._neighbors(cut)
            change = lines[j + 1] - lines[j]
            at = change[0] + change[1] * np.array([before, after])
            miss = float(np.abs(at).min()) if at[0] * at[1] > 0 else 0.0
            if miss > most:
                worst, most = j, miss
        return worst

    @staticmethod
    def _is_free(cuts: IntArray, j: int) -> bool:
        """Whether another breakpoint lies between the same neighbors."""
        return bool((j > 0 and cuts[j - 1] == cuts[j]) or (j + 1 < len(cuts) and cuts[j + 1] == cuts[j]))

    def _result(self, stop: Stop, lower: float, n_choices: int) -> PiecesFit:
        breakpoints, values, slopes = self._function(*self._best)
        network = pwl1d_to_relu(slopes[0], slopes[-1], breakpoints, values)
        bends = np.flatnonzero(np.diff(slopes))
        breakpoints, values, slopes = (
            breakpoints[bends],
            values[bends],
            slopes[np.append(bends, len(slopes) - 1)],
        )
        loss = float(np.sum(self._loss.value(network(self._x[:, None])[:, 0], self._y)))
        return PiecesFit(
            network=network,
            breakpoints=breakpoints,
            values=values,
            slopes=slopes,
            loss=loss,
            lower_bound=max(0.0, min(lower, loss)),
            certified=stop is Stop.EXHAUSTED and loss - lower <= self._gap,
            stop=stop,
            n_choices=n_choices,
            n_programs=self._n_programs,
            seconds=time.perf_counter() - self._began,
        )

    def _function(self, cuts: IntArray, optimum: ConeOptimum) -> tuple[Array, Array, Array]:
        """Breakpoints (b,), values there (b,) and slopes (b + 1,) of the best lines, joined."""
        lines = optimum.point.reshape(-1, 2)
        corners: list[tuple[float, float]] = []
        j = 0
        while j < len(cuts):
            before, after = self._neighbors(cuts[j])
            if self._is_free(cuts, j):  # two breakpoints: a straight piece joins the lines
                thirds = before + (after - before) * np.array([1.0, 2.0]) / 3
                corners += [
                    (t, line[0] + line[1] * t) for t, line in zip(thirds, lines[[j, j + 2]], strict=True)
                ]
                j += 2
                continue
            change = lines[j + 1] - lines[j]
            if change[1] != 0:
                t = float(np.clip(-change[0] / change[1], before, after))
                mean = (lines[j] + lines[j + 1]) / 2
                corners.append((t, mean[0] + mean[1] * t))
            j += 1
        if not corners:
            corners = [(0.0, float(lines[0, 0]))]
        places, values = np.array(corners).T
        slopes = np.concatenate([lines[:1, 1], np.diff(values) / np.diff(places), lines[-1:, 1]]) / self._half
        return self._middle + self._half * places, values, slopes
