"""The row of quadratic polynomials."""

from __future__ import annotations

from unweave.methods.quadratic_form.search import QuadraticFormOptions, QuadraticFormSearch, count_monomials
from unweave.networks.links import ALL_LINKS
from unweave.probing.findings import Findings
from unweave.search import Cost, Method, Question, Request


def refuses(request: Request, findings: Findings) -> str | None:
    """Say why the target is no quadratic polynomial behind any link, or None."""
    if findings.is_affine or findings.straight_links:
        return "the target is affine, or affine behind a link"
    told = request.output_activation
    if request.activation != "quadratic" and not findings.parabolic_links:
        return "the answers are no parabolas along lines, behind no link"
    if told is not None and findings.parabolic_links and told not in findings.parabolic_links:
        return f"the answers are no parabolas along lines behind {told}"
    if findings.is_noisy:
        return f"it needs precise answers, and these are {findings.noise.kind}"
    most = QuadraticFormOptions().most_monomials
    if count_monomials(findings.region.n_inputs) > most:
        return f"it solves for up to {most} products of inputs"
    return None


def cost(question: Question) -> Cost:
    """Count five rows for every four products of two inputs, and a few more."""
    options, unknowns = QuadraticFormOptions().rows, count_monomials(question.inputs)
    rows = int(options.rows_per_unknown * unknowns) + options.spare_rows
    seconds = 1e-10 * rows * unknowns**2
    return question.cost(rows, seconds, 24e-6 * rows * unknowns, "1.25 rows per product of two inputs")


METHOD = Method(
    name="quadratic_form",
    description="a quadratic polynomial of the inputs, also behind a link, by least squares",
    layers=(1, 1),
    activations=("quadratic",),
    outputs=ALL_LINKS,
    refuses=refuses,
    cost=cost,
    search=QuadraticFormSearch,
    options=QuadraticFormOptions,
)
