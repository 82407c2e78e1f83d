"""Branch and bound over tuples of patterns: from few points to all, then convex programs.

Bound the tuples of patterns of the first few points. Drop those above the threshold with all their
descendants; extend the others by more points and bound them again. The survivors at all points are programs
(patterns and signs), solved in the order of their bounds until the next bound exceeds the best loss. Blocks
of tuples are independent, and so are programs of one round: an executor maps over both, and results do not
depend on its number of workers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.exact.cone_program import ConeFit, cone_program, solve
from unweave.exact.losses import ConvexLoss, Squared
from unweave.exact.pattern_bounds import ConvexBounds, all_signs, squared_bounds
from unweave.exact.pattern_tree import PatternTree

_ROOT_BLOCKS = 64  # tasks made of the surviving roots, fixed so that results do not depend on the workers
_CHILDREN_PER_STEP = 100_000  # children bounded at once: limits memory
_FIRST_ROUND, _LAST_ROUND = 32, 4_096  # programs between updates of the best loss: doubles every round
_PROGRAMS_PER_TASK = 32  # convex programs per task: some 40 ms of work
_DROP_SHARE, _SOLVE_SHARE = 0.25, 0.05  # of the gap: slack of dropped bounds, precision of solved programs


class Executor(Protocol):
    """Map a function over independent items, in this process or elsewhere."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        """Results in the order of the items."""


class Serial:
    """Run everything in this process, one item after the other."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any], /) -> Iterator[Any]:
        """Results in the order of the items, computed lazily."""
        return map(function, items)


class Bounds(Protocol):
    """Lower bounds of tuples of patterns at one level."""

    def bounds(self, tuples: IntArray, /) -> Array:
        """(K,) for tuples (K, w)."""

    def sign_bounds(self, tuples: IntArray, bounds: Array, /) -> Array:
        """(K, 2^w) for all signs, not below ``bounds`` (K,)."""


@dataclass(frozen=True, eq=False)
class Nodes:
    """Tuples (K, w) of patterns of one level, with their bounds (K,)."""

    level: int
    tuples: IntArray
    bounds: Array

    def take(self, rows: Any) -> Nodes:
        """The selected rows."""
        return Nodes(self.level, self.tuples[rows], self.bounds[rows])


@dataclass(frozen=True, eq=False)
class Programs:
    """Patterns (K, w) and signs (K, w) of convex programs, with lower bounds (K,)."""

    tuples: IntArray
    signs: Array
    bounds: Array

    def take(self, rows: Any) -> Programs:
        """The selected rows."""
        return Programs(self.tuples[rows], self.signs[rows], self.bounds[rows])


@dataclass(frozen=True, eq=False)
class Explored:
    """What remains of a block after exploration."""

    programs: Programs
    open_bound: float
    """Least bound of the nodes not explored for lack of time; inf if there are none."""
    bounded: int
    """Number of tuples bounded."""


@dataclass(frozen=True, eq=False)
class Problem:
    """All that a worker needs."""

    tree: PatternTree
    loss: ConvexLoss
    gap: float
    """Largest distance of a certified loss from the optimum."""
    collect: float = 0.0
    """Solve programs up to this much above the best loss: zero for one optimum, positive for all."""

    @property
    def precision(self) -> float:
        """Gap between loss and bound at which a program counts as solved."""
        return max(_SOLVE_SHARE * self.gap, float(np.finfo(np.float64).tiny))

    def threshold(self, best: float) -> float:
        """Bounds above this are dropped: nothing below them beats ``best`` by more than the gap allows.

        A quarter of the gap is used here, a quarter is left for rounding. Where the best loss is itself
        smaller than the gap, the search goes on for half of it.
        """
        return best + self.collect if self.collect else max(best - _DROP_SHARE * self.gap, best / 2)

    def bounder(self, level: int) -> Bounds:
        """Lower bounds at a level."""
        chosen = self.tree.levels[level]
        return squared_bounds(chosen) if isinstance(self.loss, Squared) else ConvexBounds(chosen, self.loss)


def bounded_roots(problem: Problem, threshold: float) -> tuple[Nodes, int]:
    """Tuples of the first level with bounds up to the threshold, and the number of tuples bounded."""
    tuples = problem.tree.roots()
    roots = Nodes(0, tuples, np.zeros(len(tuples)))
    return _raised(problem.bounder(0), roots, threshold), len(tuples)


def blocks(nodes: Nodes) -> list[Nodes]:
    """Deal the nodes out into blocks with similar bounds."""
    order = np.argsort(nodes.bounds, kind="stable")
    count = min(_ROOT_BLOCKS, max(1, len(order)))
    return [nodes.take(order[start::count]) for start in range(count)]


