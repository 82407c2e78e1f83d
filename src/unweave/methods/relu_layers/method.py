"""The row of hidden layers of kinked units in precise answers."""

from __future__ import annotations

from itertools import pairwise

from unweave.methods.relu_layers.options import ReluLayersOptions
from unweave.methods.relu_layers.search import ReluLayersSearch
from unweave.methods.shared.kinked.evidence import KinkedEvidence
from unweave.methods.shared.refusals import MANY_INPUTS_OF_LAYERS, refuses_surfaces
from unweave.networks.signs import KINKED
from unweave.probing.findings import Findings
from unweave.search import Cost, Likelihood, Method, Question, Request


def likelihood(request: Request, findings: Findings) -> Likelihood:
    """Leave two hidden layers behind few inputs to the method for them first: it takes fewer rows."""
    deeper = request.hidden is not None and len(request.hidden) > 2
    first = deeper or findings.region.n_inputs >= MANY_INPUTS_OF_LAYERS
    return Likelihood.LIKELY if first else Likelihood.POSSIBLE


def cost(question: Question) -> Cost:
    """Count lines with their normals, crossings and checks; figures from tables of measured runs."""
    widths = question.hidden if len(question.hidden) > 1 else (*question.hidden, 1)
    kinks = widths[0] + 4 * sum(widths[1:])  # four are seen of every unit after the first layer
    rows = 600 + kinks * (2 * question.inputs + 15)  # all lines together, and two gradients per kink
    rows += 5 * sum(first * second for first, second in pairwise(widths))  # crossings
    rows += max(2000, 3 * question.parameters)  # checks
    seconds = 1.0 + 1e-5 * question.parameters**2
    how = "kinks on lines, one pool for all layers, their surfaces followed through the layers before"
    return question.cost(rows, seconds, 32e-6 * question.parameters**2, how)


METHOD = Method(
    name="relu_layers",
    aliases=("towers",),
    description="any number of hidden layers of kinked units, from one pool of kinks",
    layers=(2, None),
    activations=KINKED,
    refuses=refuses_surfaces,
    likelihood=likelihood,
    cost=cost,
    search=ReluLayersSearch,
    options=ReluLayersOptions,
    evidence=KinkedEvidence,
)
