"""Two hidden layers of (leaky) ReLU units from coarse answers, behind a link, or inside a box.

1. hyperplanes of the first layer from lines (`first_layer`), each grown over the whole region (`planes`);
2. the second layer and the output as one hidden layer behind them (`second_layer`), from rows anywhere;
3. Gauss-Newton on all parameters, clear of all kinks, until the rounding of the answers is left;
4. fresh rows, many where a missing unit would show; those that disagree join the rows, and 2 begins again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_pairs.first_layer import FirstLayer, FirstLayerOptions
from unweave.methods.relu_pairs.second_layer import Behind, Pair, SecondLayerOptions, rows_wanted
from unweave.methods.shared.kinked.check_rows import CheckOptions, check_points
from unweave.methods.shared.kinked.deep_polish import (
    DeepPolishOptions,
    Polished,
    clear_of_kinks,
    enough_rows,
    open_parameters,
    polish,
)
from unweave.methods.shared.kinked.evidence import KinkedEvidence
from unweave.methods.shared.kinked.reading import Reading, open_reading
from unweave.methods.shared.refusals import links_to_try
from unweave.networks.links import Link
from unweave.networks.network import Network
from unweave.networks.signs import KINKED
from unweave.search import Candidate, Context, GaveUp, Reason, Search
from unweave.targets.change_of_inputs import in_own_inputs


@dataclass(frozen=True, kw_only=True)
class ReluPairsOptions:
    """How two hidden layers are searched for in coarse answers."""

    most_inputs: int = 128
    """Number of inputs up to which normals are measured in all of them."""
    coarsest: float = 1e-5
    """Noise relative to the spread up to which hyperplanes are grown."""
    first: FirstLayerOptions = field(default_factory=FirstLayerOptions)
    second: SecondLayerOptions = field(default_factory=SecondLayerOptions)
    polish: DeepPolishOptions = field(default_factory=lambda: DeepPolishOptions(places=20_000))
    check: CheckOptions = field(default_factory=lambda: CheckOptions(fewest=1000, per_parameter=1.0))
    spreads: tuple[float, ...] = (1.0, 2.0, 3.0)
    """Factors on the region of the rows that layers are fitted to, in turn, without a box."""
    floor: float = 30.0
    """Residual of the second layer's fit, in errors of an answer, that counts as exact."""
    plane_errors: float = 1.0
    """The same in errors of the hyperplanes."""
    least_floor: float = 3e-5
    """The same at least, relative to the spread: Gauss-Newton brings the rest, and units are told apart."""
    lower: float = 0.1
    """Factor on all of these from fit to fit: units may be weak."""
    polishable: float = 0.05
    """Residual of the second layer's fit, relative to the spread, from which Gauss-Newton may start."""
    clear: float = 2e-3
    """Distance from every kink of rows of the first Gauss-Newton step, relative to 1 + |x|."""
    clearing: float = 0.2
    """Factor on that distance from step to step."""
    polishes: int = 8
    """Times that Gauss-Newton is begun anew."""
    equations: float = 6.0
    """Equations per parameter of a polish."""
    agrees: float = 60.0
    """Errors of an answer up to which a row agrees with the polished network."""
    rounds: int = 2
    """Fits of the second layer, each with more rows."""
    growth: float = 1.6
    """Factor on the rows from fit to fit."""
    undetermined: float = 1e-3
    """Standard error of a parameter from which units may be surplus."""
    most_surplus: int = 8
    """Units that are left out at most ..."""
    tried_surplus: int = 4
    """... each one of so many that add least."""
    as_good: float = 1.5
    """Factor on the residual with which a network is as good without a unit."""
    settled: float = 3.0
    """Roundings of the answers that a finished polish may leave."""


class ReluPairsReason(Reason):
    """Why no network of this class was found."""

    NOT_READ = "answers near the ends of their range hide what is behind a {link} nearly everywhere"
    NO_FIRST_LAYER = "no kink on {lines} lines belongs to a hyperplane of a first hidden layer"
    NOTHING_BEHIND = (
        "no second hidden layer behind {units} hyperplanes explains the answers: there are more layers, or "
        "units of the first that were not seen"
    )
    NOT_EXPLAINED = (
        "a second layer behind {units} hyperplanes leaves {residual:.1e} of the answers' spread: there are "
        "more layers, or units that hardly ever switch"
    )


