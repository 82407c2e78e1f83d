"""The search for the units behind samples from units that are nearly right.

Kinks on lines show most units, some of them roughly, some twice, and hardly any weak one. Least squares on
values needs no more than that: surplus units take away local minima, so that what is missing is added where
the residual is largest until the fit is exact, and then everything that it does not need is left out.

Surplus units of an exact fit are idle, or share the hyperplane of another one, so that they go in batches:
those whose loss the other units' heights make up for, then those with a twin, then one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.errors import OutOfTime
from unweave.numerics import interrupts
from unweave.numerics.clock import check, out_of_time
from unweave.numerics.variable_projection.features import KINK, UnitFeature
from unweave.numerics.variable_projection.problem import (
    ProjectedFit,
    ProjectedProblem,
    ProjectionOptions,
    with_ones,
)
from unweave.numerics.variable_projection.prune import (
    Elimination,
    OnStep,
    information,
    removal_costs,
    repaired,
)
from unweave.numerics.variable_projection.search import UnitSearch


@dataclass(frozen=True, kw_only=True)
class NearbyOptions:
    """How long units are repaired, and which may be left out."""

    repairs: int = 8
    """Times that units are added after a stall."""
    added: float = 0.1
    """Units added each time, relative to those there are."""
    hopeless: float = 0.9
    """Ratio of residuals after and before a repair that gained next to nothing, ..."""
    patience: int = 3
    """... and such repairs in a row after which the search is given up."""
    steps: int = 40
    """Steps of a fit between two repairs at most."""
    worthwhile: float = 0.03
    """Relative decrease of the residual below which a step of them counts as no progress, ..."""
    idle: int = 5
    """... and steps in a row without any after which a fit ends."""
    gram_parameters: int = 3000
    """Parameters of the units up to which J^T J is formed: many units in few inputs are so nearly alike that
    conjugate gradients in single precision come to no end."""
    prunes: bool = True
    """Leave out what an exact fit does not need."""
    trial_steps: int = 8
    """Steps of a fit that shows whether units can be left out."""
    twins: float = 0.05
    """Distance of two unit vectors (w, b) up to which their units may be one."""
    doubtful: float = 30.0
    """Residual that leaving a unit out may add, heights refitted, over what noise explains, for a trial."""


DEFAULT_NEARBY_OPTIONS = NearbyOptions()


def search_nearby(
    x: Array,
    y: Array,
    start: Array,
    *,
    floor: float,
    rng: np.random.Generator,
    feature: UnitFeature = KINK,
    options: NearbyOptions = DEFAULT_NEARBY_OPTIONS,
    on_step: OnStep | None = None,
    inputs: Array | None = None,
) -> UnitSearch:
    """Find units that explain y (n, K) at x (n, d), from units ``start`` (d+1, m); see `search_units`."""
    problem = ProjectedProblem(x, y, feature, with_ones(x) if inputs is None else inputs)
    search = _Nearby(problem, floor, rng, options, on_step)
    try:
        fit = search.repaired(start)
        if fit.residual <= floor and options.prunes:
            fit = search.pruned(fit)
        return search.told(fit)
    except (OutOfTime, KeyboardInterrupt) as end:
        interrupts.taken()  # the caller raises it again, with what was found
        fit = search.best or problem.minimise(start, ProjectionOptions(steps=0))
        told = replace(search.told(fit), out_of_time=fit.residual > floor)
        return replace(told, interrupted=isinstance(end, KeyboardInterrupt))


class _Nearby:
    def __init__(
        self,
        problem: ProjectedProblem,
        floor: float,
        rng: np.random.Generator,
        options: NearbyOptions,
        on_step: OnStep | None,
    ) -> None:
        self._problem, self._floor, self._rng = problem, floor, rng
        self._options, self._on_step = options, on_step
        self._repairs = self._widest = 0
        self.best: ProjectedFit | None = None

    def told(self, fit: ProjectedFit) -> UnitSearch:
        """Return ``fit`` as the end of the search."""
        exact = fit.residual <= self._floor
        width = fit.units.shape[1] if exact else None
        return UnitSearch(fit, exact, 1, self._repairs, self._widest, fit.history, width, out_of_time())

    def repaired(self, start: Array) -> ProjectedFit:
        """Fit, and add units where that stalls above the floor."""
        options, idle = self._options, 0
        settings = ProjectionOptions(
            steps=options.steps,
            floor=0.0,
            patience=options.idle,
            worthwhile=options.worthwhile,
            gram_parameters=options.gram_parameters,
        )
        fit = self._fitted(start, settings)
        while fit.residual > self._floor and self._repairs < options.repairs and idle < options.patience:
            check()
            self._repairs += 1
            width = fit.units.shape[1]
            wanted = min(width + max(1, round(options.added * width)), self._most())
            if wanted <= width:
                break
            trial = self._fitted(repaired(self._problem, fit, wanted, self._rng), settings)
            idle = idle + 1 if trial.residual > options.hopeless * fit.residual else 0
            if trial.residual < fit.residual:
                fit = trial
        return fit

    def pruned(self, fit: ProjectedFit) -> ProjectedFit:
        """Leave out what an exact fit does not need, by the information criterion."""
        fit = self._without(fit, self._cheap(fit))
        fit = self._without(fit, self._weaker_twins(fit))
        costs = removal_costs(self._problem, fit.units)
        tried = np.flatnonzero(costs <= self._options.doubtful * self._noise_price(fit))
        tried = np.union1d(tried, self._weaker_twins(fit))
        left = np.arange(fit.units.shape[1])
        for unit in tried[np.argsort(costs[tried])]:
            before = fit
            fit = self._without(fit, np.flatnonzero(left == unit))
            if fit is not before:
                left = left[left != unit]
        return fit

    def _without(self, fit: ProjectedFit, units: IntArray) -> ProjectedFit:
        """Return a fit as good as ``fit`` without ``units``, or without half of them, or ``fit``."""
        problem, bound = self._problem, information(self._problem, fit)
        settings = ProjectionOptions(
            steps=self._options.trial_steps,
            floor=0.0,
            patience=2,
            worthwhile=0.1,
            gram_parameters=self._options.gram_parameters,
        )
        while len(units) and not out_of_time():
            trial = self._fitted(np.delete(fit.units, units, axis=1), settings)
            if information(problem, trial) <= bound:
                return trial
            units = units[: len(units) // 2]
        return fit

    def _cheap(self, fit: ProjectedFit) -> IntArray:
        """Return the units for whose loss refitted heights make up, but for noise, cheapest first."""
        price = self._noise_price(fit)
        gone = list(Elimination(self._problem, fit.units).cheapest(lambda residual: price))
        return np.array(gone, dtype=np.int64)

    def _noise_price(self, fit: ProjectedFit) -> float:
        """Return the residual that a unit may take away by fitting noise (see `information`)."""
        rows, outputs = self._problem.rest.shape
        price = (len(fit.units) - 1 + outputs) * np.log(rows * outputs) / (rows * outputs)
        return fit.residual * float(np.sqrt(price))

    def _weaker_twins(self, fit: ProjectedFit) -> IntArray:
        """Return the weaker one of every two units on nearly one hyperplane, nearest first."""
        directions = fit.units / np.linalg.norm(fit.units, axis=0)
        sizes = np.linalg.norm(fit.heights, axis=1)
        apart = np.sqrt(np.maximum(2 - 2 * np.abs(directions.T @ directions), 0.0))
        weaker = sizes[:, None] < sizes
        apart = np.where(weaker, apart, np.inf).min(axis=1)
        order = np.argsort(apart)
        return np.asarray(order[apart[order] <= self._options.twins], dtype=np.int64)

    def _fitted(self, units: Array, settings: ProjectionOptions) -> ProjectedFit:
        self._widest = max(self._widest, units.shape[1])
        fit = self._problem.minimise(units, settings, self._on_step)
        if self.best is None or fit.residual < max(self.best.residual, self._floor):
            self.best = fit
        return fit

    def _most(self) -> int:
        """Return how many units the samples could determine."""
        problem = self._problem
        outputs = problem.rest.shape[1]
        free = problem.rest.size - problem.polynomial.count * outputs
        return int(free / (problem.inputs.shape[1] - 1 + outputs))
