"""A race of kinds of smooth units for samples: the width and the kind that explain them, any of both.

For sizes M = 4, 8, 16, ... and every kind that is still in the race:

    1. screen: fit M small random units at a falling ridge (`unweave.networks.ridge_continuation`), on a few
       rows per parameter and only down to a coarse ridge;
    2. drop the kinds that are far behind the best;
    3. settle the best few: lower the ridge until it limits the fit no more, which tells the right kind from
       the others once there are enough units;
    4. finish those that keep up: leave out surplus units, and end with least squares on all rows without
       ridge. The first that is exact wins.

Units of the wrong kind fit about as well as the right ones until there are enough units, so sizes grow while
that lowers the Bayesian information criterion

    BIC = n K log(RSS) + log(n K) (number of parameters),

which also decides between kinds where noise keeps all of them from being exact. A kind that leaves the others
behind, or has no larger size to grow to, is mended: units are fitted to what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from unweave.errors import OutOfTime
from unweave.methods.samples_smooth.ending import Ending, Runner
from unweave.networks.activations import Activation
from unweave.networks.ridge_continuation import OnStep, RidgeFit, RidgeLevel
from unweave.networks.standardized import StandardizedSamples
from unweave.numerics.clock import check


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
    """Ratio of residuals to the best one up to which a kind is settled, and then finished, ..."""
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


@dataclass(eq=False)
class _Finalist:
    """A fit of one kind at one size that was worth settling."""

    fit: RidgeFit
    level: RidgeLevel
    ended: Runner | None = None
    """The same without ridge, on all rows."""


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
        self._ending = Ending(
            samples, self.inputs, self.answers, width, floor, options.final_entries, self.on_step
        )
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
        finalists = sorted(
            map(self._settled, worth[: options.finished]), key=lambda each: each.level.residual
        )
        if not finalists:  # all units ran away
            return
        worst = options.finish_ratio * finalists[0].level.residual
        keeping_up = [each for each in finalists if each.level.residual <= worst]
        for finalist in keeping_up:
            self._finish(finalist)
            if self._is_done():
                return
        if len(keeping_up) == 1 or size == self._sizes()[-1]:
            self._mend(finalists[0])

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

    def _settled(self, level: RidgeLevel) -> _Finalist:
        """Lower the ridge of a screened fit on more rows, until the units limit it."""
        check()
        fit = self._fit_on(level.model.activation, level.model.width, self.options.equations)
        finalist = _Finalist(fit, fit.settled(level.model, level.ridge))
        self.flops += fit.flops
        return finalist

    def _finish(self, finalist: _Finalist) -> None:
        """Take a settled fit to the end."""
        check()
        fit, spent = finalist.fit, finalist.fit.flops
        finalist.level = self._without_surplus(fit, finalist.level)
        finalist.ended = self._ending.end(finalist.level.model)
        self._enter(finalist.ended)
        self.flops += fit.flops - spent

    def _mend(self, finalist: _Finalist) -> None:
        """Add units to a finished fit that is nearly exact, while that brings it nearer."""
        options, fit, last = self.options, finalist.fit, np.inf
        for _ in range(options.mends):
            if finalist.ended is None:
                return
            residual, level = finalist.ended.residual, finalist.level
            far = residual > options.near or residual > options.mended * last
            if far or residual <= self.floor or level.model.width + 2 > self._most():
                return
            last = residual
            count = min(max(2, level.model.width // 4), self._most() - level.model.width)
            grown = fit.with_more_units(level.model, count, level.ridge, self.rng)
            finalist.level = fit.settled(grown, level.ridge)
            self._finish(finalist)

    def _without_surplus(self, fit: RidgeFit, level: RidgeLevel) -> RidgeLevel:
        """Leave out units: where noise limits the fit, by BIC and down to the width that the caller gives."""
        if fit.is_limited(level):
            return fit.without_surplus(level)
        numbers = len(fit.inputs) * self.answers.shape[1]
        per_unit = self.inputs.shape[1] + 1 + self.answers.shape[1]
        ratio = float(np.exp(per_unit * np.log(numbers) / (2 * numbers)))
        return fit.without_surplus(level, ratio, self.width or 1)

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
