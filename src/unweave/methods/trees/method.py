"""The row of targets that answer in steps at thresholds of single inputs."""

from __future__ import annotations

from unweave.methods.trees.search import TreesEvidence, TreesOptions, TreesSearch
from unweave.search import Cost, Method, Question


def cost(question: Question) -> Cost:
    """Count a bisection for every threshold of a model of middling size."""
    options = TreesOptions()
    rows = options.quiet_rows + options.rows_per_threshold * options.usual_thresholds * question.inputs
    return question.cost(
        rows, 1e-4 * rows, 1e-5 * rows * question.inputs, f"{options.rows_per_threshold} rows per threshold"
    )


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
