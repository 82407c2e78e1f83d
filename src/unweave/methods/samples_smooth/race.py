"""A race of kinds of smooth units for samples: the width and the kind that explain them, any of both.

For sizes M = 4, 8, 16, ... and every kind that is still in the race:

    1. screen: fit M small random units at a falling ridge (`unweave.networks.ridge_continuation`), on a few
       rows per parameter and only down to a coarse ridge;
    2. drop the kinds that are far behind the best;
    3. finish the best few: lower the ridge until it limits the fit no more, leave out surplus units, and end
       with least squares on all rows without ridge. The first that is exact wins.

Units of the wrong kind fit about as well as the right ones until there are enough units, so sizes grow while
that lowers the Bayesian information criterion

    BIC = n K log(RSS) + log(n K) (number of parameters),

which also decides between kinds where noise keeps all of them from being exact. What the winner lacks is then
mended: units fitted to what is left, and new random starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array
from unweave.errors import OutOfTime
from unweave.methods.shared.sample_evidence import information
from unweave.methods.shared.value_search import projected_model, smooth_feature
from unweave.networks.activations import Activation
from unweave.networks.error_bars import is_homogeneous
from unweave.networks.mirrored_units import mirror_back
from unweave.networks.parameters import NetworkParameters
from unweave.networks.ridge_continuation import OnStep, RidgeFit, RidgeLevel
from unweave.networks.standardized import StandardizedSamples
from unweave.networks.value_fit import ValueFitResult, fit_values
from unweave.numerics.clock import check
from unweave.numerics.variable_projection.problem import ProjectedFit, ProjectedProblem, ProjectionOptions
from unweave.numerics.variable_projection.prune import prune_exact, prune_noisy

_EQUAL_UNITS = 1e-6  # distance of two units (w; b), relative to their length, that are one
_NO_STEPS = ProjectionOptions(steps=0)


@dataclass(frozen=True, kw_only=True)
class RaceOptions:
    """Sizes, rows, and when a kind is dropped."""

    first_units: int = 4
    """Units of the first size when the caller gives no width."""
    growth: float = 2.0
    """Ratio of one size to the next."""
    most_units: int = 64
    """Units of the largest size."""
    surplus: tuple[float, ...] = (1.25, 1.5, 2.0)
    """Units of a start over the width that the caller gives."""
    fewest_equations: float = 1.5
    """Equations per parameter of the largest start."""
    screen_ridges: tuple[float, ...] = (1e-3, 1e-4, 1e-5)
    """Ridges of the screening fit, over the squared share that an affine part beside the units leaves, ..."""
    least_screened: float = 1e-8
    """... and the least one: it falls on while the ridge and not the kind of unit limits the fit."""
    screen_equations: float = 5.0
    """Equations per parameter that kinds are screened on, ..."""
    equations: float = 15.0
    """... and that units are found on."""
    finish_ratio: float = 3.0
    """Ratio of screening residuals to the best one up to which a kind is finished, ..."""
    finished: int = 3
    """... and how many kinds at most."""
    stay_ratio: float = 10.0
    """Ratio of screening residuals above which a kind is far behind, ..."""
    patience: int = 2
    """... and sizes after which it leaves the race: a start may have ended in a local minimum."""
    mends: int = 3
    """Rounds that add units to a fit that is nearly exact, while the residual falls."""
    mended: float = 0.7
    """Ratio of residuals of one round to the one before that makes another one worthwhile."""
    rounds: int = 2
    """Times that all sizes are tried."""
    near: float = 1e-2
    """Residual below which a fit is near enough to be mended."""
    falling: float = 0.6
    """Ratio of residuals after and before the units double, above which that was of no use ..."""
    useless: int = 2
    """... and sizes in a row of no use that end the growth."""
    work: float = 8.0
    """Seconds that all fits take, roughly. They are counted in steps and flops, so that the race ends at the
    same fit on every machine."""
    step_seconds: float = 1e-3
    """Seconds that one step of a fit takes besides its arithmetic ..."""
    flops_per_second: float = 2e10
    """... and the speed of that, measured on one thread."""
    least_curved: float = 1e-3
    """Share of the answers that an affine part leaves, below which the ridge falls no lower."""
    same_minimum: float = 1e-3
    """Relative difference of the residuals of fits that ended in one minimum."""
    final_entries: int = 6_000_000
    """Entries of the Jacobian of the last fit to noisy samples: it takes that many of the rows."""


@dataclass(frozen=True, eq=False)
class Runner:
    """The best fit of one kind."""

    model: NetworkParameters
    """In whitened inputs and standardized answers."""
    residual: float
    """Root mean square misfit of all rows over the answers' spread, worst output."""
    information: float
    """Bayesian information criterion."""
    fitted: ValueFitResult

    @property
    def kind(self) -> str:
        """Name of the activation."""
        return self.model.activation.name


