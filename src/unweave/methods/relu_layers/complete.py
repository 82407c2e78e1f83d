"""Make a network of a tower, polish it, and check whether it is everything.

Rows of the check are chosen so that a missing unit shows. A unit that is hardly ever active is missed by
lines and by random rows alike. Where it is active, what it reads is unlike what it usually reads: far out,
where biases no longer matter, the states before the last hidden layer are small there for the length of x, or
point away from where they point on average. Such directions are found without asking. Rows among the most
extreme of them see units that act on one row in thousands some twenty times as often.

All this happens in the reduced inputs y = Q^T x. The range of Q was only measured; what the first layer reads
beside it is small, and linear in rows that move orthogonally to Q (`frame`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.relu_layers.last_layer import (
    Assembled,
    LastLayerOptions,
    assemble,
    idle_units,
    take_back,
)
from unweave.methods.relu_layers.open_weights import OpenWeightOptions, resolve_open_weights
from unweave.methods.relu_layers.tower import Tower
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
from unweave.methods.shared.surfaces.output_fit import OutputFit, fit_outputs
from unweave.methods.shared.surfaces.probe import Probe
from unweave.networks.network import Network
from unweave.networks.signs import negative_slope, solve_sign_system
from unweave.numerics.clock import out_of_time
from unweave.search.journal import Journal


@dataclass(frozen=True, kw_only=True)
class CompletionOptions:
    """When units explain the answers; misfits are relative to the typical answer at a row's distance."""

    last_layer: LastLayerOptions = field(default_factory=LastLayerOptions)
    polish: DeepPolishOptions = field(default_factory=DeepPolishOptions)
    check: CheckOptions = field(default_factory=CheckOptions)
    check_parts: int = 4
    """Parts in which the rows of a check are asked; one that does not agree is the last."""
    frame: FrameOptions = field(default_factory=FrameOptions)
    open_weights: OpenWeightOptions = field(default_factory=OpenWeightOptions)
    explained: float = 1e-4
    """Misfit of the units as they were measured."""
    nearly: float = 0.8
    """Share of the rows that must agree for others to tell what is open of units."""
    polishable: float = 0.99
    """Share of the rows that a network must agree with before it is polished."""
    agrees: float = 1e-8
    """Misfit of the polished network."""
    equations: float = 4.0
    """Equations per parameter of a polish, if there are as many."""
    worst_rows: int = 100
    """Rows with the largest misfits that are always among those of a polish."""
    most_telling: int = 1000
    """Rows of one check that differ, the worst ones, that are asked again for every polish to come."""
    polished: float = 1e-9
    """Residual above which some rows are not explained: they are left out of a second polish."""
    kept: tuple[float, float] = (1e-5, 20.0)
    """Misfit up to which rows are kept then: at first so much, or so many times the median."""
    precise: float = 1e-12
    """Residual at which a polish without some rows tells the parameters of what is known."""
    most_left_out: int = 4
    """Polishes, each with the rows that the last one left near the median, until all are explained."""
    most_contradicting: int = 20
    """Answers given before, those that a network explains worst, that are asked for again."""
    most_openings: int = 12
    """Polishes with rows at which open parameters act, as long as these tell something new."""
    most_polishes: int = 3
    """Polishes with more rows for open parameters."""
    settled: float = 32.0
    """Roundings of the answers that a finished polish may leave."""
    sign_tolerance: float = 1e-9
    """Misfit of the signs' equations after the polish."""
    worst_floor: float = 1e-9
    """Relative residual of the polish that may pass for rounding."""


