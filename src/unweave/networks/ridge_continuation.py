"""One smooth hidden layer of any width from values: a ridge that falls, from small surplus units.

    minimise  (1/n) |y - A^T g(W^T x + b) - c|^2  +  rho (|W|^2 + |b|^2 + |A|^2),      rho = 1e-3, 1e-4, ...

each level from where the one before ended, y with mean 0 and spread 1. At the first level a few directions
pay; as rho falls, units drop in one after another, the strong ones first, and none runs away to a step
function. Plain least squares and variable projection from random starts end in local minima there.

It begins with few units, and more are added where they and no more the ridge limit the fit: first they are
fitted to what the others leave, then all together. Surplus units are left out afterwards, where the residual
does not rise. Those that split a unit among them cost much when left out alone, so the cheaper one of a
parallel pair is tried too. A last fit without ridge tells whether the rest is exact.

Large levels eliminate the linear numbers (`projected_ridge`).

Cost: 10 to 60 steps per level, each a J^T J of n P^2 / 4 flops in float32, or some tens of products of 8 n P.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.networks.activations import Activation
from unweave.networks.mirrored_units import may_be_mirrored
from unweave.networks.parameters import NetworkParameters
from unweave.networks.projected_ridge import ProjectedRidge
from unweave.networks.value_fit import ValueFit
from unweave.numerics import memory
from unweave.numerics.clock import check
from unweave.numerics.least_squares import LevenbergMarquardtOptions, minimise
from unweave.numerics.least_squares.ridged import Ridged
from unweave.numerics.least_squares.solved_steps import SolvedSteps
from unweave.numerics.variable_projection.features import SmoothFeature
from unweave.numerics.variable_projection.problem import ProjectedProblem
from unweave.numerics.variable_projection.prune import Elimination, removal_costs

OnStep = Callable[[int, float], None]

_GRAM_COPIES = 2.0  # of J^T J in float32 that a step holds, in numbers of float64


@dataclass(frozen=True, kw_only=True)
class ContinuationOptions:
    """How the ridge falls."""

    first: float = 1e-3
    """rho of the first level."""
    fall: float = 10.0
    """Ratio of one rho to the next."""
    settling: float = 1e-6
    """rho from which on more units may be what a fit needs."""
    least: float = 1e-13
    """Least rho."""
    limiting: float = 0.1
    """Ratio of the ridge's part of the sum to the squared residual, above which the ridge limits the fit."""
    length: float = 0.3
    """Size of a random unit's (w, b)."""
    steps: int = 60
    """Steps of a level at most."""
    stalls: int = 3
    """Steps in a row without worthwhile progress that end a level."""
    worthwhile: float = 1e-2
    """Relative decrease of the root of the sum above that is progress."""
    long_valley: float = 2e-3
    """The same where a level must not end in a valley that leads on, ..."""
    long_steps: int = 150
    """... and its steps."""
    inner_tolerance: float = 3e-2
    """Relative residual of the normal equations."""
    inner_steps: int = 100
    """Conjugate-gradient iterations of a step at most."""
    eliminated: int = 2000
    """Parameters from which on such steps of one layer eliminate the linear numbers: that halves the time of
    large fits, while units of smaller ones drop in as soon without."""
    many: int = 1000
    """Parameters from which on steps are solved without J^T J, which would take most of the time ..."""
    least_iterative: float = 1e-9
    """... down to this rho: below, conjugate gradients converge too slowly."""
    closer_damping: float = 1e-6
    """First damping of a large fit from a minimum at a higher ridge: nearly full steps succeed there, ..."""
    closer_stalls: int = 2
    """... and steps in a row without worthwhile progress show that units are missing."""
    refit_steps: int = 12
    """Steps of a fit with fewer units."""
    cheap: float = 3.0
    """Residuals that units left out together may cost before they are fitted again."""
    together: float = 0.0
    """Share of the units that are left out together at first, whatever that costs: the others may adapt."""
    worsening: float = 1.5
    """Ratio of residuals after and before up to which units that were left out were surplus, ..."""
    quick_worsening: float = 1.5
    """... and the same where J^T J is not formed: such steps end early, and what they leave hides a part of
    what a unit costs."""
    parallel: float = 0.8
    """Cosine of two units (w, b) from which on one of them may be surplus, whatever it costs alone."""
    added: tuple[float, ...] = (1e-3, 1e-5)
    """rho of the fit of units that are added to what the others leave."""
    pairs: int = 2
    """Such pairs that are tried, the most parallel first."""


