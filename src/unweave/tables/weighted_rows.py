"""A table as it is given: weighted rows in any order, inputs and answers in units of their own.

Equal rows become one with their summed weight, in an order that depends on the rows alone. So a fit sees the
weighted set of rows and nothing else: a row of weight two counts as two rows, one of weight zero as none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.tables.penalised_fit import Loss, Table
from unweave.targets.answer_cache import distinct, row_keys

_LEAST_SPREAD = 1e-12  # of an input's size: less is rounding, and the input counts as constant


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Distinct rows and their weights."""

    x: Array
    """(n, d)"""
    y: Array
    """(n, K)"""
    weights: Array
    """(n,), with mean 1"""

    @classmethod
    def of(cls, x: Array, y: Array, weights: Array | None = None) -> WeightedRows:
        """Merge equal rows of x (n, d) and y (n, K); drop those of weight zero."""
        weights = np.ones(len(x)) if weights is None else weights
        kept = weights > 0
        x, y, weights = x[kept], y[kept], weights[kept]
        leaders, group = distinct(row_keys(np.hstack([x, y])))
        total = np.bincount(group, weights, minlength=len(leaders))
        x, y = x[leaders], y[leaders]
        order = np.lexsort(np.hstack([x, y]).T[::-1])
        return cls(x[order], y[order], total[order] / total.mean())


@dataclass(frozen=True, eq=False)
class Standardized:
    """A table of inputs with variance one and, for squares, answers too; and the way back."""

    table: Table
    mean: Array
    """(d,) of the inputs"""
    scale: Array
    """(d,) standard deviation of the inputs; infinite for constant ones, which get no weight"""
    center: Array
    """(K,) mean of the answers"""
    spread: Array
    """(K,) standard deviation of the answers, 1 where that is zero"""

    @classmethod
    def of(cls, rows: WeightedRows, loss: Loss) -> Standardized:
        """Standardize ``rows``."""
        share = rows.weights / rows.weights.sum()
        mean = share @ rows.x
        deviation = np.sqrt(share @ (rows.x - mean) ** 2)
        size = np.maximum(np.abs(rows.x).max(axis=0), np.finfo(np.float64).tiny)
        scale = np.where(deviation > _LEAST_SPREAD * size, deviation, np.inf)
        center, spread = np.zeros(rows.y.shape[1]), np.ones(rows.y.shape[1])
        if loss == "squares":
            center = share @ rows.y
            spread = np.sqrt(share @ (rows.y - center) ** 2)
            spread = np.where(spread > 0, spread, 1.0)
        table = Table((rows.x - mean) / scale, (rows.y - center) / spread, rows.weights, loss)
        return cls(table, mean, scale, center, spread)

    def network(self, model: NetworkParameters) -> Network:
        """Return the network of ``model`` for inputs and answers in their own units."""
        weights, biases, skip = list(model.weights), list(model.biases), model.skip
        weights[0] = weights[0] / self.scale[:, None]
        biases[0] = biases[0] - self.mean @ weights[0]
        if skip is not None:
            skip = skip / self.scale[:, None]
            biases[-1] = biases[-1] - self.mean @ skip
        if self.table.loss == "squares":
            weights[-1], biases[-1] = weights[-1] * self.spread, biases[-1] * self.spread + self.center
            skip = None if skip is None else skip * self.spread
        return replace(model, weights=tuple(weights), biases=tuple(biases), skip=skip).to_network()
