"""Make a network of the units, polish it, and check whether it is everything.

Rows of the check are chosen so that a missing unit shows. A unit that is hardly ever active is missed by
lines and by random rows alike. Where it is active, what it reads is unlike what it usually reads: far out,
where biases no longer matter, the states before the last hidden layer are small there for the length of x, or
point away from where they point on average. Such directions are found without asking. Rows among the most
extreme of them see units that act on one row in thousands some twenty times as often.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_deep.assembly import (
    AssemblyOptions,
    absolute_form,
    assemble,
    behind_units,
    output_signs,
    with_always_active,
)
from unweave.methods.relu_deep.layer_units import LayerUnits
from unweave.methods.shared.kinked.check_rows import CheckOptions, check_points
from unweave.methods.shared.kinked.deep_polish import (
    DeepPolishOptions,
    Polished,
    enough_rows,
    open_parameters,
    polish,
    rows_for_open_parameters,
)
from unweave.methods.shared.surfaces.frame import FrameOptions, in_all_inputs
from unweave.methods.shared.surfaces.lifted import LiftedLayers
from unweave.methods.shared.surfaces.output_fit import fit_outputs
from unweave.methods.shared.surfaces.probe import Probe
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.network import Network
from unweave.networks.signs import negative_slope, solve_signs
from unweave.numerics.clock import out_of_time
from unweave.search.journal import Journal


@dataclass(frozen=True, kw_only=True)
class CompletionOptions:
    """When units explain the answers; misfits are relative to the typical answer at a row's distance."""

    assembly: AssemblyOptions = field(default_factory=AssemblyOptions)
    polish: DeepPolishOptions = field(default_factory=lambda: DeepPolishOptions(places=20_000))
    check: CheckOptions = field(default_factory=CheckOptions)
    check_parts: int = 4
    """Parts in which the rows of a check are asked; one that does not agree is the last."""
    frame: FrameOptions = field(default_factory=FrameOptions)
    explained: float = 1e-4
    """Misfit of the units as they were measured."""
    polishable: float = 0.99
    """Share of the rows that must be explained for units to be polished once no more are found."""
    agrees: float = 1e-8
    """Misfit of the polished network."""
    nothing: float = 1e-7
    """Outgoing weight, relative to the largest one, below which a unit is none; all have gradient one."""
    equations: float = 4.0
    """Equations per parameter of a polish, if there are as many."""
    most_polishes: int = 3
    """Polishes with more rows for open parameters."""
    most: float = 0.6
    """Share of the rows that must agree for the others to be counterexamples."""
    worst: int = 30
    """Counterexamples, the worst ones, among which one is taken."""
    apart: float = 1.0
    """Distance between a counterexample and a row that agrees: gradients must be measured in between."""
    settled: float = 32.0
    """Roundings of the answers that a finished polish may leave."""
    sign_tolerance: float = 1e-9
    """Misfit of the signs' equations after the polish."""
    worst_floor: float = 1e-9
    """Relative residual of the polish that may pass for rounding."""


@dataclass(frozen=True, eq=False)
class Completed:
    """A network that agrees with all rows it was checked on."""

    network: Network
    ambiguity: str | None
    checked: int
    """Fresh rows that it agreed with."""
    figures: dict[str, Any]
    """For the evidence."""


