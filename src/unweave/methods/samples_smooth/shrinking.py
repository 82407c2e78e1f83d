"""Units that samples hardly tell apart: starts with many surplus units, left out a few at a time.

In two or three inputs many networks agree with the samples to five digits, and a start of the right width
ends in one of them. A start of some 14 to 20 units comes to six digits if the kind is right, to four or five
if it is not, and along its valley to eight. From there an eighth of the units is left out at a time, the
cheapest first, and the others adapt (variable projection): the residual hardly rises, and on the way down the
fit often falls into the true units, which random starts of fewer units seldom reach. Fits that end before
their valley does seldom arrive.

    1. a few short starts of every kind; kinds whose residual is far above the best one leave;
    2. follow the valley of the best start of each and shrink it, best kind first; the first that is exact
       ends it;
    3. further starts of the kinds that are left, with other numbers of units.

Such units nearly depend on each other, so that steps factor J and not J^T J.

In more inputs this serves units that hardly bend, as weight decay leaves them. Where noise limits every fit,
starts of one size end alike, and their valleys lead nowhere: then no more are tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.samples_smooth.ending import Ending, Runner
from unweave.methods.shared.neighbors import likeness
from unweave.methods.shared.value_search import projected_model, smooth_feature
from unweave.networks.activations import Activation
from unweave.networks.parameters import NetworkParameters
from unweave.networks.ridge_continuation import OnStep
from unweave.numerics.clock import check
from unweave.numerics.variable_projection.problem import ProjectedFit, ProjectedProblem, ProjectionOptions
from unweave.numerics.variable_projection.prune import random_units, removal_costs


@dataclass(frozen=True, kw_only=True)
class ShrinkingOptions:
    """Starts, and how they shrink."""

    units: tuple[int, ...] = (20, 14)
    """Units of a start, round by round, ..."""
    units_of_many: tuple[int, ...] = (14, 20)
    """The same in more inputs, where each unit has more parameters."""
    lengths: tuple[float, ...] = (1.0, 0.7, 0.5)
    """... and the length of their weights, in inputs of unit variance, start by start."""
    starts: int = 3
    """Starts of a kind, of which the best one is shrunk, ..."""
    rounds: int = 8
    """... and how often."""
    rows_per_parameter: float = 5.0
    """Rows that a start is fitted to, per parameter and divided by the outputs."""
    fewest_equations: float = 1.5
    """Equations per parameter of a start at least."""
    steps: int = 60
    """Steps of a start at most, ..."""
    patience: int = 8
    """... and those without progress that end it."""
    long_steps: int = 500
    """Steps of the start that is shrunk: it follows a valley, where each step gains little, ..."""
    refit_steps: int = 300
    """... and so does each fit with fewer units."""
    long_patience: int = 40
    """Steps without progress that end such a fit."""
    share: float = 0.12
    """Share of the units that are left out at a time."""
    near: float = 1e-3
    """Residual from which on a start is too far away to be worth shrinking."""
    aside: float = 0.1
    """Size of a random part of the weights, relative to their length, where starts are like known units."""
    near_many: float = 5e-3
    """The same of the fit that the race left, in more inputs."""
    ready: float = 1e-4
    """Residual from which on units that are worth little are left out all at once, as a trial."""
    rise: float = 3.0
    """Ratio of residuals after and before, above which true units were left out, ..."""
    sure: float = 1e-6
    """... unless the residual is still so small: then a fit has not ended, and goes on with fewer units."""
    rival_ratio: float = 10.0
    """Ratio of residuals to the best kind's, above which a kind leaves."""
    alike: float = 1.15
    """Ratio of the residuals of two starts up to which the same may limit them, and that is noise ..."""
    barren: float = 0.95
    """... where the valley of the better one leaves more than this of its residual."""
    work: float = 60.0
    """Seconds that all fits take, roughly. They are counted in steps and flops, so that the search ends at
    the same fit on every machine."""
    step_seconds: float = 1.2e-3
    """Seconds that one step takes besides its arithmetic ..."""
    flops_per_second: float = 3e9
    """... and the speed of that, measured on one thread."""
    correlation: float = 0.5
    """Correlation of what a fit leaves at neighboring inputs, above which it is not noise, ..."""
    compared: int = 2000
    """... and rows that are compared with their neighbors at most."""


