"""Targets without a hidden layer: y = T(x W + b) with a link T, a constant included.

Precise answers: z = T^{-1}(y) is affine, and every row gives its equation the weight that its answer deserves:
one over the standard deviation of z there. Rows on which the link is saturated count for nothing. Behind a
softmax the log ratios to one class are affine. Coarse answers: the same gives a start; least squares on y and,
for rounded answers, the flips of the last digit give the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field

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
_LINK_NAMES = {SOFTMAX: "a softmax", "exp": "an exponential", "sigmoid": "a sigmoid", "tanh": "a tanh"}


@dataclass(frozen=True, kw_only=True)
class AffineOptions:
    """How many rows are asked."""

    spare_rows: int = 8
    """Rows beyond the D + 1 that determine the map, which show whether it is affine."""
    single_rows: float = 2.0
    """Rows per D + 1 of float32 answers, whose rounding is averaged out."""
    attempts: int = 4
    """Times that so many rows are asked again where the link is saturated on too many."""
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
        """Ask the rows and solve, behind each link that is possible."""
        for link in self._links():
            coarse = self.findings.is_noisy and not self.findings.constant
            parameters = (self.findings.region.n_inputs + 1) * self.findings.n_outputs
            if coarse and parameters <= _MOST_COARSE_PARAMETERS:
                self._fit_coarse(link)
            else:
                self._fit_precise(link)

    def candidate(self) -> Candidate:
        """Return the map, once it is solved for."""
        return self._found if self._refinement is None else self._refinement.candidate()

    def _links(self) -> list[Link]:
        """Return the likeliest link: one candidate is put to the judge."""
        findings, told = self.findings, self.request.output_activation
        if told is not None:
            return [Link(told)]
        if findings.is_affine:
            return [Link("identity")]
        return [Link((findings.straight_links or links_to_try(self.request, findings))[-1])]

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
        elif not findings.is_affine:
            what = _LINK_NAMES.get(link.name, link.name)
            notes.append(f"the target is affine behind {what}: no hidden layer is needed")
        # The rows' rounding, which grows by sqrt(P / (n - P)) in a prediction.
        sigma = np.maximum(noise.sigma_per_output, _rounding(answers, noise.number_format))
        floor = float(np.max(sigma / findings.spread))
        spare = max(len(points) - inputs - 1, options.spare_rows)
        evidence = Evidence(
            fit_history=(rms,),
            fit_floor=floor,
            prediction_floor=floor * float(np.sqrt((inputs + 1) / spare)),
            parameter_error_bar=bar,
        )
        self._found = Candidate(in_own_inputs(network, region), evidence, tuple(notes))

    def _solved(self, link: Link) -> tuple[Array, Array, Array, float | None]:
        """Return rows (n, D), their answers, weights and bias (D + 1, K), and the largest standard error."""
        region, options = self.findings.region, self.context.options
        needed = region.n_inputs + 1
        count = int(options.single_rows * needed) if self.findings.noise.kind == "float32" else needed
        points = np.empty((0, region.n_inputs))
        for _ in range(options.attempts):
            points = np.concatenate([points, region.sample(count + options.spare_rows, self.rng)])
            answers = self.context.view(points)
            values, errors, reference = self._read(link, answers)
            enough = np.isfinite(errors).sum(axis=0) >= needed + options.spare_rows // 2
            if enough.all():
                break
        else:
            raise GaveUp(AffineReason.SATURATED)
        design = np.concatenate([points, np.ones((len(points), 1))], axis=1)
        solution, bar = _least_squares(design, values, errors, weighted=link.name != "identity")
        return points, answers, _centered(solution, reference), bar

    def _read(self, link: Link, answers: Array) -> tuple[Array, Array, int | None]:
        """Return what is affine (n, C), its standard deviations, and the class of reference of a softmax."""
        noise = self.findings.noise
        reference = int(np.argmax(answers.min(axis=0))) if link.name == SOFTMAX else None
        if reference is not None and noise.number_format is None:
            reference = int(np.argmax(np.median(answers, axis=0)))
        values, errors = link.contrasts(answers, noise.sigma_per_output, noise.number_format, reference)
        return values, errors, reference

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
            raise GaveUp(AffineReason.NOT_EXPLAINED, link=_LINK_NAMES.get(link.name, "no link"), misfit=fit.misfit)
        best.refine(lambda fit: fit, lambda fit: fit)

    def _start(self, link: Link, rows: AnsweredRows) -> NetworkParameters:
        """Return a first map from the rows on which z can be read; few of them give a short one."""
        values, errors, reference = self._read(link, rows.answers)
        design = np.concatenate([rows.points, np.ones((len(rows), 1))], axis=1)
        columns = []
        for value, error in zip(values.T, errors.T, strict=True):
            seen = np.isfinite(error)
            weight = 1 / error[seen, None]
            columns.append(np.linalg.lstsq(design[seen] * weight, value[seen] * weight[:, 0], rcond=1e-6)[0])
        solution = _centered(np.stack(columns, axis=1), reference)
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


def _rounding(answers: Array, number: np.finfo | None) -> Array:  # type: ignore[type-arg]
    """Return the rounding (K,) of the answers themselves, which may be larger than where noise was measured."""
    if number is None:
        return np.zeros(answers.shape[1])
    return np.asarray(number.eps / 4 * np.sqrt(np.mean(answers**2, axis=0)))


def _centered(solution: Array, reference: int | None) -> Array:
    """Return (D + 1, K) from log ratios (D + 1, K - 1) to class ``reference``, with mean zero over classes."""
    if reference is None:
        return solution
    classes = np.insert(solution, reference, 0.0, axis=1)
    return np.asarray(classes - classes.mean(axis=1, keepdims=True))


def _least_squares(
    design: Array, values: Array, errors: Array, *, weighted: bool
) -> tuple[Array, float | None]:
    """Solve for (D + 1, C), each column with its own weights, and tell the largest standard error."""
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
