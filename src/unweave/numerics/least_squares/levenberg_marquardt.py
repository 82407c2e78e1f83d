"""Levenberg-Marquardt: the one loop, for single problems and for batches of independent ones.

Each step solves the damped normal equations

    (J^T J + lambda M) d = J^T r,

lambda falling after a step that lowers |r| and rising after one that does not. The loop knows neither J nor
the unknowns. A `Steps` object makes a trial point for every damping, and the loop decides whether to take it,
how to damp the next one and when to stop:

- `solved_steps.SolvedSteps` solves for vectors, with the linear algebra that suits the size of J;
- problems on manifolds, with eliminated variables or with a Jacobian that is kept bring `Steps` of their own;
- a batch has a size |r| and a damping for each of its problems, and accepts each trial by itself.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, Protocol, TypeVar

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.errors import OutOfTime
from unweave.numerics.clock import out_of_time

OnStep = Callable[[int, float], None]
"""Called with (accepted steps, |r|); an exception it raises ends the descent."""

SolverName = Literal["auto", "dense", "gram", "conjugate gradients", "levenberg"]


@dataclass(frozen=True)
class LevenbergMarquardtOptions:
    """When to stop, and how hard to try."""

    steps: int = 60
    """Trials in all; accepted steps where ``refusals`` limits the others."""
    refusals: int | None = None
    """Refused trials in a row after which the point counts as a minimum. None: the damping decides."""
    floor: float = 0.0
    """Size of the residual at which the fit is as good as the data."""
    rounding: float | None = None
    """Rounding error in the size of the residual, where that is another than the floor: with noise, a fit
    goes on below the level of the noise, and only at rounding is a refused step the arithmetic's."""
    round_off: float = 10.0
    """Multiple of the rounding below which a refused step is the arithmetic's, not the model's."""
    least_steps: int = 0
    """Steps that are tried even from a start at the floor: a solver without a matrix knows the conditioning
    from its steps only."""
    stalls: int | None = 4
    """Steps without worthwhile progress after which it stops; half as many at rounding. None: no limit."""
    worthwhile: float = 1e-3
    """Relative decrease of |r| below which a step counts as no progress."""
    last_ratio: float = 1.0
    """Ratio of |r| after and before a step beyond which the step is the last one: near a solution with zero
    residual, steps gain digits until they meet the rounding."""
    last_below: float = np.inf
    """Size of the residual below which ``last_ratio`` counts."""
    needed: float = 1.0
    """Ratio of |r| after and before a step below which the step is accepted."""
    damping: float = 1e-4
    """First lambda, in units of the metric M."""
    damping_fall: float = 1 / 8
    """Factor on the damping after an accepted step."""
    damping_rise: float = 8.0
    """Factor on the damping after a refused step."""
    rise_growth: float = 1.0
    """Factor on the rise itself after each further refusal in a row."""
    least_damping: float = 0.0
    """Damping below which it does not fall."""
    least_raised: float = 1e-8
    """Damping from which a rise begins at least, so that it soon matters."""
    max_damping: float = 1e10
    """Damping at which a refused step is the last one: no damping helps."""
    acceleration: bool = False
    """Once a step gained little, bend all later ones along the model's second derivative: the small residuals
    of an ill-conditioned problem lie along a curved valley, which straight steps leave. Costs a residual and
    a solve more per step."""
    inner_steps: int = 400
    """Most iterations of conjugate gradients per solve."""
    inner_tolerance: float = 1e-3
    """Relative residual of the normal equations at which conjugate gradients stops."""
    solver: SolverName = "auto"
    """Who solves the normal equations; "auto" chooses by size and by what the problem offers."""
    dense_entries: int = 6_000_000
    """Entries of J up to which "auto" forms it (48 MB)."""
    small_entries: int = 100_000
    """Entries of J up to which "auto" forms it even if the problem has a cheap J^T J."""
    gram_parameters: int = 12_000
    """Rows of J^T J up to which "auto" forms it (two of 1.2 GB, half that in float32)."""
    fresh_gram: bool = False
    """Form J^T J anew at every point: for far starts, where it changes fast, and few parameters, where it
    costs no more than some iterations."""
    conditioning: bool = True
    """Tell in the end how well the unknowns are determined, which may take longer than the steps. In vain
    where the problem leaves some of them open by its nature."""
    max_memory: int | None = None
    """Bytes that matrices may take; "auto" forms none that needs more. None: no limit but those above."""

    @classmethod
    def undamped(
        cls, steps: int, *, last_ratio: float = 1.0, needed: float = 1.0
    ) -> LevenbergMarquardtOptions:
        """Gauss-Newton: full steps until one is refused."""
        full = cls(stalls=None, damping=0.0, damping_rise=1.0, least_raised=0.0, max_damping=0.0)
        return replace(full, steps=steps, last_ratio=last_ratio, needed=needed)


