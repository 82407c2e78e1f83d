"""Quadratic units with biases and outgoing weights of either sign, from samples by one linear solve.

    f(x) = sum_j a_j (w_j . x + b_j)^2 + c = x^T M x + s . x + c',      M = W diag(a) W^T,  s = 2 W diag(a) b.

M, s and c' are least squares in (d+1)(d+2)/2 columns. The eigenvectors of M are units that give the same
answers, with the eigenvalues as outgoing weights; the part of s outside the range of M, which no unit of rank
M explains, is a skip. Other units give the same answers: only M, s and c' are determined.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unweave.methods.shared.sample_evidence import SAMPLES_PER_PARAMETER, SampleEvidence, information
from unweave.networks.activations import get_activation
from unweave.networks.parameters import NetworkParameters
from unweave.networks.standardized import StandardizedSamples
from unweave.quadratic.exact_solve import QuadraticForm, solve_quadratic_form
from unweave.search import Candidate, GaveUp, Reason, Search

AMBIGUITY = "only the quadratic form is determined: other units with the same form give the same answers"


@dataclass(frozen=True, kw_only=True)
class SamplesFormOptions:
    """When a quadratic form counts."""

    worthless: float = 0.9
    """Share of what an affine map leaves: a form that leaves more explains nothing."""


class SamplesFormReason(Reason):
    """Why no quadratic form is fitted."""

    SEVERAL_OUTPUTS = "quadratic forms are fitted to one output; the samples have {outputs}"
    TOO_FEW_ROWS = "{rows} samples are too few for a quadratic form: about {needed:.0f} are needed"
    NOT_DETERMINED = "the samples do not determine a quadratic form"
    NOTHING_CURVED = "a quadratic form explains the samples hardly better than an affine map"
    MORE_UNITS = "the quadratic form takes {rank} units, more than the {width} told"


class SamplesFormSearch(Search):
    """Solves for the quadratic polynomial and reads units off its eigenvectors."""

    _found = Candidate()

    def candidate(self) -> Candidate:
        """Return the units."""
        return self._found

    def run(self) -> None:
        """Solve, unless the rows are too few to tell a form from other functions."""
        rows, width = self.context.view, self.request.width
        if rows.y.shape[1] != 1:
            raise GaveUp(SamplesFormReason.SEVERAL_OUTPUTS, outputs=rows.y.shape[1])
        samples = StandardizedSamples.of(rows.x, rows.y)
        extended = np.column_stack([samples.inputs, np.ones(len(samples.inputs))])
        needed = SAMPLES_PER_PARAMETER * extended.shape[1] * (extended.shape[1] + 1) / 2
        if len(rows.x) < needed:
            raise GaveUp(SamplesFormReason.TOO_FEW_ROWS, rows=len(rows.x), needed=needed)
        with self.journal.stage("fit quadratic form") as stage:
            form = solve_quadratic_form(extended, samples.answers[:, 0])
            if not form.span.spans:
                raise GaveUp(SamplesFormReason.NOT_DETERMINED)
            model, free = _model(form)
            residual, floor = samples.residual(model), rows.floor()[0]
            stage.figures.update(rows=len(rows.x), width=model.width, residual=residual)
        if not model.width or residual > self.context.options.worthless * samples.affine_residual:
            raise GaveUp(SamplesFormReason.NOTHING_CURVED)
        if width is not None and model.width > width:
            raise GaveUp(SamplesFormReason.MORE_UNITS, rank=model.width, width=width)
        self._found = Candidate(
            samples.network(model),
            SampleEvidence(
                width=model.width,
                found=model.width,
                condition=form.span.condition,
                fit_history=(residual,),
                fit_floor=floor,
                samples_per_parameter=len(rows.x) / free,
            ),
            notes=("units by solving for the quadratic polynomial in all inputs",),
            causes="noise, or no quadratic units",
            ambiguity=AMBIGUITY if model.width > 1 or model.skip is not None else None,
            criterion=information(residual, free, rows.y.size),
        )


def _model(form: QuadraticForm) -> tuple[NetworkParameters, int]:
    """Return units of the form in (x, 1), and how many numbers are free in a form of their rank."""
    inputs = len(form.matrix) - 1
    values, vectors = np.linalg.eigh(form.matrix[:inputs, :inputs])
    kept = np.abs(values) > form.matrix_error
    weights, outgoing = vectors[:, kept], values[kept]
    slope = 2 * form.matrix[:inputs, inputs]
    biases = weights.T @ slope / (2 * outgoing)
    rest = slope - weights @ (weights.T @ slope)
    has_skip = bool(np.linalg.norm(rest) > 2 * form.matrix_error)
    offset = form.matrix[inputs, inputs] - outgoing @ biases**2
    width = len(outgoing)
    model = NetworkParameters.shallow(
        get_activation("quadratic"),
        weights,
        biases,
        outgoing[:, None],
        np.array([offset]),
        rest[:, None] if has_skip else None,
    )
    free = width * inputs - width * (width - 1) // 2 + (inputs if has_skip else width) + 1
    return model, free
