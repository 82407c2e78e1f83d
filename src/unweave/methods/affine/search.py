"""Targets without a hidden layer: y = x W + b, a constant included."""

from __future__ import annotations

import numpy as np

from unweave.errors import BudgetExhausted
from unweave.networks.network import Network
from unweave.probing.look import Findings
from unweave.search.candidate import Candidate, Evidence
from unweave.search.journal import Journal
from unweave.targets.region import NormalisedQueries

_SPARE_ROWS = 8


def recover_affine(
    view: NormalisedQueries, findings: Findings, journal: Journal, rng: np.random.Generator
) -> Candidate:
    """Least squares on D + 1 random rows and a few to spare."""
    region = findings.region
    inputs = len(region.location)
    try:
        with journal.stage("affine fit") as stage:
            points = region.sample(inputs + 1 + _SPARE_ROWS, rng)
            answers = view(points)
            design = np.concatenate([points, np.ones((len(points), 1))], axis=1)
            solution, *_ = np.linalg.lstsq(design, answers, rcond=None)
            # Rows without effect come out as rounding: an exact zero says what is meant.
            if findings.constant:
                solution[:-1] = 0.0
            rms = float(np.sqrt(np.mean((answers - design @ solution) ** 2)))
            stage.figures["residual"] = rms
    except BudgetExhausted as error:
        return Candidate(None, Evidence(), problem=str(error))
    weights = solution[:-1] / region.scale[:, None]
    bias = solution[-1] - region.location @ weights
    notes = []
    if (findings.constant or findings.linear) and findings.noise.kind != "noisy":
        what = "constant" if findings.constant else "affine"
        notes.append(f"the target is {what}: no hidden layer is needed")
    spread = np.where(findings.output_scale > 0, findings.output_scale, 1.0)
    # The rows' rounding, which grows by sqrt(P / (n - P)) in a prediction.
    noise = float(np.max(findings.noise.sigma_per_output / spread))
    evidence = Evidence(
        fit_history=(rms,),
        fit_floor=noise,
        prediction_floor=noise * float(np.sqrt((inputs + 1) / _SPARE_ROWS)),
    )
    return Candidate(Network([weights], [bias], ["identity"]), evidence, tuple(notes))