class ReluPairsSearch(Search):
    """Finds hyperplanes on lines, then the rest as one hidden layer behind them."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._options: ReluPairsOptions = context.options
        self._view = context.view
        self._sigma = float((self.findings.noise.sigma_per_output / self.findings.spread).max())
        self._network: Network | None = None
        self._ambiguity: str | None = None
        self._evidence = KinkedEvidence()
        self._notes: list[str] = []
        self._found = 0
        inputs, outputs = self._view.n_inputs, self.findings.n_outputs
        self._points, self._answers = np.zeros((0, inputs)), np.zeros((0, outputs))

    def candidate(self) -> Candidate:
        """Return the network once there is one."""
        network = None if self._network is None else in_own_inputs(self._network, self._view.region)
        return Candidate(
            network=network, evidence=self._evidence, notes=tuple(self._notes), ambiguity=self._ambiguity
        )

    def so_far(self) -> str:
        """Count the hyperplanes."""
        return f"{self._found} hyperplanes of the first layer had been found"

    def run(self) -> None:
        """Look behind each link that is possible."""
        names = links_to_try(self.request, self.findings)[::-1]
        for number, name in enumerate(names):
            link = Link(name)
            reading = open_reading(self._view, self.findings.noise, link, self.findings.spread, self.rng)
            try:
                if reading is None:
                    raise GaveUp(ReluPairsReason.NOT_READ, link=name)
                self._view = reading.view
                self._search(reading)
                return
            except GaveUp:
                if number + 1 == len(names):
                    raise

    def _search(self, reading: Reading) -> None:
        options = self._options
        first = FirstLayer(reading, self.findings.noise.relative, self.journal, self.rng, options.first)
        try:
            first.search()
        finally:
            self._found = len(first.planes)
            self._evidence = first.evidence
        if not first.planes:
            raise GaveUp(ReluPairsReason.NO_FIRST_LAYER, lines=first.lines)
        residual, growth = np.inf, 1.0
        for number in range(options.rounds):
            pair = self._behind(first, reading, growth, options.lower**number)
            if pair is None and self._network is not None:
                return
            if pair is None:
                raise GaveUp(ReluPairsReason.NOTHING_BEHIND, units=len(first.planes))
            residual = min(residual, pair.residual)
            if pair.residual <= options.polishable and self._polished(pair):
                return
            growth *= options.growth
            before = len(first.planes)
            first.search()
            if len(first.planes) > before:
                self._found = len(first.planes)
        if self._network is None:
            raise GaveUp(ReluPairsReason.NOT_EXPLAINED, units=len(first.planes), residual=residual)

    def _behind(self, first: FirstLayer, reading: Reading, growth: float, lowered: float) -> Pair | None:
        """Fit the second layer to rows that are read."""
        options, layer = self._options, first.layer
        told = self.request.hidden
        second = layer.width if told is None else told[1]
        wanted = int(growth * rows_wanted(layer.width, second, *self._shape, options.second))
        with self.journal.stage("layer 2") as stage:
            self._ask(self._draw(wanted - len(self._points)))
            values = reading(self._points)
            seen = np.isfinite(values).all(axis=1)
            floor = max(options.floor * reading.error, lowered * options.plane_errors * first.error)
            floor = max(floor, lowered * options.least_floor)
            stage.figures.update(rows=int(seen.sum()), floor=floor)
            names = KINKED if self.request.activation is None else (self.request.activation,)
            width = None if told is None else told[1]
            behind = Behind(self._points[seen], values[seen], width, self.rng, options.second, self.on_step)
            signed = behind.signed(layer, names)
            if signed is None:
                return None
            known, name, clear = signed
            stage.figures.update(first=known.width, signs=clear)
            pair = behind.pair(known, name, clear, floor)
            if pair is not None:
                stage.figures.update(units=pair.network.hidden[1], residual=pair.residual)
        if pair is None:
            return None
        return replace(pair, network=_scaled(pair.network, reading))

    @property
    def _shape(self) -> tuple[int, int]:
        return self._view.n_inputs, self.findings.n_outputs

    def _ask(self, points: Array) -> Array:
        answers: Array = self._view(points)
        self._points = np.concatenate([self._points, points])
        self._answers = np.concatenate([self._answers, answers])
        return answers

    def _draw(self, count: int) -> Array:
        """Return points (n, d) from all over the region."""
        points: Array = self._view.region.sample(max(count, 0), self.rng)
        if not self._view.region.has_box:
            points *= np.resize(self._options.spreads, len(points))[:, None]
        return points

    def _polished(self, pair: Pair) -> bool:
        """Fit all parameters; return whether that explains all rows and fresh ones."""
        options, network = self._options, pair.network
        spread = float(self.findings.spread.max())
        with self.journal.stage("polish") as stage:
            best = self._gauss_newton(network)
            stage.figures.update(residual=best.history[-1] / spread, rows=len(self._points))
        with self.journal.stage("check") as stage:
            points = self._check_points(best.network)
            off = self._misfits(best.network, points, self._ask(points))
            stage.figures.update(
                worst=float(off.max()), rows=len(points), agree=float((off <= options.agrees).mean())
            )
        if self._network is not None and not (off <= options.agrees).all():
            return False
        best = self._without_surplus(self._gauss_newton(best.network, near=True))
        self._network = best.network
        self._tell(best, pair, spread)
        return bool((off <= options.agrees).all())

    def _gauss_newton(self, network: Network, near: bool = False) -> Polished:
        """Fit all parameters to rows that are clear of kinks, nearer and nearer to them."""
        options, outputs = self._options, min(*network.hidden, network.n_outputs)
        wanted = int(options.equations * network.n_parameters / outputs)
        least = options.polish.clear
        clear = least if near else options.clear
        best: Polished | None = None
        for _ in range(options.polishes):
            rows = enough_rows(network, self._points, wanted, self.rng, options.polish.rows_per_weight)
            while clear_of_kinks(network, self._points[rows], clear).sum() < wanted / 2 and clear > least:
                clear *= options.clearing
            settings = replace(options.polish, clear=clear)
            polished = polish(network, self._points[rows], self._answers[rows], settings)
            settled = best is not None and polished.history[-1] > 0.7 * best.history[-1]
            network, best = polished.network, polished
            if clear <= least and settled:
                break
            clear = max(clear * options.clearing, least)
        assert best is not None
        return best

    def _without_surplus(self, polished: Polished) -> Polished:
        """Leave out units of the second layer, the weakest first, that others make up for.

        A fit that is not exact may use more units than there are; where it is, they do nothing, or the same.
        """
        options = self._options
        for _ in range(options.most_surplus):
            if polished.error_bar <= options.undetermined or polished.network.hidden[1] < 2:
                break
            adds = _contributions(polished.network, self._points)
            for unit in np.argsort(adds)[: options.tried_surplus]:
                fewer = self._gauss_newton(_without(polished.network, int(unit)), near=True)
                if fewer.history[-1] <= options.as_good * polished.history[-1]:
                    polished = fewer
                    break
            else:
                break
        return polished

    def _misfits(self, network: Network, points: Array, answers: Array) -> Array:
        """Return errors (n,) at rows in errors of an answer, which grow with the length of x."""
        size = 1 + np.linalg.norm(points, axis=1) / np.sqrt(points.shape[1])
        errors = np.abs(network(points) - answers) / self.findings.noise.sigma_per_output
        return np.asarray(errors.max(axis=1) / size)

    def _check_points(self, network: Network) -> Array:
        check = self._options.check
        count = max(check.fewest, int(check.per_parameter * network.n_parameters))
        if self._view.region.has_box or network.activations[-1] != "identity":
            return self._draw(count)
        return check_points(network, count, self.rng, check)

    def _tell(self, polished: Polished, pair: Pair, spread: float) -> None:
        """Keep what the judge wants to know."""
        undetermined = open_parameters(polished)
        self._ambiguity = None
        if undetermined:
            shown = ", ".join(f"({layer + 1}, {row}, {unit})" for layer, row, unit in undetermined[:5])
            self._ambiguity = (
                f"{len(undetermined)} parameters are not determined by the answers (layer, row, unit: "
                f"{shown}): units are read that are never active together, or hardly ever"
            )
        elif not pair.signs_solved:
            self._ambiguity = "no signs of the units explain all of the affine part of what reads them"
        finite = polished.error_bars[np.isfinite(polished.error_bars)]
        floor = max(self._sigma, float(np.finfo(np.float64).eps))
        self._evidence = replace(
            self._evidence,
            fit_history=tuple(value / spread for value in polished.history),
            fit_floor=self._options.settled * floor,
            prediction_floor=floor,
            parameter_error_bar=float(finite.max(initial=0.0)),
        )


def _scaled(network: Network, reading: Reading) -> Network:
    """Return the network of the answers from that of what was read, in units of a spread."""
    return Network(
        [*network.weights[:-1], network.weights[-1] * reading.spread],
        [*network.biases[:-1], network.biases[-1] * reading.spread],
        [*network.activations[:-1], reading.link.name],
    )


def _contributions(network: Network, points: Array) -> Array:
    """Return the standard deviation (m,) of what each unit of the second layer adds before the link."""
    below = Network(network.weights[:2], network.biases[:2], network.activations[:2])
    return np.asarray(below(points).std(axis=0) * np.linalg.norm(network.weights[2], axis=1))


def _without(network: Network, unit: int) -> Network:
    """Return the network without a unit of its second layer."""
    kept = np.arange(network.hidden[1]) != unit
    first, second, outer = network.weights
    biases = network.biases
    return Network(
        [first, second[:, kept], outer[kept]], [biases[0], biases[1][kept], biases[2]], network.activations
    )