def explore(problem: Problem, threshold: float, deadline: float, block: Nodes) -> Explored:
    """Follow a block of nodes down to programs with bounds up to the threshold.

    Depth first, so that memory stays bounded. ``deadline`` is a time of `time.time`.
    """
    tree, last = problem.tree, len(problem.tree.levels) - 1
    bounders = [problem.bounder(level) for level in range(last + 1)]
    stack, found, bounded = [block], list[Programs](), 0
    while stack:
        if time.time() > deadline:
            return Explored(joined(found, tree.width), min(float(n.bounds.min()) for n in stack), bounded)
        nodes = stack.pop()
        if nodes.level == last:
            found.append(_programs(bounders[last], nodes, threshold))
            continue
        total = np.cumsum(tree.n_children(nodes.level, nodes.tuples))
        now = max(1, int(np.searchsorted(total, _CHILDREN_PER_STEP)))
        if now < len(nodes.tuples):
            stack.append(nodes.take(slice(now, None)))
        tuples, parents = tree.children(nodes.level, nodes.tuples[:now])
        bounded += len(tuples)
        below = Nodes(nodes.level + 1, tuples, nodes.bounds[parents])
        below = _raised(bounders[below.level], below, threshold)
        if len(below.tuples):
            stack.append(below)
    return Explored(joined(found, tree.width), np.inf, bounded)


def solve_programs(
    problem: Problem, best: float, deadline: float, programs: Programs
) -> list[ConeFit | None]:
    """Solve programs in order; None for those whose bound is beyond what the best loss so far allows.

    The list is shorter than the programs where time ran out.
    """
    fits: list[ConeFit | None] = []
    for patterns, signs, bound in zip(programs.tuples, programs.signs, programs.bounds, strict=True):
        if time.time() > deadline:
            break
        if bound > problem.threshold(best):
            fits.append(None)
            continue
        last = problem.tree.last
        program = cone_program(last.patterns[patterns].astype(np.bool_), signs, last.z, last.y)
        fits.append(fit := solve(program, problem.loss, problem.precision, problem.threshold(best)))
        best = min(best, fit.loss)
    return fits


def program_rounds(programs: Programs) -> Iterator[list[Programs]]:
    """Rounds of tasks, in the order of the bounds. Round sizes are fixed, so that results are as well."""
    programs = programs.take(np.argsort(programs.bounds, kind="stable"))
    size, start = _FIRST_ROUND, 0
    while start < len(programs.bounds):
        ends = range(start, min(start + size, len(programs.bounds)), _PROGRAMS_PER_TASK)
        stop = min(start + size, len(programs.bounds))
        yield [programs.take(slice(first, min(first + _PROGRAMS_PER_TASK, stop))) for first in ends]
        start, size = stop, min(2 * size, _LAST_ROUND)


def _raised(bounder: Bounds, nodes: Nodes, threshold: float) -> Nodes:
    """The nodes with bounds of their own, those above the threshold left out."""
    own = np.maximum(nodes.bounds, bounder.bounds(nodes.tuples))
    nodes = Nodes(nodes.level, nodes.tuples, own).take(own <= threshold)
    signed = bounder.sign_bounds(nodes.tuples, nodes.bounds).min(axis=1, initial=np.inf)
    return Nodes(nodes.level, nodes.tuples, signed).take(signed <= threshold)


def _programs(bounder: Bounds, nodes: Nodes, threshold: float) -> Programs:
    signed = bounder.sign_bounds(nodes.tuples, np.minimum(nodes.bounds, bounder.bounds(nodes.tuples)))
    signed = np.maximum(signed, nodes.bounds[:, None])
    rows, columns = np.nonzero(signed <= threshold)
    signs = all_signs(nodes.tuples.shape[1])[columns]
    # Two units with one pattern: their order does not matter.
    same = nodes.tuples[rows][:, 1:] == nodes.tuples[rows][:, :-1]
    ordered = ~np.any(same & (signs[:, 1:] > signs[:, :-1]), axis=1)
    return Programs(nodes.tuples[rows][ordered], signs[ordered], signed[rows, columns][ordered])


def joined(parts: Sequence[Programs], width: int) -> Programs:
    """All programs of the parts, in their order."""
    if not parts:
        return Programs(np.zeros((0, width), dtype=np.int64), np.zeros((0, width)), np.zeros(0))
    return Programs(
        np.vstack([part.tuples for part in parts]),
        np.vstack([part.signs for part in parts]),
        np.concatenate([part.bounds for part in parts]),
    )
