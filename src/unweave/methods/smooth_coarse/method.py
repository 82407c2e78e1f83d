"""The row of one smooth hidden layer in coarse answers, or behind a link."""

from __future__ import annotations

from unweave.methods.shared.coarse_answers.refinement import ROWS_OF_FINAL_FIT
from unweave.methods.shared.coarse_answers.sliced import SlicedSearch, refuses_many_inputs
from unweave.methods.shared.refusals import NOTHING_CURVED, links_to_try, mostly_noise
from unweave.methods.smooth_coarse.search import (
    SmoothCoarseEvidence,
    SmoothCoarseOptions,
    SmoothCoarseSearch,
)
from unweave.networks.links import LINKS
from unweave.probing.findings import Findings
from unweave.search import Context, Cost, Likelihood, Method, Question, Request, Search
from unweave.search.cost import fit_seconds

CERTAIN_KINKS = 3
"""Number of lines with a kink at which coarse answers count as kinked: a single one may be chance."""
MOST_INPUTS_HESSIANS = 128
"""Number of inputs up to which Hessians in all of them are taken of coarse answers."""

_ROWS_FOR_RADIUS = 5200  # asked to find the best radius: some 9 rungs of 4 stencils, two turned ways
_LARGEST_DENSE_FIT = 8000  # number of parameters up to which the cost of a fit is that of forming J^T J


def refuses(request: Request, findings: Findings) -> str | None:
    """Say why not one smooth hidden layer from coarse answers, or None."""
    if findings.is_affine:
        return NOTHING_CURVED
    if findings.kinks and findings.kink_evidence.broken >= CERTAIN_KINKS and request.activation is None:
        return "kinks were seen: the target is not smooth"
    noise = mostly_noise(findings)
    if noise is not None:
        return noise
    if findings.noise.kind == "float64" and links_to_try(request, findings) == ("identity",):
        return "the answers are precise, with no last transformation: short differences are better"
    return refuses_many_inputs(findings, MOST_INPUTS_HESSIANS)


def search(context: Context) -> Search:
    """Search in all inputs, or on a slice where there are many."""
    if context.findings.region.n_inputs <= MOST_INPUTS_HESSIANS:
        return SmoothCoarseSearch(context)
    options: SmoothCoarseOptions = context.options
    return SlicedSearch(context, SmoothCoarseSearch, options.coarse, options.slices)


def likelihood(request: Request, findings: Findings) -> Likelihood:
    """Rate the method last where the far field shows layers, lower where kinks were seen."""
    if findings.layered:
        return Likelihood.LAST
    return Likelihood.POSSIBLE if findings.kinks and request.activation is None else Likelihood.LIKELY


def cost(question: Question) -> Cost:
    """Count the rows of Hessians with long steps, and those of a final fit or of bisection."""
    options = SmoothCoarseOptions()
    sites = int(options.hessians_per_unit[0] * question.width / question.outputs)
    sites = max(options.sites.first, sites)
    per_parameter = ROWS_OF_FINAL_FIT[question.noise]
    shared = 1 if question.noise == "rounded" else question.outputs
    rows = _ROWS_FOR_RADIUS + sites * (2 * question.inputs**2 + 1)
    rows += int(per_parameter * question.parameters / shared)
    how = f"{sites} Hessians with long steps, {per_parameter:g} rows per parameter"
    fit = min(question.parameters, _LARGEST_DENSE_FIT)
    return question.cost(rows, 0.5 + fit_seconds(fit, per_parameter * fit), 12e-6 * fit**2, how)


METHOD = Method(
    name="smooth_coarse",
    aliases=("coarse",),
    description="one smooth hidden layer behind noise, rounding, float32, a sigmoid or a softmax",
    layers=(1, 1),
    outputs=LINKS,
    refuses=refuses,
    likelihood=likelihood,
    cost=cost,
    search=search,
    options=SmoothCoarseOptions,
    evidence=SmoothCoarseEvidence,
)