@dataclass(frozen=True, eq=False)
class Completed:
    """A network in normalised inputs and units of the outputs' spread."""

    network: Network
    ambiguity: str | None
    checked: int
    """Fresh rows that it was checked on."""
    disagreeing: float
    """Share of them that it does not agree with."""
    figures: dict[str, Any]
    """For the evidence."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """What came of one attempt."""

    good: Array
    """(n, d) rows that agree"""
    bad: Array
    """(n, d) rows that do not"""
    completed: Completed | None = None

    @property
    def share(self) -> float:
        """Share of the rows that agree."""
        return len(self.good) / max(len(self.good) + len(self.bad), 1)


class Completion:
    """Attempts to make a network of a tower."""

    def __init__(
        self,
        probe: Probe,
        sigma: float,
        journal: Journal,
        rng: np.random.Generator,
        options: CompletionOptions,
    ) -> None:
        self._probe, self._sigma = probe, sigma
        self._journal, self._rng, self._options = journal, rng, options
        # Rows that told something new: without them a polish would forget it.
        self._telling = np.zeros((0, 0)), np.zeros((0, 0))
        self._left_out = False

    def fit(self, tower: Tower) -> OutputFit:
        """Fit the outputs to the last layer of a tower."""
        points, answers = self._probe.asked()
        lifted = tower.unsigned_sight(len(tower.layers)).known
        return fit_outputs(lifted, points, answers, self._rng, self._options.last_layer.fit)

    def explained(self, fit: OutputFit) -> float:
        """Return the share of rows that a fit explains."""
        return float((fit.misfits <= self._options.explained).mean())

    def attempt(self, tower: Tower, name: str, *, at_any_price: bool = False) -> Attempt:
        """Return the network of a tower; or rows that agree and others that do not.

        ``at_any_price`` makes a network even where some rows are not explained.
        """
        options = self._options
        with self._journal.stage("output layer") as stage:
            fit = self.fit(tower)
            agree = fit.misfits <= options.explained
            stage.figures.update(misfit=float(fit.misfits.max()), explained=float(agree.mean()))
        if agree.mean() <= options.nearly and not at_any_price:
            return Attempt(fit.points[agree], fit.points[~agree])
        idle = idle_units(fit, tower.top.width, options.last_layer)
        if len(idle):  # accidents that no output reads
            tower.top.units = [unit for k, unit in enumerate(tower.top.units) if k not in idle]
            tower.changed(len(tower.layers))
            fit = self.fit(tower)
        assembled = assemble(tower, fit, name, options.last_layer)
        if not self._agree(assembled.network, options.explained).all():
            if self._resolved(tower, assembled):
                fit = self.fit(tower)
                assembled = assemble(tower, fit, name, options.last_layer)
            explained = fit.misfits <= options.explained
            agree = self._agree(assembled.network, options.explained)
            # Where the fit explains all rows, an affine rest is what open weights leave: a polish finds them.
            if agree.mean() < options.polishable and not explained.all() and not at_any_price:
                return Attempt(fit.points[explained], fit.points[~explained])
        return self._finished(tower, fit, assembled)

    def _agree(self, network: Network, allowed: float) -> BoolArray:
        """Return (n,) which of the rows asked so far a network agrees with."""
        return np.asarray(self._errors(network, *self._rows())[1] <= allowed)

    def _finished(self, tower: Tower, fit: OutputFit, assembled: Assembled) -> Attempt:
        """Polish a network, ask rows where parameters are open, and check it."""
        options = self._options
        polished = self._polished(assembled.network)
        for _ in range(options.most_openings):
            if self._left_out or not self._differs_where_open(polished):
                break
            polished = self._polished(polished.network)
        if not self._left_out:
            take_back(tower, polished.network, assembled.signs.signs, fit.points)
        return self._checked(polished, assembled)

    def _differs_where_open(self, polished: Polished) -> bool:
        """Ask rows where parameters act that are open; return whether they tell something new."""
        asked, _ = self._rows()
        more = rows_for_open_parameters(polished, self._rng, self._options.polish, asked)
        if not len(more) or out_of_time():
            return False
        answers = self._probe(more)
        self._keep_telling(more, answers)
        _, errors = self._errors(polished.network, more, answers)
        return bool((errors > self._options.agrees).any())

    def _keep_telling(self, points: Array, answers: Array) -> None:
        """Keep rows for every polish to come."""
        before = self._telling if len(self._telling[0]) else (points[:0], answers[:0])
        self._telling = np.concatenate([before[0], points]), np.concatenate([before[1], answers])

    def _with_telling(self, points: Array, answers: Array) -> tuple[Array, Array]:
        if not len(self._telling[0]):
            return points, answers
        return np.concatenate([points, self._telling[0]]), np.concatenate([answers, self._telling[1]])

    def _resolved(self, tower: Tower, assembled: Assembled) -> bool:
        """Choose what is open of units such that more rows agree; return whether that was possible."""
        with self._journal.stage("open weights"):
            return resolve_open_weights(
                tower,
                assembled.network,
                assembled.signs.signs,
                *self._rows(),
                self._rng,
                self._options.open_weights,
            )

    def _polished(self, network: Network) -> Polished:
        """Polish a network; where not all rows can be explained, over those that can."""
        options = self._options
        points, answers = self._rows()
        with self._journal.stage("polish") as stage:
            misfits = np.abs(network(points) - answers).max(axis=1)
            wanted = self._some(points, network)
            rows = np.union1d(wanted, np.argsort(misfits)[-options.worst_rows :])
            result = polish(network, *self._with_telling(points[rows], answers[rows]), options.polish)
            self._left_out = result.history[-1] > options.polished
            least, times = options.kept
            for _ in range(options.most_left_out if self._left_out else 0):
                kept = np.flatnonzero(misfits <= max(least, times * float(np.median(misfits))))
                rows = kept[self._some(points[kept], network)]
                result = polish(network, points[rows], answers[rows], options.polish)
                misfits, least = np.abs(result.network(points) - answers).max(axis=1), 0.0
                if result.history[-1] <= options.precise or not np.isfinite(np.median(misfits)):
                    break
                network = result.network
            stage.figures.update(residual=result.history[-1], steps=len(result.history) - 1)
        return result

    def _checked(self, polished: Polished, assembled: Assembled) -> Attempt:
        """Ask fresh rows; if all agree, polish once more and leave the reduced inputs."""
        options = self._options
        with self._journal.stage("check") as stage:
            points, errors = self._errors(polished.network, *self._rows())
            if (errors <= options.agrees).all():
                points, errors = self._check(polished.network)
            if (errors <= options.agrees).all():
                contradicting = self._heard(polished.network)
                points = np.concatenate([points, contradicting[0]])
                errors = np.append(errors, contradicting[1])
            agree = errors <= options.agrees
            if not agree.all():
                worst = points[np.argsort(errors)[-min(int((~agree).sum()), options.most_telling) :]]
                self._keep_telling(worst, self._probe(worst))
            stage.figures.update(rows=len(points), error=float(errors.max()), agree=float(agree.mean()))
        if agree.all():
            polished = self._polished_again(polished)
            points, errors = self._errors(polished.network, *self._rows())
            agree = errors <= options.agrees
        network = polished.network
        if self._probe.is_reduced:
            with self._journal.stage("all inputs"):
                network = in_all_inputs(network, self._probe, self._rng, options.frame)
        ambiguity = self._ambiguity(polished, assembled)
        completed = Completed(
            network, ambiguity, len(points), float((~agree).mean()), self._figures(polished)
        )
        return Attempt(points[agree], points[~agree], completed)

    def _heard(self, network: Network) -> tuple[Array, Array]:
        """Return answers given before that contradict a network: points (n, d), asked anew, and errors (n,).

        Lines and surfaces, of other searches as well, led to places that fresh rows do not see.
        """
        points, answers = self._probe.given_before()
        _, errors = self._errors(network, points, answers)
        worst = np.argsort(errors)[::-1][: self._options.most_contradicting]
        points = points[worst[errors[worst] > self._options.agrees]]
        if not len(points):
            return points, np.zeros(0)
        points, errors = self._errors(network, points, self._probe(points))
        differ = errors > self._options.agrees
        return points[differ], errors[differ]

    def _polished_again(self, polished: Polished) -> Polished:
        """Fit the network to the rows of the check, too, and to more where they leave something open."""
        asked, answers = self._rows()
        rows = self._some(asked, polished.network)
        points, answers = self._with_telling(asked[rows], answers[rows])
        for _ in range(self._options.most_polishes):
            if out_of_time():
                break
            with self._journal.stage("polish") as stage:
                polished = polish(polished.network, points, answers, self._options.polish)
                stage.figures.update(residual=polished.history[-1], error_bar=polished.error_bar)
                more = rows_for_open_parameters(polished, self._rng, self._options.polish, asked)
                if not len(more):
                    break
                points = np.concatenate([points, more])
                answers = np.concatenate([answers, self._probe(more)])
        return polished

    def _rows(self) -> tuple[Array, Array]:
        """Return the rows asked so far that are not far out."""
        points, answers = self._probe.asked()
        near = np.linalg.norm(points, axis=1) <= self._options.last_layer.fit.near * np.sqrt(points.shape[1])
        return points[near], answers[near]

    def _some(self, points: Array, network: Network) -> IntArray:
        """Return the numbers of as many rows as a polish needs."""
        options, outputs = self._options, min(*network.hidden, network.n_outputs)
        wanted = int(options.equations * network.n_parameters / outputs)
        return enough_rows(network, points, wanted, self._rng, options.polish.rows_per_weight)

    def _check(self, network: Network) -> tuple[Array, Array]:
        """Ask fresh rows, in parts up to the first that does not agree; return them and their errors."""
        check = self._options.check
        count = max(check.fewest, int(check.per_parameter * network.n_parameters))
        points = self._rng.permutation(check_points(network, count, self._rng, check))
        asked, errors = points[:0], np.zeros(0)
        for part in np.array_split(points, self._options.check_parts):
            asked = np.concatenate([asked, part])
            errors = np.append(errors, self._errors(network, part, self._probe(part))[1])
            if (errors > self._options.agrees).any():
                break
        return asked, errors

    def _errors(self, network: Network, points: Array, answers: Array) -> tuple[Array, Array]:
        """Return points (n, d) and the errors there, relative to the typical answer at their distance."""
        size = 1 + np.linalg.norm(points, axis=1) / np.sqrt(points.shape[1])
        typical = float(np.sqrt(np.mean((answers / size[:, None]) ** 2)))
        errors = np.abs(network(points) - answers).max(axis=1) / size / (typical if typical > 0 else 1.0)
        return points, errors

    def _ambiguity(self, polished: Polished, assembled: Assembled) -> str | None:
        """Say which parameters are not determined; None if all are."""
        undetermined = open_parameters(polished)
        if assembled.always_active:
            return (
                f"{assembled.always_active} units are active wherever they were asked: their biases, and how "
                "they mix with each other, do not show"
            )
        if not assembled.signs.solved:
            return "no signs of the last hidden layer's units explain the affine part of what reads them"
        if not assembled.signs.unique and not self._signs_are_unique(polished.network):
            return "the signs of the last hidden layer's units fit, but others may fit as well"
        if undetermined:
            shown = ", ".join(f"({layer + 1}, {row}, {unit})" for layer, row, unit in undetermined[:5])
            return (
                f"{len(undetermined)} parameters are not determined by the answers (layer, row, unit: "
                f"{shown}): units are read that are never active together, or hardly ever"
            )
        return None

    def _signs_are_unique(self, network: Network) -> bool:
        """Return whether no other signs of the last hidden layer fit the network after its polish."""
        slope, outer = negative_slope(network.activations[0]), network.weights[-1]
        matrix = (1 + slope) / 2 * np.einsum("di,ik->kdi", network.weights[-2], outer)
        matrix = matrix.reshape(-1, len(outer))
        signs, tolerance = self._options.last_layer.signs, self._options.sign_tolerance
        return solve_sign_system(matrix, matrix.sum(axis=1), tolerance, options=signs).unique

    def _figures(self, polished: Polished) -> dict[str, Any]:
        size = float(np.sqrt(np.mean(self._probe.asked()[1] ** 2)))
        floor = max(self._sigma, float(np.finfo(np.float64).eps) * max(size, 1.0))
        finite = polished.error_bars[np.isfinite(polished.error_bars)]
        return {
            "fit_history": polished.history,
            "fit_floor": self._options.settled * floor,
            "prediction_floor": min(max(polished.history[-1], floor), self._options.worst_floor),
            "parameter_error_bar": float(finite.max(initial=0.0)),
        }
