"""The row of two hidden layers of kinked units in precise answers."""

from __future__ import annotations

from itertools import pairwise

from unweave.methods.relu_deep.search import ReluDeepSearch
from unweave.methods.shared.kinked.evidence import KinkedEvidence
from unweave.methods.shared.refusals import refuses_kinked
from unweave.networks.signs import KINKED
from unweave.probing.look import Findings
from unweave.search import Cost, Method, Question, Request

_ROWS_ON_LINES = 400  # measured, for all lines together
_KINKS_PER_UNIT = 3  # seen of every unit after the first layer
_ROWS_PER_KINK = 15  # beside two gradients
_ROWS_PER_WEIGHT = 3  # crossings, per weight of a unit after the first layer
_ROWS_OF_CHECKS = 2000  # fresh rows, at least


def refuses(request: Request, findings: Findings) -> str | None:
    """Say why surfaces cannot be followed, or None."""
    if findings.region.has_box:
        return "it follows surfaces wherever they lead, and nothing outside the domain may be asked"
    return refuses_kinked(request, findings)


def cost(question: Question) -> Cost:
    """Lines with their normals, crossings, checks; figures from tables of measured runs."""
    widths = question.hidden if len(question.hidden) > 1 else (*question.hidden, 1)
    kinks = widths[0] + _KINKS_PER_UNIT * sum(widths[1:])
    rows = _ROWS_ON_LINES + kinks * (2 * question.inputs + _ROWS_PER_KINK)
    rows += _ROWS_PER_WEIGHT * sum(first * second for first, second in pairwise(widths))
    rows += max(_ROWS_OF_CHECKS, 3 * question.parameters)
    seconds = 0.5 + 3e-6 * question.parameters**2
    how = "kinks on lines, their surfaces followed through the layers before"
    return question.cost(rows, seconds, 32e-6 * question.parameters**2, how)


METHOD = Method(
    name="relu_deep",
    aliases=("surfaces",),
    description="two hidden layers of kinked units, the surfaces of the second followed through the first",
    layers=(2, 2),
    activations=KINKED,
    refuses=refuses,
    cost=cost,
    search=ReluDeepSearch,
    evidence=KinkedEvidence,
)
