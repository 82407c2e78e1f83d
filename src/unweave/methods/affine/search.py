"""Targets without a hidden layer: y = x W + b, a constant included."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.networks.network import Network
from unweave.search import Candidate, Evidence, Search


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
            points = region.sample(inputs + 1 + spare, self.rng)
            answers = self.context.view(points)
            design = np.concatenate([points, np.ones((len(points), 1))], axis=1)
            solution, *_ = np.linalg.lstsq(design, answers, rcond=None)
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

    def candidate(self) -> Candidate:
        """Return the affine map, once it is solved for."""
        return self._found
