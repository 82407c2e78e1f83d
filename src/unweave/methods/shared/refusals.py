"""What several methods refuse a target for."""

from __future__ import annotations

from unweave.probing.findings import Findings
from unweave.search import Request

PURE_NOISE = 0.3
"""Noise relative to the spread of the answers above which nothing is left to fit."""
MANY_INPUTS_OF_LAYERS = 100
"""Inputs from which two kinked layers are searched in what the first one reads: 784-8-8-1 takes 2 seconds
then, and 90 in all inputs."""
COARSEST_FOR_KINKS = 1e-11
"""Noise relative to the spread up to which a kink is told from a straight piece."""
NOTHING_CURVED = "the target is affine: there is nothing curved to see"
GROWS_ALONG_RAYS = "far out the answers grow along rays: these are no units that level off"
NO_KINKS = "the target is affine: there are no kinks to see"


def mostly_noise(findings: Findings) -> str | None:
    """Refuse answers in which noise hides everything."""
    if findings.noise.relative <= PURE_NOISE:
        return None
    return f"the answers are mostly noise (standard deviation {findings.noise.relative:.2g} of their spread)"


def too_coarse(findings: Findings, coarsest: float) -> str:
    """Say that answers must be precise to ``coarsest``, relative to their spread."""
    return (
        f"it needs answers to {coarsest:.0e} of their spread, and these are good to "
        f"{findings.noise.relative:.1e} ({findings.noise.kind})"
    )


def links_to_try(request: Request, findings: Findings) -> tuple[str, ...]:
    """Return the output activations that what was told or seen leaves possible."""
    return findings.links if request.output_activation is None else (request.output_activation,)


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


def refuses_kinked(request: Request, findings: Findings) -> str | None:
    """Say why the target has no straight pieces that could be seen, or None."""
    if findings.is_affine:
        return NO_KINKS
    if request.activation is None and not findings.kinks:
        return "no kinks were seen: the target is smooth"
    if findings.noise.kind != "float64" or findings.noise.relative > COARSEST_FOR_KINKS:
        return too_coarse(findings, COARSEST_FOR_KINKS)
    return None


def refuses_surfaces(request: Request, findings: Findings) -> str | None:
    """Say why surfaces of kinked units cannot be followed, or None."""
    if findings.region.has_box:
        return "it follows surfaces wherever they lead, and nothing outside the domain may be asked"
    if "identity" not in findings.links and not findings.is_affine:
        return f"straight pieces are bent by a {findings.links[0]}"
    return refuses_kinked(request, findings)
