"""The row of two hidden layers of kinked units in coarse answers, behind a link, or inside a box."""

from __future__ import annotations

from unweave.methods.relu_pairs.search import ReluPairsOptions, ReluPairsSearch
from unweave.methods.shared.kinked.evidence import KinkedEvidence
from unweave.methods.shared.refusals import NO_KINKS, links_to_try, mostly_noise
from unweave.networks.links import LINKS
from unweave.networks.signs import KINKED
from unweave.probing.look import Findings
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
    if findings.noise.relative > limits.coarsest or not findings.noise.repeatable:
        return f"it locates kinks in answers good to {limits.coarsest:.0e} of their spread"
    if findings.region.n_inputs > limits.most_inputs:
        return f"it needs at most {limits.most_inputs} inputs, and there are {findings.region.n_inputs}"
    return None


def likelihood(request: Request, findings: Findings) -> Likelihood:
    """Come after one hidden layer, which is cheaper to rule out, unless two were told."""
    return Likelihood.LIKELY if request.hidden is not None else Likelihood.POSSIBLE


def cost(question: Question) -> Cost:
    """Count lines, hyperplanes and rows of the fits; figures from measured runs."""
    first, second = (*question.hidden, *question.hidden)[:2] if question.hidden else (1, 1)
    lines = 6 * (first + second) * (question.inputs + 10)
    planes = 10 * first * (2 * question.inputs + 10)
    behind = 10 * second * (2 * first + 1 + question.outputs) / min(question.outputs, 4)
    rows = 500 + lines + planes + behind + max(1000, question.parameters)
    seconds = 1.0 + 3e-5 * question.parameters**2
    how = "hyperplanes of the first layer, and one hidden layer behind them"
    return question.cost(rows, seconds, 64e-6 * question.parameters**2, how)


METHOD = Method(
    name="relu_pairs",
    description="two hidden layers of kinked units, the second fitted behind the first one's hyperplanes",
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
    by_name_only=True,
)
