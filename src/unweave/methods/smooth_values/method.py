"""The row of one smooth hidden layer in few inputs."""

from __future__ import annotations

from unweave.methods.shared.refusals import refuses_smooth, too_coarse
from unweave.methods.shared.value_search import MOST_INPUTS
from unweave.methods.smooth_values.search import SmoothValuesOptions, SmoothValuesSearch
from unweave.probing.findings import Findings
from unweave.search import Cost, Likelihood, Method, Question, Request

COARSEST_FOR_VALUES = 1e-12
"""Noise relative to the spread up to which an exact fit is told from a local minimum that is nearly one."""


def refuses(request: Request, findings: Findings) -> str | None:
    """Say why not random starts of least squares, or None."""
    reason = refuses_smooth(request, findings)
    if reason is not None:
        return reason
    inputs = findings.region.n_inputs
    if inputs > MOST_INPUTS:
        return f"random starts find units of up to {MOST_INPUTS} inputs, and there are {inputs}"
    if findings.noise.relative > COARSEST_FOR_VALUES:
        return too_coarse(findings, COARSEST_FOR_VALUES)
    if findings.layered:
        return "the far field shows more than one hidden layer"
    return None


def likelihood(request: Request, findings: Findings) -> Likelihood:
    """In so many inputs units that are grown come first: they take fewer rows, and find more."""
    return Likelihood.POSSIBLE if findings.region.n_inputs < MOST_INPUTS else Likelihood.UNLIKELY


def cost(question: Question) -> Cost:
    """Count one set of rows, and random starts of least squares on them."""
    width = question.width if question.hidden and question.told else None
    rows = SmoothValuesOptions().rows_for(question.inputs, question.outputs, width)
    how = "random rows, ten per parameter, and random starts of least squares on them"
    return question.cost(rows, 3.0 * question.activations, 8e-6 * rows * question.parameters, how)


METHOD = Method(
    name="smooth_values",
    aliases=("values",),
    description="one smooth hidden layer in few inputs, from random starts of least squares",
    layers=(1, 1),
    refuses=refuses,
    likelihood=likelihood,
    cost=cost,
    search=SmoothValuesSearch,
    options=SmoothValuesOptions,
    wider=False,
)
