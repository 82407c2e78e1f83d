"""The certificate: what was checked behind a result, with value, threshold and what each check implies."""

from __future__ import annotations

import numpy as np

from unweave.diagnose.incoherence import incoherence, unit_columns
from unweave.networks.network import Network
from unweave.probing.look import Findings
from unweave.recovery.judge import Verdict, largest_error_bar
from unweave.recovery.result import Certificate
from unweave.recovery.trial import Trial
from unweave.search import Candidate, Check

_LARGEST_GRAM_CONDITION = 1e8  # of the units' squares: beyond, rounding mixes them
_LARGEST_COHERENCE = 1 - 1e-6  # |cos| of the closest pair of units that counts as two directions


def certify(candidate: Candidate, verdict: Verdict | None, findings: Findings) -> Certificate:
    """Check everything that was measured; stages that were not reached are left out."""
    evidence = candidate.evidence
    checks = [_trial_check(verdict.trial)] if verdict is not None and verdict.trial.rows else []
    checks += evidence.checks()
    if candidate.network is not None and len(candidate.network.hidden) == 1 and evidence.checks_weights:
        checks += _weight_checks(candidate.network, findings)
    checks += evidence.fit_checks(largest_error_bar(findings))
    return Certificate(tuple(checks))


def _trial_check(trial: Trial) -> Check:
    seen, whose = ("method had", "target does") if trial.kind == "fresh" else ("fit had", "samples do")
    implies = f"on {trial.rows} rows that no {seen} seen, the network answers as the {whose}"
    return Check.below(f"{trial.kind} error", trial.error, trial.threshold, implies)


def _weight_checks(network: Network, findings: Findings) -> list[Check]:
    weights = network.weights[0] * findings.region.scale[:, None]
    if not np.linalg.norm(weights, axis=0).all():
        return []
    figures = incoherence(unit_columns(weights)[0])
    inputs, width = figures.dimension, figures.width
    limit = max(inputs * (inputs - 1) / 2, inputs)
    return [
        Check.below("width against limit", width, limit, "this many units are determined generically"),
        Check.below("coherence", figures.coherence, _LARGEST_COHERENCE, "no two units share a direction"),
        Check.below(
            "Gram conditioning",
            figures.gram2_condition,
            _LARGEST_GRAM_CONDITION,
            "the units' squares are independent, so their span fixes them",
        ),
        Check.figure(
            "frame constant",
            figures.frame_constant,
            "below one the linear-regime theorems apply; above, those for m log^2 m = O(D^2)",
        ),
    ]
