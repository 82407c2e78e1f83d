"""One hidden layer on sign patterns, its width found: a ridge that falls, from surplus units.

1. small random units, more than are expected, under a ridge from 1e-3 down (`networks.ridge_continuation`);
   where much is left then, there are too few of them, or the start was a bad one;
2. units are left out while a refit at the same ridge explains as much: the ridge still keeps surplus units
   from sharing one unit among them, which they do where it is lower;
3. at a ridge a hundred times lower the residual falls in proportion if nothing is missing, and a fit without
   ridge is exact; else weak units are missing. Some are added, and fitted to what is left.

A fit counts as exact only on more equations than it has parameters, and if it is well conditioned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.networks.activations import Activation, get_activation
from unweave.networks.parameters import NetworkParameters
from unweave.networks.ridge_continuation import OnStep, RidgeFit, RidgeLevel
from unweave.networks.value_fit import fit_values
from unweave.numerics.clock import check

Rows = Callable[[int], tuple[Array, Array]]
"""Rows (n, m1) and (n, K), as many as are asked for or as there are."""


@dataclass(frozen=True, kw_only=True)
class SecondLayerOptions:
    """How many units, from how many rows."""

    surplus: float = 1.25
    """Units of the first start, over those expected."""
    rows_per_parameter: float = 2.0
    """Equations of a fit per parameter."""
    redundancy: float = 1.15
    """Least equations per parameter of a fit that counts as exact."""
    scarce: tuple[float, ...] = (1.5, 1.2)
    """Least equations per parameter of the starts in turn, where there are few rows: with too few, wrong
    units explain nearly as much; with too few units, right ones are not found."""
    ridges: tuple[float, ...] = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
    """Levels of the ridge before units are left out, ..."""
    pruning_ridge: float = 1e-8
    """... of which those below this one are gone through ..."""
    near: float = 2e-3
    """... where the residual is larger: units that are nearly straight come apart late."""
    least_ridge: float = 1e-11
    """Ridge below which surplus units are not told from others."""
    hopeless: float = 6e-3
    """Residual at the last level with which a start is given up."""
    proportional: float = 0.3
    """Ratio of residuals at a ridge and at a hundredth of it, below which nothing is missing."""
    exact: float = 1e-11
    """Relative residual of an exact fit."""
    nearly: float = 1e-5
    """Residual of a fit without ridge with which surplus units may be what keeps it from being exact."""
    largest_condition: float = 1e9
    """Condition of an exact fit. More shows that a unit is two: one acts where some sign is 1 and the other
    where it is -1, each saturated elsewhere, and no pattern tells them from one."""
    repairs: int = 6
    """Times that units are added to one start."""
    starts: tuple[int, int] = (3, 12)
    """Starts at least and at most ..."""
    work: float = 3e11
    """... between which this many flops decide, roughly: some ten seconds."""
    growth: float = 1.5
    """Units of the next start, over those of one that left too much."""
    gain: float = 0.6
    """Ratio of residuals that so many more units must reach, ..."""
    misses: int = 2
    """... or there are no further starts after missing it so often."""


@dataclass(frozen=True, eq=False)
class SecondLayer:
    """Units behind the signs: z = A^T g(W^T s + b) + c."""

    model: NetworkParameters | None
    """None if no fit was exact."""
    residual: float
    """Relative root mean square misfit of the best fit."""
    units: int
    starts: int
    rows: int


class SecondLayerSearch:
    """Starts, one after the other, until a fit is exact or more units gain little.

    ``widths`` are the number of signs, of units to expect and of outputs.
    """

    def __init__(
        self,
        rows: Rows,
        activation: str,
        widths: tuple[int, int, int],
        floor: float,
        rng: np.random.Generator,
        options: SecondLayerOptions,
        on_step: OnStep | None,
    ) -> None:
        self._rows, self._activation, self._floor = rows, activation, floor
        self._inputs, expected, self._outputs = widths
        self._rng, self._options, self._on_step = rng, options, on_step
        self._units = max(int(np.ceil(options.surplus * expected)), expected + 2)
        self._starts, self._misses, self._stuck, self._flops, self._left = 0, 0, 0, 0.0, np.inf
        self._found = False

    @property
    def goes_on(self) -> bool:
        """Whether a further start makes sense."""
        fewest, most = self._options.starts
        wanted = self._starts < fewest or (self._starts < most and self._flops < self._options.work)
        return wanted and not self._found and self._misses < self._options.misses

    def advance(self) -> SecondLayer:
        """Make one start, with more units than the last one if that left too much."""
        check()
        options = self._options
        fit, units = self._prepared(self._units)
        self._starts += 1
        found = replace(self._attempt(fit, units), starts=self._starts, rows=fit.rows)
        self._flops += fit.fit.flops
        if min(found.residual, self._left) > options.hopeless and units == self._units:
            # What is no such layer needs ever more units.
            self._misses += found.residual > options.gain * self._left
            self._units = int(options.growth * units)
        elif found.model is None and found.residual > options.near:
            # A bad start, or too few units: the latter after two of them.
            self._stuck += 1
            if self._stuck % 2 == 0 and units == self._units:
                self._units = int(options.growth * units)
        self._left, self._found = min(found.residual, self._left), found.model is not None
        return found

    def _prepared(self, units: int) -> tuple[_StandardFit, int]:
        """Ask rows for so many units; fewer units if there are fewer rows."""
        options = self._options
        per_unit = self._inputs + 1 + self._outputs
        wanted = int(options.rows_per_parameter * units * per_unit / self._outputs) + 20
        signs, values = self._rows(wanted)
        scarce = options.scarce[self._starts % len(options.scarce)]
        most = int((values.size / scarce - self._outputs) / per_unit)
        fit = _StandardFit(signs, values, get_activation(self._activation), self._on_step)
        return fit, max(1, min(units, most))

    def _attempt(self, standard: _StandardFit, units: int) -> SecondLayer:
        """Fit from one random start."""
        options, fit = self._options, standard.fit
        model = fit.random(units, self._rng)
        for ridge in options.ridges:
            level = fit.fit(model, ridge)
            model = level.model
            if ridge <= options.pruning_ridge and level.residual < options.near:
                break
        if level.residual > options.hopeless:
            return SecondLayer(None, level.residual, units, 1, 0)
        least = level.residual
        for _ in range(options.repairs + 1):
            check()
            level = fit.without_surplus(level)
            closer = fit.fit(level.model, level.ridge / 100)
            least = min(least, closer.residual)
            if closer.residual < max(options.proportional * level.residual, 10 * self._floor):
                found = self._leanest(standard, closer)
                least = min(least, found.residual)
                if found.model is not None:
                    return found
            more = max(2, level.model.width // 8)
            if not self._allows(standard, level.model.width + more):
                break
            grown = fit.with_more_units(closer.model, more, level.ridge, self._rng)
            level = fit.fit(grown, max(level.ridge / fit.options.fall, options.least_ridge))
        return SecondLayer(None, least, level.model.width, 1, 0)

    def _allows(self, standard: _StandardFit, units: int) -> bool:
        """Whether there are rows enough for so many units."""
        outputs = standard.answers.shape[1]
        parameters = units * (self._inputs + 1 + outputs) + outputs
        return bool(self._options.redundancy * parameters <= standard.answers.size)

    def _leanest(self, standard: _StandardFit, level: RidgeLevel) -> SecondLayer:
        """Fit without ridge; where that is nearly exact only, surplus units share others among them."""
        while True:
            fitted = fit_values(level.model, standard.signs, standard.answers, self._floor, self._on_step)
            residual, width = fitted.history[-1], fitted.model.width
            exact = residual <= max(self._options.exact, 3 * self._floor) and self._allows(standard, width)
            sound = exact and fitted.condition < self._options.largest_condition
            result = SecondLayer(standard.in_values(fitted.model) if sound else None, residual, width, 1, 0)
            # Units that fit the rounding of float32 answers are surplus, too.
            rounded = exact and residual > self._options.exact
            if not rounded and (exact or residual > self._options.nearly):
                return result
            ridge = level.ridge / 100
            level = standard.fit.without_surplus(RidgeLevel(ridge, fitted.model, residual, 0))
            if level.model.width == width:
                return result


class _StandardFit:
    """A ridge fit to answers of mean 0 and spread 1."""

    def __init__(self, signs: Array, values: Array, activation: Activation, on_step: OnStep | None) -> None:
        self._center, spread = values.mean(axis=0), values.std(axis=0)
        self._spread = np.where(spread > 0, spread, 1.0)
        self.signs, self.answers = signs, (values - self._center) / self._spread
        self.fit = RidgeFit(self.signs, self.answers, activation, on_step=on_step)

    @property
    def rows(self) -> int:
        """Number of patterns."""
        return len(self.signs)

    def in_values(self, model: NetworkParameters) -> NetworkParameters:
        """Return ``model`` in the values' own units."""
        return NetworkParameters.shallow(
            model.activation,
            model.weights[0],
            model.biases[0],
            model.weights[1] * self._spread,
            model.biases[1] * self._spread + self._center,
        )
