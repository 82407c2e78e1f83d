"""Fits of several kinds of units to the same samples, at one size and on few rows: who comes how far.

The first kind begins with small random units under a falling ridge. A kind that imitates an earlier one
(`kinship`) begins with its units instead, at the last of the common ridges, and takes a third of the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array
from unweave.methods.samples_smooth.ending import Runner
from unweave.methods.samples_smooth.race_options import RaceOptions
from unweave.methods.shared.kinship import Imitation, imitation
from unweave.networks.activations import Activation
from unweave.networks.parameters import NetworkParameters
from unweave.networks.ridge_continuation import OnStep, RidgeFit, RidgeLevel
from unweave.numerics.clock import check


@dataclass(eq=False)
class Finalist:
    """A fit of one kind at one size that was worth settling."""

    fit: RidgeFit
    level: RidgeLevel
    ended: Runner | None = None
    """The same without ridge, on all rows."""


@dataclass(eq=False)
class Heat:
    """What all kinds came to at one size."""

    size: int
    levels: list[RidgeLevel] = field(default_factory=list)
    """By kind, in the order of their fits."""
    limited: set[str] = field(default_factory=set)
    """Names of the kinds that the ridge limits, and not their units."""
    settled: dict[str, Finalist] = field(default_factory=dict)
    """Those that were settled, by name."""

    def ranked(self) -> list[RidgeLevel]:
        """Return the fits, the best one first."""
        return sorted(self.levels, key=lambda level: level.residual)

    def unseen(self, kinds: Sequence[Activation]) -> list[Activation]:
        """Return those of ``kinds`` that have no fit yet."""
        seen = {level.model.activation.name for level in self.levels}
        return [kind for kind in kinds if kind.name not in seen]

    @property
    def best(self) -> RidgeLevel:
        """The fit of the least residual."""
        return self.ranked()[0]


@dataclass(eq=False)
class Screening:
    """Rows in an order of their own, and fits to the first of them."""

    inputs: Array
    answers: Array
    left_by_affine: float
    """Share of the answers that an affine part leaves."""
    rng: np.random.Generator
    options: RaceOptions
    on_step: OnStep
    starts: int = 0
    flops: float = 0.0
    """Of all fits so far, roughly."""

    def screen(self, kind: Activation, heat: Heat) -> RidgeLevel:
        """Fit units of ``kind`` at the size of ``heat``, down to a coarse ridge, and enter them there."""
        check()
        self.starts += 1
        fit = self._fit_on(kind, heat.size, self.options.screen_equations)
        ridges = self.options.screen_ridges
        model = self._from_kin(fit, kind, heat, ridges[-1])
        if model is None:
            model = fit.random(heat.size, self.rng)
        else:
            ridges = ridges[-1:]
        curved = self._curved(model)
        for ridge in ridges:
            level = fit.fit(model, curved * ridge)
            model = level.model
        while fit.is_limited(level) and level.ridge > self.options.least_screened:
            level = fit.fit(level.model, level.ridge / fit.options.fall)
        self.flops += fit.flops
        heat.levels.append(level)
        if fit.is_limited(level):
            heat.limited.add(kind.name)
        return level

    def settle(self, level: RidgeLevel, heat: Heat) -> Finalist:
        """Lower the ridge of a screened fit on more rows, until the units limit it."""
        name = level.model.activation.name
        if name not in heat.settled:
            check()
            fit = self._fit_on(level.model.activation, level.model.width, self.options.equations)
            heat.settled[name] = Finalist(fit, fit.settled(level.model, level.ridge))
            self.flops += fit.flops
        return heat.settled[name]

    def parameters(self, units: int) -> int:
        """Count the parameters of a fit with an affine part."""
        inputs, outputs = int(self.inputs.shape[1]), int(self.answers.shape[1])
        return units * (inputs + 1 + outputs) + (inputs + 1) * outputs

    def _curved(self, model: NetworkParameters) -> float:
        """Return the scale of ridges: an affine part beside the units leaves less to them."""
        return self.left_by_affine**2 if model.skip is not None else 1.0

    def next_of(self, waiting: list[Activation], heat: Heat) -> Activation:
        """Return who is screened next: the first without kin in ``heat``, else the kin of the best fit there.

        Kin come nearly as far as each other, so that one of them tells which of the families is worth most.
        """
        best, least = waiting[0], np.inf
        for kind in waiting:
            nearest = self._nearest(kind, heat)
            if nearest is None:
                return kind
            if nearest[1].residual < least:
                best, least = kind, nearest[1].residual
        return best

    def has_kin(self, kind: Activation, heat: Heat) -> bool:
        """Return whether ``kind`` imitates one that has a fit."""
        return self._nearest(kind, heat) is not None

    def _nearest(self, kind: Activation, heat: Heat) -> tuple[Imitation, RidgeLevel] | None:
        """Return the fit of the kind that this one imitates best, if it does."""
        kin = [(imitation(level.model.activation, kind), level) for level in heat.levels]
        nearest = min(kin, key=lambda pair: pair[0].misfit, default=None)
        return nearest if nearest is not None and nearest[0].misfit <= self.options.kin else None

    def _from_kin(
        self, fit: RidgeFit, kind: Activation, heat: Heat, ridge: float
    ) -> NetworkParameters | None:
        """Return units in place of those of the kind that this one imitates best, if it does."""
        nearest = self._nearest(kind, heat)
        if nearest is None:
            return None
        return fit.imitating(nearest[1].model, nearest[0].sharpness, ridge)

    def _fit_on(self, kind: Activation, units: int, equations: float) -> RidgeFit:
        """Return the ridge fit of ``units`` on some ``equations`` per parameter."""
        rows = min(len(self.inputs), int(equations * self.parameters(units) / self.answers.shape[1]))
        return RidgeFit(self.inputs[:rows], self.answers[:rows], kind, on_step=self.on_step)
