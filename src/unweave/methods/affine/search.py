"""Targets without a hidden layer: y = x W + b, a constant included."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array
from unweave.networks.network import Network
from unweave.numerics.axis_moves import answers_along_axes
from unweave.search import Candidate, Evidence, Search

_MOST_INPUTS_SOLVED = 4000  # by least squares, whose flops grow with the cube of the inputs


@dataclass(frozen=True, kw_only=True)
class AffineOptions:
    """How many rows are asked."""

    spare_rows: int = 8
    """Rows beyond the D + 1 that determine the map, which show whether it is affine."""


class AffineSearch(Search):
    """Least squares on D + 1 random rows and a few to spare."""

    _found = Candidate()

    def run(self) -> None:
        """Ask the rows and solve."""
        findings, region = self.findings, self.findings.region
        inputs, spare = len(region.location), self.context.options.spare_rows
        with self.journal.stage("affine fit") as stage:
            points = region.sample(spare if inputs > _MOST_INPUTS_SOLVED else inputs + 1 + spare, self.rng)
            answers = self.context.view(points)
            design = np.concatenate([points, np.ones((len(points), 1))], axis=1)
            solution = self._along_axes() if len(points) == spare else _least_squares(design, answers)
            # Rows without effect come out as rounding: an exact zero says what is meant.
            if findings.constant:
                solution[:-1] = 0.0
            rms = float(np.sqrt(np.mean((answers - design @ solution) ** 2)))
            stage.figures["residual"] = rms
        weights = solution[:-1] / region.scale[:, None]
        bias = solution[-1] - region.location @ weights
        notes = []
        if (findings.constant or findings.linear) and findings.noise.kind != "noisy":
            what = "constant" if findings.constant else "affine"
            notes.append(f"the target is {what}: no hidden layer is needed")
        # The rows' rounding, which grows by sqrt(P / (n - P)) in a prediction.
        noise = float(np.max(findings.noise.sigma_per_output / findings.spread))
        evidence = Evidence(
            fit_history=(rms,),
            fit_floor=noise,
            prediction_floor=noise * float(np.sqrt((inputs + 1) / spare)),
        )
        self._found = Candidate(Network([weights], [bias], ["identity"]), evidence, tuple(notes))

    def _along_axes(self) -> Array:
        """Return weights and bias (D + 1, K) from one step along every axis."""
        ask, base = self.context.view, np.zeros(self.findings.region.n_inputs)
        if not self.findings.region.contains(base[None])[0]:
            base = self.findings.region.sample(1, self.rng)[0]
        steps = np.ones(len(base))
        bounds = self.findings.region.normalised_bounds
        if bounds is not None:
            up, down = bounds[1] - base, base - bounds[0]
            steps = np.where(up >= down, up, -down)
        first = ask(base[None])[0]
        answers, taken = answers_along_axes(ask, base, steps)
        slopes = (answers - first) / taken[:, None]
        return np.vstack([slopes, first - base @ slopes])

    def candidate(self) -> Candidate:
        """Return the affine map, once it is solved for."""
        return self._found


def _least_squares(design: Array, answers: Array) -> Array:
    return np.asarray(np.linalg.lstsq(design, answers, rcond=None)[0], dtype=np.float64)
