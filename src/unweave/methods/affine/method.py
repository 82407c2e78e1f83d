"""The row of targets without a hidden layer: an affine map, or one behind a link."""

from __future__ import annotations

from unweave.methods.affine.search import AffineOptions, AffineSearch
from unweave.methods.shared.coarse_answers.evidence import CoarseEvidence
from unweave.methods.shared.coarse_answers.refinement import ROWS_OF_FINAL_FIT
from unweave.networks.links import ALL_LINKS
from unweave.probing.findings import Findings
from unweave.search import Cost, Method, Question, Request


def refuses(request: Request, findings: Findings) -> str | None:
    """Say why the target is not affine behind any link, or None."""
    if request.hidden == () or findings.is_affine:
        return None
    if findings.straight_links and not (request.tight and request.hidden):  # one line may be so by accident
        return None
    return "the target is not affine, nor affine behind a link"


def cost(question: Question) -> Cost:
    """Count D + 1 rows and a few more, or the rows of a final fit to coarse answers."""
    rows = question.inputs + 1 + AffineOptions().rows.spare_rows
    how = "one row per input, and nine"
    if question.noise in ("rounded", "noisy"):
        per_parameter = ROWS_OF_FINAL_FIT[question.noise]
        shared = 1 if question.noise == "rounded" else question.outputs
        rows = max(rows, int(per_parameter * question.parameters / shared))
        how = f"{per_parameter:g} rows per parameter"
    return question.cost(rows, 0.01, 8e-6 * rows * question.inputs, how)


METHOD = Method(
    name="affine",
    description="no hidden layer: a linear, logistic, softmax or log-linear model, by least squares",
    layers=(0, 0),
    minimal=True,
    outputs=ALL_LINKS,
    refuses=refuses,
    cost=cost,
    search=AffineSearch,
    options=AffineOptions,
    evidence=CoarseEvidence,
)
