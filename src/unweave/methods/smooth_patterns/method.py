"""The method for two to four hidden layers of any widths, as a row of the table."""

from __future__ import annotations

from unweave.methods.shared.refusals import GROWS_ALONG_RAYS, NOTHING_CURVED, too_coarse
from unweave.methods.smooth_patterns.layers_behind import parameters
from unweave.methods.smooth_patterns.search import (
    OUTPUTS,
    PATTERN_ACTIVATIONS,
    SmoothPatternsOptions,
    SmoothPatternsSearch,
)
from unweave.probing.findings import Findings
from unweave.search import Cost, Likelihood, Method, Question, Request

COARSEST_FOR_SIGNS = (1e-11, 3e-6)
"""Largest noise relative to the spread at which an exact fit is told from one that is nearly so; in float32
answers err by less far out, where they are constant."""
FEWEST_INPUTS_FOR_SIGNS = 3
"""Inputs below which far points show too few patterns of signs."""


def refuses(request: Request, findings: Findings) -> str | None:
    """Say why the target cannot have such layers; None if it can."""
    if findings.region.has_box:
        return "it asks far outside every box, and a domain was told"
    if findings.is_affine:
        return NOTHING_CURVED
    if findings.rectifies:
        return GROWS_ALONG_RAYS
    if findings.kinks:
        return "kinks were seen: the target is not smooth"
    if findings.noise.relative > COARSEST_FOR_SIGNS[findings.noise.kind == "float32"]:
        return too_coarse(findings, COARSEST_FOR_SIGNS[0])
    if findings.region.n_inputs < FEWEST_INPUTS_FOR_SIGNS:
        return f"it needs {FEWEST_INPUTS_FOR_SIGNS} inputs, and there are {findings.region.n_inputs}"
    return None


def likelihood(request: Request, findings: Findings) -> Likelihood:
    """Judge by the far field, which shows layers, or by what was told."""
    told = request.hidden is not None
    return Likelihood.LIKELY if findings.layered or told else Likelihood.UNLIKELY


def cost(question: Question) -> Cost:
    """Count crossings of circles, patterns of signs and values of the final fit."""
    first, *behind = (*question.hidden, *question.hidden)[: max(2, len(question.hidden))] or (1, 1)
    options = SmoothPatternsOptions().behind
    widths = (first, *(max(options.surplus * width, width + 2) for width in behind), question.outputs)
    unknown = parameters(widths) - question.outputs
    patterns = options.rows_per_parameter[len(behind) > 1] * unknown / question.outputs + 20
    far = 2.5 * (64 + 22 * first) + first * (4 * question.inputs + 20)  # circles, directions and profiles
    near = 1.5 * question.parameters / question.outputs + 20
    seconds = 0.5 + 2e-6 * unknown * patterns  # some 300 steps of 50 products each, in float32
    how = f"{int(far)} rows far out for directions, {int(patterns)} patterns of signs"
    return question.cost(far + patterns + near, seconds, 12e-6 * min(question.parameters, 12_000) ** 2, how)


METHOD = Method(
    name="smooth_patterns",
    aliases=("patterns",),
    description="two to four hidden layers of any widths that level off, behind signs of the first",
    layers=(2, 4),
    activations=PATTERN_ACTIVATIONS,
    outputs=OUTPUTS,
    refuses=refuses,
    likelihood=likelihood,
    cost=cost,
    search=SmoothPatternsSearch,
    options=SmoothPatternsOptions,
    wider=False,
)
