"""The rows of quadratic units in samples."""

from __future__ import annotations

from math import ceil

from unweave.methods.samples_quadratic.form_search import SamplesFormOptions, SamplesFormSearch
from unweave.methods.samples_quadratic.search import SamplesQuadraticSearch
from unweave.methods.shared.sample_evidence import SAMPLES_PER_PARAMETER, SampleEvidence
from unweave.probing.findings import Findings
from unweave.search import Cost, Likelihood, Method, Question, Request


def refuses(request: Request, findings: Findings) -> str | None:
    """Refuse unless quadratic units are asked for: no rows are left to tell them from others."""
    return None if request.activation == "quadratic" else "quadratic units must be asked for"


def cost(question: Question) -> Cost:
    """Count one row per number of a quadratic form, and one linear solve."""
    rows = question.inputs * (question.inputs + 1) // 2
    return question.cost(rows, 1e-10 * rows**3, 8e-6 * rows**2, "one row per number of the quadratic form")


def form_cost(question: Question) -> Cost:
    """Count two rows per number of a quadratic polynomial, and one linear solve."""
    numbers = (question.inputs + 1) * (question.inputs + 2) // 2
    rows = ceil(SAMPLES_PER_PARAMETER * numbers)
    how = "two rows per number of a quadratic polynomial"
    return question.cost(rows, 1e-10 * numbers**2 * rows, 8e-6 * rows * numbers, how)


def form_likelihood(request: Request, findings: Findings) -> Likelihood:
    """Rate forms with biases below sums of squares where quadratic units are asked for."""
    return Likelihood.LIKELY if request.activation is None else Likelihood.POSSIBLE


SQUARES = Method(
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
FORM = Method(
    name="samples_quadratic_form",
    asks="samples",
    description="quadratic units with biases and weights of either sign from samples, by one linear solve",
    layers=(1, 1),
    activations=("quadratic",),
    likelihood=form_likelihood,
    cost=form_cost,
    search=SamplesFormSearch,
    options=SamplesFormOptions,
    evidence=SampleEvidence,
)
METHODS = (SQUARES, FORM)
