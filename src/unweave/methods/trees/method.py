"""The row of targets that answer in steps at thresholds of single inputs."""

from __future__ import annotations

from unweave.methods.trees.search import TreesEvidence, TreesOptions, TreesSearch
from unweave.search import Cost, Method, Question

_ROWS_PER_THRESHOLD = 45  # one bisection, and the corners around it
_THRESHOLDS_PER_INPUT = 30


def cost(question: Question) -> Cost:
    """Count a bisection for every threshold of a model of middling size."""
    rows = TreesOptions().quiet_rows + _ROWS_PER_THRESHOLD * _THRESHOLDS_PER_INPUT * question.inputs
    return question.cost(rows, 1e-4 * rows, 1e-5 * rows * question.inputs, "45 rows per threshold")


METHOD = Method(
    name="trees",
    description="decision trees, forests and boosting: thresholds by bisection, then the steps' products",
    layers=(0, 0),
    minimal=True,
    outputs=None,
    steps=True,
    wider=False,
    cost=cost,
    search=TreesSearch,
    options=TreesOptions,
    evidence=TreesEvidence,
)