class Completion:
    """Attempts to make a network of a layer's units."""

    def __init__(
        self,
        probe: Probe,
        activation: str,
        sigma: float,
        journal: Journal,
        rng: np.random.Generator,
        options: CompletionOptions,
    ) -> None:
        self._probe, self._activation, self._sigma = probe, activation, sigma
        self._journal, self._rng, self._options = journal, rng, options
        self.misfit = np.inf

    def attempt(self, search: LayerUnits, nearly: bool = False) -> Completed | tuple[Array, Array] | None:
        """Return the network; or a row that agrees and one that does not; or None if too few rows agree.

        ``nearly`` polishes units that leave a few rows unexplained: one may be measured badly.
        """
        options, assembly = self._options, self._options.assembly
        if not search.units:
            return None
        known, units = search.known, search.units
        self._ask_enough(known, len(units))
        points, answers = self._rows()
        with self._journal.stage("output layer") as stage:
            lifted = behind_units(known, units)
            fit = fit_outputs(lifted, points, answers, self._rng, assembly.fit)
            self.misfit = float(fit.misfits.max())
            stage.figures.update(misfit=self.misfit, units=len(units))
        explained = fit.misfits <= options.explained
        if not explained.all() and not (nearly and explained.mean() >= options.polishable):
            return self._counterexample(fit.points, fit.misfits, options.explained)
        heights = np.abs(fit.solution[: len(units)]).max(axis=1)
        read = heights > options.nothing * heights.max()
        units = [unit for unit, is_read in zip(units, read, strict=True) if is_read]
        if len(units) < len(heights):  # an accident that no output reads
            lifted = behind_units(known, units)
            fit = fit_outputs(lifted, points, answers, self._rng, assembly.fit)
        form = absolute_form(lifted, fit.solution)
        solution = output_signs(form, units, known, self._activation, assembly)
        network, rest = assemble(known, units, form, solution.signs, self._activation)
        ambiguity = None
        if not solution.solved:
            network = with_always_active(network, rest, points, assembly)
            ambiguity = (
                "no signs of the last hidden layer's units explain the affine part of what reads them: it is "
                "given as units that are active wherever they were asked"
            )
        elif not solution.unique:
            ambiguity = "the signs of the last hidden layer's units fit, but others may fit as well"
        with self._journal.stage("polish") as stage:
            polished = polish(network, *self._some(points, answers, network), options.polish)
            stage.figures.update(residual=polished.history[-1], steps=len(polished.history) - 1)
        if not explained.all() and polished.history[-1] > options.worst_floor:
            return self._counterexample(fit.points, fit.misfits, options.explained)
        with self._journal.stage("check") as stage:
            counterexample, worst = self._check(polished.network)
            stage.figures.update(error=worst)
        if worst > options.agrees:
            self.misfit = worst
            return counterexample
        polished = self._polished_again(polished)
        if solution.solved and not solution.unique and self._signs_are_unique(polished.network):
            ambiguity = None
        return self._completed(polished, ambiguity)

    def _signs_are_unique(self, network: Network) -> bool:
        """Return whether no other signs of the last hidden layer fit the network after its polish."""
        slope, outer = negative_slope(self._activation), network.weights[-1]
        weights, biases = network.weights[-2], network.biases[-2]
        affine = (1 + slope) / 2 * weights @ outer
        form = AbsoluteForm(weights, biases, (1 - slope) / 2 * outer, affine, network.biases[-1])
        signs = self._options.assembly.signs
        return solve_signs(form, slope, self._options.sign_tolerance, options=signs).unique

    def _polished_again(self, polished: Polished) -> Polished:
        """Fit the network to the rows of the check, too, and to more where they leave something open."""
        points, answers = self._some(*self._rows(), polished.network)
        for _ in range(self._options.most_polishes):
            if out_of_time():
                break
            with self._journal.stage("polish") as stage:
                polished = polish(polished.network, points, answers, self._options.polish)
                stage.figures.update(residual=polished.history[-1], error_bar=polished.error_bar)
                more = rows_for_open_parameters(polished, self._rng, self._options.polish)
                if not len(more):
                    break
                points = np.concatenate([points, more])
                answers = np.concatenate([answers, self._probe(more)])
        return polished

    def _ask_enough(self, known: LiftedLayers, width: int) -> None:
        """Ask rows at random if too few are kept for a fit: with fewer inputs the first are forgotten."""
        outputs, first = self._probe.n_outputs, known.n_units
        parameters = (known.n_inputs + 1) * first + (first + 1) * width + (width + 1) * outputs
        wanted = int(self._options.equations * parameters / min(first, width, outputs))
        missing = wanted - self._probe.rows_kept
        if missing > 0:
            spreads = self._rng.choice(self._options.check.near, (missing, 1))
            self._probe(spreads * self._rng.standard_normal((missing, known.n_inputs)))

    def _rows(self) -> tuple[Array, Array]:
        """Return the rows asked so far that are not far out."""
        points, answers = self._probe.asked()
        near = np.linalg.norm(points, axis=1) <= self._options.assembly.fit.near * np.sqrt(points.shape[1])
        return points[near], answers[near]

    def _some(self, points: Array, answers: Array, network: Network) -> tuple[Array, Array]:
        """Return as many of the rows as a polish needs."""
        options, outputs = self._options, min(*network.hidden, network.n_outputs)
        wanted = int(options.equations * network.n_parameters / outputs)
        rows = enough_rows(network, points, wanted, self._rng, options.polish.rows_per_weight)
        return points[rows], answers[rows]

    def _check(self, network: Network) -> tuple[tuple[Array, Array] | None, float]:
        """Ask fresh rows; return one that agrees with one that does not, if any, and the worst error."""
        points = check_points(network, self._checks(network), self._rng, self._options.check)
        points, answers = self._rng.permutation(points), np.zeros((0, network.n_outputs))
        for part in np.array_split(points, self._options.check_parts):
            answers = np.concatenate([answers, self._probe(part)])
            asked = points[: len(answers)]
            size = 1 + np.linalg.norm(asked, axis=1) / np.sqrt(points.shape[1])
            typical = float(np.sqrt(np.mean((answers / size[:, None]) ** 2)))
            errors = np.abs(network(asked) - answers).max(axis=1) / size / (typical if typical > 0 else 1.0)
            if (errors > self._options.agrees).any():
                break
        return self._counterexample(asked, errors, self._options.agrees), float(errors.max())

    def _completed(self, polished: Polished, ambiguity: str | None) -> Completed:
        network, checks = polished.network, self._checks(polished.network)
        if self._probe.is_reduced:
            with self._journal.stage("all inputs"):
                network = in_all_inputs(network, self._probe, self._rng, self._options.frame)
        undetermined = open_parameters(polished)
        if undetermined and ambiguity is None:
            shown = ", ".join(f"({layer + 1}, {row}, {unit})" for layer, row, unit in undetermined[:5])
            ambiguity = (
                f"{len(undetermined)} parameters are not determined by the answers (layer, row, unit: "
                f"{shown}): units are read that are never active together, or hardly ever"
            )
        size = float(np.sqrt(np.mean(self._probe.asked()[1] ** 2)))
        floor = max(self._sigma, float(np.finfo(np.float64).eps) * max(size, 1.0))
        finite = polished.error_bars[np.isfinite(polished.error_bars)]
        figures = {
            "fit_history": polished.history,
            "fit_floor": self._options.settled * floor,
            "prediction_floor": min(max(polished.history[-1], floor), self._options.worst_floor),
            "parameter_error_bar": float(finite.max(initial=0.0)),
        }
        return Completed(network, ambiguity, checks, figures)

    def _checks(self, network: Network) -> int:
        """Return the number of rows of a check."""
        check = self._options.check
        return max(check.fewest, int(check.per_parameter * network.n_parameters))

    def _counterexample(self, points: Array, misfits: Array, allowed: float) -> tuple[Array, Array] | None:
        """Return a point that agrees and one, apart from it, that does not; None if all or few agree."""
        good = misfits <= allowed
        if good.all() or good.mean() < self._options.most:
            return None
        bad = np.flatnonzero(~good)[np.argsort(misfits[~good])[-self._options.worst :]]
        chosen = points[self._rng.choice(bad)]
        apart = np.linalg.norm(points[good] - chosen, axis=1)
        apart[apart < self._options.apart] = np.inf
        return points[good][np.argmin(apart)], chosen
