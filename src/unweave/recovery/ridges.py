"""The last thing to try: profiles along the directions of units that are of no known kind.

A search that saw the directions of all units, and no activation that explains them, hands the directions on.
Splines along them answer like the target in the region, and are told as what they are: an approximation.
"""

from __future__ import annotations

import numpy as np

from unweave.arrays import Array
from unweave.networks.ridge_sum import DEGREE, RidgeSum, fit_ridge_sum
from unweave.numerics.clock import check
from unweave.numerics.memory import require
from unweave.probing.findings import Findings
from unweave.search import Candidate, Evidence, GaveUp, Journal, Reason, Search
from unweave.targets.region import NormalisedQueries

INTERVALS = 20
"""Of a profile, between its knots."""
ROWS_PER_COEFFICIENT = 3
"""Rows of the fit per coefficient of the profiles of one output."""
MOST_COLUMNS = 4000
"""Coefficients up to which the fit takes seconds."""
WIDER = 1.6
"""Times the region, in which half of the rows of the fit are drawn."""
_COPIES = 4  # of the design, while it is solved
_FLOPS = 4  # per row and squared column of the solution


class RidgeReason(Reason):
    """Why no profiles were fitted."""

    TOO_MANY = "profiles along {units} directions would take {columns} coefficients, more than {most}"


class RidgeSearch(Search):
    """Fits profiles along ``directions`` (D, m), in the target's own inputs.

    ``problem`` is what the search that found them said against its network.
    """

    def __init__(
        self,
        directions: Array,
        problem: str | None,
        view: NormalisedQueries,
        findings: Findings,
        journal: Journal,
        rng: np.random.Generator,
    ) -> None:
        self._directions, self._problem, self._view = directions, problem, view
        self.findings, self.journal, self.rng = findings, journal, rng
        self._model: RidgeSum | None = None

    def run(self) -> None:
        """Ask rows of the region and fit all profiles to them."""
        inputs, units = self._directions.shape
        columns = units * (INTERVALS + DEGREE) + inputs + 1
        if columns > MOST_COLUMNS:
            raise GaveUp(RidgeReason.TOO_MANY, units=units, columns=columns, most=MOST_COLUMNS)
        rows = ROWS_PER_COEFFICIENT * columns
        require(_COPIES * rows * columns, "profiles along the units' directions")
        with self.journal.stage("ridge functions") as stage:
            points = self._view.region.sample(rows, self.rng)
            if not self._view.region.has_box:  # profiles are straight beyond the rows that they are fitted to
                points[::2] *= WIDER
            answers = self._view(points)
            check(_FLOPS * rows * columns**2)
            x = self._view.region.to_inputs(points)
            self._model = fit_ridge_sum(self._directions, x, answers, INTERVALS)
            left = float(np.sqrt(np.mean((self._model(x) - answers) ** 2)))
            stage.figures.update(units=units, rows=rows, residual=left / float(self.findings.spread.max()))

    def candidate(self) -> Candidate:
        """Return the sum of ridge functions."""
        units = self._directions.shape[1]
        why = f" ({self._problem})" if self._problem else ""
        return Candidate(
            self._model,
            Evidence(width=units, found=units),
            objection=(
                f"the directions of {units} units were found, and no kind of unit that explains them{why}: "
                "their profiles are splines, which only approximate"
            ),
        )
