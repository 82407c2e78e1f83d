"""Grow units of several activations side by side on one set of rows, and drop those that fall behind.

Units of the wrong kind fit about as well as the right ones until there are enough of these: then they are
exact. So all kinds get the same number of units, and more of them, until one is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.networks.activations import Activation
from unweave.networks.parameters import NetworkParameters
from unweave.networks.ridge_continuation import OnStep, RidgeFit, RidgeLevel
from unweave.networks.value_fit import ValueFitResult, fit_values
from unweave.numerics.clock import check

Rows = Callable[[int], tuple[Array, Array]]
"""Rows for a number of units: inputs (n, d) of unit variance and answers (n, K) of mean 0 and spread 1."""


@dataclass(frozen=True, kw_only=True)
class GrowthOptions:
    """How many units, and when to stop."""

    first_units: int = 20
    """Units at the beginning."""
    growth: float = 1 / 3
    """Units added at a time, of those there are, ..."""
    repair: float = 1 / 8
    """... and where few are missing."""
    most_units: int = 300
    """Units at the end."""
    near: float = 3e-3
    """Residual below which few units are missing, and surplus ones are left out."""
    rival_ratio: float = 3.0
    """Ratio of residuals above which a kind of units is dropped."""
    rounds: int = 3
    """Rounds over which the residual must fall, ..."""
    falling: float = 0.5
    """... to this part of it at least: what is no network of this class needs ever more units."""
    repairs: int = 6
    """The same where few units are missing, which are weak ones, ..."""
    repaired: float = 0.8
    """... and fewer still are found each time."""
    work: float = 1e12
    """Flops of all fits together, roughly: 30 to 50 seconds."""


@dataclass(frozen=True, eq=False)
class Grown:
    """Where the growth ended."""

    fitted: ValueFitResult | None
    """The last fit without ridge, if there was one."""
    activation: str
    units: int
    residual: float
    exact: bool


class Growth:
    """Units of every kind in turn."""

    def __init__(
        self,
        rows: Rows,
        activations: list[Activation],
        floor: float,
        rng: np.random.Generator,
        options: GrowthOptions,
        on_step: OnStep | None,
    ) -> None:
        self._rows, self._floor, self._rng = rows, floor, rng
        self._options, self._on_step = options, on_step
        self._activations = activations
        self._flops = 0.0
        self._levels: dict[str, RidgeLevel] = {}
        self._start: NetworkParameters | None = None
        self.best: Grown | None = None

    def run(self, start: NetworkParameters | None = None) -> Grown | None:
        """Grow until one kind is exact, nothing falls any more, or the work is done.

        ``start`` are units that explain much already: if they do not lead to the end, all kinds begin anew.
        """
        if start is not None and start.activation in self._activations:
            everything, self._activations = self._activations, [start.activation]
            self._start = start
            found = self._grown()
            if found is not None and found.exact:
                return found
            self._levels, self._start, self._activations = {}, None, everything
        return self._grown()

    def _grown(self) -> Grown | None:
        history: list[float] = []
        while self._activations:
            for activation in self._activations:
                check()
                self._advance(activation)
                if self.best is not None and self.best.exact:
                    return self.best
            residuals = {each.name: self._levels[each.name].residual for each in self._activations}
            least = min(residuals.values())
            history.append(least)
            self._activations = sorted(
                (a for a in self._activations if residuals[a.name] <= self._options.rival_ratio * least),
                key=lambda activation: residuals[activation.name],
            )
            if self._flops > self._options.work or self._stagnates(history):
                break
            if self._levels[self._activations[0].name].model.width >= self._options.most_units:
                break
        return self.best

    def _stagnates(self, history: list[float]) -> bool:
        options = self._options
        near = history[-1] < options.near
        rounds, falling = (options.repairs, options.repaired) if near else (options.rounds, options.falling)
        return len(history) > rounds and history[-1] > falling * history[-1 - rounds]

    def _is_exact(self, start: NetworkParameters, inputs: Array, answers: Array) -> bool:
        """Whether a fit without ridge leads from ``start`` to the end, and needs all units."""
        fitted = fit_values(start, inputs, answers, on_step=self._on_step)
        residual = fitted.history[-1]
        if residual <= self._floor and fitted.error_bar is not None:
            self.best = Grown(fitted, start.activation.name, start.width, residual, True)
            return True
        return False

    def _advance(self, activation: Activation) -> None:
        """Add units of one kind, and fit them."""
        name, options = activation.name, self._options
        old = self._levels.get(name)
        count = options.first_units if self._start is None else self._start.width
        if old is not None:
            share = options.repair if old.residual < options.near else options.growth
            count = old.model.width + max(2, int(share * old.model.width))
        inputs, answers = self._rows(count)
        if old is None and self._start is not None and self._is_exact(self._start, inputs, answers):
            return
        fit = RidgeFit(inputs, answers, activation, on_step=self._on_step)
        if old is None and self._start is not None:
            level = fit.settled(self._start, fit.options.least)
        elif old is None:
            level = fit.settled(fit.random(count, self._rng), fit.options.first)
        else:
            model = fit.with_more_units(old.model, count - old.model.width, old.ridge, self._rng)
            level = fit.settled(model, old.ridge)
        fitted = None
        if level.residual < options.near:
            level = fit.without_surplus(level)
            closer = fit.fit(level.model, level.ridge / 100)
            if closer.residual < options.near:
                fitted = fit_values(closer.model, inputs, answers, on_step=self._on_step)
        self._levels[name] = level
        self._flops += fit.flops
        residual = level.residual if fitted is None else fitted.history[-1]
        if self.best is None or residual < self.best.residual:
            self.best = Grown(fitted, name, level.model.width, residual, residual <= self._floor)
