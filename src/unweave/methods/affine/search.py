"""Targets without a hidden layer: y = T(x W + b) with a link T, a constant included.

Precise answers: z = T^{-1}(y) is affine, and every row's equation has the weight that its answer deserves:
one over the standard deviation of z there. Rows on which the link is saturated count for nothing. Behind a
softmax the log ratios to one class are affine. Coarse answers: the same gives a start; least squares on y
and, for rounded answers, the flips of the last digit give the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.coarse_answers.averaged_fit import fit_to_rows
from unweave.methods.shared.coarse_answers.evidence import CoarseEvidence
from unweave.methods.shared.coarse_answers.refinement import CoarseOptions, Refinement
from unweave.methods.shared.coarse_answers.rows import AnsweredRows
from unweave.methods.shared.refusals import links_to_try
from unweave.networks.activations import SOFTMAX
from unweave.networks.links import Link
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.numerics.axis_moves import answers_along_axes
from unweave.search import Candidate, Evidence, GaveUp, Reason, Search
from unweave.targets.change_of_inputs import in_own_inputs

_MOST_INPUTS_SOLVED = 4000  # by least squares, whose flops grow with the cube of the inputs
_MOST_COARSE_PARAMETERS = 3000  # fitted to coarse answers through J^T J, or by flips
_OPEN = 1e-6  # singular values below, relative to the largest, are left open by the rows
_LINK_NAMES = {SOFTMAX: "a softmax", "exp": "an exponential", "sigmoid": "a sigmoid", "tanh": "a tanh"}


@dataclass(frozen=True, kw_only=True)
class AffineOptions:
    """How many rows are asked."""

    spare_rows: int = 8
    """Rows beyond the D + 1 that determine the map, which show whether it is affine."""
    single_rows: float = 2.0
    """Rows per D + 1 of float32 answers, whose rounding is averaged out."""
    well_read: float = 1e4
    """Standard deviation of z, in eps of the answers, up to which a row counts among those needed."""
    most_rounding: float = 10.0
    """Rounding of precise answers, over what was measured of it, that the residual may show."""
    attempts: int = 6
    """Times that rows are asked, where the link is saturated on too many."""
    first_coarse_rows: float = 3.0
    """Rows per D + 1 of the first fit to coarse answers."""
    coarse: CoarseOptions = field(default_factory=CoarseOptions)
    """Fits to coarse answers."""


class AffineReason(Reason):
    """Why no such map was found."""

    SATURATED = "the link is saturated nearly everywhere in the region: too few rows tell its argument"
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
        findings, region, options = self.findings, self.findings.region, self.context.options
        inputs, noise = region.n_inputs, findings.noise
        with self.journal.stage("affine fit") as stage:
            if inputs > _MOST_INPUTS_SOLVED:
                points = region.sample(options.spare_rows, self.rng)
                answers = self.context.view(points)
                solution, bar = self._along_axes(link), None
            else:
                points, answers, solution, bar = self._solved(link)
            # Rows without effect come out as rounding: an exact zero says what is meant.
            if findings.constant:
                solution[:-1] = 0.0
            network = Network([solution[:-1]], [solution[-1]], [link.name])
            residual = np.sqrt(np.mean((answers - network(points)) ** 2, axis=0))
            rms = float(np.max(residual / findings.spread))
            stage.figures["residual"] = rms
        notes = []
        if findings.is_affine and noise.kind != "noisy":
            what = "constant" if findings.constant else "affine"
            notes.append(f"the target is {what}: no hidden layer is needed")
        elif link.name in findings.straight_links:
            what = _LINK_NAMES.get(link.name, link.name)
            notes.append(f"the target is affine behind {what}: no hidden layer is needed")
        # The rows' rounding, which grows by sqrt(P / (n - P)) in a prediction.
        spare = max(len(points) - inputs - 1, options.spare_rows)
        sigma = np.maximum(noise.sigma_per_output, _rounding(answers, noise.number_format))
        floor = float(np.max(sigma / findings.spread))
        # Sums of many terms round more than one answer does: the spare rows show how much.
        left = residual * np.sqrt(len(points) / spare)
        measured = np.clip(left, sigma, options.most_rounding * sigma)
        evidence = Evidence(
            fit_history=(rms,),
            fit_floor=floor,
            prediction_floor=float(np.max(measured / findings.spread)) * float(np.sqrt((inputs + 1) / spare)),
            parameter_error_bar=bar,
            answer_sigma=None if noise.number_format is None else measured,
        )
        self._found = Candidate(in_own_inputs(network, region), evidence, tuple(notes))

    def _solved(self, link: Link) -> tuple[Array, Array, Array, float | None]:
        """Return rows (n, D), their answers, weights and bias (D + 1, K), and the largest standard error."""
        region, options = self.findings.region, self.context.options
        needed, number = region.n_inputs + 1, self.findings.noise.number_format
        count = int(options.single_rows * needed) if self.findings.noise.kind == "float32" else needed
        well_read = np.inf if number is None or link.name == "identity" else options.well_read * number.eps
        points, missing = np.empty((0, region.n_inputs)), count + options.spare_rows
        for _ in range(options.attempts):
            points = np.concatenate([points, region.sample(missing, self.rng)])
            answers = self.context.view(points)
            values, errors = self._read(link, answers)
            well = int((errors <= well_read).sum(axis=0).min())
            missing = min(count + options.spare_rows // 2 - well, needed)
            if missing <= 0:
                break
        if np.isfinite(errors).sum(axis=0).min() < needed + options.spare_rows // 2:
            raise GaveUp(AffineReason.SATURATED)
        design = np.concatenate([points, np.ones((len(points), 1))], axis=1)
        solution, bar = _least_squares(design, values, errors, weighted=link.name != "identity")
        return points, answers, _centered(solution, link), bar

    def _read(self, link: Link, answers: Array) -> tuple[Array, Array]:
        """Return what is affine (n, K) and its standard deviations; of a softmax against its surest class."""
        noise = self.findings.noise
        reference = int(np.argmax(answers.min(axis=0))) if link.name == SOFTMAX else None
        return link.contrasts(answers, noise.sigma_per_output, noise.number_format, reference)

    def _fit_coarse(self, link: Link) -> None:
        """Fit rounded or noisy answers, then bisect their last digit or ask many."""
        options: AffineOptions = self.context.options
        rows = AnsweredRows(self.context.view, self.findings.noise, self.rng, options.coarse.rows)
        best = self._refinement = Refinement(self.context, rows, CoarseEvidence(), options.coarse)
        best.measure_noise()
        with self.journal.stage("affine fit") as stage:
            rows.extend_to(options.first_coarse_rows * (rows.n_inputs + 1) + options.spare_rows)
            start = self._start(link, rows)
            fit = fit_to_rows(start, rows, on_step=self.on_step)
            stage.figures["misfit"] = fit.misfit
            best.keep(fit)
        if not best.is_explained:
            raise GaveUp(
                AffineReason.NOT_EXPLAINED, link=_LINK_NAMES.get(link.name, "no link"), misfit=fit.misfit
            )
        best.refine(lambda fit: fit, lambda fit: fit)

    def _start(self, link: Link, rows: AnsweredRows) -> NetworkParameters:
        """Return a first map from the rows on which z can be read; few of them give a short one."""
        noise, answers = self.findings.noise, rows.answers
        design = np.concatenate([rows.points, np.ones((len(rows), 1))], axis=1)
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


def _rounding(answers: Array, number: np.finfo[Any] | None) -> Array:
    """Return the rounding (K,) of these answers, which may be larger than where noise was measured."""
    if number is None:
        return np.zeros(answers.shape[1])
    return np.asarray(number.eps / 4 * np.sqrt(np.mean(answers**2, axis=0)))


def _centered(solution: Array, link: Link) -> Array:
    """Return (D + 1, K) with mean zero over the classes of a softmax."""
    return solution - solution.mean(axis=1, keepdims=True) if link.name == SOFTMAX else solution


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


def _least_squares(
    design: Array, values: Array, errors: Array, *, weighted: bool
) -> tuple[Array, float | None]:
    """Solve for (D + 1, K), each column with its own weights, and tell the largest standard error."""
    if not weighted:
        return np.asarray(np.linalg.lstsq(design, values, rcond=None)[0], dtype=np.float64), None
    columns, bars = [], []
    for value, error in zip(values.T, errors.T, strict=True):
        seen = np.isfinite(error)
        weight = 1 / np.maximum(error[seen, None], np.finfo(np.float64).tiny)
        q, r = np.linalg.qr(design[seen] * weight)
        columns.append(np.linalg.solve(r, q.T @ (value[seen] * weight[:, 0])))
        bars.append(float(np.linalg.norm(np.linalg.inv(r), axis=1).max()))
    return np.stack(columns, axis=1), max(bars)
