"""The layers found so far: units up to the last layer's signs, their channels, and what is open of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_layers.layer_units import Unit
from unweave.methods.shared.surfaces.lifted import LiftedLayers
from unweave.methods.shared.surfaces.probe import KinkPool
from unweave.methods.shared.surfaces.sight import Sight, SightOptions


@dataclass(eq=False)
class FoundLayer:
    """One layer: units, and channels (a, F) where its signs are known."""

    units: list[Unit]
    channels: Array

    @property
    def matrix(self) -> Array:
        """(m, F)"""
        return np.stack([unit.alpha for unit in self.units])

    @property
    def width(self) -> int:
        """m"""
        return len(self.units)


@dataclass(eq=False)
class Tower:
    """Layers from the inputs on. Those below the last one are signed."""

    n_inputs: int
    pool: KinkPool
    options: SightOptions
    slope: float = 0.0
    first_is_complete: bool = False
    """Whether no other plane can be a unit of the first layer."""
    layers: list[FoundLayer] = field(default_factory=list)
    _sights: dict[tuple[int, bool], Sight] = field(default_factory=dict)

    @property
    def top(self) -> FoundLayer:
        """The last layer."""
        return self.layers[-1]

    @property
    def widths(self) -> list[int]:
        """Units per layer."""
        return [layer.width for layer in self.layers]

    def below(self, count: int) -> LiftedLayers:
        """Return the map of the first ``count`` layers, signed."""
        return self.sight(count).known

    def sight(self, count: int) -> Sight:
        """Return all kinks and lines behind the first ``count`` layers, signed."""
        if (count, True) not in self._sights:
            lifted = LiftedLayers(self.n_inputs, (), self.slope)
            if count:
                layer = self.layers[count - 1]
                lifted = self.below(count - 1).with_signed(layer.matrix, layer.channels)
            self._sights[count, True] = Sight(lifted, self.pool, self.options)
        return self._sights[count, True]

    def unsigned_sight(self, count: int) -> Sight:
        """Return the same with open signs of the last of these layers."""
        if (count, False) not in self._sights:
            lifted = self.below(count - 1).with_unsigned(self.layers[count - 1].matrix)
            self._sights[count, False] = Sight(lifted, self.pool, self.options)
        return self._sights[count, False]

    def changed(self, layer: int) -> None:
        """Forget what was seen behind a layer, counted from one, whose units have changed."""
        self._sights = {key: sight for key, sight in self._sights.items() if key[0] < layer}

    def everything_open(self) -> list[int]:
        """Return the kinks that no unit of any layer explains."""
        return self.sight(len(self.layers) - 1).open_kinks(self.top.matrix.T)
