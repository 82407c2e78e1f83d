"""Whether what was found is everything: the network that the units make, polished, and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_deep.assembly import (
    assemble,
    fit_outputs,
    layer_of,
    output_signs,
    with_always_active,
)
from unweave.methods.relu_deep.checking import check_points
from unweave.methods.relu_deep.layer_units import LayerUnits
from unweave.methods.relu_deep.polishing import (
    Polished,
    enough_rows,
    open_parameters,
    polish,
    rows_for_open_parameters,
)
from unweave.methods.relu_deep.probing import Probe
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.network import Network
from unweave.networks.signs import negative_slope, solve_signs
from unweave.search.journal import Journal

_EPS = float(np.finfo(np.float64).eps)
_EXPLAINED = 1e-4  # misfit of the units as they were measured, relative to the typical answer
_NOTHING = 1e-7  # of the largest outgoing weight, each unit of the same gradient: below, it is none
_AGREES = 1e-8  # the same of the polished network
_NEAR = 300.0  # typical radii up to which rows are used
_EQUATIONS = 4.0  # per parameter, of the polish, if so many were asked
_MOST_POLISHES = 3
_FEWEST_CHECKS, _CHECKS_PER_PARAMETER = 2000, 3.0
_MOST = 0.6  # share of the rows that must agree for the others to be counterexamples
_WORST = 30  # counterexamples among which one is taken
_APART = 1.0  # distance between a counterexample and the row that agrees
_SETTLED = 32.0  # times the answers' rounding: what a finished polish may leave
_SIGNS_AGREE = 1e-9  # misfit of the signs' equations after the polish
_WORST_FLOOR = 1e-9  # relative error of the fit that is believed to be rounding


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
        self, probe: Probe, activation: str, sigma: float, journal: Journal, rng: np.random.Generator
    ) -> None:
        self._probe = probe
        self._activation = activation
        self._sigma = sigma
        self._journal = journal
        self._rng = rng
        self.misfit = np.inf

    def attempt(self, search: LayerUnits) -> Completed | tuple[Array, Array] | None:
        """The network; or a row that agrees and one that does not; or None if not even most rows agree."""
        if not search.units:
            return None
        known, units = search.known, search.units
        points, answers = self._rows()
        with self._journal.stage("output layer") as stage:
            fit = fit_outputs(known, layer_of(units), points, answers)
            self.misfit = float(fit.misfits.max())
            stage.figures.update(misfit=self.misfit, units=len(units))
        if self.misfit > _EXPLAINED:
            return _counterexample(points, fit.misfits, _EXPLAINED, self._rng)
        heights = np.abs(fit.form.heights).max(axis=1)
        units = [
            unit for unit, height in zip(units, heights, strict=True) if height > _NOTHING * heights.max()
        ]
        if len(units) < len(heights):  # an accident that no output reads
            fit = fit_outputs(known, layer_of(units), points, answers)
        solution = output_signs(fit, units, known, self._activation)
        network, rest = assemble(known, units, fit, solution.signs, self._activation)
        ambiguity = None
        if not solution.solved:
            network = with_always_active(network, rest, points)
            ambiguity = (
                "no signs of the last hidden layer's units explain the affine part of what reads them: it is "
                "given as units that are active wherever they were asked"
            )
        elif not solution.unique:
            ambiguity = "the signs of the last hidden layer's units fit, but others may fit as well"
        with self._journal.stage("polish") as stage:
            polished = polish(network, *self._some(points, answers, network))
            stage.figures.update(residual=polished.history[-1], steps=len(polished.history) - 1)
        with self._journal.stage("check") as stage:
            counterexample, worst = self._check(polished.network)
            stage.figures.update(error=worst)
        if worst > _AGREES:
            self.misfit = worst
            return counterexample
        polished = self._polished_again(polished)
        if solution.solved and not solution.unique and self._signs_are_unique(polished.network):
            ambiguity = None
        return self._completed(polished, ambiguity)

    def _signs_are_unique(self, network: Network) -> bool:
        """Whether no other signs of the last hidden layer fit the network as it is after its polish."""
        slope, outer = negative_slope(self._activation), network.weights[-1]
        weights, biases = network.weights[-2], network.biases[-2]
        affine = (1 + slope) / 2 * weights @ outer
        form = AbsoluteForm(weights, biases, (1 - slope) / 2 * outer, affine, network.biases[-1])
        return solve_signs(form, slope, _SIGNS_AGREE).unique

    def _polished_again(self, polished: Polished) -> Polished:
        """The network fitted with the rows of the check, and with more where they leave something open."""
        points, answers = self._some(*self._rows(), polished.network)
        for _ in range(_MOST_POLISHES):
            with self._journal.stage("polish") as stage:
                polished = polish(polished.network, points, answers)
                stage.figures.update(residual=polished.history[-1], error_bar=polished.error_bar)
                more = rows_for_open_parameters(polished, self._rng)
                if not len(more):
                    break
                points = np.concatenate([points, more])
                answers = np.concatenate([answers, self._probe(more)])
        return polished

    def _rows(self) -> tuple[Array, Array]:
        """Rows asked so far that are not far out."""
        points, answers = self._probe.asked()
        near = np.linalg.norm(points, axis=1) <= _NEAR * np.sqrt(points.shape[1])
        return points[near], answers[near]

    def _some(self, points: Array, answers: Array, network: Network) -> tuple[Array, Array]:
        """As many of the rows as a polish needs."""
        wanted = int(_EQUATIONS * network.n_parameters / min(*network.hidden, network.n_outputs))
        rows = enough_rows(network, points, wanted, self._rng)
        return points[rows], answers[rows]

    def _check(self, network: Network) -> tuple[tuple[Array, Array] | None, float]:
        """Fresh rows: one that agrees with one that does not, if there is any, and the worst error."""
        points = check_points(network, _checks(network), self._rng)
        answers = self._probe(points)
        size = 1 + np.linalg.norm(points, axis=1) / np.sqrt(points.shape[1])
        typical = float(np.sqrt(np.mean((answers / size[:, None]) ** 2)))
        errors = np.abs(network(points) - answers).max(axis=1) / size / (typical if typical > 0 else 1.0)
        return _counterexample(points, errors, _AGREES, self._rng), float(errors.max())

    def _completed(self, polished: Polished, ambiguity: str | None) -> Completed:
        network = polished.network
        undetermined = open_parameters(polished)
        if undetermined and ambiguity is None:
            shown = ", ".join(f"({layer + 1}, {row}, {unit})" for layer, row, unit in undetermined[:5])
            ambiguity = (
                f"{len(undetermined)} parameters are not determined by the answers (layer, row, unit: "
                f"{shown}): units are read that are never active together, or hardly ever"
            )
        size = float(np.sqrt(np.mean(self._probe.asked()[1] ** 2)))
        floor = max(self._sigma, _EPS * max(size, 1.0))
        finite = polished.error_bars[np.isfinite(polished.error_bars)]
        figures = {
            "fit_history": polished.history,
            "fit_floor": _SETTLED * floor,
            "prediction_floor": min(max(polished.history[-1], floor), _WORST_FLOOR),
            "parameter_error_bar": float(finite.max(initial=0.0)),
        }
        return Completed(network, ambiguity, _checks(network), figures)


def _checks(network: Network) -> int:
    """Rows of a check."""
    return max(_FEWEST_CHECKS, int(_CHECKS_PER_PARAMETER * network.n_parameters))


def _counterexample(
    points: Array, misfits: Array, allowed: float, rng: np.random.Generator
) -> tuple[Array, Array] | None:
    """A point that agrees and one that does not, apart from it; None if all agree, or hardly any."""
    good = misfits <= allowed
    if good.all() or good.mean() < _MOST:
        return None
    bad = np.flatnonzero(~good)[np.argsort(misfits[~good])[-_WORST:]]
    chosen = points[rng.choice(bad)]
    apart = np.linalg.norm(points[good] - chosen, axis=1)
    # Not so near that the gradients on both sides of what lies between could not be measured.
    apart[apart < _APART] = np.inf
    return points[good][np.argmin(apart)], chosen
