"""Find all units of the next layer, from the kinks that no known unit explains."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.methods.relu_deep.probe import Kink, Probe, ScannedLine
from unweave.methods.relu_deep.surface import Surface, SurfaceOptions
from unweave.methods.relu_deep.trace import TraceOptions, Unit, is_flat, trace
from unweave.methods.shared.kinked.lines import unexplained
from unweave.networks.lifted_layers import LiftedLayers
from unweave.numerics.clock import check


@dataclass(frozen=True, kw_only=True)
class LayerOptions:
    """When a kink is explained, and when kinks are given up."""

    surface: SurfaceOptions = field(default_factory=SurfaceOptions)
    trace: TraceOptions = field(default_factory=TraceOptions)
    explained: float = 1e-5
    """Distance to a unit's surface, relative to 1 + |x|, up to which it explains a kink."""
    same_unit: float = 1e-2
    """Sine of the angle between the alphas of two sightings of one unit."""
    attempts: int = 2
    """Attempts to follow a kink."""
    most_failures: int = 8
    """Kinks that could not be followed, or as many as units were found, after which no others are tried."""


@dataclass(eq=False)
class KinkPool:
    """Lines that were searched, and the kinks on them whose normals were measured."""

    lines: list[ScannedLine] = field(default_factory=list)
    kinks: list[Kink] = field(default_factory=list)


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
        self._probe, self._pool, self._rng, self._options = probe, pool, rng, options
        self.known = known
        """The layers before."""
        self._attempts: dict[int, int] = {}
        self._flat: dict[int, bool] = {}
        self.units: list[Unit] = []
        self.failures = 0
        """Kinks that could not be followed. After the first one they may be those of deeper units."""

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

    def open_kinks(self) -> list[Kink]:
        """Return the kinks that no unit explains, the most precise first."""
        kinks = [kink for kink in self._pool.kinks if not self.explains(kink.point)]
        return sorted(kinks, key=lambda kink: kink.error)

    def explains(self, point: Array) -> bool:
        """Return whether a point lies on the surface of one of the units."""
        if not self.units:
            return False
        heights = self.known.values(point[None])[0] @ self.alphas
        lengths = np.linalg.norm(self.known.jacobian(self.known.pattern(point))[0].T @ self.alphas, axis=0)
        allowed = self._options.explained * (1 + np.abs(point).max())
        return bool((np.abs(heights) <= allowed * lengths).any())

    def unexplained_on(self, scanned: ScannedLine) -> IntArray:
        """Return the numbers of the kinks of a line that neither the known layers nor the units explain."""
        predicted = [self.known.places_on(scanned.line)[1:-1]]
        predicted += [self.known.zeros_on(scanned.line, unit.alpha) for unit in self.units]
        same_place = self._probe.options.lines.same_place
        return unexplained(scanned.positions, np.concatenate(predicted), same_place)

    def find_next(self) -> Unit | None:
        """Find one more unit; return None if no kink that is left leads to one."""
        for kink in self.open_kinks():
            check()
            if self.is_hopeless:
                break
            tries = self._attempts.get(id(kink), 0)
            if tries >= self._options.attempts:
                continue
            self._attempts[id(kink)] = tries + 1
            surface = Surface.through(self.known, kink, self._options.surface)
            if surface is None or not (self.failures == 0 or self._is_flat(kink)):
                self.failures += 1
                continue
            # The second time on its own: a kink of another unit that fitted by chance has spoilt the first.
            others = [] if tries else self.open_kinks()
            unit = trace(self._probe, surface, others, self._pool.lines, self._rng, self._options.trace)
            if unit is None:
                self.failures += 1
            elif not self._is_double(unit):
                self.units.append(unit)
                return unit
        return None

    def _is_flat(self, kink: Kink) -> bool:
        if id(kink) not in self._flat:
            self._flat[id(kink)] = is_flat(self._probe, self.known, kink, self._rng, self._options.trace)
        return self._flat[id(kink)]

    def _is_double(self, unit: Unit) -> bool:
        if not self.units:
            return False
        alphas = self.alphas / np.linalg.norm(self.alphas, axis=0)
        cosine = np.abs(unit.alpha @ alphas) / np.linalg.norm(unit.alpha)
        return bool(cosine.max() ** 2 > 1 - self._options.same_unit**2)
