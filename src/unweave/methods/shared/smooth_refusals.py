"""What methods that take differences of precise answers refuse a target for."""

from __future__ import annotations

from unweave.methods.shared.refusals import NOTHING_CURVED, mostly_noise
from unweave.probing.look import Findings
from unweave.search import Request


def refuses_smooth(request: Request, findings: Findings) -> str | None:
    """Say why differences over short steps show no smooth hidden layer, or None."""
    if findings.is_affine:
        return NOTHING_CURVED
    if findings.kinks and request.activation is None:
        evidence = findings.kink_evidence
        return (
            f"kinks were seen ({evidence.broken} of {evidence.judged} lines have no second derivative "
            "somewhere): the target is not smooth"
        )
    noise = mostly_noise(findings)
    if noise is not None:
        return noise
    if findings.links == ("softmax",):
        return "the answers are probabilities that sum to one: their logits are the sum of units"
    if findings.is_noisy:
        return f"the answers are {findings.noise.kind}: differences over short steps would drown"
    return None
