"""What methods that need straight pieces refuse a target for."""

from __future__ import annotations

from unweave.methods.shared.refusals import NO_KINKS, too_coarse
from unweave.probing.look import Findings
from unweave.search import Request

COARSEST_FOR_KINKS = 1e-11
"""Noise relative to the spread up to which a kink is told from a straight piece."""


def refuses_kinked(request: Request, findings: Findings) -> str | None:
    """Say why the target has no straight pieces that could be seen, or None."""
    if findings.is_affine:
        return NO_KINKS
    if "identity" not in findings.links:
        return f"straight pieces are bent by a {findings.links[0]}"
    if request.activation is None and not findings.kinks:
        return "no kinks were seen: the target is smooth"
    if findings.noise.kind != "float64" or findings.noise.relative > COARSEST_FOR_KINKS:
        return too_coarse(findings, COARSEST_FOR_KINKS)
    return None
