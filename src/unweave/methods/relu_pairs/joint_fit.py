"""Gauss-Newton on all parameters of two kinked layers, until the rounding of the answers is left.

Rows near a kink may lie on its other side, so that fits begin clear of all kinks and come nearer. Units of
either layer that others make up for are left out, and rows are asked where a parameter acts that none
determines yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_pairs.rows import PairRows
from unweave.methods.relu_pairs.surplus import weakest, without
from unweave.methods.shared.kinked.deep_polish import (
    DeepPolishOptions,
    Polished,
    clear_of_kinks,
    enough_rows,
    polish,
    rows_for_open_parameters,
)
from unweave.networks.activations import SOFTMAX
from unweave.networks.network import Network


@dataclass(frozen=True, kw_only=True)
class JointFitOptions:
    """How all parameters are fitted."""

    polish: DeepPolishOptions = field(default_factory=lambda: DeepPolishOptions(places=20_000))
    clear: float = 2e-3
    """Distance from every kink of rows of the first Gauss-Newton step, relative to 1 + |x|."""
    clearing: float = 0.2
    """Factor on that distance from step to step."""
    polishes: int = 8
    """Times that Gauss-Newton is begun anew."""
    settled: float = 0.7
    """Ratio of residuals after and before, from which on beginning anew gains nothing."""
    equations: float = 6.0
    """Equations per parameter."""
    undetermined: float = 1e-3
    """Standard error of a parameter from which units may be surplus."""
    most_surplus: int = 8
    """Units that are left out at most ..."""
    tried_surplus: int = 4
    """... each one of so many of its layer that add least."""
    as_good: float = 1.5
    """Factor on the residual with which a network is as good without a unit."""


class JointFit:
    """Fits networks to ``rows``."""

    def __init__(self, rows: PairRows, rng: np.random.Generator, options: JointFitOptions) -> None:
        self._rows, self._rng, self._options = rows, rng, options

    def fit(self, network: Network, near: bool = False) -> Polished:
        """Fit all parameters to rows that are clear of kinks, nearer and nearer to them.

        ``near`` begins as near as fits end.
        """
        options, outputs = self._options, min(*network.hidden, network.n_outputs)
        wanted = int(options.equations * network.n_parameters / outputs)
        least = options.polish.clear
        clear = least if near else options.clear
        best: Polished | None = None
        for _ in range(options.polishes):
            points, answers = self._chosen(network, wanted)
            while clear_of_kinks(network, points, clear).sum() < wanted / 2 and clear > least:
                clear *= options.clearing
            polished = polish(network, points, answers, replace(options.polish, clear=clear))
            settled = best is not None and polished.history[-1] > options.settled * best.history[-1]
            network, best = polished.network, polished
            if clear <= least and settled:
                break
            clear = max(clear * options.clearing, least)
        assert best is not None
        return best

    def _chosen(self, network: Network, wanted: int) -> tuple[Array, Array]:
        """Return rows (n, d) and answers (n, K) of which every weight sees some, and those that are kept."""
        rows, per_weight = self._rows, self._options.polish.rows_per_weight
        chosen = enough_rows(network, rows.points, wanted, self._rng, per_weight)
        points = np.concatenate([rows.points[chosen], rows.kept_points])
        return points, np.concatenate([rows.answers[chosen], rows.kept_answers])

    def without_surplus(self, polished: Polished) -> Polished:
        """Leave out units of either layer, the weakest first, that others make up for.

        A fit that is not exact may use more units than there are; where it is, they do nothing, or the same.
        """
        options = self._options
        for _ in range(options.most_surplus):
            fewer = self._fewer(polished) if polished.error_bar > options.undetermined else None
            if fewer is None:
                break
            polished = fewer
        return polished

    def _fewer(self, polished: Polished) -> Polished | None:
        """Return a fit that is as good with one unit less, if there is one."""
        options, network = self._options, polished.network
        for layer, unit in weakest(network, self._rows.points, options.tried_surplus):
            fewer = self.fit(without(network, layer, unit), near=True)
            if fewer.history[-1] <= options.as_good * polished.history[-1]:
                return fewer
        return None

    def determined(self, polished: Polished) -> Polished:
        """Ask rows where parameters act that none determines yet, and fit again."""
        if polished.network.activations[-1] == SOFTMAX:  # all outputs act on each
            return polished
        rows = self._rows
        points = rows_for_open_parameters(polished, self._rng, self._options.polish, rows.points)
        points = points[rows.view.region.contains(points)]
        if not len(points):
            return polished
        rows.keep(*rows.ask(points))
        return self.fit(polished.network, near=True)
