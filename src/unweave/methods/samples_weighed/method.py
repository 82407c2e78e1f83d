"""The row of noisy samples in which kind and width are weighed."""

from __future__ import annotations

from math import ceil

from unweave.methods.samples_weighed.search import SamplesWeighedOptions, SamplesWeighedSearch
from unweave.methods.shared.sample_evidence import SAMPLES_PER_PARAMETER, SampleEvidence
from unweave.networks.activations.catalogue import CATALOGUE
from unweave.probing.findings import Findings
from unweave.search import Cost, Likelihood, Method, Question, Request

OTHERS = ("identity", "quadratic", "cubic", "hard_tanh", "relu6", "hard_sigmoid")
"""Kinds that no search of samples starts with: polynomials, and those with two kinks."""


def refuses(request: Request, findings: Findings) -> str | None:
    """Refuse where the width is told: it need not be weighed."""
    return "it weighs widths, and the width is told" if request.hidden is not None else None


def cost(question: Question) -> Cost:
    """Count a hundred fits to the rows that make an exact one unique."""
    size = question.parameters
    rows = ceil(SAMPLES_PER_PARAMETER * size / question.outputs)
    return question.cost(rows, 2.0 + 1e-5 * size**2, 8e-6 * rows * size, "a hundred fits of least squares")


METHOD = Method(
    name="samples_weighed",
    asks="samples",
    description="noisy samples: kinds and widths near what others found, by marginal likelihood",
    layers=(1, 1),
    activations=tuple(each.name for each in CATALOGUE if each.name not in OTHERS),
    refuses=refuses,
    likelihood=lambda request, findings: Likelihood.LAST,
    cost=cost,
    search=SamplesWeighedSearch,
    options=SamplesWeighedOptions,
    evidence=SampleEvidence,
)