@dataclass(frozen=True, eq=False)
class RidgeLevel:
    """Where the fit of one level ended."""

    ridge: float
    model: NetworkParameters
    residual: float
    """Root mean square misfit, over the answers' spread."""
    steps: int


class RidgeFit:
    """Samples (n, d) -> (n, K), inputs of unit variance and answers of mean 0 and spread 1."""

    def __init__(
        self,
        inputs: Array,
        answers: Array,
        activation: Activation,
        options: ContinuationOptions | None = None,
        on_step: OnStep | None = None,
    ) -> None:
        self.inputs, self._answers, self._activation = inputs, answers, activation
        self.options, self._on_step = options or ContinuationOptions(), on_step
        degree = int(may_be_mirrored(activation))
        feature = SmoothFeature(activation.name, degree, homogeneous=False, function=activation)
        self._projected = ProjectedProblem(inputs, answers, feature)
        self.flops = 0.0
        """Of all products so far, roughly."""

    def random(self, units: int, rng: np.random.Generator) -> NetworkParameters:
        """Return ``units`` small random units, with an affine part if mirrored units differ by one."""
        inputs, outputs = self.inputs.shape[1], self._answers.shape[1]
        drawn = self.options.length * rng.standard_normal((inputs + 1, units)) / np.sqrt(inputs + 1)
        return NetworkParameters.shallow(
            self._activation,
            drawn[:-1],
            drawn[-1],
            rng.standard_normal((units, outputs)) / np.sqrt(units),
            np.zeros(outputs),
            np.zeros((inputs, outputs)) if self._projected.feature.degree else None,
        )

    def imitating(self, model: NetworkParameters, sharpness: float, ridge: float) -> NetworkParameters:
        """Return units of this kind in place of those of ``model``, ``sharpness`` times as steep."""
        inputs, outputs = self.inputs.shape[1], self._answers.shape[1]
        units = NetworkParameters.shallow(
            self._activation,
            sharpness * model.weights[0],
            sharpness * model.biases[0],
            np.zeros((model.width, outputs)),
            np.zeros(outputs),
            np.zeros((inputs, outputs)) if self._projected.feature.degree else None,
        )
        return self._with_best_outgoing(units, ridge)

    def settled(self, model: NetworkParameters, ridge: float) -> RidgeLevel:
        """Fit at ``ridge`` and lower ones, until the units limit the fit and no more the ridge."""
        options = self.options
        while True:
            level = self.fit(model, ridge)
            if ridge <= options.least or not (self.is_limited(level) or ridge > options.settling):
                return level
            model, ridge = level.model, ridge / options.fall

    def is_limited(self, level: RidgeLevel) -> bool:
        """Return whether the ridge limits the fit, and not the units or noise."""
        pulled = float(np.sum((self._pulled(level.model) * level.model.to_vector()) ** 2))
        return level.ridge * pulled > self.options.limiting * level.residual**2

    def fit(self, model: NetworkParameters, ridge: float, steps: int | None = None) -> RidgeLevel:
        """Minimise at one ridge."""
        return self._fitted(model, ridge, self._schedule(model, ridge, steps))

    def patiently(self, model: NetworkParameters, ridge: float) -> RidgeLevel:
        """Minimise at one ridge, through long valleys."""
        schedule = self._schedule(model, ridge, self.options.long_steps)
        return self._fitted(model, ridge, replace(schedule, worthwhile=self.options.long_valley))

    def closer(self, model: NetworkParameters, ridge: float) -> RidgeLevel:
        """Minimise at one ridge from a minimum at a higher one; a large fit ends once it gains little."""
        options, schedule = self.options, self._schedule(model, ridge, None)
        if model.size >= options.many and ridge < options.least_iterative:
            schedule = replace(schedule, damping=options.closer_damping, stalls=options.closer_stalls)
        return self._fitted(model, ridge, schedule)

    def _schedule(
        self, model: NetworkParameters, ridge: float, steps: int | None
    ) -> LevenbergMarquardtOptions:
        options = self.options
        iterative = self.is_iterative(model, ridge)
        return LevenbergMarquardtOptions(
            steps=options.steps if steps is None else steps,
            refusals=8,
            stalls=options.stalls,
            worthwhile=options.worthwhile,
            damping=1e-2 if iterative else 1e-3,
            damping_fall=1 / 5,
            damping_rise=5.0,
            least_damping=1e-12,
            least_raised=1e-12,
            inner_tolerance=options.inner_tolerance,
            inner_steps=options.inner_steps,
            solver="levenberg" if iterative else "auto",
            small_entries=0,
            fresh_gram=model.size
            < options.many,  # of more parameters J^T J costs more than the steps it saves
        )

    def _fitted(
        self, model: NetworkParameters, ridge: float, schedule: LevenbergMarquardtOptions
    ) -> RidgeLevel:
        if schedule.solver == "auto":
            memory.require(_GRAM_COPIES * model.size**2, "The normal equations of the units")
        if schedule.solver == "levenberg" and self.eliminates(model):
            return self._projected_fit(model, ridge, schedule)
        pull = np.sqrt(ridge * self._answers.size) * self._pulled(model)
        descent = SolvedSteps(
            Ridged(ValueFit(model, self.inputs, self._answers), pull), model.to_vector(), schedule
        )
        path = minimise(descent, descent.start, schedule, self._on_step)
        check()
        found, taken = model.from_vector(path.point.vector), len(path.history)
        per_step = model.size**2 * len(self.inputs) / 2 + model.size**3 / 3
        self.flops += taken * per_step
        return RidgeLevel(ridge, found, self.residual(found), taken)

    def eliminates(self, model: NetworkParameters) -> bool:
        """Whether the linear numbers of ``model`` are eliminated where steps are solved without J^T J."""
        return model.depth == 2 and model.size >= self.options.eliminated

    def _projected_fit(
        self, model: NetworkParameters, ridge: float, schedule: LevenbergMarquardtOptions
    ) -> RidgeLevel:
        pull = float(np.sqrt(ridge * self._answers.size))
        problem = ProjectedRidge(model, self.inputs, self._answers, pull)
        descent = SolvedSteps(problem, problem.start(), schedule)
        path = minimise(descent, descent.start, schedule, self._on_step)
        check()
        found, taken = problem.model_at(path.point.vector), len(path.history)
        self.flops += taken * (model.size**2 * len(self.inputs) / 2 + model.size**3 / 3)
        return RidgeLevel(ridge, found, self.residual(found), taken)

    def residual(self, model: NetworkParameters) -> float:
        """Return the root mean square misfit."""
        return float(np.sqrt(np.mean((model.values(self.inputs) - self._answers) ** 2)))

    def without_surplus(
        self,
        level: RidgeLevel,
        worsening: float | None = None,
        fewest: int = 1,
        *,
        together: float | None = None,
    ) -> RidgeLevel:
        """Leave out units as long as a refit at the same ridge explains as much as before.

        ``worsening`` is the ratio of residuals that a unit less may cost, and ``together`` the share that is
        left out at first, whatever it costs; None: those of the options. At least ``fewest`` units stay.
        """
        least, worsening = level.residual, worsening or self._worsening(level)
        share = self.options.together if together is None else together
        at_first = int(share * level.model.width)
        while level.model.width > fewest:
            check()
            most = level.model.width - fewest
            fewer = self._fewer(level, worsening * least, most, at_first)
            if fewer is None:
                break
            # Where so many at once were too many, fewer are so for the rest.
            at_first = min(at_first, level.model.width - fewer.model.width)
            level, least = fewer, min(least, fewer.residual)
        return level

    def _worsening(self, level: RidgeLevel) -> float:
        quick = self.is_iterative(level.model, level.ridge)
        return self.options.quick_worsening if quick else self.options.worsening

    def is_iterative(self, model: NetworkParameters, ridge: float) -> bool:
        """Whether steps are solved without J^T J."""
        return model.size >= self.options.many and ridge >= self.options.least_iterative

    def _fewer(self, level: RidgeLevel, allowed: float, most: int, together: int) -> RidgeLevel | None:
        """Leave out up to ``most`` cheap units, else one that is doubtful; None if all are needed.

        ``together`` are tried at once even if they are not cheap: others may adapt.
        """
        cheap = self._cheap(level, together)[:most]
        while len(cheap) > 1:
            trial = self._without(level, cheap)
            if trial.residual <= allowed:
                return trial
            cheap = cheap[: len(cheap) // 2]
        for unit in self._doubtful(level):
            trial = self._without(level, [unit])
            if trial.residual <= allowed:
                return trial
        return None

    def _cheap(self, level: RidgeLevel, together: int) -> list[int]:
        """Units that can go one after another while what that costs is near the residual, or ``together``."""
        fewer, total = Elimination(self._projected, _units(level.model)), 0.0
        gone: list[int] = []
        while len(gone) < level.model.width // 4:
            costs = fewer.costs()
            cheapest = int(costs.argmin())
            total = float(np.hypot(total, costs[cheapest]))
            if total > self.options.cheap * level.residual and len(gone) >= together:
                break
            gone.append(int(fewer.left[cheapest]))
            fewer.leave_out(cheapest, float(costs[cheapest]))
        return gone

    def _doubtful(self, level: RidgeLevel) -> list[int]:
        """The cheapest unit, and the cheaper ones of the most parallel pairs."""
        units = _units(level.model)
        costs = removal_costs(self._projected, units)
        directions = units / np.maximum(np.linalg.norm(units, axis=0), np.finfo(np.float64).tiny)
        cosines = np.triu(np.abs(directions.T @ directions), 1)
        result = [int(costs.argmin())]
        for place in np.argsort(cosines, axis=None)[::-1][: self.options.pairs]:
            first, second = np.unravel_index(place, cosines.shape)
            if cosines[first, second] > self.options.parallel:
                result.append(int(first if costs[first] < costs[second] else second))
        return list(dict.fromkeys(result))

    def _without(self, level: RidgeLevel, units: list[int]) -> RidgeLevel:
        """Fit again without ``units``, at the same ridge."""
        kept = np.ones(level.model.width, dtype=np.bool_)
        kept[units] = False
        model = self._with_best_outgoing(level.model.keep(kept), level.ridge)
        return self.fit(model, level.ridge, self.options.refit_steps)

    def with_more_units(
        self, model: NetworkParameters, count: int, ridge: float, rng: np.random.Generator
    ) -> NetworkParameters:
        """Add ``count`` units, fitted to what the others leave, and let all outgoing weights adapt."""
        left = self._projected.residual_at(_units(model))
        size = float(np.sqrt(np.mean(left**2))) or 1.0
        rest = RidgeFit(self.inputs, left / size, self._activation, self.options, self._on_step)
        found = rest.random(count, rng)
        for ridge in self.options.added:
            found = rest.fit(found, ridge).model
        self.flops += rest.flops
        best = _units(found)
        grown = replace(
            model,
            weights=(
                np.hstack([model.weights[0], best[:-1]]),
                np.vstack([model.weights[1], np.zeros((count, self._answers.shape[1]))]),
            ),
            biases=(np.concatenate([model.biases[0], best[-1]]), model.biases[1]),
        )
        return self._with_best_outgoing(grown, ridge)

    def _with_best_outgoing(self, model: NetworkParameters, ridge: float) -> NetworkParameters:
        """Replace the linear parameters by the best ones at this ridge."""
        features = model.forward(self.inputs).inputs[1]
        design = np.hstack([features, self._projected.feature.polynomial(self.inputs)])
        pull = np.zeros(design.shape[1])
        pull[: model.width] = np.sqrt(ridge * self._answers.size)
        rows = np.concatenate([design, np.diag(pull)])
        right = np.concatenate([self._answers, np.zeros((len(pull), self._answers.shape[1]))])
        solution: Array = np.asarray(np.linalg.lstsq(rows, right, rcond=None)[0], np.float64)
        outgoing, affine = solution[: model.width], solution[model.width :]
        return replace(
            model,
            weights=(model.weights[0], outgoing),
            biases=(model.biases[0], affine[-1]),
            skip=None if model.skip is None else affine[:-1],
        )

    def _pulled(self, model: NetworkParameters) -> Array:
        """One for every parameter that the ridge pulls: all but the affine part."""
        parts = [np.ones(shape) for shape in model.shapes]
        parts[-1][len(model.weights[-1]) :] = 0.0
        return np.concatenate([part.reshape(-1) for part in parts])


def _units(model: NetworkParameters) -> Array:
    """(w; b) of every unit, (d + 1, m)."""
    return np.vstack([model.weights[0], model.biases[0]])
