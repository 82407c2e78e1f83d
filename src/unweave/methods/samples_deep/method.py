"""The row of two hidden layers in samples."""

from __future__ import annotations

from math import ceil

from unweave.methods.samples_deep.search import SamplesDeepOptions, SamplesDeepSearch
from unweave.methods.shared.sample_evidence import SAMPLES_PER_PARAMETER, SampleEvidence
from unweave.networks.activations.catalogue import CATALOGUE
from unweave.probing.findings import Findings
from unweave.search import Cost, Method, Question, Request


def refuses(request: Request, findings: Findings) -> str | None:
    """Refuse unless the widths are told: nothing else says how many layers there are."""
    return None if request.hidden is not None else "the widths of two hidden layers must be told"


def cost(question: Question) -> Cost:
    """Count the rows that make an exact fit unique, and steps on all parameters."""
    size = question.parameters
    rows = ceil(SAMPLES_PER_PARAMETER * size / question.outputs)
    return question.cost(rows, 1.0 + 1e-5 * size**2, 8e-6 * rows * size, "random starts at a falling ridge")


METHOD = Method(
    name="samples_deep",
    asks="samples",
    description="two hidden layers of told widths from samples, all parameters at once at a falling ridge",
    layers=(2, 2),
    activations=tuple(each.name for each in CATALOGUE if each.name not in ("identity", "quadratic", "cubic")),
    refuses=refuses,
    cost=cost,
    search=SamplesDeepSearch,
    options=SamplesDeepOptions,
    evidence=SampleEvidence,
)
