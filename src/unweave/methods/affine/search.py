"""Targets without a hidden layer: y = T(x W + b) with a link T, a constant included.

Precise answers: z = T^{-1}(y) is affine, and weighted least squares solves for it. Coarse answers: the same
gives a start; least squares on y and, for rounded answers, the flips of the last digit give the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.coarse_answers.averaged_fit import fit_to_rows
from unweave.methods.shared.coarse_answers.evidence import CoarseEvidence
from unweave.methods.shared.coarse_answers.refinement import CoarseOptions, Refinement
from unweave.methods.shared.coarse_answers.rows import AnsweredRows
from unweave.methods.shared.linked_least_squares import (
    LINK_NAMES,
    LinkedRows,
    LinkedSolution,
    evidence_of,
    solve_linked,
)
from unweave.methods.shared.refusals import links_to_try
from unweave.networks.activations import SOFTMAX
from unweave.networks.links import Link
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.axis_moves import answers_along_axes
from unweave.search import Candidate, GaveUp, Reason, Search
from unweave.targets.change_of_inputs import in_own_inputs

_MOST_INPUTS_SOLVED = 4000  # by least squares, whose flops grow with the cube of the inputs
_MOST_COARSE_PARAMETERS = 3000  # fitted to coarse answers through J^T J, or by flips
_OPEN = 1e-6  # singular values below, relative to the largest, are left open by the rows


@dataclass(frozen=True, kw_only=True)
class AffineOptions:
    """How many rows are asked."""

    rows: LinkedRows = field(default_factory=LinkedRows)
    """Rows of precise answers."""
    first_coarse_rows: float = 3.0
    """Rows per D + 1 of the first fit to coarse answers."""
    coarse: CoarseOptions = field(default_factory=CoarseOptions)
    """Fits to coarse answers."""


class AffineReason(Reason):
    """Why no such map was found."""

    NOT_EXPLAINED = (
        "an affine map behind {link} leaves {misfit:.2g} standard deviations where noise alone would leave 1"
    )


class AffineSearch(Search):
    """Weighted least squares on D + 1 random rows and a few to spare; coarse answers are refined."""

    _found = Candidate()
    _refinement: Refinement[CoarseEvidence] | None = None

    def run(self) -> None:
        """Ask the rows and solve, behind the likeliest link."""
        coarse = self.findings.is_noisy and not self.findings.constant
        parameters = (self.findings.region.n_inputs + 1) * self.findings.n_outputs
        if coarse and parameters <= _MOST_COARSE_PARAMETERS:
            self._fit_coarse(self._link())
        else:
            self._fit_precise(self._link())

    def candidate(self) -> Candidate:
        """Return the map, once it is solved for."""
        return self._found if self._refinement is None else self._refinement.candidate()

    def _link(self) -> Link:
        """Return the likeliest link: one candidate is put to the judge."""
        findings, told = self.findings, self.request.output_activation
        if told is not None:
            return Link(told)
        if findings.is_affine:
            return Link("identity")
        return Link((findings.straight_links or links_to_try(self.request, findings))[-1])

    def _fit_precise(self, link: Link) -> None:
        findings, region, rows = self.findings, self.findings.region, self.context.options.rows
        unknowns = region.n_inputs + 1
        with self.journal.stage("affine fit") as stage:
            if region.n_inputs > _MOST_INPUTS_SOLVED:
                points = region.sample(rows.spare_rows, self.rng)
                solved = LinkedSolution(points, self.context.view(points), self._along_axes(link))
            else:
                solved = solve_linked(self.context, link, _with_ones, unknowns, rows)
            weights, bias = solved.weights[:-1], solved.weights[-1]
            # Rows without effect come out as rounding: an exact zero says what is meant.
            network = Network([0 * weights if findings.constant else weights], [bias], [link.name])
            evidence = evidence_of(solved, network, unknowns, findings, rows)
            stage.figures["residual"] = evidence.fit_history[-1]
        notes = []
        if findings.is_affine and findings.noise.kind != "noisy":
            what = "constant" if findings.constant else "affine"
            notes.append(f"the target is {what}: no hidden layer is needed")
        elif link.name in findings.straight_links:
            what = LINK_NAMES.get(link.name, link.name)
            notes.append(f"the target is affine behind {what}: no hidden layer is needed")
        self._found = Candidate(in_own_inputs(network, region), evidence, tuple(notes))

    def _fit_coarse(self, link: Link) -> None:
        """Fit rounded or noisy answers, then bisect their last digit or ask many."""
        options: AffineOptions = self.context.options
        rows = AnsweredRows(self.context.view, self.findings.noise, self.rng, options.coarse.rows)
        best = self._refinement = Refinement(self.context, rows, CoarseEvidence(), options.coarse)
        best.measure_noise()
        with self.journal.stage("affine fit") as stage:
            rows.extend_to(options.first_coarse_rows * (rows.n_inputs + 1) + options.rows.spare_rows)
            start = self._start(link, rows)
            fit = fit_to_rows(start, rows, on_step=self.on_step)
            stage.figures["misfit"] = fit.misfit
            best.keep(fit)
        if not best.is_explained:
            raise GaveUp(
                AffineReason.NOT_EXPLAINED, link=LINK_NAMES.get(link.name, "no link"), misfit=fit.misfit
            )
        best.refine(lambda fit: fit, lambda fit: fit)

    def _start(self, link: Link, rows: AnsweredRows) -> NetworkParameters:
        """Return a first map from the rows on which z can be read; few of them give a short one."""
        noise, answers = self.findings.noise, rows.answers
        design = _with_ones(rows.points)
        if link.name == SOFTMAX:
            solution = _from_ratios(link, design, answers, noise.sigma_per_output)
        else:
            values, errors = link.contrasts(answers, noise.sigma_per_output, None)
            columns = [_solved(design, *pair) for pair in zip(values.T, errors.T, strict=True)]
            solution = np.stack(columns, axis=1)
        return NetworkParameters.from_network(Network([solution[:-1]], [solution[-1]], [link.name]))

    def _along_axes(self, link: Link) -> Array:
        """Return weights and bias (D + 1, K) from one step along every axis."""
        ask, base = self.context.view, np.zeros(self.findings.region.n_inputs)
        if not self.findings.region.contains(base[None])[0]:
            base = self.findings.region.sample(1, self.rng)[0]
        steps = np.ones(len(base))
        bounds = self.findings.region.normalised_bounds
        if bounds is not None:
            up, down = bounds[1] - base, base - bounds[0]
            steps = np.where(up >= down, up, -down)
        first = link.inverse(ask(base[None]))[0]
        answers, taken = answers_along_axes(ask, base, steps)
        slopes = (link.inverse(answers) - first) / taken[:, None]
        return np.vstack([slopes, first - base @ slopes])


def _with_ones(points: Array) -> Array:
    return np.concatenate([points, np.ones((len(points), 1))], axis=1)


def _solved(design: Array, values: Array, errors: Array) -> Array:
    """Solve for (P,) by weighted least squares; as short as can be where the rows leave it open."""
    seen = np.isfinite(errors)
    weight = 1 / errors[seen]
    scaled = design[seen] * weight[:, None]
    return np.asarray(np.linalg.lstsq(scaled, values[seen] * weight, rcond=_OPEN)[0])


def _from_ratios(link: Link, design: Array, answers: Array, sigma: Array) -> Array:
    """Solve for all classes (D + 1, K) at once: every row compares those it shows with its likeliest one."""
    terms, classes = design.shape[1], answers.shape[1]
    blocks, values, errors = [], [], []
    for reference in range(classes):
        own = answers.argmax(axis=1) == reference
        read, error = link.contrasts(answers[own], sigma, None, reference)
        for other in range(classes):
            if other == reference:
                continue
            block = np.zeros((int(own.sum()), terms, classes))
            block[:, :, other], block[:, :, reference] = design[own], -design[own]
            blocks.append(block.reshape(-1, terms * classes)[np.isfinite(error[:, other])])
            values.append(read[np.isfinite(error[:, other]), other])
            errors.append(error[np.isfinite(error[:, other]), other])
    joined = np.concatenate(blocks), np.concatenate(values), np.concatenate(errors)
    return _solved(*joined).reshape(terms, classes)
