"""The row of one smooth hidden layer with more units than derivatives show."""

from __future__ import annotations

from unweave.methods.shared.refusals import refuses_smooth, too_coarse
from unweave.methods.smooth_wide.search import SmoothWideSearch, WideOptions
from unweave.probing.look import Findings
from unweave.search import Cost, Likelihood, Method, Question, Request

COARSEST = 1e-12
"""Noise relative to the spread up to which an exact fit is told from one that is nearly so."""
FEWEST_INPUTS = 5
"""Inputs below which random starts of least squares find as many units as rows can tell apart."""
_SECONDS_PER_FLOP = 5e-11  # of J^T J in float32 and all else that a step takes
_STEPS = 150  # of all levels together, in the size of the last one


def refuses(request: Request, findings: Findings) -> str | None:
    """Say why not, or None."""
    reason = refuses_smooth(request, findings)
    if reason is not None:
        return reason
    if findings.noise.relative > COARSEST:
        return too_coarse(findings, COARSEST)
    if findings.region.n_inputs < FEWEST_INPUTS:
        return f"it needs {FEWEST_INPUTS} inputs, and there are {findings.region.n_inputs}"
    if findings.layered:
        return "the far field shows more than one hidden layer"
    return None


def cost(question: Question) -> Cost:
    """Count the rows of the largest fit, and its steps."""
    options = WideOptions()
    units = int((1 + options.growth.growth) * question.width)
    rows = options.rows_for(units, question.inputs, question.outputs)
    size = units * (question.inputs + 1 + question.outputs)
    seconds = _STEPS * (rows * size**2 / 2 + size**3 / 3) * _SECONDS_PER_FLOP
    how = "random rows, three per parameter, on which units are grown under a falling ridge"
    return question.cost(rows, 1.0 + seconds, 16e-6 * size**2, how)


METHOD = Method(
    name="smooth_wide",
    aliases=("wide",),
    description="one smooth hidden layer of many units, grown under a falling ridge",
    layers=(1, 1),
    refuses=refuses,
    likelihood=lambda request, findings: Likelihood.POSSIBLE,
    cost=cost,
    search=SmoothWideSearch,
    options=WideOptions,
    wider=False,
)
