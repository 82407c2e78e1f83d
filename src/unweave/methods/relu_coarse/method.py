"""The row of one hidden layer of kinked units in coarse answers, or behind a link."""

from __future__ import annotations

from unweave.methods.relu_coarse.search import ReluCoarseOptions, ReluCoarseSearch
from unweave.methods.shared.coarse_answers.evidence import CoarseEvidence
from unweave.methods.shared.coarse_answers.refinement import ROWS_OF_FINAL_FIT
from unweave.methods.shared.coarse_answers.sliced import SlicedSearch, refuses_many_inputs
from unweave.methods.shared.refusals import NO_KINKS, links_to_try, mostly_noise
from unweave.networks.links import LINKS
from unweave.networks.signs import KINKED
from unweave.probing.findings import Findings
from unweave.search import Context, Cost, Likelihood, Method, Question, Request, Search

MOST_INPUTS_KINKED = 256
"""Number of inputs up to which kinked units are searched for in all of them at once."""


def refuses(request: Request, findings: Findings) -> str | None:
    """Say why not kinked units from coarse answers, or None."""
    if findings.is_affine:
        return NO_KINKS
    noise = mostly_noise(findings)
    if noise is not None:
        return noise
    precise = findings.noise.kind == "float64" and links_to_try(request, findings) == ("identity",)
    if precise and request.activation in (None, *KINKED):
        return "the answers are precise, with no last transformation: kinks on lines are better"
    if request.activation is None and not findings.kinks and findings.noise.kind in ("float64", "float32"):
        return "no kinks were seen: the target is smooth"
    return refuses_many_inputs(findings, MOST_INPUTS_KINKED)


def search(context: Context) -> Search:
    """Search in all inputs, or on a slice where there are many."""
    if context.findings.region.n_inputs <= MOST_INPUTS_KINKED:
        return ReluCoarseSearch(context)
    options: ReluCoarseOptions = context.options
    return SlicedSearch(context, ReluCoarseSearch, options.coarse, options.slices)


def likelihood(request: Request, findings: Findings) -> Likelihood:
    """Rate the method last where noise may hide kinks: kinked units imitate smooth ones behind it."""
    flips = findings.noise.kind == "rounded" and findings.noise.repeatable and request.averaging is None
    if not (findings.kinks or flips or request.activation is not None):
        return Likelihood.LAST
    precise = findings.noise.kind == "float64"  # lines see straight pieces better, behind a link, too
    return Likelihood.POSSIBLE if precise else Likelihood.LIKELY


def cost(question: Question) -> Cost:
    """Count the rows of random starts, and those of a final fit or of bisection."""
    options = ReluCoarseOptions()
    width = max(question.width, 1 if question.told else options.width(question.noise))
    size = width * (question.inputs + question.outputs) + (question.inputs + 1) * question.outputs
    searched = options.rows_per_parameter
    per_parameter = max(ROWS_OF_FINAL_FIT[question.noise], searched)
    shared = 1 if question.noise == "rounded" else question.outputs
    rows = searched * size / question.outputs + (per_parameter - searched) * size / shared
    how = f"random starts of least squares, {per_parameter:g} rows per parameter"
    return question.cost(rows, 0.1 + 3e-6 * size**2, 8e-6 * searched * size**2, how)


METHOD = Method(
    name="relu_coarse",
    aliases=("kinks",),
    description="one hidden layer of kinked units behind noise, rounding, float32, a sigmoid or a softmax",
    layers=(1, 1),
    activations=(*KINKED, "squared_relu"),
    outputs=LINKS,
    refuses=refuses,
    likelihood=likelihood,
    cost=cost,
    search=search,
    options=ReluCoarseOptions,
    evidence=CoarseEvidence,
)
