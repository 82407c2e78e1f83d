"""The row of several hidden layers of units that are rectifiers from afar."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from unweave.methods.rectified_deep.search import RECTIFIERS, RectifiedDeepOptions, RectifiedDeepSearch
from unweave.methods.shared.refusals import COARSEST_FOR_KINKS, NOTHING_CURVED, too_coarse
from unweave.probing.findings import Findings
from unweave.search import Cost, Likelihood, Method, Question, Request


def refuses(request: Request, findings: Findings) -> str | None:
    """Say why the target cannot have such layers; None if it can."""
    if findings.region.has_box:
        return "it asks far outside every box, and a domain was told"
    if findings.is_affine:
        return NOTHING_CURVED
    if findings.rectifies is False:
        return "far out the answers do not grow along rays as those of rectifying units do"
    if findings.kinks:
        return "kinks were seen: the target is not smooth"
    if findings.noise.kind != "float64" or findings.noise.relative > COARSEST_FOR_KINKS:
        return too_coarse(findings, COARSEST_FOR_KINKS)
    return None


def likelihood(request: Request, findings: Findings) -> Likelihood:
    """Judge by the far field, which shows layers, or by what was told."""
    told = request.hidden is not None and request.activation is not None
    return Likelihood.LIKELY if findings.layered or told else Likelihood.POSSIBLE


def rectified_method(kinked: Sequence[Method]) -> Method:
    """Return the row that finds the far network by the first of the methods ``kinked`` that does."""

    def cost(question: Question) -> Cost:
        """Add the profiles and the final fit to what the far network costs."""
        far = next(method for method in kinked if method.is_for(question.hidden) or method is kinked[-1])
        far_cost = far.cost(question)
        samples = 2 * RectifiedDeepOptions().profiles.samples + 1
        rows = far_cost.rows + samples * sum(question.hidden) + 1.5 * question.parameters
        how = f"{far_cost.how}, far out; then {samples} rows across each kink"
        return question.cost(rows, far_cost.seconds + 0.5, far_cost.megabytes, how)

    return Method(
        name="rectified_deep",
        aliases=("far_rectifiers",),
        description="several hidden layers of softplus, gelu, swish or mish units, ReLU layers from afar",
        layers=(2, None),
        activations=RECTIFIERS,
        refuses=refuses,
        likelihood=likelihood,
        cost=cost,
        search=partial(RectifiedDeepSearch, kinked=tuple(kinked)),
        options=RectifiedDeepOptions,
        wider=False,
    )
