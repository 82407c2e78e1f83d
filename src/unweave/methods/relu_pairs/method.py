"""The row of two hidden layers of kinked units in coarse or rounded answers, behind a link, or in a box."""

from __future__ import annotations

from unweave.methods.relu_pairs.search import ReluPairsOptions, ReluPairsSearch
from unweave.methods.shared.coarse_answers.sharpened import DEFAULT_SHARPENED_OPTIONS
from unweave.methods.shared.kinked.evidence import KinkedEvidence
from unweave.methods.shared.refusals import NO_KINKS, links_to_try, mostly_noise, refuses_surfaces
from unweave.networks.links import LINKS
from unweave.networks.signs import KINKED
from unweave.probing.findings import Findings
from unweave.search import Cost, Likelihood, Method, Question, Request


def refuses(request: Request, findings: Findings) -> str | None:
    """Say why not two kinked layers from such answers, or None."""
    limits = ReluPairsOptions()
    if findings.is_affine:
        return NO_KINKS
    noise = mostly_noise(findings)
    if noise is not None:
        return noise
    if request.activation is None and not findings.kinks:
        return "no kinks were seen: the target is smooth"
    precise = findings.noise.kind == "float64" and links_to_try(request, findings) == ("identity",)
    if precise and not findings.region.has_box:
        return "the answers are precise, everywhere, with no last transformation: surfaces are followed"
    coarsest = limits.coarsest_rounded if _is_sharpened(request, findings) else limits.coarsest
    if findings.noise.relative > coarsest or not findings.noise.repeatable:
        return f"it locates kinks in answers good to {coarsest:.0e} of their spread"
    if findings.region.n_inputs > limits.most_inputs:
        return f"it needs at most {limits.most_inputs} inputs, and there are {findings.region.n_inputs}"
    return None


def _is_sharpened(request: Request, findings: Findings) -> bool:
    """Return whether answers have few decimals and are read between their flips."""
    plain = "identity" in links_to_try(request, findings) and not findings.region.has_box
    return findings.noise.decimals is not None and request.averaging is None and plain


def likelihood(request: Request, findings: Findings) -> Likelihood:
    """Come after one hidden layer on lines, and after surfaces of any depth where these can be followed."""
    precise = findings.noise.kind == "float64"
    if precise and request.hidden is None and refuses_surfaces(request, findings) is None:
        return Likelihood.POSSIBLE
    told = request.hidden is not None
    return Likelihood.LIKELY if told or findings.layered or precise else Likelihood.POSSIBLE


def cost(question: Question) -> Cost:
    """Count lines, hyperplanes, surfaces and checks; figures from measured runs."""
    first, second = (*question.hidden, *question.hidden)[:2] if question.hidden else (1, 1)
    lines = 12 * (first + second) * (question.inputs + 10)
    planes = 10 * first * (2 * question.inputs + 10) + 700 * second
    surfaces = 60 * second * (first + min(first, question.inputs))
    rows = 500 + lines + planes + surfaces + max(1000, question.parameters)
    seconds = 1.0 + 1.2e-4 * rows
    if question.noise == "rounded":
        rows, seconds = DEFAULT_SHARPENED_OPTIONS.rows_per_answer * rows, 3 * seconds
    how = "hyperplanes of the first layer, and surfaces of the second across them"
    return question.cost(rows, seconds, 64e-6 * question.parameters**2, how)


METHOD = Method(
    name="relu_pairs",
    description="two hidden layers of kinked units, their surfaces grown from positions of kinks",
    layers=(2, 2),
    activations=KINKED,
    outputs=LINKS,
    refuses=refuses,
    likelihood=likelihood,
    cost=cost,
    search=ReluPairsSearch,
    options=ReluPairsOptions,
    evidence=KinkedEvidence,
    wider=False,
)
