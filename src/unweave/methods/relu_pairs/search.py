"""Two hidden layers of (leaky) ReLU units from coarse answers, behind a link, or inside a box.

1. hyperplanes of the first layer from lines (`first_layer`), each grown over the whole region (`planes`);
2. the second layer and the output as one hidden layer behind them (`second_layer`), from rows anywhere;
3. Gauss-Newton on all parameters, until the rounding of the answers is left (`joint_fit`);
4. fresh rows, many where a missing unit would show; those that disagree join the rows, and 2 begins again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.relu_pairs.first_layer import FirstLayer, FirstLayerOptions
from unweave.methods.relu_pairs.joint_fit import JointFit, JointFitOptions
from unweave.methods.relu_pairs.rows import PairRows, RowOptions, segments_between
from unweave.methods.relu_pairs.second_layer import (
    Pair,
    SecondLayerOptions,
    fit_behind,
    rows_wanted,
    signs_are_unique,
    with_known,
    with_signs,
)
from unweave.methods.relu_pairs.surfaces import Surfaces, SurfacesOptions
from unweave.methods.shared.coarse_answers.sharpened import SharpenedOptions, SharpenedQueries
from unweave.methods.shared.kinked.check_rows import CheckOptions, check_points
from unweave.methods.shared.kinked.deep_polish import Polished, open_parameters
from unweave.methods.shared.kinked.evidence import KinkedEvidence
from unweave.methods.shared.kinked.reading import Reading, open_reading
from unweave.methods.shared.refusals import links_to_try
from unweave.networks.links import Link
from unweave.networks.network import Network
from unweave.networks.signs import KINKED
from unweave.numerics.line_kinks import Line
from unweave.probing.noise import Noise
from unweave.search import Candidate, Context, GaveUp, Reason, Search
from unweave.targets.change_of_inputs import in_own_inputs
from unweave.targets.region import NormalisedQueries


@dataclass(frozen=True, kw_only=True)
class ReluPairsOptions:
    """How two hidden layers are searched for in coarse answers."""

    most_inputs: int = 128
    """Number of inputs up to which normals are measured in all of them."""
    coarsest: float = 1e-5
    """Noise relative to the spread up to which hyperplanes are grown."""
    coarsest_rounded: float = 1e-3
    """The same of answers with few decimals, which are read between their flips (`sharpened`), ..."""
    sharpened: SharpenedOptions = field(default_factory=SharpenedOptions)
    """... on lines and surfaces, and ..."""
    fitted: SharpenedOptions = field(default_factory=lambda: SharpenedOptions(bits=36))
    """... at rows that all parameters are fitted to."""
    one_layer: float = 1e-7
    """Residual of one hidden layer, relative to the spread, that a second one does not leave: then units of
    the first are too weak to be told apart."""
    first: FirstLayerOptions = field(default_factory=FirstLayerOptions)
    surfaces: SurfacesOptions = field(default_factory=SurfacesOptions)
    dry_lines: int = 4
    """Lines without a new surface that end the search for them."""
    dry_short_lines: int = 10
    """The same in a box or behind a link, where a line crosses few of them."""
    most_lines: int = 40
    """Lines that surfaces are looked for on at most."""
    second: SecondLayerOptions = field(default_factory=SecondLayerOptions)
    joint: JointFitOptions = field(default_factory=JointFitOptions)
    check: CheckOptions = field(default_factory=lambda: CheckOptions(fewest=1000, per_parameter=1.0))
    rows: RowOptions = field(default_factory=RowOptions)
    floor: float = 30.0
    """Residual of the second layer's fit, in errors of an answer, that counts as exact."""
    plane_errors: float = 1.0
    """The same in errors of the hyperplanes."""
    least_floor: float = 1e-3
    """The same at least, relative to the spread: Gauss-Newton brings the rest."""
    lower: float = 0.03
    """Factor on all of these after lines that showed nothing new: least squares adds a unit then."""
    polishable: float = 0.05
    """Residual of the second layer's fit, relative to the spread, from which Gauss-Newton may start."""
    agrees: float = 60.0
    """Errors of an answer up to which a row agrees with the polished network."""
    nearly: float = 0.95
    """Share of the check rows with which a network may be right but for surplus or rare units."""
    hearings: int = 3
    """Fits with answers given before that contradict a network."""
    most_kept: int = 500
    """Such answers that are kept."""
    rounds: int = 5
    """Fits of the second layer, each with more rows."""
    segments: int = 6
    """Segments between rows that agree and rows that do not, on which what is missing is looked for."""
    growth: float = 1.6
    """Factor on the rows from fit to fit."""
    settled: float = 3.0
    """Roundings of the answers that a finished polish may leave."""


