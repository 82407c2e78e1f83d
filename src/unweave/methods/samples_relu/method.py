"""The rows of one hidden layer of kinked units in samples."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from unweave.methods.samples_relu.search import (
    SQUARED,
    SamplesReluEvidence,
    SamplesReluOptions,
    SamplesReluSearch,
    SamplesSquaredReluSearch,
    SamplesWideReluSearch,
    free_numbers,
)
from unweave.methods.shared.sample_evidence import SAMPLES_PER_PARAMETER
from unweave.networks.signs import KINKED
from unweave.probing.findings import Findings
from unweave.search import Cost, Likelihood, Method, Question, Request


def cost(question: Question, activation: str | None = None) -> Cost:
    """Count the rows that make an exact fit unique, and steps of variable projection."""
    width = question.width if question.told and question.hidden else None
    rows = ceil(SAMPLES_PER_PARAMETER * free_numbers(activation, width, question.inputs, question.outputs))
    size = question.parameters
    return question.cost(rows, 0.1 + 3e-6 * size**2, 8e-6 * rows * size, "random starts of least squares")


def refuses_told(request: Request, findings: Findings) -> str | None:
    """Refuse where the caller gives width or activation: then the width is not tried out."""
    told = request.hidden is not None or request.activation is not None
    return "it goes on where neither width nor activation is told" if told else None


def refuses_untold(request: Request, findings: Findings) -> str | None:
    """Refuse where neither the activation nor the method is told: squared units race with the smooth ones."""
    told = request.activation is not None or request.method is not None
    return None if told else "squared ReLU units that nobody asks for race with the smooth ones"


RELU = Method(
    name="samples_relu",
    asks="samples",
    description="one hidden layer of ReLU or leaky ReLU units from samples, by variable projection",
    layers=(0, 1),
    activations=KINKED,
    cost=cost,
    search=SamplesReluSearch,
    options=SamplesReluOptions,
    evidence=SamplesReluEvidence,
)
SQUARED_RELU = replace(
    RELU,
    name="samples_squared_relu",
    description="one hidden layer of squared ReLU units from samples, by variable projection",
    layers=(1, 1),
    activations=(SQUARED,),
    refuses=refuses_untold,
    likelihood=lambda request, findings: Likelihood.POSSIBLE,
    cost=lambda question: cost(question, SQUARED),
    search=SamplesSquaredReluSearch,
)
WIDE = replace(
    RELU,
    name="samples_relu_wide",
    description="many kinked units from samples, of the kind that did better with few",
    refuses=refuses_told,
    likelihood=lambda request, findings: Likelihood.LAST,
    search=SamplesWideReluSearch,
)
METHODS = (RELU, SQUARED_RELU, WIDE)
