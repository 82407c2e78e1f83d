"""The row of two small smooth hidden layers."""

from __future__ import annotations

from itertools import pairwise

from unweave.methods.shared.refusals import refuses_smooth, too_coarse
from unweave.methods.smooth_deep_values.search import (
    DEEP_VALUES_ACTIVATIONS,
    SmoothDeepValuesOptions,
    SmoothDeepValuesSearch,
)
from unweave.probing.findings import Findings
from unweave.search import Cost, Likelihood, Method, Question, Request


def refuses(request: Request, findings: Findings) -> str | None:
    """Say why not random starts of two layers, or None."""
    reason = refuses_smooth(request, findings)
    if reason is not None:
        return reason
    if findings.kinks:
        return "kinks were seen: the target is not smooth"
    inputs, options = findings.region.n_inputs, SmoothDeepValuesOptions()
    if findings.noise.relative > options.coarsest:
        return too_coarse(findings, options.coarsest)
    if request.hidden is not None:
        widths = (inputs, *request.hidden, findings.n_outputs)
        size = sum((a + 1) * b for a, b in pairwise(widths))
        if size > options.most_parameters:
            return f"random starts find {options.most_parameters} parameters, and there are {size}"
        return None
    if inputs > options.most_inputs:
        return f"random starts find widths behind up to {options.most_inputs} inputs, and there are {inputs}"
    return None


def likelihood(request: Request, findings: Findings) -> Likelihood:
    """Come after the methods that read layers one by one, which find wider ones and are quicker."""
    two = request.hidden is not None
    return Likelihood.POSSIBLE if findings.layered or two else Likelihood.UNLIKELY


def cost(question: Question) -> Cost:
    """Count the rows that the largest pair of widths is fitted to, and random starts on them."""
    options = SmoothDeepValuesOptions()
    widest, inputs, outputs = options.widest_unseen, question.inputs, question.outputs
    size = (inputs + 1 + widest + 1) * widest + (widest + 1) * outputs
    size = min(question.parameters, options.most_parameters) if question.told else size
    rows = options.rows_per_parameter * size / question.outputs + options.spare_rows
    how = "random rows, twelve per parameter, and random starts of least squares on them"
    return question.cost(rows, 3.0 * question.activations, 8e-6 * rows * size, how)


METHOD = Method(
    name="smooth_deep_values",
    aliases=("deep_values",),
    description="two small smooth hidden layers, from random starts of least squares",
    layers=(2, 2),
    activations=DEEP_VALUES_ACTIVATIONS,
    refuses=refuses,
    likelihood=likelihood,
    cost=cost,
    search=SmoothDeepValuesSearch,
    options=SmoothDeepValuesOptions,
    wider=False,
)