def shrink_starts(
    kinds: Sequence[Activation],
    ending: Ending,
    *,
    rng: np.random.Generator,
    options: ShrinkingOptions | None = None,
    on_step: OnStep | None = None,
    known: NetworkParameters | None = None,
    like: NetworkParameters | None = None,
) -> Runner | None:
    """Return an exact fit of one of ``kinds`` to the rows of ``ending``, else the best start if there is one.

    ``kinds`` come in the order in which they are tried. ``known`` is a fit to begin with, if there is one.
    Starts point where units of the fit ``like`` do: those of trained networks may all be nearly parallel.
    Raises `OutOfTime` where ``on_step`` does.
    """
    search = _Shrinking(ending, rng, options or ShrinkingOptions(), on_step, like)
    with np.errstate(all="ignore"):  # units that run away are given up
        found = None if known is None else search.shrink(known)
        if found is not None or search.most <= 1 or not kinds:
            return found
        return search.run(list(kinds)) or search.best_start()


def is_structured(inputs: Array, left: Array, options: ShrinkingOptions) -> bool:
    """Return whether ``left`` (n, K) at ``inputs`` (n, d) is alike at neighboring inputs: noise is not."""
    return likeness(inputs, left, options.compared) > options.correlation


@dataclass(frozen=True, eq=False)
class _Start:
    """A fit with surplus units."""

    kind: Activation
    problem: ProjectedProblem
    fit: ProjectedFit
    twice: bool = False
    """Whether another start has ended at the same residual."""

    @property
    def residual(self) -> float:
        """Root mean square misfit over the answers' spread."""
        return self.fit.residual


