"""The last steps from coarse answers, whatever found the network: more rows, flips, error bars, evidence.

1. least squares on all parameters with more and more rows, which average the noise out;
2. rounded answers of a target that repeats itself are bisected instead, and the flips fitted exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from unweave.arrays import Array
from unweave.errors import OutOfTime
from unweave.methods.shared.coarse_answers.averaged_fit import AveragedFit, fit_to_rows
from unweave.methods.shared.coarse_answers.bisection import (
    BisectionOptions,
    FlipFit,
    Flips,
    find_flips,
    fit_flips,
)
from unweave.methods.shared.coarse_answers.evidence import CoarseEvidence
from unweave.methods.shared.coarse_answers.rounding_rule import RoundingRule, rounding_rule
from unweave.methods.shared.coarse_answers.rows import AnsweredRows, RowOptions, contributions, link_of
from unweave.networks.activations import SOFTMAX
from unweave.networks.error_bars import (
    has_own_error_bars,
    is_homogeneous,
    standard_error_network,
    standard_errors,
    with_fixed_lengths,
)
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.probing.noise import NoiseKind
from unweave.search import Candidate, Context
from unweave.targets.change_of_inputs import in_own_inputs

Measured = TypeVar("Measured", bound=CoarseEvidence)
Change = Callable[[AveragedFit], AveragedFit]

ROWS_OF_FINAL_FIT: dict[NoiseKind, float] = {"float64": 4.0, "float32": 4.0, "rounded": 55.0, "noisy": 32.0}
"""Rows that the final fit is expected to cost, per parameter; for rounded answers most of them bisect."""


@dataclass(frozen=True, kw_only=True)
class CoarseOptions:
    """What all methods for coarse answers share."""

    rows: RowOptions = field(default_factory=RowOptions)
    """Which rows are asked, and which misfit their errors explain."""
    bisection: BisectionOptions = field(default_factory=BisectionOptions)
    """How the flips of rounded answers are found."""
    rows_per_parameter: float = 32.0
    """Rows of the final fit to noisy answers, per parameter, unless `recover` is given ``averaging``."""
    row_growth: float = 4.0
    """Ratio of the numbers of rows of successive fits."""
    near_damping: float = 1e-6
    """Damping of a fit that starts from one with fewer rows."""


class Refinement(Generic[Measured]):
    """The best fit so far, and what is known about it."""

    def __init__(
        self, context: Context, rows: AnsweredRows, evidence: Measured, options: CoarseOptions
    ) -> None:
        self._rows, self._findings, self._journal = rows, context.findings, context.journal
        self._options, self._request = options, context.request
        self.fit: AveragedFit | None = None
        self.evidence = evidence
        self.notes: list[str] = []
        self._exact: NetworkParameters | None = None
        self._errors: Array | None = None
        self._unasked: AveragedFit | FlipFit | None = None
        """The last fit, until somebody asks for its error bars: of large networks they take as long as it"""
        self._rule = RoundingRule.NEAREST
        self._fitted = rows.points, rows.answers
        """Rows of the last fit, and one over the standard deviations of their answers"""

    @property
    def is_explained(self) -> bool:
        """Whether the fit leaves no more of the answers than their errors."""
        return self.fit is not None and self.fit.misfit <= self._rows.acceptable_misfit()

    @property
    def misfit(self) -> float:
        """Residual of the fit in standard deviations of the answers; infinite without one."""
        return np.inf if self.fit is None else self.fit.misfit

    def measure_noise(self) -> None:
        """Measure sigma of answers that differ from call to call: fits are judged by it."""
        noise = self._findings.noise
        if noise.kind != "noisy" or noise.repeatable:
            return
        with self._journal.stage("noise") as stage:
            self._rows.measure_sigma()
            stage.figures["sigma"] = self._rows.largest_sigma

    def refine(self, mend: Change, settle: Change) -> None:
        """Improve the fit, which explains the rows so far.

        ``mend`` may add what more rows show to be missing, ``settle`` leaves out what they do not ask for.
        """
        if self._may_bisect():
            self._grow_to(self._options.bisection.rows_before, mend, settle)
            self._bisect()
        else:
            noisy = self._findings.noise.kind == "noisy"
            default = self._options.rows_per_parameter if noisy else self._options.bisection.rows_before
            self._grow_to(self._request.averaging or default, mend, settle)
        self._read_rounding_rule()
        self._note_width()

    def keep(self, fit: AveragedFit) -> None:
        """Take ``fit``, and what it says about itself, as the result so far."""
        rows, findings = self._rows, self._findings
        self.fit = fit
        self._fitted = (
            rows.points,
            1 / (rows.errors * max(fit.misfit, 1.0)),
        )
        self._unasked = fit
        floor = rows.largest_sigma / max(float(findings.output_scale.max()), np.finfo(np.float64).tiny)
        self.evidence = replace(
            self.evidence,
            width=fit.model.width if fit.model.depth > 1 else None,
            found=fit.model.width if fit.model.depth > 1 else 0,
            fit_history=tuple(value * floor for value in fit.history),
            fit_floor=floor,
            prediction_floor=floor * float(np.sqrt(fit.model.size / max(fit.equations - fit.model.size, 1))),
            misfit=fit.misfit,
            acceptable_misfit=rows.acceptable_misfit(),
            answer_sigma=self._answer_sigma(fit),
            weakest_unit=self._weakest(fit),
        )

    def candidate(self) -> Candidate:
        """Return the best network so far, in the target's own inputs."""
        self._work_out_errors()
        model = self._exact if self._exact is not None else None if self.fit is None else self.fit.model
        network = None if model is None else self._in_inputs(model)
        errors = None
        if network is not None and self._errors is not None:
            points, weights = self._fitted  # errors in the target's inputs, where biases mix with weights
            errors = standard_error_network(
                NetworkParameters.from_network(network), self._rows.region.to_inputs(points), weights
            )
        if errors is not None and self._rule is RoundingRule.UNKNOWN:
            errors = _with_output_biases(errors, np.maximum(errors.biases[-1], self._digit / 2))
        if network is not None and self._rule is RoundingRule.UP:
            network = _with_output_biases(network, network.biases[-1] - self._digit / 2)
        return Candidate(network, self.evidence, tuple(self.notes), standard_errors=errors)

    @property
    def _digit(self) -> float:
        decimals = self._findings.noise.decimals
        return 0.0 if decimals is None else 10.0**-decimals

    def _read_rounding_rule(self) -> None:
        """Tell whether answers were rounded to nearest: if not, every output bias is off by half a digit."""
        model = self._exact if self._exact is not None else None if self.fit is None else self.fit.model
        if model is None or self._findings.noise.kind != "rounded" or link_of(model).name != "identity":
            return
        self._rule = rounding_rule(self._rows, model, self._digit)
        if self._rule is RoundingRule.UP:
            self.notes.append("answers are rounded up (ceil): zeros keep a negative sign")
            self.evidence = replace(self.evidence, answer_offset=self._digit / 2)
        elif self._rule is RoundingRule.UNKNOWN:
            self.notes.append(
                f"the output biases are those of answers rounded to nearest, which no answer shows: add "
                f"{self._digit / 2:g} if they are rounded down (floor, or trunc of positive ones), subtract "
                "it if they are rounded up (ceil, or trunc of negative ones)"
            )

    def _grow_to(self, rows_per_parameter: float, mend: Change, settle: Change) -> None:
        """Fit more and more rows."""
        assert self.fit is not None
        fit, rows = self.fit, self._rows
        independent = rows.n_outputs - (link_of(fit.model).name == SOFTMAX)
        goal = rows_per_parameter * fit.model.size / independent
        with self._journal.stage("averaging") as stage:
            while len(rows) < goal:
                try:
                    rows.extend_to(min(goal, self._options.row_growth * len(rows)))
                except OutOfTime:
                    self.keep(fit)
                    raise
                fit = fit_to_rows(
                    fit.model,
                    rows,
                    damping=self._options.near_damping,
                    on_step=lambda step, _: self._journal.tell(step, None, "steps"),
                )
                if fit.misfit > rows.acceptable_misfit():
                    fit = mend(fit)  # with more rows a weak unit stands out
                self.fit = fit
            fit = settle(fit)  # ... and one that was only fitted to the noise of few does not
            self.keep(fit)
            stage.figures.update(rows=len(rows), misfit=fit.misfit)

    def _may_bisect(self) -> bool:
        noise = self._findings.noise
        rounded = noise.kind == "rounded" and noise.decimals is not None and noise.repeatable
        return self._request.averaging is None and rounded

    def _bisect(self) -> None:
        """Fit the exact equations that flips of rounded answers give."""
        assert self.fit is not None
        decimals = self._findings.noise.decimals
        assert decimals is not None
        model, grid, options = self.fit.model, 10.0**-decimals, self._options.bisection
        with self._journal.stage("bisection") as stage:
            for share in (options.per_parameter, options.per_parameter_if_open):
                # What was asked before is known: only the further lines cost anything.
                flips = self._flips_of(model, grid, int(np.ceil(share * model.size)))
                stage.figures["flips"] = len(flips.values)
                if len(flips.values) < options.fewest_per_parameter * model.size:
                    self.notes.append(
                        f"only {len(flips.values)} flips of the last digit were found where {model.size} "
                        "parameters need as many: the parameters are those of averaging"
                    )
                    return
                fit = fit_flips(model, flips)
                stage.figures["residual"] = fit.residual
                if fit.residual > options.exact_share * grid or self._answers_alike(fit.model, grid):
                    break
        self._take(fit, flips, grid)

    def _answers_alike(self, model: NetworkParameters, grid: float) -> bool:
        """Return whether a network that meets the flips answers all rows as the target did, up to rounding.

        One that does not is no target's: the flips left it open.
        """
        off = float(np.abs(model.values(self._rows.points) - self._rows.answers).max())
        return off <= grid * (0.5 + self._options.bisection.exact_share)

    def _flips_of(self, model: NetworkParameters, grid: float, wanted: int) -> Flips:
        """Find ``wanted`` flips, or as many as there are: lines are lost where the target is flat or ends."""
        rows, begin, options = self._rows, 0, self._options.bisection
        found: list[Flips] = []
        while (missing := wanted - sum(len(part.values) for part in found)) > 0:
            chosen = slice(begin, begin + int(np.ceil(options.lines_per_flip * missing)))
            rows.extend_to(min(chosen.stop, options.most_rows_per_flip * wanted))
            if begin >= len(rows):
                break
            found.append(
                find_flips(
                    rows.view,
                    model,
                    rows.region,
                    rows.points[chosen],
                    rows.answers[chosen],
                    grid,
                    on_round=lambda done, _: self._journal.tell(done, None, "bits"),
                    options=options,
                )
            )
            begin = chosen.stop
        return Flips.joined(found)

    def _take(self, fit: FlipFit, flips: Flips, grid: float) -> None:
        """Take the network of the flips if it meets them and answers as the target did."""
        scale = max(float(self._findings.output_scale.max()), np.finfo(np.float64).tiny)
        exact = self._options.bisection.exact_share * grid
        # Whoever judges sees how well the exact equations were met.
        history = tuple(value / scale for value in fit.history)
        if fit.residual <= exact and self._answers_alike(fit.model, grid):
            self._exact = fit.model
            free = max(fit.equations - fit.model.size, 1)
            sigma = max(fit.residual * float(np.sqrt(fit.equations / free)), np.finfo(np.float64).tiny)
            self._fitted = flips.points, flips.selected(1 / sigma, fit.model.n_outputs)
            self._unasked = fit
            self.evidence = replace(
                self.evidence,
                flips=fit.equations,
                fit_history=history,
                fit_floor=max(float(np.finfo(np.float64).eps), fit.residual / scale),
                prediction_floor=fit.residual / scale,
            )
            return
        self.notes.append(
            f"the flips of the last digit fit no such network (residual {fit.residual:.1e}): another "
            "activation or width, or answers not rounded to nearest; the parameters are those of averaging"
        )
        self.evidence = replace(self.evidence, fit_history=history, fit_floor=exact / scale / 1e3)

    def _work_out_errors(self) -> None:
        """Work out the error bars of the last fit, unless that is done."""
        fit, self._unasked = self._unasked, None
        if fit is None:
            return
        self._errors = self._error_bars_of(fit.model, fit.standard_errors)
        self.evidence = replace(
            self.evidence,
            condition=self._condition(fit.model, fit.condition),
            parameter_error_bar=None if self._errors is None else float(self._errors.max()),
        )

    def _error_bars_of(self, model: NetworkParameters, from_fit: Array | None) -> Array | None:
        """Return standard errors (P,) in normalized inputs; None if the rows do not determine all parameters.

        Least squares has them for all but homogeneous units, whose lengths it leaves open; conjugate
        gradients never meet those, and bound the errors of all else.
        """
        if not has_own_error_bars(model):
            return from_fit
        return standard_errors(with_fixed_lengths(model), *self._fitted)

    def _condition(self, model: NetworkParameters, of_fit: float) -> float | None:
        """Return the condition of the final fit, or, of homogeneous units, infinity if it is singular."""
        if not has_own_error_bars(model):
            return of_fit
        return np.inf if self._errors is None else None

    def _answer_sigma(self, fit: AveragedFit) -> Array:
        """Return the standard deviation (K,) of an answer; precise answers take it from the fit."""
        if self._findings.noise.kind != "float64":
            return self._rows.sigma
        return self._rows.sigma * float(np.clip(fit.misfit, 1.0, self._rows.acceptable_misfit()))

    def _weakest(self, fit: AveragedFit) -> float | None:
        """Return the contribution of the weakest unit over the largest that an accepted misfit could hide."""
        if fit.model.depth == 1:
            return None
        hidden = float(np.sqrt(self._rows.acceptable_misfit() ** 2 - 1))
        return float(contributions(fit.model, self._rows).min()) / hidden

    def _note_width(self) -> None:
        given, fit = self._request.width, self.fit
        if given is None or fit is None:
            return
        found = fit.model.width
        if found < given:
            self.notes.append(
                f"the target needs {found} units where {given} were given: the others are dead, "
                "duplicates, or too weak to be seen at this precision; the smaller network is returned"
            )
        elif found > given:
            self.notes.append(f"the target has {found} units where {given} were given")

    def _in_inputs(self, model: NetworkParameters) -> Network:
        """Return the network in the target's own inputs, homogeneous units with weights of length one."""
        result = in_own_inputs(model.to_network(), self._rows.region)
        if not is_homogeneous(model):
            return result
        return with_fixed_lengths(NetworkParameters.from_network(result)).to_network()


def _with_output_biases(network: Network, biases: Array) -> Network:
    """The network with other biases of its outputs."""
    return Network(network.weights, [*network.biases[:-1], biases], network.activations, skip=network.skip)
