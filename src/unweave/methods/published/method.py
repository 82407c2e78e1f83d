"""The row of the published pipeline for one smooth hidden layer."""

from __future__ import annotations

from unweave.methods.published.search import PublishedSearch
from unweave.methods.shared.refusals import refuses_smooth
from unweave.methods.shared.span_evidence import SpanEvidence
from unweave.networks.activations import get_activation
from unweave.probing.findings import Findings
from unweave.published.shallow.options import PublishedOptions
from unweave.search import Cost, Method, Question, Request


def refuses(request: Request, findings: Findings) -> str | None:
    """Say why not the published algorithms, or None."""
    if request.hidden is None or len(request.hidden) != 1 or request.activation is None:
        return "it needs hidden=[m] and activation to be given"
    if findings.n_outputs != 1:
        return f"it handles one output, and the target has {findings.n_outputs}"
    region = findings.region
    if region.has_box or region.location.any() or (region.scale != 1).any():
        return "it handles inputs around 0 with scale 1 and no bounds: scale them before"
    if get_activation(request.activation).monotone_second is None:
        return f"it needs a second derivative that is invertible around 0, and {request.activation} has none"
    return refuses_smooth(request, findings)


def cost(question: Question) -> Cost:
    """Hessians and directional derivatives, as many as published."""
    options, inputs, width = PublishedOptions(), question.inputs, question.width
    hessians = options.hessian_count(inputs, width)
    rows = hessians * (inputs**2 + inputs + 1) + options.sample_count(inputs, width) + 4 * width + 1
    return question.cost(rows, 1.0, 8e-6 * hessians * inputs**2, f"{hessians} Hessians in all inputs")


METHOD = Method(
    name="published",
    description="one hidden layer, unit weights, outer weights one: [identification] Alg. 3.1 to 3.3",
    layers=(1, 1),
    refuses=refuses,
    cost=cost,
    search=PublishedSearch,
    options=PublishedOptions,
    evidence=SpanEvidence,
    by_name_only=True,
)
