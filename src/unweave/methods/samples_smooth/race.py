"""A race of kinds of smooth units for samples: the width and the kind that explain them, any of both.

For sizes M = 4, 8, 16, ... and every kind that is still in the race:

    1. screen: fit M small random units at a falling ridge (`unweave.networks.ridge_continuation`), on a few
       rows per parameter and only down to a coarse ridge. A kind that imitates another begins with the units
       of that one (`kinship`), at a fraction of the steps;
    2. where answers are precise, leave out at once what is worth little in the best fit, and in any that lies
       far below what fewer units explained; least squares without ridge tells in a few steps whether the rest
       is exact. That ends the race: no rival can do better;
    3. drop the kinds that are far behind the best;
    4. go on to the next size while more units explain much more. Else settle the best few: lower the ridge
       until it limits the fit no more, which tells the right kind once there are enough units;
    5. finish those that keep up: leave out surplus units, and end with least squares on all rows without
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
from unweave.methods.samples_smooth.race_options import RaceOptions
from unweave.methods.samples_smooth.screening import Finalist, Heat, Screening
from unweave.methods.shared.sample_evidence import information
from unweave.networks.activations import Activation
from unweave.networks.parameters import NetworkParameters
from unweave.networks.ridge_continuation import OnStep, RidgeFit, RidgeLevel
from unweave.networks.standardized import StandardizedSamples
from unweave.numerics.clock import check


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
    winner = race.unfinished()
    exact = winner is not None and winner.residual <= floor
    return RaceResult(winner, race.runners, race.screening.starts, exact, race.settled, late)


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
        curved = max(samples.affine_residual, options.least_curved)
        self.screening = Screening(self.inputs, self.answers, curved, rng, options, self.on_step)
        self.runners: dict[str, Runner] = {}
        self.best: Runner | None = None
        self.behind = {kind.name: 0 for kind in kinds}
        """Sizes at which a kind was far behind."""
        self.last: Heat | None = None
        """Fits of the last size, ..."""
        self.waiting = False
        """... and whether they wait for those of the next one before they are finished."""
        self.ended: list[Runner] = []
        """Fits that were finished at this size."""
        self.settled = False
        self._ending = Ending(
            samples, self.inputs, self.answers, width, floor, options.final_entries, self.on_step
        )
        self.rival: tuple[float, int] | None = None
        self.steps = 0

    def on_step(self, steps: int, residual: float) -> None:
        """Count a step, and pass it on."""
        self.steps += 1
        if self._told is not None:
            self._told(steps, residual)

    def run(self) -> None:
        """Let sizes grow; start again with all kinds where nothing is exact and nothing has settled."""
        everything = self.kinds
        for _ in range(self.options.rounds):
            self.kinds, self.behind, self.last = everything, dict.fromkeys(self.behind, 0), None
            ended = self._grow()
            if self.waiting and self.last is not None and not self._is_exact():
                self._conclude(self.last)
            if ended:
                return

    def unfinished(self) -> Runner | None:
        """Return the best fit so far, as it is if none has been finished."""
        if self.best is not None or self.last is None or not self.last.levels:
            return self.best
        return self._ending.as_it_is(self.last.best.model)

    def _grow(self) -> bool:
        """Go through all sizes; return whether further starts are of no use."""
        useless = 0
        for size in self._sizes():
            before = self.best
            last, heat = self.last, self._screened(size)
            if self._is_exact():
                return True
            self.waiting = self._may_wait(heat, last) and not self._is_done()
            if self.waiting:
                continue
            if last is not None and before is None and not self._is_done() and not self._outdoes(heat, last):
                self._conclude(last)
                before = self.best
            if not self._is_exact():
                self._conclude(heat)
            useless = 0 if self._fell_since(before) else useless + 1
            if self._is_done() or self._is_beaten(size) or self.settled:
                return True
            if self._has_settled(before, size) or useless >= self.options.useless:
                return self.settled
        return False

    def _outdoes(self, heat: Heat, last: Heat) -> bool:
        """Return whether precise answers need more units than ``last`` had."""
        return self._precise and heat.best.residual < self.options.awaited * last.best.residual

    @property
    def _precise(self) -> bool:
        """Whether answers are so precise that what a fit leaves is no noise."""
        return self.floor <= self.options.precise

    def _is_exact(self) -> bool:
        return self.best is not None and self.best.residual <= self.floor

    def _is_done(self) -> bool:
        spent = self.options.step_seconds * self.steps + self.screening.flops / self.options.flops_per_second
        return self._is_exact() or spent > self.options.work or not self.kinds

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
            each is not before and _are_alike(before, each, near) and _are_alike(best, each, near)
            for each in self.ended
        )
        if self.settled or self.width is not None:
            return self.settled
        return best is before and best.model.width <= size / self.options.growth

    def _screened(self, size: int) -> Heat:
        """Screen all kinds at one size, and drop those that are far behind once more.

        One that only the ridge limits, far below all that fewer units have explained, is finished at once.
        """
        options, last = self.options, self.last
        before = self.screening.left_by_affine if last is None else last.best.residual
        self.last = heat = Heat(size)
        self.ended = []
        tried: RidgeLevel | None = None
        while heat.unseen(self.kinds):
            kind = self.screening.next_of(self._in_order(heat, last), heat)
            if self._is_blurred(kind, heat):
                break
            level = self.screening.screen(kind, heat)
            evident = kind.name in heat.limited and level.residual <= options.evident * before
            if evident and self._precise:
                tried = level
                if not self._end_boldly(level.model, level.residual):
                    self._finish(self.screening.settle(level, heat))
                if self._is_exact():
                    return heat
        if heat.best is not tried and self._end_boldly(heat.best.model, heat.best.residual):
            return heat
        least = max(heat.best.residual, self.floor)
        for level in heat.levels:
            self.behind[level.model.activation.name] += level.residual > options.stay_ratio * least
        self.kinds = [kind for kind in self.kinds if self.behind[kind.name] < options.patience]
        return heat

    def _in_order(self, heat: Heat, last: Heat | None) -> list[Activation]:
        """Return the kinds not yet screened, those first that explained most at the last size."""
        unseen = heat.unseen(self.kinds)
        if last is None:
            return unseen
        ranks = {level.model.activation.name: rank for rank, level in enumerate(last.ranked())}
        return sorted(unseen, key=lambda kind: ranks.get(kind.name, len(ranks)))

    def _is_blurred(self, kind: Activation, heat: Heat) -> bool:
        """Return whether too few units hide how ``kind`` differs from one that is screened already.

        It is screened later, where it would be finished. Behind coarse answers every kind is screened.
        """
        if not (self._precise and self.screening.has_kin(kind, heat)):
            return False
        return heat.best.residual > self.options.blurred * self.screening.left_by_affine

    def _may_wait(self, heat: Heat, last: Heat | None) -> bool:
        """Return whether more units still explain so much more that it is too early to finish a fit."""
        ready = heat.best.model.activation.name in heat.limited  # it has units enough: only the ridge is left
        if ready or heat.size == self._sizes()[-1] or self.width is not None:
            return False
        information = self._information(heat.best)
        if self.rival is not None and information > self.rival[0]:
            return heat.size < self.options.growth * self.rival[1]
        if last is None:
            return True
        awaited = self.options.falling if self._precise else self.options.awaited
        falls = heat.best.residual < awaited * last.best.residual
        return falls and information < self._information(last.best)

    def _information(self, level: RidgeLevel) -> float:
        return information(level.residual, level.model.size, self.answers.size)

    def _conclude(self, heat: Heat) -> None:
        """Finish the best fits of one size."""
        for kind in heat.unseen(self.kinds):
            self.screening.screen(kind, heat)
        options, ranked = self.options, heat.ranked()
        worst = options.finish_ratio * ranked[0].residual
        worth = [level for level in ranked if level.residual <= worst][: options.finished]
        finalists = sorted(
            (self.screening.settle(level, heat) for level in worth), key=lambda each: each.level.residual
        )
        if not finalists:  # all units ran away
            return
        worst = options.finish_ratio * finalists[0].level.residual
        keeping_up = [each for each in finalists if each.level.residual <= worst]
        for finalist in keeping_up:
            if finalist.ended is None:
                self._finish(finalist)
            if self._is_done():
                return
        # Where answers are precise, a weak unit may be missing.
        if self._precise or len(keeping_up) == 1 or heat.size == self._sizes()[-1]:
            self._mend(min(keeping_up, key=_left))

    def _end_boldly(self, model: NetworkParameters, residual: float) -> Runner | None:
        """Return and enter the fit without all units that are worth little, if it is exact.

        Behind coarse answers the information criterion decides which units stay.
        """
        check()
        if not self._precise or residual > self.options.near:
            return None
        ended = self._ending.end_boldly(model)
        if ended is not None:
            self._enter(ended)
        return ended

    def _finish(self, finalist: Finalist) -> None:
        """Take a settled fit to the end."""
        mended = finalist.ended is not None
        finalist.ended = self._end_boldly(finalist.level.model, finalist.level.residual)
        if finalist.ended is not None:
            return
        fit, spent = finalist.fit, finalist.fit.flops
        finalist.level = self._without_surplus(fit, finalist.level)
        ended = self._ending.end(finalist.level.model)
        self._enter(ended)
        if mended and ended in self.ended:
            self.ended.remove(ended)  # no start of its own: it may lead back to where it was
        if self.floor < ended.residual <= self.options.nearly:
            ended = self._end_boldly(ended.model, ended.residual) or ended
        finalist.ended = ended
        self.screening.flops += fit.flops - spent

    def _mend(self, finalist: Finalist) -> None:
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
        self.ended.append(runner)
        known = self.runners.get(runner.kind)
        if known is None or runner.information < known.information:
            self.runners[runner.kind] = runner
        if self.best is None or runner.information < self.best.information:
            self.best = runner

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


def _left(finalist: Finalist) -> float:
    """Return the residual of a finished fit."""
    return np.inf if finalist.ended is None else finalist.ended.residual


def _are_alike(first: Runner, second: Runner, tolerance: float) -> bool:
    """Return whether two fits are one minimum, as far as kind, width and residual tell."""
    same = first.kind == second.kind and first.model.width == second.model.width
    return same and abs(first.residual - second.residual) <= tolerance * first.residual