@dataclass(frozen=True, eq=False)
class RaceResult:
    """The winner, and what the others came to."""

    winner: Runner | None
    """None if the rows are too few for any."""
    runners: dict[str, Runner] = field(default_factory=dict)
    """The best of every kind that was finished."""
    starts: int = 0
    exact: bool = False
    settled: bool = False
    """Whether two starts ended in the winner: what it leaves is noise, or of no kind that raced."""
    out_of_time: bool = False


def race_kinds(
    samples: StandardizedSamples,
    width: int | None,
    kinds: Sequence[Activation],
    *,
    floor: float,
    rng: np.random.Generator,
    options: RaceOptions | None = None,
    on_step: OnStep | None = None,
    rival: tuple[float, int] | None = None,
) -> RaceResult:
    """Find ``width`` (None: as many as it takes) units of one of ``kinds`` that explain ``samples``.

    ``floor`` is the root mean square misfit, relative to the answers' spread, that counts as exact.
    ``on_step`` gets (steps, residual) and may raise `OutOfTime`: the best so far is returned.
    ``rival`` is what was found before, as its BIC and its number of units: the race ends where many more
    units have a higher one.
    """
    race = _Race(samples, width, list(kinds), floor, rng, options or RaceOptions(), on_step)
    race.rival = rival
    late = False
    try:
        with np.errstate(all="ignore"):  # units that run away are given up
            race.run()
    except OutOfTime:
        late = True
    exact = race.best is not None and race.best.residual <= floor
    return RaceResult(race.best, race.runners, race.starts, exact, race.settled, late)


