"""One hidden layer of kinked units from coarse answers, or behind a sigmoid, tanh or softmax: the route.

Answers in single precision show most kinks on lines, and least squares on values goes on from there: it finds
rough units, weak ones that no line shows, and those that are one (`variable_projection.nearby`). Signs come
last, from all rows.

Coarser answers do not show where a kink lies. But sums of kinked units are found by least squares from random
starts, noise or not:

1. random rows; their answers behind the link, z = T^{-1}(y), where z is known nearly as well as anywhere;
2. units of z up to signs by `variable_projection`, signs from the affine part; more rows
   while these explain more;
3. all parameters by least squares on the answers themselves, T included;
4. more rows to average noise out, or the flips of rounded answers (`refinement`).

Cost: 12 rows per parameter, divided by the outputs; half as many more for noise, 60 per parameter for flips.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array, BoolArray
from unweave.methods.shared.coarse_answers.averaged_fit import AveragedFit, fit_to_rows, prune
from unweave.methods.shared.coarse_answers.evidence import CoarseEvidence
from unweave.methods.shared.coarse_answers.refinement import CoarseOptions, Refinement
from unweave.methods.shared.coarse_answers.rows import AnsweredRows, FarRows, link_of
from unweave.methods.shared.coarse_answers.sliced import SlicedOptions
from unweave.methods.shared.kinked.evidence import KinkedEvidence
from unweave.methods.shared.kinked.line_search import (
    LineSearchOptions,
    UnitsOnLines,
    coarse_line_options,
    finer_line_options,
)
from unweave.methods.shared.kinked.reading import Reading, open_reading
from unweave.methods.shared.kinked.sample_fit import SampleFit, fit_samples, units_may_turn
from unweave.methods.shared.refusals import links_to_try
from unweave.networks.absolute_form import AbsoluteForm
from unweave.networks.links import Link
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.networks.signs import (
    KINKED,
    MOST_ALTERNATIVES,
    SIGN_TOLERANCE,
    negative_slope,
    solve_signs,
    to_form,
    to_network,
)
from unweave.numerics.missing_kinks import units_in_moments
from unweave.numerics.variable_projection.nearby import DEFAULT_NEARBY_OPTIONS, NearbyOptions
from unweave.numerics.variable_projection.problem import ProjectedProblem, with_ones
from unweave.numerics.variable_projection.prune import without_useless
from unweave.numerics.variable_projection.search import SearchOptions
from unweave.probing.noise import NoiseKind
from unweave.search import Candidate, Context, GaveUp, Reason, Search
from unweave.search.journal import OpenStage
from unweave.targets.region import Region


@dataclass(frozen=True, kw_only=True)
class ReluCoarseOptions:
    """How hard to search for kinked units in coarse answers."""

    coarse: CoarseOptions = field(default_factory=CoarseOptions)
    """Rows, noise, final fit and flips."""
    rows_per_parameter: float = 12.0
    """Rows on which units are searched for, per parameter and divided by the outputs."""
    first_width: int = 8
    """Number of units that the first rows suffice for when the caller gives no width."""
    first_width_rounded: int = 16
    """The same for rounded answers, whose flips cost far more in any case."""
    rounds: int = 2
    """Rounds of asking for more rows where kinks were seen; without, one is spent on a guess, ..."""
    promising: float = 0.1
    """... and misfit of a round over that of the round before, up to which another one follows: units are
    found that fewer rows did not show, ..."""
    most_rounds: int = 4
    """... at most as many in all."""
    row_growth: float = 4.0
    """Ratio of the numbers of rows of successive rounds."""
    starts: int = 2
    """Random starts of a search, which repairs itself as it goes; one where no kinks were seen."""
    fewest_rows_per_parameter: float = 6.0
    """Rows per parameter of the widest network that is tried."""
    error_ratio: float = 5.0
    """Rows are used whose error of z is within this factor of the smallest."""
    float64_error: float = 1e-9
    """Error of z relative to its spread below which a float64 row is used in any case."""
    float32_error: float = 1e-4
    """The same in float32."""
    pilot_rows: int = 32
    """Rows that show how much of the region a link saturates."""
    unsaturated_share: float = 0.5
    """Share of the pilot rows that must be seen behind the link; else the region is narrowed."""
    narrowing: float = 0.5
    """Factor by which it is narrowed."""
    narrowings: int = 5
    """Times that it is narrowed at most."""
    noise_residual: float = 1.1
    """Residual of a finished search, in errors of z, where noise or a grid is well known."""
    rounding_residual: float = 11.0
    """The same where floating-point errors are only roughly known."""
    finest_residual: float = 1e-10
    """Residual relative to the spread of z at which a search is finished, however precise the answers."""
    damping: float = 1e-6
    """Initial damping of the fit of all parameters, whose start is near."""
    sign_misfit: float = 0.2
    """Relative misfit of the affine part up to which a pattern of signs is tried on the answers."""

    nearly_found: float = 1e-6
    """Residual of units found on lines in precise answers, relative to their spread, that is hard to beat."""
    lines_first: float = 3e-6
    """Noise relative to the spread up to which kinks are looked for on lines before anything else."""
    slices: SlicedOptions = field(default_factory=SlicedOptions)
    """The slice that is searched where inputs are many."""
    coarsest_on_lines: float = 1e-4
    """The same noise up to which they are looked for on lines where random starts have failed."""
    rows_per_unit: float = 4.0
    """Rows per unit of lines that show which of them are one, ..."""
    useless: float = 0.1
    """... and residual that one must explain for that, over what all of them leave."""
    rows_after_lines: float = 4.0
    """Rows to which all parameters are fitted where lines have shown the units, as above, ..."""
    weaker_rounds: int = 12
    """Times that lines are searched for units weaker than those found, ..."""
    mostly_explained: float = 3e-3
    """... residual of these, relative to the spread, up to which weaker ones may be what is missing, ..."""
    stuck: float = 0.9
    """... ratio of what is left after one and of the least before, above which it did not help, ..."""
    patience: int = 2
    """... unless so few lines were searched before, ..."""
    brief_fit: NearbyOptions = field(
        default_factory=lambda: NearbyOptions(repairs=0, worthwhile=0.1, idle=2, prunes=False)
    )
    """... and how these are fitted before each."""
    lines_through_worst: int = 6
    """Lines of them that lead through rows that are missed by most errors: what is missing has its kink not
    far from there."""
    by_moments: int = 3
    """Units besides that moments of what is left point to."""
    beyond_doubt: float = 0.3
    """Residual over the largest that may be rounding, up to which no more are: a unit may add as much."""
    rounds_after_lines: int = 3
    """... and how often more are asked if they do not suffice, ..."""
    hardly_better: float = 0.3
    """Residual of their fit over that on lines, above which the target is another one, ..."""
    hardly_wrong: float = 1e-3
    """... unless lines left less than this of the spread."""
    short_reach: float = 10.0
    """Half length of the lines that are searched first, in typical radii of the region."""
    far_rows: int = 64
    """Rows in all directions, as far out as lines may be searched: units that are missing show there."""
    far_share: float = 3e-7
    """Error times distance, relative to the answers, of a row far out that needs no fit: training leaves
    units there that are too weak to be told apart."""
    share_of_lines: float = 0.3
    """Rows on lines that are fitted as well each time, relative to those drawn at random, ..."""
    row_growth_after_lines: float = 2.0
    """... and the ratio of their numbers."""
    largest_pruned: int = 4000
    """Number of parameters up to which all of them are refitted to tell whether a unit is needed."""
    sign_errors: float = 10.0
    """Standard errors of the affine part by which a pattern of signs may miss it."""
    nearly_explained: float = 0.05
    """Residual of units on lines, relative to the spread, from which least squares on values goes on."""

    def width(self, noise: NoiseKind) -> int:
        """Return the number of units assumed when the caller gives no width."""
        return self.first_width_rounded if noise == "rounded" else self.first_width


class ReluCoarseReason(Reason):
    """Why no network of this class was found."""

    NEARLY_FOUND = "units found on lines explain all but {residual:.1e} of it: random starts find no more"
    NOTHING_SEEN = "no unit with a kink stands out of the noise"
    NOT_EXPLAINED = (
        "{units} units with a kink leave {misfit:.2g} standard deviations where noise alone would leave 1: "
        "another activation, more than one hidden layer, more units (hidden=[m] tells their number), or too "
        "much noise"
    )


class ReluCoarseSearch(Search):
    """Finds units behind each possible link, then refines the network whose misfit is noise."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        findings, request = self.findings, self.request
        self._options: ReluCoarseOptions = context.options
        coarse = self._options.coarse
        self._rows = AnsweredRows(context.view, findings.noise, self.rng, coarse.rows)
        # A link that the range of the answers suggests is likelier than none.
        self._links = [Link(name) for name in links_to_try(request, findings)[::-1]]
        self._best = Refinement(context, self._rows, CoarseEvidence(), coarse)
        self._certain = findings.kinks or request.activation is not None
        self._ambiguity: str | None = None
        self._ends_far_out = False  # whether only rows farther out than lines were searched are not explained
        self._faint = False  # whether rows far out show more than the units that explain all others

    def candidate(self) -> Candidate:
        """Return the best network so far."""
        found = self._best.candidate()
        said = [each for each in (self._still_open(found), self._unseen()) if each]
        return replace(found, ambiguity="; ".join(said) or None)

    def _unseen(self) -> str | None:
        """Say if units may be missing that are too weak for answers of this precision."""
        weakest, enough = self._best.evidence.weakest_unit, CoarseEvidence.clear_of_hiding
        if self._faint:
            return (
                "the same function as far as it was asked nearby, but rows far out differ by a little: there "
                "are further units, too weak to be told at this precision"
            )
        if self.findings.noise.kind != "float32" or weakest is None or weakest >= enough:
            return None
        return (
            f"the weakest unit is only {weakest:.2g} times as strong as one that rounding could hide: there "
            "may be further units that are weaker still"
        )

    def _still_open(self, found: Candidate) -> str | None:
        """Say what stays open of the signs: flips are exact, and leave less open than averages did."""
        network = found.network
        exact = network is not None and network.skip is None and found.evidence.from_exact_equations
        if self._ambiguity is None or network is None or not exact or network.activations[0] not in KINKED:
            return self._ambiguity
        solution = solve_signs(to_form(network), negative_slope(network.activations[0]))
        if solution.alternatives:
            return units_may_turn([signs * solution.signs for signs in solution.alternatives])
        return None if solution.solved and solution.unique else self._ambiguity

    def run(self) -> None:
        """Ask rows until units with a kink explain them, then refine."""
        for earlier in self.context.earlier:
            history = earlier.evidence.fit_history if isinstance(earlier.evidence, KinkedEvidence) else ()
            if history and history[-1] <= self._options.nearly_found:
                raise GaveUp(ReluCoarseReason.NEARLY_FOUND, residual=history[-1])
        region, ordinary = self._rows.region, Region.standard(self._rows.n_inputs)
        if self.findings.searched and not region.has_box and region.covers(ordinary):
            # Units may switch where inputs are by default, though a found region shows more of others.
            self._rows.mix_in(ordinary)
        self._best.measure_noise()
        options = self._options
        noise = self.findings.noise.relative
        if noise <= options.lines_first and self._on_lines():
            return
        self._narrow()
        first = self.request.width or options.width(self.findings.noise.kind)
        goal = options.rows_per_parameter * self._parameters(first)
        left = np.inf  # what the last round has left, in standard deviations
        for number in range(options.most_rounds):
            self._rows.extend_to(goal)
            for link in self._links:
                self._search(link)
                if self._best.is_explained:
                    self._best.refine(self._searched_again, self._pruned)
                    return
            if self.context.is_late:
                break
            still_fine = options.lines_first < noise <= options.coarsest_on_lines
            if number == 0 and still_fine and self._on_lines():
                return
            left, before = self._best.misfit, left
            promises = left <= options.promising * before < np.inf
            if number + 1 >= (options.rounds if self._certain else 1) and not promises:
                break
            goal *= options.row_growth
        fit = self._best.fit
        if fit is None:
            raise GaveUp(ReluCoarseReason.NOTHING_SEEN)
        units = fit.model.weights[0].shape[1]
        raise GaveUp(ReluCoarseReason.NOT_EXPLAINED, units=units, misfit=fit.misfit)

    def _on_lines(self) -> bool:
        """Find units on lines, where kinks stand out, and refine them if they explain the answers.

        Lines that lead far out show units that trained networks have there, too weak to be told apart.
        So short ones come first, and longer ones where rows far out ask for them.
        """
        noise, inputs = self.findings.noise, self._rows.n_inputs
        steady = noise.kind in ("float32", "rounded")
        if not self.findings.kinks or not steady or self._rows.region.has_box:
            return False
        for link in self._links:
            reading = open_reading(self._rows.view, noise, link, self.findings.spread, self.rng)
            if reading is None or reading.region is not self._rows.region:
                continue
            reading.measure_roundings(self.rng)
            every = coarse_line_options(reading.error if reading.is_limited else noise.relative)
            short = min(self._options.short_reach * inputs**0.5, every.reach)
            for reach in sorted({short, every.reach}):
                known = self._form(reading) if self._ends_far_out else None
                lines = self._lines(reading, replace(every, reach=reach), known)
                try:
                    lines.search()
                except GaveUp:
                    if known is None and lines.residual > self._options.nearly_explained:
                        break
                if lines.units.width and self._near(lines, reading, every.reach, may_end=reach < every.reach):
                    self._best.refine(self._searched_nearby, self._settled)
                    return True
                if not self._ends_far_out:
                    break
        return False

    def _lines(
        self,
        reading: Reading,
        options: LineSearchOptions,
        known: AbsoluteForm | None,
        through: Array | None = None,
    ) -> UnitsOnLines:
        """Return what searches lines for units, through what ``known`` ones leave if there are any.

        The first lines lead ``through`` points (n, d).
        """
        rng, on_form = self.rng, lambda form: None
        return UnitsOnLines(reading, self.journal, rng, options, on_form, known=known, through=through)

    def _form(self, reading: Reading) -> AbsoluteForm | None:
        """Return the units of the best fit, in units of ``reading``."""
        fit = self._best.fit
        return None if fit is None else to_form(fit.model.to_network()).scaled(1 / reading.spread)

    def _left_nearby(self, form: AbsoluteForm, reading: Reading) -> tuple[Array, Array, Array]:
        """Return rows (n, d) at hand, what ``form`` leaves there (n, K), and its errors (n,)."""
        values, errors = reading.with_errors(self._rows.points)
        read = np.isfinite(values).all(axis=1)
        points = self._rows.points[read]
        return points, values[read] - form(points), errors[read].max(axis=1)

    def _with_moments(
        self, units: tuple[Array, Array], form: AbsoluteForm, reading: Reading
    ) -> tuple[Array, Array]:
        """Return ``units`` and those that moments of what ``form`` leaves point to."""
        points, left, errors = self._left_nearby(form, reading)
        precise = errors <= self._options.error_ratio * reading.error
        output = int(np.argmax((left[precise] ** 2).sum(axis=0)))
        found = units_in_moments(points[precise], left[precise, output], self._options.by_moments)
        return _joined(units, found)

    def _near(self, lines: UnitsOnLines, reading: Reading, farthest: float, may_end: bool) -> bool:
        """Fit units that lines have shown to values, with more rows while these leave something open.

        Rows on lines show units that switch far out, where random rows do not see them. Rows in all
        directions, as far out as ``farthest``, end the search if it ``may_end`` because of them.
        """
        options, most = self._options, self._rows.acceptable_misfit()
        start = self._likely(*lines.every_unit, reading) if lines.known is None else lines.every_unit
        self._rows.extend_to(options.rows_after_lines * self._parameters(len(start[1])))
        far = self._read_rows(reading, *lines.far_rows)
        few = self._few()
        self._include_near(far)
        far = far.joined(self._read_rows(reading, *lines.read_far_out(options.far_rows, farthest)))
        finer = finer_line_options(lines.options)
        start = self._with_weaker(start, reading, finer)
        for number in range(options.rounds_after_lines):
            with self.journal.stage("fit units of lines") as stage:
                fit = self._near_fit(start, reading.link, stage)
            if fit is None:
                return False
            self._best.keep(fit)
            missed = far.missed(fit.model, most, options.far_share)
            self._faint = len(far.missed_beyond_rounding(fit.model, most, self._unit_of_rounding)) > 0
            if self._best.is_explained and not len(missed):
                return True
            # Rows far out that were fitted once and are missed again ask for units farther out.
            self._ends_far_out = self._best.is_explained and may_end and number > 0
            left = fit.misfit * self.findings.noise.relative
            hopeless = left > options.hardly_better * max(lines.residual, options.hardly_wrong)
            if self.context.is_late or self._ends_far_out or hopeless:
                return False
            # Rows that show most, else more rows.
            self._rows.include(*far.at(missed[:few]))
            if not self._best.is_explained and not len(missed):
                self._rows.extend_to(options.row_growth_after_lines * len(self._rows))
            form = to_form(fit.model.to_network())
            start = form.weights, form.biases
            start = self._with_weaker(start, reading, finer, least_rounds=1)
        return self._best.is_explained

    @property
    def _unit_of_rounding(self) -> float:
        """Relative rounding of the target's arithmetic; zero where decimals hide it."""
        info = self.findings.noise.number_format
        return 0.0 if info is None else float(info.eps) / 2

    def _few(self) -> int:
        """Return how many rows of another kind are fitted beside those at hand."""
        return int(self._options.share_of_lines * np.count_nonzero(self._rows.drawn))

    def _include_near(self, far: FarRows) -> None:
        """Fit a few of the rows on lines that are nearby, too."""
        near = np.flatnonzero(far.distances() <= far.near)
        self._rows.include(*far.at(self.rng.permutation(near)[: self._few()]))

    def _with_weaker(
        self,
        start: tuple[Array, Array],
        reading: Reading,
        line_options: LineSearchOptions,
        least_rounds: int = 0,
    ) -> tuple[Array, Array]:
        """Return ``start`` and weaker units, from lines through what the stronger ones leave.

        Next to strong units a line does not show weak ones, whose kinks are lost between theirs. Where all
        rows are explained, lines are searched ``least_rounds`` times. Units stay in the running as lines
        showed them, too: while some are missing, a fit moves others away to make up for them.
        """
        options, least = self._options, np.inf
        shown = start if not least_rounds else (start[0][:, :0], start[1][:0])
        strict = options.beyond_doubt if self.findings.noise.kind == "float32" else 1.0
        for number in range(options.weaker_rounds):
            with self.journal.stage("fit units of lines") as stage:
                found = self._units_behind(reading.link, start, options.brief_fit, strict)
                if found is None or not found.network.hidden:
                    return start
                left = found.search.fit.residual
                stage.figures.update(rows=len(self._rows), width=found.network.hidden[0], residual=left)
            form = to_form(found.network).scaled(1 / reading.spread)
            start = form.weights, form.biases
            enough = found.search.exact and number >= least_rounds
            helped = number < options.patience or left <= options.stuck * least
            hopeless = left > options.mostly_explained or not helped
            if enough or hopeless or self.context.is_late:
                break
            points, left_at, errors = self._left_nearby(form, reading)
            least = min(least, left)
            lines = self._lines(
                reading,
                line_options,
                form,
                points[np.argsort(-np.abs(left_at).max(axis=1) / errors)[: options.lines_through_worst]],
            )
            if not number and not least_rounds:  # random rows hardly show units that switch farther out
                wide = lines.read_far_out(self._few(), options.short_reach * self._rows.n_inputs**0.5)
                self._rows.include(*self._read_rows(reading, *wide).every())
            with suppress(GaveUp):
                lines.search()
            self._include_near(self._read_rows(reading, *lines.far_rows))
            units = _joined(self._with_moments(lines.every_unit, form, reading), shown)
            start = self._likely(*units, reading, rough=True)
            new = ~np.isin(start[1], np.concatenate([form.biases, shown[1]]))
            shown = _joined(shown, (start[0][:, new], start[1][new]))
        return start

    def _likely(
        self, weights: Array, biases: Array, reading: Reading, *, rough: bool = False
    ) -> tuple[Array, Array]:
        """Return the units, of ``weights`` (d, m) and ``biases`` (m,), that random rows ask for.

        Two kinks close together look like one on a line, and are no unit: only several outputs tell. Weak
        units are ``rough``: lines meet one several times, and do not see that it is the same.
        """
        if self._rows.n_outputs > 1 and not rough:
            return weights, biases
        self._rows.extend_to(self._options.rows_per_unit * len(biases))
        z, errors = reading.with_errors(self._rows.points)
        read = np.isfinite(z).all(axis=1)
        x, z = self._rows.points[read], z[read]
        if len(x) <= len(biases) + x.shape[1] + 1:
            return weights, biases
        off = errors[read].max(axis=1) / self._rows.precision[read]
        share = off.min() / off[:, None]  # by which a row counts: one far out would outweigh all others
        problem = ProjectedProblem(x, share * (z - z.mean(axis=0)), inputs=share * with_ones(x))
        asked = without_useless(problem, np.vstack([weights, biases]), self._options.useless)
        return asked[:-1], asked[-1]

    def _read_rows(self, reading: Reading, points: Array, values: Array, errors: Array) -> FarRows:
        """Return rows (n, D) at which ``values`` (n, K) with ``errors`` (n,) were read."""
        if self.findings.noise.kind == "rounded":  # which z behind a link does not give back
            points, values, errors = points[:0], values[:0], errors[:0]
        z, errors = values * reading.spread, errors[:, None] * reading.spread
        return FarRows.behind(reading.link, points, z, errors, self._rows.sigma)

    def _near_fit(
        self, start: tuple[Array, Array], link: Link, stage: OpenStage | None = None
    ) -> AveragedFit | None:
        """Fit to all rows from ``start``, units added and left out as they ask for."""
        found = self._units_behind(link, start)
        if found is None or not found.network.hidden:
            return None
        fit = self._fitted(found.network, link)
        if stage is not None:
            stage.figures.update(
                rows=len(self._rows),
                width=found.network.hidden[0],
                repairs=found.search.repairs,
                residual=found.search.fit.residual,
                misfit=fit.misfit,
            )
        return fit

    def _searched_nearby(self, fit: AveragedFit) -> AveragedFit:
        """Search again for units that more rows have shown to be missing."""
        form = to_form(fit.model.to_network())
        other = self._near_fit((form.weights, form.biases), link_of(fit.model))
        return fit if other is None or other.misfit >= fit.misfit else other

    def _settled(self, fit: AveragedFit) -> AveragedFit:
        """Leave out what the rows do not ask for, and find signs: all that is known is needed for them."""
        if fit.misfit > self._rows.acceptable_misfit():
            return fit
        if fit.model.size <= self._options.largest_pruned:
            fit = prune(fit, self._rows, skip_helps=True)
        link, form = link_of(fit.model), to_form(fit.model.to_network())
        errors = link.undone_errors(self._rows.answers, self._rows.sigma, self.findings.noise.number_format)
        noise = fit.misfit * float(np.median(errors)) * np.sqrt(fit.model.size / fit.equations)
        error = max(noise / float(np.linalg.norm(form.heights)), float(np.finfo(np.float64).eps))
        tolerance = min(max(self._options.sign_errors * error, SIGN_TOLERANCE), self._options.sign_misfit)
        told = self.request.activation
        for name in (told,) if told in KINKED else KINKED:
            solution = solve_signs(form, negative_slope(name), tolerance, error=error)
            if not solution.solved:
                reason = f" ({solution.reason})" if solution.reason else ""
                self._ambiguity = self._ambiguity or (
                    "the units are known up to signs, and no signs were found that explain the affine part: "
                    f"it is given as a skip matrix{reason}"
                )
                continue
            signed = self._fitted(to_network(form, solution, name), link)
            if signed.misfit <= self._rows.acceptable_misfit():
                unique = "the signs of the units fit, but others may fit as well"
                self._ambiguity = None if solution.unique else unique
                return signed
        return fit

    def _narrow(self) -> None:
        """Look nearer to the centre where a link is saturated nearly everywhere."""
        saturating = [link for link in self._links if link.name != "identity"]
        if not saturating or self._rows.region.has_box or len(self._rows):  # lines have seen enough of it
            return
        options = self._options
        with self.journal.stage("region") as stage:
            narrowed = 1.0
            for _ in range(options.narrowings):
                answers = self._rows.view(self._rows.sample(options.pilot_rows))
                seen = min(float(self._seen(link, answers)[0].mean()) for link in saturating)
                if seen >= options.unsaturated_share:
                    break
                self._rows.widen(options.narrowing)
                narrowed *= options.narrowing
            stage.figures["region narrowed to"] = narrowed

    def _search(self, link: Link) -> None:
        """Find the units of z, fit all parameters to the answers, and keep the best fit so far."""
        with self.journal.stage(f"fit {self.request.activation or 'relu or leaky_relu'}") as stage:
            found = self._units_behind(link)
            if found is None or not found.network.hidden:
                return
            fit = self._pruned(self._fitted(found.network, link))
            stage.figures.update(
                rows=len(self._rows),
                width=fit.model.weights[0].shape[1],
                starts=found.search.starts,
                link=link.name,
                misfit=fit.misfit,
                signs=found.signs_method,
            )
        if self._best.fit is None or fit.misfit < self._best.fit.misfit:
            fit, self._ambiguity = self._with_signs(fit, found)
            self._best.keep(fit)

    def _searched_again(self, fit: AveragedFit) -> AveragedFit:
        """Search again on all rows for units of a fit that more rows have refuted."""
        link = link_of(fit.model)
        found = self._units_behind(link)
        if found is None or not found.network.hidden:
            return fit
        other = self._fitted(found.network, link)
        if other.misfit >= fit.misfit:
            return fit
        other, self._ambiguity = self._with_signs(other, found)
        return other

    def _with_signs(self, fit: AveragedFit, found: SampleFit) -> tuple[AveragedFit, str | None]:
        """Try the patterns of signs that z leaves open on the answers; return the fit and what stays open."""
        rows, name = self._rows, found.network.activations[0]
        still_open = found.other_signs()
        if still_open is None or name not in KINKED or fit.misfit > rows.acceptable_misfit():
            return fit, still_open
        form = to_form(fit.model.to_network())
        solution = solve_signs(form, negative_slope(name), self._options.sign_misfit)
        if not solution.solved:
            return fit, still_open
        patterns = [solution.signs, *solution.alternatives]
        tried = [to_network(form, replace(solution, signs=signs), name) for signs in patterns]
        fits = [self._fitted(network, link_of(fit.model)) for network in tried]
        explained = [i for i, each in enumerate(fits) if each.misfit <= rows.acceptable_misfit()]
        if not explained:
            return fit, still_open
        best = min(explained, key=lambda i: fits[i].misfit)
        others = [patterns[i] * patterns[best] for i in explained if i != best]
        if others:
            return fits[best], units_may_turn(others)
        # Of all patterns only one is explained, if all were there to be tried.
        all_tried = solution.method == "enumeration" and len(solution.alternatives) < MOST_ALTERNATIVES
        return fits[best], None if solution.unique or all_tried else still_open

    def _units_behind(
        self,
        link: Link,
        start: tuple[Array, Array] | None = None,
        nearby: NearbyOptions = DEFAULT_NEARBY_OPTIONS,
        strict: float = 1.0,
    ) -> SampleFit | None:
        """Return the network of z = T^{-1}(y) that fits best; None if z is hardly known anywhere.

        ``start`` are weights (d, m) and biases (m,) of units that are nearly right. A fit is exact up to
        ``strict`` times the residual that counts as rounding or noise.
        """
        rows, options, kind = self._rows, self._options, self.findings.noise.kind
        used, errors = self._seen(link, rows.answers)
        x, z = rows.points[used], link.undo(rows.answers[used], self.findings.noise.edge_sigma)
        errors = errors[used] / rows.precision[used, None]
        if len(x) < options.fewest_rows_per_parameter * self._parameters(1):
            return None
        spread = np.where(z.std(axis=0) > 0, z.std(axis=0), 1.0)
        row_errors = errors.max(axis=1)
        shortened = errors if start is None else errors / row_errors[:, None] * row_errors.min()
        share = float(np.sqrt(np.mean((shortened / spread) ** 2)))
        noisy, width = kind in ("rounded", "noisy"), self.request.width
        least = (options.noise_residual if noisy else options.rounding_residual) * share
        per_unit = (self._parameters(2) - self._parameters(1)) * options.fewest_rows_per_parameter
        fit = fit_samples(
            x,
            z,
            width,
            self.request.activation,
            floor=max(strict * least, options.finest_residual),
            rng=self.rng,
            noisy=noisy,
            options=SearchOptions(
                starts=options.starts if self._certain else 1, most=max(int(len(x) / per_unit), width or 0)
            ),
            on_step=self.on_step,
            start=start,
            errors=None if start is None else row_errors,
            nearby=nearby,
        )
        if fit.search.interrupted:
            raise KeyboardInterrupt
        return fit

    def _seen(self, link: Link, answers: Array) -> tuple[BoolArray, Array]:
        """Return the rows (n,) in which z is known well enough to search in, and its errors (n, K)."""
        noise, options = self.findings.noise, self._options
        errors = link.undone_errors(answers, noise.sigma_per_output, noise.number_format)
        if link.name == "identity":
            return np.ones(len(answers), dtype=np.bool_), errors
        largest = errors.max(axis=1)
        smallest = largest.min(initial=np.inf)
        if not np.isfinite(smallest):
            return np.zeros(len(answers), dtype=np.bool_), errors
        finite = np.isfinite(largest)
        spread = link.undo(answers[finite], self._rows.largest_sigma).std()
        precise = {"float64": options.float64_error, "float32": options.float32_error}.get(noise.kind, 0.0)
        return largest <= max(options.error_ratio * smallest, precise * spread), errors

    def _fitted(self, network: Network, link: Link) -> AveragedFit:
        """Fit all parameters to all answers at hand."""
        behind = Network(network.weights, network.biases, [network.activations[0], link.name], network.skip)
        return fit_to_rows(
            NetworkParameters.from_network(behind),
            self._rows,
            damping=self._options.damping,
            enough=self._rows.acceptable_misfit() if self.findings.noise.kind == "float32" else None,
        )

    def _pruned(self, fit: AveragedFit) -> AveragedFit:
        """Leave out units that only fit noise, or errors of z that are not those of the answers."""
        return prune(fit, self._rows) if fit.misfit <= self._rows.acceptable_misfit() else fit

    def _parameters(self, width: int) -> float:
        """Count the parameters of a network of this width, its affine part included, per output."""
        inputs, outputs = self._rows.n_inputs, self._rows.n_outputs
        return (width * (inputs + outputs) + (inputs + 1) * outputs) / outputs


def _joined(units: tuple[Array, Array], others: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return weights (d, m) and biases (m,) of ``units`` and then of the ``others``."""
    return np.hstack([units[0], others[0]]), np.concatenate([units[1], others[1]])
