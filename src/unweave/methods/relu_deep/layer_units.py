"""Find all units of the next layer, from the kinks that no known unit explains."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_deep.trace import TraceOptions, Unit, trace
from unweave.methods.shared.surfaces.flatness import Flatness, FlatnessOptions
from unweave.methods.shared.surfaces.lifted import LiftedLayers
from unweave.methods.shared.surfaces.probe import KinkPool, Probe
from unweave.methods.shared.surfaces.sight import Sight, SightOptions
from unweave.numerics.clock import check


@dataclass(frozen=True, kw_only=True)
class LayerOptions:
    """When a kink is explained, and when kinks are given up."""

    sight: SightOptions = field(default_factory=SightOptions)
    trace: TraceOptions = field(default_factory=TraceOptions)
    flatness: FlatnessOptions = field(default_factory=FlatnessOptions)
    same_unit: float = 1e-2
    """Sine of the angle between the alphas of two sightings of one unit."""
    attempts: int = 2
    """Attempts to follow a kink."""
    most_failures: int = 8
    """Kinks that could not be followed, or as many as units were found, after which no others are tried."""


class LayerUnits:
    """Units of the layer behind ``known``, found one by one."""

    def __init__(
        self,
        probe: Probe,
        known: LiftedLayers,
        pool: KinkPool,
        rng: np.random.Generator,
        options: LayerOptions,
    ) -> None:
        self._probe, self._rng, self._options = probe, rng, options
        self.sight = Sight(known, pool, options.sight)
        self._flatness = Flatness(probe, rng, options.flatness)
        self._attempts: dict[int, int] = {}
        self._flat: dict[int, bool] = {}
        self.units: list[Unit] = []
        self.failures = 0
        """Kinks that could not be followed. After the first one they may be those of deeper units."""

    @property
    def known(self) -> LiftedLayers:
        """The layers before."""
        return self.sight.known

    @property
    def is_hopeless(self) -> bool:
        """Return whether so many kinks could not be followed that they belong to deeper layers."""
        return self.failures > max(self._options.most_failures, len(self.units))

    @property
    def alphas(self) -> Array:
        """(F, units)"""
        if not self.units:
            return np.zeros((self.known.dimension, 0))
        return np.stack([unit.alpha for unit in self.units], axis=1)

    def open_kinks(self) -> list[int]:
        """Return the kinks that no unit explains, the most precise first."""
        return self.sight.open_kinks(self.alphas)

    def find_next(self) -> Unit | None:
        """Find one more unit; return None if no kink that is left leads to one."""
        for kink in self.open_kinks():
            check()
            if self.is_hopeless:
                break
            tries = self._attempts.get(kink, 0)
            if tries >= self._options.attempts:
                continue
            self._attempts[kink] = tries + 1
            surface = self.sight.surface(kink)
            if surface is None or not (self.failures == 0 or self._is_flat(kink)):
                self.failures += 1
                continue
            # The second time on its own: a kink of another unit that fitted by chance has spoilt the first.
            others = [] if tries else [other for other in self.open_kinks() if other != kink]
            unit = trace(self._probe, surface, self.sight, others, self._rng, self._options.trace)
            if unit is None:
                self.failures += 1
            elif not self._is_double(unit):
                self.units.append(unit)
                return unit
        return None

    def _is_flat(self, kink: int) -> bool:
        if kink not in self._flat:
            self._flat[kink] = self._flatness.is_flat(self.known, self.sight.pool.kinks[kink])
        return self._flat[kink]

    def _is_double(self, unit: Unit) -> bool:
        if not self.units:
            return False
        alphas = self.alphas / np.linalg.norm(self.alphas, axis=0)
        cosine = np.abs(unit.alpha @ alphas) / np.linalg.norm(unit.alpha)
        return bool(cosine.max() ** 2 > 1 - self._options.same_unit**2)
