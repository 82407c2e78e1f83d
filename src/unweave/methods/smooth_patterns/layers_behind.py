"""Hidden layers on sign patterns, their widths found: a ridge that falls, from surplus units.

1. small random units, more than are expected, under a ridge from 1e-3 down (`networks.ridge_continuation`);
   where much is left then, there are too few of them, or the start was a bad one;
2. units are left out while a refit at the same ridge explains as much: the ridge still keeps surplus units
   from sharing one unit among them, which they do where it is lower;
3. at a ridge a hundred times lower the residual falls in proportion if nothing is missing, and a fit without
   ridge is exact; else weak units are missing, mostly of the last layer. Some are added there, and fitted to
   what is left.

Two layers behind the signs are found like one: strong units drop in first, in either layer.

A fit counts as exact only on more equations than it has parameters, and if it is well conditioned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.layered_starts import random_layers
from unweave.methods.smooth_patterns.standard_fit import StandardFit
from unweave.networks.activations import get_activation
from unweave.networks.parameters import NetworkParameters
from unweave.networks.ridge_continuation import ContinuationOptions, OnStep, RidgeFit, RidgeLevel
from unweave.networks.value_fit import fit_values
from unweave.numerics.clock import check

Rows = Callable[[int], tuple[Array, Array]]
"""Rows (n, m1) and (n, K), as many as are asked for or as there are."""


@dataclass(frozen=True, kw_only=True)
class BehindOptions:
    """How many units, from how many rows."""

    surplus: float = 1.25
    """Units of the first start, over those expected."""
    rows_per_parameter: tuple[float, float] = (2.0, 5.0)
    """Equations of a fit per parameter; the second for several layers."""
    redundancy: float = 1.15
    """Least equations per parameter of a fit that counts as exact."""
    scarce: tuple[float, ...] = (1.5, 1.2)
    """Least equations per parameter of the starts in turn, where there are few rows: with too few, wrong
    units explain nearly as much; with too few units, right ones are not found."""
    continuation: ContinuationOptions = field(
        default_factory=lambda: ContinuationOptions(
            stalls=6, together=1 / 16, inner_steps=40, quick_worsening=1.0
        )
    )
    """Wide layers behind few inputs lie in long valleys, and have many surplus units. They need hundreds of
    inner iterations for a full step; the first ones find most of what it gains, and shorter steps end in
    fewer wrong valleys."""
    patient: ContinuationOptions = field(
        default_factory=lambda: ContinuationOptions(
            stalls=8, worthwhile=1e-3, steps=300, refit_steps=60, together=1 / 16, many=3000
        )
    )
    """The same after a start that came near and was not exact: nearly straight units, such as logistic ones
    that were trained, lie in longer valleys still, along which only full steps lead."""
    most_patient: int = 3000
    """Parameters up to which a start may be so long, ..."""
    patient_rows: float = 2.2
    """... and this many equations per parameter at least, ..."""
    patient_growth: float = 1.25
    """... with so many times the units of the one before, ..."""
    patient_left: float = 2e-5
    """... is given up with more than this residual at its last ridge, ..."""
    patient_ridges: tuple[float, ...] = (1e-10, 1e-11)
    """... and goes down to further levels before units are left out: a ridge that limits the fit makes one
    unit of two such."""
    ridges: tuple[float, ...] = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)
    """Levels of the ridge before units are left out, ..."""
    turning_ridge: float = 1e-6
    """Ridge of these at which wide layers come apart: a level that leaves too much there has stopped in a
    long valley, and goes on."""
    pruning_ridge: float = 1e-8
    """... of which those below this one are gone through ..."""
    near: float = 2e-3
    """... where the residual is larger: units that are nearly straight come apart late."""
    complete: float = 2e-4
    """The same of large fits, which take long to mend: weak units drop in before others are left out."""
    found: float = 5e-5
    """Residual of a large fit whose units are all there, which no lower ridge need show."""
    early_rows: float = 0.6
    """Share of the rows that is enough for large fits while no units have come apart, ..."""
    parting_ridge: float = 1e-5
    """... which they do from here on where linear numbers are eliminated: with few rows, wrong ones would."""
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
    """Times that units are added to one start, ..."""
    mending: float = 0.7
    """... as long as that lowers the residual to this part: another start is better then."""
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


def parameters(widths: Sequence[float]) -> int:
    """Return the number of weights and biases, inputs and outputs being among the ``widths``."""
    return int(sum((read + 1) * width for read, width in pairwise(widths)))


@dataclass(frozen=True, eq=False)
class LayersBehind:
    """Layers behind the signs: z = A^T g(W^T s + b) + c, or more of them."""

    model: NetworkParameters | None
    """None if no fit was exact."""
    residual: float
    """Relative root mean square misfit of the best fit."""
    units: tuple[int, ...]
    """Widths of its hidden layers."""
    starts: int
    rows: int


class BehindSearch:
    """Starts, one after the other, until a fit is exact or more units gain little.

    ``widths`` are the number of signs, the units to expect in each layer, and the outputs; ``activation`` is
    that of all these layers.
    """

    def __init__(
        self,
        rows: Rows,
        activation: str,
        widths: tuple[int, ...],
        floor: float,
        rng: np.random.Generator,
        options: BehindOptions,
        on_step: OnStep | None,
    ) -> None:
        self._rows, self._activation, self._floor = rows, get_activation(activation), floor
        self._inputs, *expected, self._outputs = widths
        self._rng, self._options, self._on_step = rng, options, on_step
        self._units = tuple(max(int(np.ceil(options.surplus * each)), each + 2) for each in expected)
        self._starts, self._misses, self._stuck, self._flops, self._left = 0, 0, 0, 0.0, np.inf
        self._found = False

    @property
    def goes_on(self) -> bool:
        """Whether a further start makes sense."""
        fewest, most = self._options.starts
        wanted = self._starts < fewest or (self._starts < most and self._flops < self._options.work)
        return wanted and not self._found and self._misses < self._options.misses

    def advance(self) -> LayersBehind:
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
            self._units = _scaled(options.growth, units)
        elif fit.fit.options is options.patient and units == self._units:
            self._units = _scaled(options.patient_growth, units)
        elif found.model is None and found.residual > options.near:
            # A bad start, or too few units: the latter after two of them.
            self._stuck += 1
            if self._stuck % 2 == 0 and units == self._units:
                self._units = _scaled(options.growth, units)
        self._left, self._found = min(found.residual, self._left), found.model is not None
        return found

    def _prepared(self, units: tuple[int, ...]) -> tuple[StandardFit, tuple[int, ...]]:
        """Ask rows for so many units; fewer units if there are fewer rows."""
        options = self._options
        per_parameter, how = options.rows_per_parameter[len(units) > 1], options.continuation
        if self._left < options.near and self._size(units) <= options.most_patient:
            how = options.patient
            per_parameter = max(per_parameter, options.patient_rows)
        wanted = int(per_parameter * (self._size(units) - self._outputs) / self._outputs) + 20
        signs, values = self._rows(wanted)
        scarce = options.scarce[self._starts % len(options.scarce)]
        fewer = units
        while max(fewer) > 1 and scarce * self._size(fewer) > values.size:
            fewer = tuple(max(1, each - 1) for each in fewer)
        fit = partial(RidgeFit, activation=self._activation, options=how, on_step=self._on_step)
        return StandardFit(signs, values, fit), fewer

    def _size(self, units: tuple[int, ...]) -> int:
        return parameters((self._inputs, *units, self._outputs))

    def _attempt(self, standard: StandardFit, units: tuple[int, ...]) -> LayersBehind:
        """Fit from one random start."""
        options, fit = self._options, standard.fit
        if len(units) == 1:
            model = fit.random(units[0], self._rng)
        else:
            model = random_layers((self._inputs, *units, self._outputs), self._activation, self._rng)
        enough = options.complete if model.size >= fit.options.many else options.near
        early = standard.part(options.early_rows) if model.size >= fit.options.many else fit
        parting = options.parting_ridge if fit.eliminates(model) else options.turning_ridge
        patient = fit.options is options.patient
        for ridge in (*options.ridges, *options.patient_ridges) if patient else options.ridges:
            level = (early if ridge > parting else fit).fit(model, ridge)
            if level.residual > options.hopeless and self._turns(fit, level):
                level = fit.patiently(level.model, ridge)
            model = level.model
            if ridge <= options.pruning_ridge and level.residual < enough and not patient:
                break
        if level.residual > (options.patient_left if patient else options.hopeless):
            return LayersBehind(None, level.residual, units, 1, 0)
        least, before = level.residual, np.inf
        for _ in range(options.repairs + 1):
            check()
            level = standard.without_surplus(level)
            level, closer, all_seen = self._closer(standard, level)
            least = min(least, closer.residual)
            if all_seen:
                found = self._leanest(standard, closer)
                least = min(least, found.residual)
                if found.model is not None:
                    return found
            if closer.residual > min(options.near, options.mending * before):
                break  # a bad start: more units would not mend it
            before = closer.residual
            more = max(2, level.model.biases[-2].size // 8)
            grown = standard.with_more_units(closer.model, more, level.ridge, self._rng)
            if not self._allows(standard, grown):
                break
            level = fit.fit(grown, max(level.ridge / fit.options.fall, self._least_ridge(fit, grown)))
        return LayersBehind(None, least, _units(level.model), 1, 0)

    def _closer(self, standard: StandardFit, level: RidgeLevel) -> tuple[RidgeLevel, RidgeLevel, bool]:
        """Return ``level``, a fit at a hundredth of its ridge, and whether that shows all units.

        Quick steps of a large fit end early, and what they leave hides weak units. Full ones come first, at
        little less than its ridge: what they leave shows whether units are missing, and which are surplus.
        """
        options, fit = self._options, standard.fit
        if fit.is_iterative(level.model, level.ridge):
            level = replace(fit.closer(level.model, 0.99 * level.ridge), ridge=level.ridge)
            if level.residual > options.complete:
                return level, level, False
            # Most are left out already where linear numbers were eliminated.
            level = standard.without_surplus(level, 0.0 if fit.eliminates(level.model) else None)
            if level.residual < options.found:
                return level, level, True
        closer = fit.closer(level.model, level.ridge / 100)
        return level, closer, closer.residual < max(options.proportional * level.residual, 10 * self._floor)

    def _turns(self, fit: RidgeFit, level: RidgeLevel) -> bool:
        """Whether units should have come apart at this ridge; few of them do at lower ones too."""
        return level.model.size >= fit.options.many and level.ridge == self._options.turning_ridge

    def _least_ridge(self, fit: RidgeFit, model: NetworkParameters) -> float:
        """Return the ridge down to which units are added: for many parameters that of quick steps."""
        large = model.size >= fit.options.many
        return fit.options.least_iterative if large else self._options.least_ridge

    def _allows(self, standard: StandardFit, model: NetworkParameters) -> bool:
        """Whether there are rows enough for so many units."""
        return bool(self._options.redundancy * model.size <= standard.answers.size)

    def _leanest(self, standard: StandardFit, level: RidgeLevel) -> LayersBehind:
        """Fit without ridge; where that is nearly exact only, surplus units share others among them."""
        while True:
            fitted = fit_values(level.model, standard.signs, standard.answers, self._floor, self._on_step)
            residual, units = fitted.history[-1], _units(fitted.model)
            exact = residual <= max(self._options.exact, 3 * self._floor)
            exact = exact and self._allows(standard, fitted.model)
            sound = exact and fitted.condition < self._options.largest_condition
            result = LayersBehind(standard.in_values(fitted.model) if sound else None, residual, units, 1, 0)
            # Units that fit the rounding of float32 answers are surplus, too.
            rounded = exact and residual > self._options.exact
            if not rounded and (exact or residual > self._options.nearly):
                return result
            ridge = level.ridge / 100
            level = standard.without_surplus(RidgeLevel(ridge, fitted.model, residual, 0))
            if _units(level.model) == units:
                return result


def _units(model: NetworkParameters) -> tuple[int, ...]:
    return tuple(bias.size for bias in model.biases[:-1])


def _scaled(factor: float, units: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(factor * each) for each in units)
