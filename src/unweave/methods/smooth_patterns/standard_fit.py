"""A ridge fit to what lies behind sign patterns, in units in which the answers have mean 0 and spread 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from unweave.arrays import Array
from unweave.networks.parameters import NetworkParameters
from unweave.networks.ridge_continuation import RidgeFit, RidgeLevel
from unweave.networks.surplus_units import without_surplus


class StandardFit:
    """A ridge fit to answers of mean 0 and spread 1."""

    def __init__(self, signs: Array, values: Array, fit: Callable[[Array, Array], RidgeFit]) -> None:
        self._center, spread = values.mean(axis=0), values.std(axis=0)
        self._spread = np.where(spread > 0, spread, 1.0)
        self.signs, self.answers = signs, (values - self._center) / self._spread
        self._fit_to, self.fit = fit, fit(self.signs, self.answers)

    @property
    def rows(self) -> int:
        """Number of patterns."""
        return len(self.signs)

    def part(self, share: float) -> RidgeFit:
        """Return a fit to the first rows only."""
        rows = int(share * self.rows)
        return self._fit_to(self.signs[:rows], self.answers[:rows])

    def without_surplus(self, level: RidgeLevel, together: float | None = None) -> RidgeLevel:
        """Leave out units as long as the others explain as much, a share of them ``together`` at first."""
        if level.model.depth == 2:
            return self.fit.without_surplus(level, together=together)
        return without_surplus(self.fit, level)

    def with_more_units(
        self, model: NetworkParameters, count: int, ridge: float, rng: np.random.Generator
    ) -> NetworkParameters:
        """Add units to the last hidden layer, fitted to what the others leave."""
        if model.depth == 2:
            return self.fit.with_more_units(model, count, ridge, rng)
        read = model.forward(self.signs).inputs[-2]
        last = replace(
            model, activations=model.activations[-2:], weights=model.weights[-2:], biases=model.biases[-2:]
        )
        fit = self._fit_to(read, self.answers)
        grown = fit.with_more_units(last, count, ridge, rng)
        self.fit.flops += fit.flops
        return replace(
            model,
            weights=(*model.weights[:-2], *grown.weights),
            biases=(*model.biases[:-2], *grown.biases),
        )

    def in_values(self, model: NetworkParameters) -> NetworkParameters:
        """Return ``model`` in the values' own units."""
        return replace(
            model,
            weights=(*model.weights[:-1], model.weights[-1] * self._spread),
            biases=(*model.biases[:-1], model.biases[-1] * self._spread + self._center),
        )