class _Race:
    def __init__(
        self,
        samples: StandardizedSamples,
        width: int | None,
        kinds: list[Activation],
        floor: float,
        rng: np.random.Generator,
        options: RaceOptions,
        on_step: OnStep | None,
    ) -> None:
        self.samples, self.width, self.kinds, self.floor = samples, width, kinds, floor
        self.rng, self.options, self._told = rng, options, on_step
        order = rng.permutation(len(samples.inputs))
        self.inputs, self.answers = samples.inputs[order], samples.answers[order]
        self._left_by_affine = max(samples.affine_residual, options.least_curved)
        self.runners: dict[str, Runner] = {}
        self.best: Runner | None = None
        self.behind = {kind.name: 0 for kind in kinds}
        """Sizes at which a kind was far behind."""
        self.heat: list[Runner] = []
        """Fits of the last size."""
        self.settled = False
        self.rival: tuple[float, int] | None = None
        self.starts, self.flops, self.steps = 0, 0.0, 0

    def on_step(self, steps: int, residual: float) -> None:
        """Count a step, and pass it on."""
        self.steps += 1
        if self._told is not None:
            self._told(steps, residual)

    def run(self) -> None:
        """Let sizes grow; start again with all kinds where nothing is exact and nothing has settled."""
        everything = self.kinds
        for _ in range(self.options.rounds):
            self.kinds, self.behind = everything, dict.fromkeys(self.behind, 0)
            if self._grow():
                return

    def _grow(self) -> bool:
        """Go through all sizes; return whether further starts are of no use."""
        useless = 0
        for size in self._sizes():
            before = self.best
            self._heat(size)
            useless = 0 if self._fell_since(before) else useless + 1
            if self._is_done() or self._is_beaten(size) or self.settled:
                return True
            if self._has_settled(before, size) or useless >= self.options.useless:
                return self.settled
        return False

    def _is_done(self) -> bool:
        exact = self.best is not None and self.best.residual <= self.floor
        spent = self.options.step_seconds * self.steps + self.flops / self.options.flops_per_second
        return exact or spent > self.options.work or not self.kinds

    def _is_beaten(self, size: int) -> bool:
        """Return whether what was found before explains more with far fewer units."""
        if self.rival is None or self.best is None:
            return False
        information, units = self.rival
        return self.best.information > information and size >= self.options.growth * units

    def _fell_since(self, before: Runner | None) -> bool:
        best = self.best
        return before is None or best is None or best.residual < self.options.falling * before.residual

    def _has_settled(self, before: Runner | None, size: int) -> bool:
        """Return whether another size has led to the same fit, or more units explain no more."""
        best = self.best
        if before is None or best is None:
            return False
        near = self.options.same_minimum
        self.settled = any(
            _are_alike(before, each, near) and _are_alike(best, each, near) for each in self.heat
        )
        if self.settled or self.width is not None:
            return self.settled
        return best is before and best.model.width <= size / self.options.growth

    def _heat(self, size: int) -> None:
        """Screen all kinds at one size, drop those far behind once more, and finish the best."""
        options, self.heat = self.options, []
        screened = sorted(
            (self._screened(kind, size) for kind in self.kinds), key=lambda level: level.residual
        )
        least = screened[0].residual
        for level in screened:
            far = level.residual > options.stay_ratio * max(least, self.floor)
            self.behind[level.model.activation.name] += far
        self.kinds = [kind for kind in self.kinds if self.behind[kind.name] < options.patience]
        worth = [level for level in screened if level.residual <= options.finish_ratio * least]
        for level in worth[: options.finished]:
            self._finish(level)
            if self._is_done():
                return

    def _fit_on(self, kind: Activation, units: int, equations: float) -> RidgeFit:
        """Return the ridge fit of ``units`` on some ``equations`` per parameter."""
        rows = min(len(self.inputs), int(equations * self._parameters(units) / self.answers.shape[1]))
        return RidgeFit(self.inputs[:rows], self.answers[:rows], kind, on_step=self.on_step)

    def _screened(self, kind: Activation, size: int) -> RidgeLevel:
        check()
        self.starts += 1
        fit = self._fit_on(kind, size, self.options.screen_equations)
        model = fit.random(size, self.rng)
        curved = self._left_by_affine**2 if model.skip is not None else 1.0
        for ridge in self.options.screen_ridges:
            level = fit.fit(model, curved * ridge)
            model = level.model
        while fit.is_limited(level) and level.ridge > self.options.least_screened:
            level = fit.fit(level.model, level.ridge / fit.options.fall)
        self.flops += fit.flops
        return level

    def _finish(self, level: RidgeLevel) -> None:
        """Take a screened fit to the end, and mend it while it is nearly exact and comes nearer."""
        options, size = self.options, level.model.width
        kind, last = level.model.activation, np.inf
        fit = self._fit_on(kind, size, options.equations)
        for _ in range(options.mends + 1):
            check()
            level = fit.settled(level.model, level.ridge)
            level = self._without_surplus(fit, level)
            runner = self._ended(level)
            self._enter(runner)
            far = runner.residual > options.near or runner.residual > options.mended * last
            if far or runner.residual <= self.floor or level.model.width + 2 > self._most():
                break
            last = runner.residual
            count = max(2, level.model.width // 4)
            count = min(count, self._most() - level.model.width)
            level = replace(level, model=fit.with_more_units(level.model, count, level.ridge, self.rng))
        self.flops += fit.flops

    def _without_surplus(self, fit: RidgeFit, level: RidgeLevel) -> RidgeLevel:
        """Leave out units: where noise limits the fit, by BIC and down to the width that the caller gives."""
        if fit.is_limited(level):
            return fit.without_surplus(level)
        numbers = len(fit.inputs) * self.answers.shape[1]
        per_unit = self.inputs.shape[1] + 1 + self.answers.shape[1]
        ratio = float(np.exp(per_unit * np.log(numbers) / (2 * numbers)))
        return fit.without_surplus(level, ratio, self.width or 1)

    def _ended(self, level: RidgeLevel) -> Runner:
        """Fit without ridge, on all rows if that is cheap or the fit is exact, and leave out the skip."""
        model = level.model
        if self.width is not None and model.width > self.width:
            model = self._cut(model, self.width)
        rows = max(int(self.options.final_entries / model.size), len(self.inputs) // 100)
        inputs, answers = self.inputs[:rows], self.answers[:rows]
        best = self._runner(fit_values(model, inputs, answers, on_step=self.on_step))
        if best.model.skip is not None:
            turned = replace(mirror_back(best.model), skip=None)
            without = self._runner(fit_values(turned, inputs, answers, on_step=self.on_step))
            if without.information < best.information or without.residual <= self.floor:
                best = without
        return self._narrowed(best, inputs, answers) if best.residual <= self.floor else best

    def _cut(self, model: NetworkParameters, width: int) -> NetworkParameters:
        """Leave out the cheapest units until ``width`` are left."""
        feature = smooth_feature(model.activation)
        problem = ProjectedProblem(self.inputs, self.answers, feature)
        units = np.vstack([model.weights[0], model.biases[0]])
        try:
            fewer = prune_noisy(problem, problem.minimise(units, _NO_STEPS), width, self.on_step)
        except np.linalg.LinAlgError:  # units that ran away
            return model
        return projected_model(fewer, feature, self.inputs, self.answers)

    def _narrowed(self, exact: Runner, inputs: Array, answers: Array) -> Runner:
        """Leave out units as long as the fit stays exact: equal and opposite ones, and idle ones."""
        model = exact.model
        feature = smooth_feature(model.activation)
        problem = ProjectedProblem(inputs, answers, feature)
        units = np.vstack([model.weights[0], model.biases[0]])
        kept = _distinct_units(units)
        found = ProjectedFit(units[:, kept], model.weights[1][kept], exact.residual, ())
        try:
            fewer = prune_exact(problem, found, self.floor, self.on_step)
        except np.linalg.LinAlgError:  # units that ran away
            return exact
        if not 0 < fewer.units.shape[1] < units.shape[1]:
            return exact
        start = projected_model(fewer, feature, inputs, answers)
        narrowed = self._runner(fit_values(start, inputs, answers, on_step=self.on_step))
        return narrowed if narrowed.residual <= self.floor else exact

    def _runner(self, fitted: ValueFitResult) -> Runner:
        residual, numbers = self.samples.residual(fitted.model), self.samples.answers.size
        model = fitted.model
        free = model.size - (model.width if is_homogeneous(model) else 0)
        return Runner(model, residual, information(residual, free, numbers), fitted)

    def _enter(self, runner: Runner) -> None:
        if not np.isfinite(runner.residual):
            return
        self.heat.append(runner)
        known = self.runners.get(runner.kind)
        if known is None or runner.information < known.information:
            self.runners[runner.kind] = runner
        if self.best is None or runner.information < self.best.information:
            self.best = runner

    def _parameters(self, units: int) -> int:
        inputs, outputs = int(self.inputs.shape[1]), int(self.answers.shape[1])
        return units * (inputs + 1 + outputs) + (inputs + 1) * outputs

    def _most(self) -> int:
        """Return the number of units of the largest fit that the rows allow."""
        inputs, outputs = int(self.inputs.shape[1]), int(self.answers.shape[1])
        free = self.answers.size / self.options.fewest_equations - outputs
        return min(self.options.most_units, int(free / (inputs + 1 + outputs)))

    def _sizes(self) -> list[int]:
        options, most = self.options, self._most()
        if most < 1:
            return []
        if self.width is not None:
            wanted = [int(np.ceil(factor * self.width)) + 1 for factor in options.surplus]
            return sorted({max(self.width, min(size, most)) for size in wanted})
        sizes, size = [], float(options.first_units)
        while size < most:
            sizes.append(int(size))
            size *= options.growth
        return [*sizes, most] if not sizes or sizes[-1] < most / 1.2 else sizes


def _are_alike(first: Runner, second: Runner, tolerance: float) -> bool:
    """Return whether two fits are one minimum, as far as kind, width and residual tell."""
    same = first.kind == second.kind and first.model.width == second.model.width
    return same and abs(first.residual - second.residual) <= tolerance * first.residual


def _distinct_units(units: Array) -> list[int]:
    """Numbers of the units (w; b) that differ from all before them, in more than their sign."""
    kept: list[int] = []
    for number, unit in enumerate(units.T):
        others = units[:, kept]
        apart = np.minimum(
            np.linalg.norm(others - unit[:, None], axis=0), np.linalg.norm(others + unit[:, None], axis=0)
        )
        if not (apart <= _EQUAL_UNITS * np.linalg.norm(unit)).any():
            kept.append(number)
    return kept
