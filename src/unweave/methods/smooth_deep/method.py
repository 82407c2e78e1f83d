"""The method for several smooth hidden layers, as a row of the table."""

from __future__ import annotations

from itertools import pairwise

from unweave.methods.shared.refusals import GROWS_ALONG_RAYS, NOTHING_CURVED, too_coarse
from unweave.methods.smooth_deep.options import SmoothDeepOptions
from unweave.methods.smooth_deep.search import DEEP_ACTIVATIONS, SmoothDeepSearch
from unweave.probing.findings import Findings
from unweave.search import Cost, Likelihood, Method, Question, Request

COARSEST_FOR_DEPTH = 1e-11
"""Largest noise relative to the spread at which second differences through a layer still show it."""

_SITES_PER_LAYER = 300  # gradients per hidden layer after the first, measured
_SITES_PER_WEIGHT = 1.4  # gradients per inner weight over outputs, measured


def refuses(request: Request, findings: Findings) -> str | None:
    """Say why the target cannot have several smooth hidden layers; None if it can."""
    widening = _first_widening((findings.region.n_inputs, *(request.hidden or ())))
    if widening is not None:
        return (
            f"it handles layers that are no wider than what they read, and layer {widening} of "
            f"hidden={list(request.hidden or ())} is wider"
        )
    if findings.is_affine:
        return NOTHING_CURVED
    if findings.rectifies:
        return GROWS_ALONG_RAYS
    if findings.kinks:
        return "kinks were seen: the target is not smooth"
    if findings.noise.relative > COARSEST_FOR_DEPTH:
        return (
            f"{too_coarse(findings, COARSEST_FOR_DEPTH)}: second differences through a layer would drown. "
            "A network with one hidden layer can still be recovered from such answers"
        )
    return None


def _first_widening(widths: tuple[int, ...]) -> int | None:
    """Return the number of the first layer that is wider than the one before, inputs first."""
    return next((i for i in range(1, len(widths)) if widths[i] > widths[i - 1]), None)


def likelihood(request: Request, findings: Findings) -> Likelihood:
    """Judge by the far field, which shows layers."""
    return Likelihood.LIKELY if findings.layered else Likelihood.UNLIKELY


def cost(question: Question) -> Cost:
    """Count gradients through the known layers; figures come from measured runs."""
    widths = question.hidden if len(question.hidden) > 1 else (*question.hidden, 1)
    inner = sum(first * second for first, second in pairwise(widths)) / question.outputs
    sites = _SITES_PER_LAYER * len(widths) - 200 + int(_SITES_PER_WEIGHT * inner)
    rows = sites * (2 * min(question.inputs, widths[0]) + 1) + int(
        1.5 * question.parameters / question.outputs
    )
    seconds = 0.5 + 3e-7 * question.parameters**2
    how = f"about {sites} gradients through the layers found so far"
    return question.cost(rows, seconds, 12e-6 * min(question.parameters, 12_000) ** 2, how)


METHOD = Method(
    name="smooth_deep",
    aliases=("deep",),
    description="several smooth hidden layers, one by one from the inputs",
    layers=(2, None),
    activations=DEEP_ACTIVATIONS,
    outputs=None,
    refuses=refuses,
    likelihood=likelihood,
    cost=cost,
    search=SmoothDeepSearch,
    options=SmoothDeepOptions,
)
