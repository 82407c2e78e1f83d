"""The row of two hidden layers of kinked units in precise answers."""

from __future__ import annotations

from itertools import pairwise

from unweave.methods.relu_deep.search import ReluDeepOptions, ReluDeepSearch
from unweave.methods.shared.kinked.evidence import KinkedEvidence
from unweave.methods.shared.refusals import MANY_INPUTS_OF_LAYERS, refuses_surfaces
from unweave.networks.signs import KINKED
from unweave.probing.findings import Findings
from unweave.search import Cost, Likelihood, Method, Question, Request


def likelihood(request: Request, findings: Findings) -> Likelihood:
    """Leave many inputs to the method that reduces them to what the first layer reads."""
    many = findings.region.n_inputs >= MANY_INPUTS_OF_LAYERS
    return Likelihood.POSSIBLE if many else Likelihood.LIKELY


def cost(question: Question) -> Cost:
    """Count lines with their normals, crossings and checks; figures from tables of measured runs."""
    widths = question.hidden if len(question.hidden) > 1 else (*question.hidden, 1)
    kinks = widths[0] + 3 * sum(widths[1:])  # three are seen of every unit after the first layer
    rows = 400 + kinks * (2 * question.inputs + 15)  # all lines together, and two gradients per kink
    rows += 3 * sum(first * second for first, second in pairwise(widths))  # crossings
    rows += max(2000, 3 * question.parameters)  # checks
    seconds = 0.5 + 3e-6 * question.parameters**2
    how = "kinks on lines, their surfaces followed through the layers before"
    return question.cost(rows, seconds, 32e-6 * question.parameters**2, how)


METHOD = Method(
    name="relu_deep",
    aliases=("surfaces",),
    description="two hidden layers of kinked units, the surfaces of the second followed through the first",
    layers=(2, 2),
    activations=KINKED,
    refuses=refuses_surfaces,
    likelihood=likelihood,
    cost=cost,
    search=ReluDeepSearch,
    options=ReluDeepOptions,
    evidence=KinkedEvidence,
)
