"""The row of one hidden layer of kinked units in precise answers."""

from __future__ import annotations

from unweave.methods.relu.search import ReluOptions, ReluSearch
from unweave.methods.shared.kinked.evidence import KinkedEvidence
from unweave.methods.shared.refusals import refuses_kinked
from unweave.networks.clipped_units import CLIPPED
from unweave.networks.links import LINKS
from unweave.networks.signs import KINKED
from unweave.search import Cost, Method, Question


def cost(question: Question) -> Cost:
    """Count a line, every unit's hyperplane twice, and a fit; figures from a table of measured runs."""
    size, width = question.parameters, max(question.hidden, default=1)
    rows = int(1.9 * size) + 40 if question.tight else int(3.1 * size) + 80
    how = "kinks on a line, and gradients there" if question.tight else "kinks on a line, two rows per weight"
    seconds = 0.05 + 7e-5 * size + 1e-4 * width**2
    return question.cost(rows, seconds, 8e-6 * rows * question.inputs, how)


METHOD = Method(
    name="relu",
    aliases=("lines",),
    description="one hidden layer of kinked units, from the kinks on a long line",
    layers=(1, 1),
    activations=(*KINKED, *CLIPPED),
    outputs=LINKS,
    refuses=refuses_kinked,
    cost=cost,
    search=ReluSearch,
    options=ReluOptions,
    evidence=KinkedEvidence,
)
