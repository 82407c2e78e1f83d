"""Units that a fit with several hidden layers can do without, whichever layer they are in.

At a minimum of the sum E = (1/n) |r|^2 + rho |theta|^2, with H = (1/n) J^T J + rho, the least sum without
the outgoing weights theta_q of a unit is to second order

    E + theta_q^T ((H^{-1})_qq)^{-1} theta_q      at      theta - H^{-1}_{.q} ((H^{-1})_qq)^{-1} theta_q

(the optimal brain surgeon [surgeon]). All other parameters adapt, so a unit that another one doubles costs
nothing, nor does one of two that share a unit among them. The cheapest go together, a fit at the same ridge
follows, and they stay if that explains less than before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.networks.jacobian import ValueJacobian
from unweave.networks.parameters import NetworkParameters
from unweave.networks.ridge_continuation import RidgeFit, RidgeLevel
from unweave.numerics import memory
from unweave.numerics.clock import check

_GRAM_COPIES = 3.0  # of J^T J that an inverse holds

Unit = tuple[int, int]
"""Hidden layer and place in it, from 0."""


@dataclass(frozen=True, kw_only=True)
class SurplusOptions:
    """When units are surplus."""

    cheap: float = 3.0
    """Residuals that units left out together may cost before they are fitted again."""
    at_once: float = 0.25
    """Largest share of all units that is left out together."""
    worsening: float = 1.5
    """Ratio of residuals after and before up to which units that were left out were surplus."""
    tried: int = 3
    """Units that are tried one by one where several together are too many."""
    steps: int = 12
    """Steps of a fit with fewer units."""


def without_surplus(fit: RidgeFit, level: RidgeLevel, options: SurplusOptions | None = None) -> RidgeLevel:
    """Leave out units of all hidden layers as long as a fit at the same ridge explains as much as before."""
    options, least = options or SurplusOptions(), level.residual
    while True:
        check()
        fewer = _fewer(fit, level, options.worsening * least, options)
        if fewer is None:
            return level
        level, least = fewer, min(least, fewer.residual)


def _fewer(fit: RidgeFit, level: RidgeLevel, allowed: float, options: SurplusOptions) -> RidgeLevel | None:
    """Leave out several cheap units, else one; None if all are needed."""
    surgery = _Surgery(fit.inputs, level)
    order = sorted(surgery.units, key=surgery.cost)
    costs = np.sqrt(np.cumsum([surgery.cost(unit) for unit in order]))
    together = int(np.searchsorted(costs, options.cheap * level.residual))
    count = min(together, int(options.at_once * len(order)))
    groups = []
    while count > 1:
        groups.append(order[:count])
        count //= 2
    for units in [*groups, *([unit] for unit in order[: options.tried])]:
        left = [sum(layer == at for at, _ in units) for layer in range(level.model.depth - 1)]
        widths = [bias.size for bias in level.model.biases[:-1]]
        if any(gone >= width for gone, width in zip(left, widths, strict=True)):
            continue
        trial = fit.fit(surgery.without(units), level.ridge, options.steps)
        if trial.residual <= allowed:
            return trial
    return None


class _Surgery:
    """What single units cost, and the parameters without some."""

    def __init__(self, inputs: Array, level: RidgeLevel) -> None:
        model = self._model = level.model
        memory.require(_GRAM_COPIES * model.size**2, "The normal equations of all units")
        equations = len(inputs) * model.n_outputs
        gram = np.triu(ValueJacobian(model, inputs).gram()) / equations
        gram = gram + np.triu(gram, 1).T
        gram[np.diag_indices(model.size)] += level.ridge
        self._inverse, self._vector = np.linalg.inv(gram), model.to_vector()
        self.units: list[Unit] = [
            (layer, place) for layer, bias in enumerate(model.biases[:-1]) for place in range(bias.size)
        ]

    def cost(self, unit: Unit) -> float:
        """Return what the sum rises by without ``unit``."""
        chosen = self._outgoing(unit)
        weights = self._vector[chosen]
        return float(weights @ np.linalg.solve(self._inverse[np.ix_(chosen, chosen)], weights))

    def without(self, units: list[Unit]) -> NetworkParameters:
        """Return the model without ``units``, all others adapted."""
        chosen = np.concatenate([self._outgoing(unit) for unit in units])
        pulled = np.linalg.solve(self._inverse[np.ix_(chosen, chosen)], self._vector[chosen])
        adapted = self._model.from_vector(self._vector - self._inverse[:, chosen] @ pulled)
        weights, biases = list(adapted.weights), list(adapted.biases)
        for layer in range(adapted.depth - 1):
            gone = [place for at, place in units if at == layer]
            weights[layer] = np.delete(weights[layer], gone, axis=1)
            biases[layer] = np.delete(biases[layer], gone)
            weights[layer + 1] = np.delete(weights[layer + 1], gone, axis=0)
        return replace(adapted, weights=tuple(weights), biases=tuple(biases))

    def _outgoing(self, unit: Unit) -> IntArray:
        layer, place = unit
        width = self._model.shapes[layer + 1][1]
        begin = self._model.ends[layer] + place * width
        return np.arange(begin, begin + width, dtype=np.int64)