class _Shrinking:
    def __init__(
        self,
        ending: Ending,
        rng: np.random.Generator,
        options: ShrinkingOptions,
        on_step: OnStep | None,
        like: NetworkParameters | None = None,
    ) -> None:
        self.ending, self.rng, self.options, self.on_step = ending, rng, options, on_step
        self.like = like
        self.per_unit = ending.inputs.shape[1] + 1 + ending.answers.shape[1]
        self.most = int(ending.answers.size / options.fewest_equations / self.per_unit)
        self.spent = 0.0
        self.best: _Start | None = None
        self.is_noise = False
        """Whether noise seems to limit all starts."""

    def run(self, kinds: list[Activation]) -> Runner | None:
        """Try all kinds, then those that are left, and so on."""
        least = {kind.name: np.inf for kind in kinds}
        for number in range(self.options.rounds):
            starts = [self._best_started(kind, number) for kind in kinds if self.spent <= self.options.work]
            for start in starts:
                least[start.kind.name] = min(start.residual, least[start.kind.name])
            worst = self.options.rival_ratio * min(least.values())
            kinds = [kind for kind in kinds if least[kind.name] <= worst]
            for start in sorted(starts, key=lambda each: each.residual):
                if start.residual <= worst and (found := self._shrunk(start)) is not None:
                    return found
                if self.is_noise or self.spent > self.options.work:
                    return None
        return None

    def shrink(self, known: NetworkParameters) -> Runner | None:
        """Shrink a fit that is known."""
        problem = self._problem(known.activation, known.width)
        units = np.vstack([known.weights[0], known.biases[0]])
        return self._shrunk(self._fitted(known.activation, problem, units))

    def _best_started(self, kind: Activation, number: int) -> _Start:
        """Return the best of some starts: those that end in a poor minimum do so within a few steps."""
        starts = [self._started(kind, number, again) for again in range(self.options.starts)]
        best, *others = sorted(starts, key=lambda start: start.residual)
        twice = bool(others) and others[0].residual <= self.options.alike * best.residual
        return replace(best, twice=twice)

    def best_start(self) -> Runner | None:
        """Return the start that came nearest, surplus units and all."""
        if self.best is None:
            return None
        feature = smooth_feature(self.best.kind)
        inputs, answers = self.ending.inputs, self.ending.answers
        return self.ending.as_it_is(projected_model(self.best.fit, feature, inputs, answers))

    def _started(self, kind: Activation, number: int, again: int) -> _Start:
        """Fit random units, as many as in round ``number`` and as long as in start ``again`` of it."""
        options = self.options
        count = min(options.units[number % len(options.units)], self.most)
        problem = self._problem(kind, count)
        units = random_units(problem, count, self.rng)
        if self.like is not None:
            units[:-1] = self._like_known(units[:-1])
        units *= options.lengths[again % len(options.lengths)] / np.linalg.norm(units[:-1], axis=0)
        start = self._fitted(kind, problem, units)
        if self.best is None or start.residual < self.best.residual:
            self.best = start
        return start

    def _like_known(self, drawn: Array) -> Array:
        """Return weights (d, m) that vary as those of known units do, and a little as the ``drawn`` ones."""
        assert self.like is not None
        weights, outgoing = self.like.weights
        scaled = weights * np.linalg.norm(outgoing, axis=1)  # strong units count more
        varied = scaled @ self.rng.standard_normal((weights.shape[1], drawn.shape[1]))
        varied /= np.linalg.norm(varied, axis=0)
        return np.asarray(varied + self.options.aside * drawn / np.linalg.norm(drawn, axis=0))

    def _problem(self, kind: Activation, units: int) -> ProjectedProblem:
        """Return the problem of finding ``units`` on some rows per parameter."""
        inputs, answers = self.ending.inputs, self.ending.answers
        rows = int(self.options.rows_per_parameter * units * self.per_unit / answers.shape[1])
        return ProjectedProblem(inputs[:rows], answers[:rows], smooth_feature(kind))

    def _fitted(
        self, kind: Activation, problem: ProjectedProblem, units: Array, valley: int | None = None
    ) -> _Start:
        """Fit ``units``; through a valley, with so many steps, if given."""
        check()
        options = self.options
        limits = ProjectionOptions(
            steps=options.steps if valley is None else valley,
            floor=self.ending.floor / 100,
            patience=options.patience if valley is None else options.long_patience,
            factored=True,
        )
        try:
            fit = problem.minimise(units, limits, self.on_step)
        except np.linalg.LinAlgError:  # units that ran away
            fit = ProjectedFit(units, np.zeros((units.shape[1], 1)), np.inf, ())
        flops = len(fit.history) * problem.rows * units.size**2
        self.spent += options.step_seconds * len(fit.history) + flops / options.flops_per_second
        return _Start(kind, problem, fit)

    def _shrunk(self, start: _Start) -> Runner | None:
        """Leave out units as long as the others make up for them; return the fit once it is exact."""
        options = self.options
        if start.residual > options.near:
            return None
        short = start
        start = self._fitted(start.kind, start.problem, start.fit.units, options.long_steps)
        self.is_noise = short.twice and start.residual > options.barren * short.residual
        while not self.is_noise:
            if start.residual <= options.ready and (ended := self._ended(start)) is not None:
                return ended
            if start.fit.units.shape[1] <= 2:
                return None
            units = self._without_some(start)
            fewer = self._fitted(start.kind, start.problem, units, options.refit_steps)
            if fewer.residual > max(options.rise * start.residual, options.sure):
                return None
            start = fewer
        return None

    def _ended(self, start: _Start) -> Runner | None:
        """Return the fit without what is worth little, if it is exact."""
        inputs, answers = self.ending.inputs, self.ending.answers
        model = projected_model(start.fit, smooth_feature(start.kind), inputs, answers)
        return self.ending.end_boldly(model)

    def _without_some(self, start: _Start) -> Array:
        """Return the units (w; b) without the cheapest ones."""
        units = start.fit.units
        for _ in range(max(1, int(self.options.share * units.shape[1]))):
            units = np.delete(units, int(removal_costs(start.problem, units).argmin()), axis=1)
        return units
