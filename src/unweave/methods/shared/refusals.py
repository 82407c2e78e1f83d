"""What several methods refuse a target for."""

from __future__ import annotations

from unweave.probing.look import Findings
from unweave.search import Request

PURE_NOISE = 0.3
"""Noise relative to the spread of the answers above which nothing is left to fit."""
NOTHING_CURVED = "the target is affine: there is nothing curved to see"
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
