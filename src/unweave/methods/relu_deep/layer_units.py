"""All units of the next layer, from the kinks that no known unit explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.methods.relu_deep.lifted import LiftedLayers
from unweave.methods.relu_deep.probing import Kink, Probe, ScannedLine
from unweave.methods.relu_deep.surface import Surface
from unweave.methods.relu_deep.tracing import Unit, is_flat, trace
from unweave.methods.shared.kinked.line_units import unexplained

_EXPLAINED = 1e-5  # distance to a unit's surface, relative to 1 + |x|
_SAME_UNIT = 1e-2  # sine of the angle between two alphas
_ATTEMPTS = 2  # to follow a kink
_MOST_FAILURES = 8  # to follow kinks, or as many as units were found, after which the others are not tried


@dataclass(eq=False)
class KinkPool:
    """Lines that were searched, and the kinks on them whose normals were measured."""

    lines: list[ScannedLine] = field(default_factory=list)
    kinks: list[Kink] = field(default_factory=list)


class LayerUnits:
    """Units of the layer behind ``known``, found one by one."""

    def __init__(self, probe: Probe, known: LiftedLayers, pool: KinkPool, rng: np.random.Generator) -> None:
        self._probe = probe
        self._known = known
        self._pool = pool
        self._rng = rng
        self._attempts: dict[int, int] = {}
        self._flat: dict[int, bool] = {}
        self.units: list[Unit] = []
        self.failures = 0
        """Kinks that could not be followed. After the first one they may be those of deeper units."""

    @property
    def known(self) -> LiftedLayers:
        """The layers before."""
        return self._known

    @property
    def is_hopeless(self) -> bool:
        """Whether so many kinks could not be followed that they belong to deeper layers."""
        return self.failures > max(_MOST_FAILURES, len(self.units))

    @property
    def alphas(self) -> Array:
        """(F, units)"""
        if not self.units:
            return np.zeros((self._known.dimension, 0))
        return np.stack([unit.alpha for unit in self.units], axis=1)

    def open_kinks(self) -> list[Kink]:
        """Kinks that no unit explains, the most precise first."""
        kinks = [kink for kink in self._pool.kinks if not self.explains(kink.point)]
        return sorted(kinks, key=lambda kink: kink.error)

    def explains(self, point: Array) -> bool:
        """Whether a point lies on the surface of one of the units."""
        if not self.units:
            return False
        heights = self._known.values(point[None])[0] @ self.alphas
        lengths = np.linalg.norm(self._known.jacobian(self._known.pattern(point))[0].T @ self.alphas, axis=0)
        return bool((np.abs(heights) <= _EXPLAINED * (1 + np.abs(point).max()) * lengths).any())

    def unexplained_on(self, scanned: ScannedLine) -> IntArray:
        """Numbers of the kinks of a line that neither the known layers nor the units explain."""
        predicted = [self._known.places_on(scanned.line)[1:-1]]
        predicted += [self._known.zeros_on(scanned.line, unit.alpha) for unit in self.units]
        return unexplained(scanned.positions, np.concatenate(predicted))

    def find_next(self) -> Unit | None:
        """One more unit, or None if no kink that is left leads to one."""
        for kink in self.open_kinks():
            if self.is_hopeless:
                break
            tries = self._attempts.get(id(kink), 0)
            if tries >= _ATTEMPTS:
                continue
            self._attempts[id(kink)] = tries + 1
            surface = Surface.through(self._known, kink)
            if surface is None or not (self.failures == 0 or self._is_flat(kink)):
                self.failures += 1
                continue
            # The second time on its own: a kink of another unit that fitted by chance has spoilt the first.
            others = [] if tries else self.open_kinks()
            unit = trace(self._probe, surface, others, self._pool.lines, self._rng)
            if unit is None:
                self.failures += 1
            elif not self._is_double(unit):
                self.units.append(unit)
                return unit
        return None

    def add(self, units: Sequence[Unit]) -> None:
        """Units that are known already."""
        self.units += units

    def _is_flat(self, kink: Kink) -> bool:
        if id(kink) not in self._flat:
            self._flat[id(kink)] = is_flat(self._probe, self._known, kink, self._rng)
        return self._flat[id(kink)]

    def _is_double(self, unit: Unit) -> bool:
        if not self.units:
            return False
        alphas = self.alphas / np.linalg.norm(self.alphas, axis=0)
        cosine = np.abs(unit.alpha @ alphas) / np.linalg.norm(unit.alpha)
        return bool(cosine.max() ** 2 > 1 - _SAME_UNIT**2)
