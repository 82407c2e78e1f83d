"""Rows on lines, which reach farther than random ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.methods.shared.kinked.line_search import UnitsOnLines
from unweave.methods.shared.kinked.reading import Reading
from unweave.networks.parameters import NetworkParameters


@dataclass(frozen=True, eq=False)
class FarRows:
    """Rows on lines, which show units that switch where random rows do not see them."""

    points: Array
    """(n, D)"""
    answers: Array
    """(n, K)"""
    precision: Array
    """(n,) see `AnsweredRows`."""
    sigma: Array
    """(K,)"""

    @classmethod
    def on(cls, lines: UnitsOnLines, reading: Reading, sigma: Array, rounded: bool) -> FarRows:
        """Take all rows that were read on ``lines``, unless their answers are ``rounded``."""
        points, values, errors = lines.far_rows
        if rounded:  # what is behind a link does not give rounded answers back
            points, values, errors = points[:0], values[:0], errors[:0]
        answers = reading.link.apply(values * reading.spread)
        off = errors[:, None] * reading.spread * np.abs(reading.link.slope(answers))
        return cls(points, answers, (sigma / np.maximum(off, sigma)).min(axis=1), sigma)

    def at(self, chosen: IntArray) -> tuple[Array, Array, Array]:
        """Return points, answers and precision of the ``chosen`` rows."""
        return self.points[chosen], self.answers[chosen], self.precision[chosen]

    def missed(self, model: NetworkParameters, most: float) -> IntArray:
        """Return the rows that ``model`` misses by more than ``most`` errors, the worst first."""
        off = np.abs(model.values(self.points) - self.answers) / self.sigma
        worst = off.max(axis=1, initial=0.0) * self.precision
        order = np.argsort(-worst)
        return order[worst[order] > most]
