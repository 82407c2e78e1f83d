"""One run of branch and bound: prepare, bound, solve, and certify what is known whenever it ends."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from unweave.arrays import Array
from unweave.errors import InvalidInput
from unweave.exact.arrangement import hyperplane_dichotomies
from unweave.exact.cone_program import ConeFit, cone_program, solve
from unweave.exact.data import affine_coordinates, checked_labels, checked_points
from unweave.exact.local_search import local_search
from unweave.exact.losses import ConvexLoss, Squared
from unweave.exact.pattern_tree import PatternTree, pattern_tree
from unweave.exact.result import ExactFit, ExactProgress, SearchInterrupted, Stop
from unweave.exact.search import (
    Executor,
    Explored,
    Problem,
    Programs,
    Serial,
    blocks,
    bounded_roots,
    explore,
    joined,
    program_rounds,
    solve_programs,
)

_POLISHED_STARTS = 5  # best local optima whose convex programs are solved before the search
_LARGEST_WIDTH = 3  # units: the number of tuples grows with its power
_RESIDUAL_ROUNDING = 1e-11  # residual over the labels: a smaller one is rounding and needs no search
_CLAIMED_SHARE = 0.5  # of the gap: distance of the bound below the best loss after an exhaustive search
_SQUARED_ROUNDING = 1e-30  # of the loss: rounding of squared residuals, which float64 must still hold
_SEARCH_STREAM = 5_003  # second word of the seed: the search shares no random numbers with planted data


@dataclass(frozen=True)
class ExactOptions:
    """Options of the search; the optimum does not depend on them."""

    tolerance: float = 1e-9
    """Certified gap between loss and lower bound, relative to the loss of the zero network."""
    time_limit: float | None = None
    """Seconds after which the best so far is returned."""
    starts: int = 60
    """Starts of the local search."""
    seed: int = 0
    executor: Executor = field(default_factory=Serial)
    progress: Callable[[ExactProgress], None] | None = None


class Search:
    """The data in standardized coordinates, the best network so far, and the bounds still open."""

    def __init__(
        self, x: ArrayLike, y: ArrayLike, width: int, loss: ConvexLoss, options: ExactOptions
    ) -> None:
        self.x = checked_points(x)
        self.y = checked_labels(y, len(self.x))
        loss.check_labels(self.y)
        _check_options(width, options)
        self.width, self.loss, self.options = width, loss, options
        self.deadline = math.inf if options.time_limit is None else time.time() + options.time_limit
        self.coordinates = affine_coordinates(self.x)
        self.z = np.column_stack([self.coordinates(self.x), np.ones(len(self.x))])
        self.scale = _zero_loss(loss, self.y)
        self.gap = options.tolerance * self.scale
        self.best = ConeFit(np.zeros((width, self.z.shape[1])), np.ones(width), self.scale, 0.0)
        self.local_loss = self.scale
        self.n_bounded = self.n_programs = 0
        self.tree: PatternTree | None = None
        self.order = np.arange(len(self.x))
        self._began = time.perf_counter()
        self._left = 0.0  # least bound of what is not explored yet
        self._late = math.inf  # least bound of what time ran out for
        self._unsolved: list[float] = []  # bounds of programs that no solver closed

    def run(self) -> ExactFit:
        """Search, and return the best network with its certificate."""
        try:
            return self.result(self._searched())
        except KeyboardInterrupt:
            self._late = min(self._late, self._left)
            raise SearchInterrupted(self.result(Stop.INTERRUPTED)) from None

    def prepare(self) -> Problem:
        """Enumerate the patterns and start from the best of the local search."""
        self._tell("dichotomies", 0, 1)
        patterns = hyperplane_dichotomies(self.x)
        rng = np.random.default_rng([self.options.seed, _SEARCH_STREAM])
        self.order = rng.permutation(len(self.x))
        self.tree = pattern_tree(patterns, self.z, self.y, self.order, self.width)
        problem = Problem(self.tree, self.loss, self.gap)
        self._tell("local search", 0, 1)
        self._look_around(problem, rng)
        return problem

    @property
    def fits_exactly(self) -> bool:
        """Whether the best loss is rounding."""
        rounding = _RESIDUAL_ROUNDING**2 if isinstance(self.loss, Squared) else _RESIDUAL_ROUNDING
        return self.best.loss <= rounding * self.scale

    def surviving_programs(self, problem: Problem) -> Programs:
        """All programs that the best loss so far does not rule out."""
        threshold = problem.threshold(self.best.loss)
        roots, self.n_bounded = bounded_roots(problem, threshold)
        parts = blocks(roots)
        lowest = [float(part.bounds.min(initial=math.inf)) for part in parts]
        explored: list[Explored] = []
        self._left = min(lowest)
        for part in self.options.executor.map(partial(explore, problem, threshold, self.deadline), parts):
            explored.append(part)
            self.n_bounded += part.bounded
            self._late = min(self._late, part.open_bound)
            found = (float(one.programs.bounds.min(initial=math.inf)) for one in explored)
            self._left = min(math.inf, *lowest[len(explored) :], *found)
            self._tell("patterns", len(explored), len(parts))
        return joined([part.programs for part in explored], self.width)

    def solve_all(
        self, problem: Problem, programs: Programs, keep: Callable[[Programs, list[ConeFit | None]], None]
    ) -> None:
        """Solve programs in the order of their bounds, as long as they can matter; ``keep`` sees all fits."""
        done = 0
        for tasks in program_rounds(programs):
            self._left = float(tasks[0].bounds[0])
            if self._left > problem.threshold(self.best.loss):
                break
            work = partial(solve_programs, problem, self.best.loss, self.deadline)
            for task, fits in zip(tasks, self.options.executor.map(work, tasks), strict=True):
                self._accept(fits)
                if len(fits) < len(task.bounds):
                    self._late = min(self._late, float(task.bounds[len(fits)]))
                keep(task, fits)
                done += len(task.bounds)
                self._tell("programs", done, len(programs.bounds))
            if self._late < math.inf:
                break
        self._left = math.inf

    def result(self, stop: Stop) -> ExactFit:
        """The best network so far, with its certificate."""
        network = self.coordinates.network(self.best.units, self.best.signs)
        loss = float(np.sum(self.loss.value(network(self.x)[:, 0], self.y)))
        claimed = self.best.loss - _CLAIMED_SHARE * self.gap
        unsolved = [bound for bound in self._unsolved if bound < claimed]
        if stop is Stop.EXHAUSTED and unsolved:
            stop = Stop.UNRESOLVED
        lower = 0.0 if stop is Stop.ZERO_LOSS else max(0.0, min(claimed, self._late, *unsolved, math.inf))
        # A loss at rounding may be above the gap of labels that are tiny themselves.
        closed = stop is Stop.ZERO_LOSS or (stop is Stop.EXHAUSTED and loss - lower <= self.gap)
        return ExactFit(
            network=network,
            loss=loss,
            lower_bound=min(lower, loss),
            certified=closed,
            stop=stop,
            width=self.width,
            local_loss=self.local_loss,
            n_patterns=0 if self.tree is None else len(self.tree.last.patterns),
            n_tuples=0 if self.tree is None else self.tree.n_tuples,
            n_bounded=self.n_bounded,
            n_programs=self.n_programs,
            n_unresolved=len(unsolved),
            seconds=time.perf_counter() - self._began,
        )

    def minimize(self, problem: Problem) -> Stop:
        """Find the optimum, unless the start already is one."""
        if self.fits_exactly:
            return Stop.ZERO_LOSS
        self.solve_all(problem, self.surviving_programs(problem), lambda task, fits: None)
        return self.end

    @property
    def end(self) -> Stop:
        """EXHAUSTED if there was time for everything."""
        return Stop.EXHAUSTED if math.isinf(self._late) else Stop.TIME_LIMIT

    def _searched(self) -> Stop:
        if self.scale == 0:
            return Stop.ZERO_LOSS  # the zero network fits
        return self.minimize(self.prepare())

    def _look_around(self, problem: Problem, rng: np.random.Generator) -> None:
        """Replace the best local optima by the optima of their own patterns and signs."""
        units, signs, losses = local_search(self.z, self.y, self.width, self.loss, self.options.starts, rng)
        for one, sign, reached in zip(units[:_POLISHED_STARTS], signs, losses, strict=False):
            if reached < self.best.loss:
                self.best = ConeFit(one, sign, float(reached), 0.0)
            program = cone_program(one @ self.z.T > 0, sign, self.z, self.y)
            fit = solve(program, self.loss, problem.precision)
            self.n_programs += 1
            if fit.loss < self.best.loss:
                self.best = fit
        self.local_loss = self.best.loss

    def _accept(self, fits: list[ConeFit | None]) -> None:
        """Keep better networks and the bounds of programs that stay open."""
        for fit in fits:
            if fit is None:
                continue
            self.n_programs += 1
            if fit.loss < self.best.loss:
                self.best = fit
            if fit.lower_bound < self.best.loss - _CLAIMED_SHARE * self.gap:
                self._unsolved.append(fit.lower_bound)

    def _tell(self, stage: str, done: int, total: int) -> None:
        if self.options.progress is not None:
            seconds = time.perf_counter() - self._began
            self.options.progress(ExactProgress(stage, done, total, self.best.loss, seconds))


def _zero_loss(loss: ConvexLoss, y: Array) -> float:
    """Loss of the zero network, the unit of all tolerances."""
    with np.errstate(over="ignore", under="ignore"):
        scale = float(np.sum(loss.value(np.zeros(len(y)), y)))
    limits = np.finfo(np.float64)
    if not scale < _SQUARED_ROUNDING * limits.max or (scale < limits.tiny / _SQUARED_ROUNDING and y.any()):
        raise InvalidInput(
            f"y must have a loss that float64 can hold. Got labels of size {np.abs(y).max():.1e} instead. "
            f"Divide them by their size; the outer weights scale with them."
        )
    return scale


def _check_options(width: int, options: ExactOptions) -> None:
    if width not in range(1, _LARGEST_WIDTH + 1):
        raise InvalidInput(
            f"width must be 1 to {_LARGEST_WIDTH}. Got {width!r} instead. The number of patterns grows with "
            f"its power; for wider networks use unweave.recover."
        )
    if not 0 < options.tolerance < 1:
        raise InvalidInput(
            f"tolerance must be between 0 and 1. Got {options.tolerance!r} instead. It is relative to the "
            f"loss of the zero network; the default is 1e-9."
        )
    if options.starts < 1:
        raise InvalidInput(f"starts must be at least 1. Got {options.starts!r} instead. The default is 60.")
    if options.time_limit is not None and not options.time_limit > 0:
        raise InvalidInput(
            f"time_limit must be positive. Got {options.time_limit!r} instead. None means no limit."
        )