class ReluPairsReason(Reason):
    """Why no network of this class was found."""

    ONE_LAYER = "one hidden layer leaves no more than {residual:.1e} of the answers' spread"
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
        self._view, self._noise = self._sharpened(context.view, self._options.sharpened)
        self._network: Network | None = None
        self._ambiguity: str | None = None
        self._evidence = KinkedEvidence()
        self._notes: list[str] = []
        self._found = 0
        self._agreed = 0.0  # share of the check rows that the network explained
        self._towards: list[Line] = []
        self._begin()

    def _sharpened(
        self, view: NormalisedQueries, options: SharpenedOptions
    ) -> tuple[NormalisedQueries, Noise]:
        """Return what is asked, and the error of its answers."""
        noise = self.findings.noise
        if noise.decimals is None:
            return view, noise
        sharpened = SharpenedQueries(view, noise, self.findings.spread, self.rng, options)
        return sharpened, sharpened.noise

    def _begin(self) -> None:
        """Forget rows: those behind another link lie in another region."""
        options = self._options
        view, noise = self._sharpened(self._view, options.fitted)
        self._sigma = float((noise.sigma_per_output / self.findings.spread).max())
        self._rows = PairRows(view, noise.sigma_per_output, self.rng, options.rows)
        self._joint = JointFit(self._rows, self.rng, options.joint)

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
        """Look behind each link that is possible, unless one layer all but explains the answers."""
        for each in self.context.earlier:
            shallow = each.network is not None and len(each.network.hidden) == 1
            left = each.evidence.fit_history[-1] if each.evidence.fit_history else np.inf
            if shallow and left <= self._options.one_layer:
                raise GaveUp(ReluPairsReason.ONE_LAYER, residual=left)
        names = links_to_try(self.request, self.findings)[::-1]
        if self._noise is not self.findings.noise:  # straight pieces are what is read between flips
            names = ("identity",)
        for number, name in enumerate(names):
            link = Link(name)
            reading = open_reading(self._view, self._noise, link, self.findings.spread, self.rng)
            try:
                if reading is None:
                    raise GaveUp(ReluPairsReason.NOT_READ, link=name)
                self._view = reading.view
                self._begin()
                self._search(reading)
                return
            except GaveUp:
                if number + 1 == len(names):
                    raise

    def _search(self, reading: Reading) -> None:
        options = self._options
        first = FirstLayer(reading, self._noise.relative, self.journal, self.rng, options.first)
        try:
            first.search()
        finally:
            self._found = len(first.planes)
            self._evidence = first.evidence
        if not first.planes:
            raise GaveUp(ReluPairsReason.NO_FIRST_LAYER, lines=first.lines)
        surfaces = Surfaces(first, self.journal, self.rng, options.surfaces)
        residual, growth, lowered, known = np.inf, 1.0, 1.0, (0, 0)
        for _ in range(options.rounds):
            self._find_surfaces(first, surfaces)
            if known == (len(first.planes), len(surfaces.found)):
                lowered *= options.lower
            known = len(first.planes), len(surfaces.found)
            if not surfaces.found:
                raise GaveUp(ReluPairsReason.NOTHING_BEHIND, units=len(first.planes))
            pair = self._behind(first, surfaces, reading, growth, lowered)
            if pair is None and self._network is not None:
                return
            if pair is None:
                raise GaveUp(ReluPairsReason.NOTHING_BEHIND, units=len(first.planes))
            residual = min(residual, pair.residual)
            if pair.residual <= options.polishable and self._polished(pair):
                return
            growth *= options.growth
        # Rounded answers would not contradict a network that sharper ones do.
        if self._network is None or self._noise is not self.findings.noise:
            raise GaveUp(ReluPairsReason.NOT_EXPLAINED, units=len(first.planes), residual=residual)

    def _find_surfaces(self, first: FirstLayer, surfaces: Surfaces) -> None:
        """Search segments towards rows that disagree, then lines until some in a row show nothing new."""
        options, dry = self._options, 0
        for line in self._towards:
            first.search_line(line)
        surfaces.search()
        short = first.region.has_box or first.is_limited
        patience = options.dry_short_lines if short else options.dry_lines
        for _ in range(options.most_lines if not self._towards else patience):
            before = len(first.planes), len(surfaces.found)
            first.search_line(first.draw_line())
            surfaces.search()
            self._found = len(first.planes)
            dry = 0 if (len(first.planes), len(surfaces.found)) != before else dry + 1
            if dry >= patience:
                break

    def _behind(
        self, first: FirstLayer, surfaces: Surfaces, reading: Reading, growth: float, lowered: float
    ) -> Pair | None:
        """Fit the second layer to rows that are read."""
        options, width = self._options, len(first.planes)
        outputs = self.findings.n_outputs
        wanted = int(growth * rows_wanted(width, len(surfaces.found), outputs, options.second))
        with self.journal.stage("layer 2") as stage:
            self._rows.ask(self._rows.draw(wanted - len(self._rows.points)))
            values = reading(self._rows.points) if reading.is_limited else self._rows.answers / reading.spread
            seen = np.isfinite(values).all(axis=1)
            floor = max(options.floor * reading.error, lowered * options.plane_errors * first.error)
            floor = max(floor, lowered * options.least_floor)
            names = KINKED if self.request.activation is None else (self.request.activation,)
            signed = with_signs(surfaces.found, names, options.second)
            if not signed.layer.width:  # no surface bends where it crosses a hyperplane
                return None
            if self._network is not None and self._agreed >= options.nearly:
                signed = with_known(signed, self._network)
            stage.figures.update(rows=int(seen.sum()), floor=floor, first=signed.layer.width)
            stage.figures.update(signs=signed.clear)
            rows = self._rows.points[seen], values[seen]
            in_box = self._view.region.has_box
            pair = fit_behind(*rows, signed, floor, self.rng, options.second, self.on_step, in_box)
            if pair is not None:
                stage.figures.update(units=pair.network.hidden[1], residual=pair.residual)
        if pair is None:
            return None
        return replace(pair, network=_scaled(pair.network, reading))

    def _polished(self, pair: Pair) -> bool:
        """Fit all parameters; return whether that explains all rows and fresh ones."""
        options, network = self._options, pair.network
        spread = float(self.findings.spread.max())
        with self.journal.stage("polish") as stage:
            best = self._joint.fit(network)
            stage.figures.update(residual=best.history[-1] / spread, rows=len(self._rows.points))
        with self.journal.stage("check") as stage:
            points, answers = self._rows.ask(self._check_points(best.network))
            off = self._rows.misfits(best.network, points, answers)
            stage.figures.update(
                worst=float(off.max()), rows=len(points), agree=float((off <= options.agrees).mean())
            )
        agree = off <= options.agrees
        self._towards = segments_between(points, agree, options.segments, self.rng)
        if agree.mean() < self._agreed:
            return False
        self._agreed, explained = float(agree.mean()), bool(agree.mean() >= options.nearly)
        if explained and not agree.all():
            self._rows.ask(self._rows.draw_around(points[~agree]))
        best = self._joint.fit(best.network, near=True)
        if explained:
            best = self._joint.determined(self._joint.without_surplus(best))
        for _ in range(options.hearings if explained else 0):
            explained = self._heard(best.network)
            if explained:
                break
            best = self._joint.fit(best.network, near=True)
        self._network = best.network
        self._tell(best, spread)
        return explained

    def _heard(self, network: Network) -> bool:
        """Return whether all answers given before agree; keep those for the fits that do not.

        Lines and surfaces led to places that random rows do not see.
        """
        options = self._options
        points, answers = self._rows.given_before()
        agree = self._rows.misfits(network, points, answers, self._rows.half) <= options.agrees
        bad = np.flatnonzero(~agree)[: options.most_kept]
        self._rows.keep(*self._rows.ask(points[bad]))
        if len(bad):
            self._towards = segments_between(points, agree, options.segments, self.rng)
        return not len(bad)

    def _check_points(self, network: Network) -> Array:
        check = self._options.check
        count = max(check.fewest, int(check.per_parameter * network.n_parameters))
        if self._view.region.has_box or network.activations[-1] != "identity":
            return self._rows.draw(count)
        return check_points(network, count, self.rng, check)

    def _tell(self, polished: Polished, spread: float) -> None:
        """Keep what the judge wants to know."""
        undetermined = open_parameters(polished)
        self._ambiguity = None
        if undetermined:
            shown = ", ".join(f"({layer + 1}, {row}, {unit})" for layer, row, unit in undetermined[:5])
            self._ambiguity = (
                f"{len(undetermined)} parameters are not determined by the answers (layer, row, unit: "
                f"{shown}): units are read that are never active together, or hardly ever"
            )
        elif not signs_are_unique(polished.network, self._options.second):
            self._ambiguity = "the same function with the signs of other units turned"
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
