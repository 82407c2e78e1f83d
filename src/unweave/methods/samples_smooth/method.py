"""The row of one smooth hidden layer in samples."""

from __future__ import annotations

from math import ceil

from unweave.methods.samples_smooth.fit import handles
from unweave.methods.samples_smooth.search import (
    SamplesSmoothEvidence,
    SamplesSmoothOptions,
    SamplesSmoothSearch,
)
from unweave.methods.shared.sample_evidence import SAMPLES_PER_PARAMETER
from unweave.networks.activations import get_activation
from unweave.probing.findings import Findings
from unweave.search import Cost, Likelihood, Method, Question, Request


def refuses(request: Request, findings: Findings) -> str | None:
    """Say why moments do not show units of this activation, or None."""
    if request.activation is not None and not handles(get_activation(request.activation)):
        return f"moments do not show units of {request.activation}, a polynomial"
    return None


def likelihood(request: Request, findings: Findings) -> Likelihood:
    """Rate unasked smooth units between few and many kinked ones, which imitate them slowly."""
    return Likelihood.LIKELY if request.activation is not None else Likelihood.POSSIBLE


def cost(question: Question) -> Cost:
    """Count the rows that make an exact fit unique, moments, and steps on all parameters."""
    width = question.width if question.told and question.hidden else 0
    inputs, outputs, size = question.inputs, question.outputs, question.parameters
    rows = ceil(SAMPLES_PER_PARAMETER * (width * (inputs + outputs) + (inputs + 1) * outputs) / outputs)
    return question.cost(
        rows, 0.2 + 1e-6 * size**2, 8e-6 * rows * size, "a race of kinds, then least squares"
    )


METHOD = Method(
    name="samples_smooth",
    asks="samples",
    description="one smooth hidden layer from samples, by a race of kinds and least squares",
    layers=(1, 1),
    refuses=refuses,
    likelihood=likelihood,
    cost=cost,
    search=SamplesSmoothSearch,
    options=SamplesSmoothOptions,
    evidence=SamplesSmoothEvidence,
)
