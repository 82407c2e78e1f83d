"""The row of one smooth hidden layer with more units than derivatives show."""

from __future__ import annotations

from unweave.methods.shared.refusals import refuses_smooth, too_coarse
from unweave.methods.smooth_wide.search import SmoothWideSearch, WideOptions
from unweave.probing.findings import Findings
from unweave.search import Cost, Likelihood, Method, Question, Request

COARSEST = 1e-12
"""Noise relative to the spread up to which an exact fit is told from one that is nearly so."""
FEWEST_INPUTS = 5
"""Inputs below which random starts of least squares find as many units as rows can tell apart."""
_SECONDS_PER_FLOP = 5e-11  # of J^T J in float32 and all else that a step takes
_STEPS = 10  # where the far field shows most units; in a box, ten times as many
_CROSSING_ROWS = 40  # of a unit on a circle
_SCALE_ROWS = 700  # that tell how far out the target bends, and how it ends


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


def likelihood(request: Request, findings: Findings) -> Likelihood:
    """It sees through no link."""
    behind_link = "identity" not in findings.links or "sigmoid" in findings.links
    return Likelihood.LAST if behind_link else Likelihood.POSSIBLE


def cost(question: Question) -> Cost:
    """Count far-field crossings and profiles of every unit, and three rows per parameter near by."""
    options, inputs, width = WideOptions(), question.inputs, question.width
    per_unit = _CROSSING_ROWS + 4 * inputs + len(options.far.reaches) * len(options.far.profile)
    near = options.rows_for(width, inputs, question.outputs)
    size = width * (inputs + 1 + question.outputs)
    how = f"about {per_unit} rows per unit in the far field, three per parameter near by"
    rows = _SCALE_ROWS + width * per_unit + near
    seconds = 1.0 + _STEPS * (near * size**2 / 2 + size**3 / 3) * _SECONDS_PER_FLOP
    return question.cost(rows, seconds, 16e-6 * size**2, how)


METHOD = Method(
    name="smooth_wide",
    aliases=("wide",),
    description="one smooth hidden layer of many units, grown under a falling ridge",
    layers=(1, 1),
    refuses=refuses,
    likelihood=likelihood,
    cost=cost,
    search=SmoothWideSearch,
    options=WideOptions,
    wider=False,
)
