"""The row of targets without a hidden layer."""

from __future__ import annotations

from unweave.methods.affine.search import AffineOptions, AffineSearch
from unweave.probing.look import Findings
from unweave.search import Cost, Method, Question, Request


def refuses(request: Request, findings: Findings) -> str | None:
    """Say why the target is not affine, or None."""
    if request.hidden == () or findings.linear or findings.constant:
        return None
    return "the target is not affine"


def cost(question: Question) -> Cost:
    """Count D + 1 rows and a few more."""
    rows = question.inputs + 1 + AffineOptions().spare_rows
    return question.cost(rows, 0.01, 8e-6 * rows * question.inputs, "one row per input, and nine")


METHOD = Method(
    name="affine",
    description="no hidden layer, by least squares",
    layers=(0, 0),
    minimal=True,
    refuses=refuses,
    cost=cost,
    search=AffineSearch,
    options=AffineOptions,
)