class Point(Protocol):
    """Where a descent stands."""

    @property
    def size(self) -> float | Array:
        """|r| in a unit of the problem's choice: a number, or an array with one for each of a batch."""


P = TypeVar("P", bound=Point)


class Steps(ABC, Generic[P]):
    """Makes the trial points of a descent."""

    @abstractmethod
    def trial(self, point: P, damping: float | Array) -> P:
        """Where the step of this damping leads; of infinite size where there is none."""

    def accepted(self, better: bool | BoolArray, trial: P, point: P) -> P:
        """The next point: ``trial`` where it is ``better``. Single problems take all of it."""
        return trial

    def is_hopeless(self, point: P, trial: P) -> bool:
        """Whether not even the linear model saw the refused ``trial`` lower |r| by a worthwhile part."""
        return False


@dataclass(frozen=True, eq=False)
class Path(Generic[P]):
    """Where a descent ended, and how it came there."""

    point: P
    history: tuple[float, ...]
    """|r| at the start and after every accepted step; of a batch, over all of its problems."""


def minimise(
    steps: Steps[P], point: P, options: LevenbergMarquardtOptions, on_step: OnStep | None = None
) -> Path[P]:
    """Minimise |r| from ``point``, until every problem of the batch has settled or the time is over."""
    history, size = [_total(point.size)], point.size
    damping, rise = _like(size, options.damping), _like(size, options.damping_rise)
    rounding = options.floor if options.rounding is None else options.rounding
    stalled, settled = _like(size, 0.0), size < 0
    tried, refused, counted, single = 0, 0, 0, not isinstance(size, np.ndarray)
    while counted < options.steps and (options.refusals is None or refused < options.refusals):
        if options.stalls is not None:
            at_rounding = size < options.round_off * rounding
            settled = settled | (stalled >= _choose(at_rounding, options.stalls // 2, options.stalls))
        if tried >= options.least_steps:
            settled = settled | (size <= options.floor)
        if _every(settled) or out_of_time():
            break
        try:
            trial = steps.trial(point, damping)
        except OutOfTime:
            break
        reached, tried = trial.size, tried + 1
        better = reached < options.needed * size
        fallen = _at_least(options.least_damping, damping * options.damping_fall)
        damping = _choose(better, fallen, _at_least(options.least_raised, damping) * rise)
        if options.rise_growth != 1.0:
            rise = _choose(better, options.damping_rise, rise * options.rise_growth)
        last: Any = False
        if options.last_ratio < 1.0:
            last = (reached > options.last_ratio * size) & (size < options.last_below)
        settled = _choose(better, last, damping >= options.max_damping)
        progress = _some(better)
        if options.stalls is not None:
            slow = reached > (1 - options.worthwhile) * size
            # At rounding no damping helps, nor at a minimum: even the linear model hopes for nothing there.
            at_minimum = not progress and options.rounding is not None and steps.is_hopeless(point, trial)
            idle = stalled + (at_rounding | at_minimum)
            stalled = _choose(better, _choose(slow, stalled + 1, 0.0), idle)
        if progress:
            point = trial if not single and _every(better) else steps.accepted(better, trial, point)
            size, refused, counted = point.size, 0, counted + 1
            history.append(_total(size))
            if on_step is not None:
                on_step(len(history) - 1, history[-1])
        else:
            refused, counted = refused + 1, counted + (options.refusals is None)
        del trial  # it may be as large as the data, and the next one is
    return Path(point, tuple(history))


# Single problems are Python numbers: arrays of one entry would cost small fits a tenth of their time.


def _choose(condition: Any, yes: Any, no: Any) -> Any:
    return np.where(condition, yes, no) if isinstance(condition, np.ndarray) else yes if condition else no


def _at_least(least: float, value: Any) -> Any:
    return np.maximum(least, value) if isinstance(value, np.ndarray) else max(least, value)


def _every(condition: Any) -> bool:
    return bool(condition.all() if isinstance(condition, np.ndarray) else condition)


def _some(condition: Any) -> bool:
    return bool(condition.any() if isinstance(condition, np.ndarray) else condition)


def _like(size: float | Array, value: float) -> Any:
    return np.full(size.shape, value) if isinstance(size, np.ndarray) else value


def _total(size: float | Array) -> float:
    return math.sqrt(np.vdot(size, size)) if isinstance(size, np.ndarray) else float(size)
