"""The row of one smooth hidden layer in precise answers."""

from __future__ import annotations

from unweave.derivatives.active_subspace import SPARE_GRADIENTS
from unweave.derivatives.jet_sources import FEWEST_SITES
from unweave.methods.shared.refusals import refuses_smooth
from unweave.methods.smooth.evidence import SmoothEvidence
from unweave.methods.smooth.lattice_route import LatticeOptions
from unweave.methods.smooth.options import SmoothOptions
from unweave.methods.smooth.random_slice import ROWS_PER_LINE, SliceCost, slice_parameters
from unweave.methods.smooth.search import SmoothSearch
from unweave.probing.findings import Findings
from unweave.search import Cost, Likelihood, Method, Question, Request
from unweave.search.cost import fit_seconds, iterated_fit_seconds


def likelihood(request: Request, findings: Findings) -> Likelihood:
    """It sees through no link and little noise, and finds one layer only."""
    # The target's own derivatives are as good as its answers, so that a module in float32 is no hindrance.
    coarse = findings.noise.kind != "float64" and not request.autodiff
    # Of few answers all lie between zero and one by accident.
    behind_link = "identity" not in findings.links or ("sigmoid" in findings.links and not request.tight)
    return Likelihood.LAST if findings.layered or coarse or behind_link else Likelihood.LIKELY


def cost(question: Question) -> Cost:
    """Estimate the search through a slice where it runs, else through Hessians, in the active subspace."""
    width, options = question.width, SmoothOptions()
    if question.tight and width <= question.inputs and question.noise == "float64":
        rows = options.pencils.rows(options.lattices.slices, question.inputs, width, question.outputs)
        seconds = 0.05 + 2e-3 * question.activations * width
        return question.cost(rows, seconds, 8e-6 * rows * question.parameters, "two Hessians, and values")
    by_slice = _slice_of(question, width, options.lattices)
    if by_slice is None:
        return _hessian_cost(question, width, options.frame.directions.surplus)
    rows = by_slice.rows + options.lattices.slices.lines * ROWS_PER_LINE
    size = slice_parameters(width, by_slice.dimension, question.outputs)
    how = f"lattices on a slice of {by_slice.dimension} of {question.inputs} inputs"
    if question.told:
        how += f"; {by_slice.lattice:,} rows more if they have to be mirrored"
    profiles = 4e-3 * question.activations * width * (1 + question.outputs / 5)
    slices, dimension = options.lattices.slices, by_slice.dimension
    seconds, megabytes = fit_seconds(size, 1.1 * size), 12e-6 * size**2
    if slices.fits_slopes(width, dimension, question.outputs):
        sites = slices.stars_needed(width, dimension, question.outputs)
        seconds = iterated_fit_seconds(20.0 * sites * dimension * width * question.outputs)
        megabytes = 1e-4 * sites * width * question.outputs + 3e-5 * width * dimension**2
    return question.cost(rows, 0.2 + profiles + seconds, megabytes, how)


def _slice_of(question: Question, width: int, options: LatticeOptions) -> SliceCost | None:
    """Return the slice that would be used, or None."""
    if question.noise != "float64" or not options.fewest_inputs <= question.inputs <= options.most_inputs:
        return None
    if question.told:
        cheapest = options.slices.cheapest(question.inputs, width, question.outputs)
    else:  # a search that does not know the width ends at the first slice that shows it
        dimension = next(options.slices.dimensions(question.inputs, width), None)
        if dimension is None:
            return None
        cheapest = options.slices.cost(question.inputs, width, question.outputs, dimension, mirrored=True)
    if cheapest is None:
        return None
    worth_it = options.is_worth_it(width, cheapest.dimension, question.outputs, question.told)
    return cheapest if worth_it else None


def _hessian_cost(question: Question, width: int, surplus: float) -> Cost:
    inputs, outputs, size = question.inputs, question.outputs, question.parameters
    gradients = (min(width, inputs) + SPARE_GRADIENTS) // outputs + 2
    rows = gradients * (2 * inputs + 1)
    if width <= inputs:
        rows += 5 * (width**2 + width + 1) + 17 * width + int(1.6 * width * (width + 2)) * 2
        how = f"gradients in all inputs, Hessians in the {width} directions that matter"
        fit = width * (width + 1 + outputs)
    else:
        sites = max(FEWEST_SITES, int(surplus * width / outputs))
        rows += (sites + (0 if question.told else 3)) * (inputs**2 + inputs + 1) + size // 2
        how = f"{sites} Hessians in all inputs"
        fit = size
    return question.cost(rows, 0.5 + fit_seconds(min(fit, 8000), 2.0 * fit), 8e-6 * inputs**2 * width, how)


METHOD = Method(
    name="smooth",
    aliases=("shallow",),
    description="one smooth hidden layer, through its derivatives and Gauss-Newton",
    layers=(1, 1),
    refuses=refuses_smooth,
    likelihood=likelihood,
    cost=cost,
    search=SmoothSearch,
    options=SmoothOptions,
    evidence=SmoothEvidence,
    derivatives=True,
)
