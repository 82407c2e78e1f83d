"""The certificate: what was checked behind a result, with value, threshold and what each check implies."""

from __future__ import annotations

import numpy as np

from unweave.diagnose.incoherence import incoherence, unit_columns
from unweave.networks.network import Network
from unweave.probing.findings import Findings
from unweave.recovery.judge import Verdict, largest_error_bar, unverified
from unweave.recovery.result import Certificate, Status
from unweave.search import Candidate, Check

_LARGEST_GRAM_CONDITION = 1e8  # of the units' squares: beyond, rounding mixes them
_LARGEST_COHERENCE = 1 - 1e-6  # |cos| of the closest pair of units that counts as two directions

AGREEING = "agreeing rows"
"""Name of the check that says what an approximate network is worth."""


def certify(candidate: Candidate, verdict: Verdict | None, findings: Findings) -> Certificate:
    """List the grounds of the verdict, then all else that was measured on the way."""
    evidence = candidate.evidence
    verdict = verdict or unverified(Status.FAILED, "")
    checks = list(verdict.grounds)
    if not verdict.trial.precise and np.isfinite(verdict.trial.agreeing):
        implies = f"share of the {verdict.trial.rows} rows of the check that the network explains"
        checks.append(Check.figure(AGREEING, verdict.trial.agreeing, implies))
    if verdict.trial.drawn:
        checks.append(_bound(verdict.trial.drawn))
    if verdict.trial.corners:
        implies = f"corners that were asked, of the 2^{findings.region.n_inputs} that the box has"
        checks.append(Check.figure("corners", verdict.trial.corners, implies))
    if verdict.trial.hearing is not None:
        implies = "size of the largest input asked, relative to a typical one: nothing is known beyond it"
        checks.append(Check.figure("farthest row", verdict.trial.hearing.farthest, implies))
    checks += evidence.checks()
    network = candidate.network
    if isinstance(network, Network) and len(network.hidden) == 1 and evidence.checks_weights:
        checks += _weight_checks(network, findings)
    checks += evidence.fit_checks(largest_error_bar(findings))
    decided = {check.name for check in verdict.grounds}
    return Certificate(tuple(check for check in checks if check.decides or check.name not in decided))


def _bound(drawn: int) -> Check:
    """What rows drawn at random that all agree say of those that were not drawn: (1 - p)^n < 5 %."""
    implies = (
        f"if all {drawn} rows drawn at random agree, it is ruled out at 95 % that a larger share of the "
        "inputs answers otherwise"
    )
    return Check.figure("share not ruled out", -np.expm1(np.log(0.05) / drawn), implies)


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
