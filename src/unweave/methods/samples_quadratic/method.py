"""The row of quadratic units in samples."""

from __future__ import annotations

from unweave.methods.samples_quadratic.search import SamplesQuadraticSearch
from unweave.methods.shared.sample_evidence import SampleEvidence
from unweave.probing.look import Findings
from unweave.search import Cost, Method, Question, Request


def refuses(request: Request, findings: Findings) -> str | None:
    """Refuse unless quadratic units are asked for: no rows are left to tell them from others."""
    return None if request.activation == "quadratic" else "quadratic units must be asked for"


def cost(question: Question) -> Cost:
    """Count one row per number of a quadratic form, and one linear solve."""
    rows = question.inputs * (question.inputs + 1) // 2
    return question.cost(rows, 1e-10 * rows**3, 8e-6 * rows**2, "one row per number of the quadratic form")


METHOD = Method(
    name="samples_quadratic",
    asks="samples",
    description="quadratic units from samples, by solving for W W^T",
    layers=(0, 1),
    activations=("quadratic",),
    refuses=refuses,
    cost=cost,
    search=SamplesQuadraticSearch,
    evidence=SampleEvidence,
    uses_every_row=True,
)
