"""One smooth hidden layer from coarse answers: the route.

1. what the last transformation may be; a radius for the stencils at which Hessians tell most;
2. rotated Hessians until their spectrum, against the sample of noise they carry, shows all neurons; the link
   behind which there are fewest is the right one;
3. directions, then scale, bias and outgoing weights of every neuron, for each activation;
4. least squares on answers: scales first, then all parameters, with more and more rows; neurons that are
   missing come out of the residual Hessians, neurons that do not act are taken out;
5. rounded answers of a target that repeats itself are bisected, and the flips fitted exactly.

The noise level decides radius, number of sites, acceptance and when to stop. Nothing here passes a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.access.probe import Findings
from unweave.access.region import NormalisedQueries
from unweave.activations import SOFTMAX, get_activation
from unweave.arrays import Array
from unweave.candidate import Candidate, Evidence
from unweave.coarse.averaging import AveragedFit
from unweave.coarse.behind_links import HessiansBehindLinks, Seen
from unweave.coarse.bisection import FlipFit, Flips, find_flips, fit_flips
from unweave.coarse.error_bars import standard_error_network
from unweave.coarse.fitting import ROWS_TO_LOOK, NeuronFits, is_determined
from unweave.coarse.links import Link
from unweave.coarse.radius import choose_radius
from unweave.coarse.rows import AnsweredRows
from unweave.coarse.start import noisy_directions, noisy_profiles
from unweave.deep.layered_model import LayeredModel
from unweave.errors import BudgetExhausted
from unweave.evaluation import single_threaded_blas
from unweave.journal import Journal
from unweave.network import Network
from unweave.smooth.typical_profile import hessian_profile
from unweave.subspace.symmetric import symmetric_packing

DEFAULT_ROWS_PER_PARAMETER = 32.0
"""Rows of the final fit to noisy answers, per parameter, unless told otherwise."""

_SURPLUS = (1.25, 2.5, 6.0)  # Hessians per neuron seen, at least; more where a fit to the answers failed
_RIVAL = 4.0  # activations are tried in full if their profiles fit at most so much worse than the best
_RIVALS_AT_FIRST = 2  # of them, as long as more Hessians may be taken instead
_HIDES = 3e-3  # relative error of rounded answers from which a wrong activation may explain few rows
_CLEARLY_SEEN = 10.0  # singular value of the weakest neuron over the noise: there are no others
_STAGE = 4.0  # factor between the numbers of rows of successive fits
_DAMPING_NEAR = 1e-6  # of a fit that starts from one with fewer rows
_ROWS_BEFORE_FLIPS = 8.0
_FLIPS_PER_PARAMETER = 1.35
_FLIPS_LOST = 1.1  # times as many lines are tried: some lead out of the region
_FEWEST_FLIPS = 1.05  # per parameter
_EXACT = 1e-3  # of the grid: what flips leave of a network that is right but answers in float32, at most
_BEST_RADIUS = 6.4  # (sigma / F)^(1/4) times this is the best radius for unit weights
_WORTH_WIDENING, _WIDEST = 1.25, 6.0  # factors on the region
_BOX_SHARE = 0.35  # of the narrowest side of a box: the longest radius
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class CoarseOptions:
    """What the user said about the network, and how many rows may average out the noise."""

    width: int | None = None
    activations: tuple[str, ...] = ()
    output_activation: str | None = None
    rows_per_parameter: float | None = None
    """Rows of the final fit per parameter; None: flips where the answers are rounded, else a default."""


class CoarseRecovery:
    """Runs the route; `run` never raises when budget or time is gone but hands back what there is."""

    def __init__(
        self,
        view: NormalisedQueries,
        findings: Findings,
        options: CoarseOptions,
        journal: Journal,
        rng: np.random.Generator,
    ) -> None:
        self._findings, self._options = findings, options
        self._journal, self._rng = journal, rng
        self._rows = AnsweredRows(view, findings.noise, rng)
        told = options.output_activation
        self._links = [Link(name) for name in (findings.links if told is None else (told,))]
        self._hessians = HessiansBehindLinks(
            self._rows, self._links, rng, lambda count: journal.tell(count, None, "Hessians")
        )
        self._fits = NeuronFits(self._rows, rng, lambda step, _: journal.tell(step, None, "steps"))
        self._fit: AveragedFit | None = None
        self._exact: LayeredModel | None = None
        self._errors: Array | None = None
        self._fitted = self._rows.points, self._rows.answers
        """Rows of the last fit, and one over the standard deviations of their answers"""
        self._evidence = Evidence()
        self._notes: list[str] = []

    def run(self) -> Candidate:
        """Recover the network, as far as the budget goes."""
        problem, interrupted = None, False
        try:
            with single_threaded_blas():
                problem = self._recover()
        except BudgetExhausted as error:
            problem = str(error)
        except KeyboardInterrupt:
            problem, interrupted = "interrupted", True
        except np.linalg.LinAlgError as error:
            problem = f"the numbers broke down ({error}): not a network of this class"
        fitted = None if self._fit is None else self._fit.model
        model = fitted if self._exact is None else self._exact
        network = None if model is None else self._in_inputs(model)
        return Candidate(
            network,
            self._evidence,
            tuple(self._notes),
            problem,
            interrupted=interrupted,
            standard_errors=None if network is None else self._error_bars(network),
        )

    # -- steps -----------------------------------------------------------------------------------------

    def _recover(self) -> str | None:
        self._measure_noise()
        radius = self._choose_radius()
        for attempt, surplus in enumerate(_SURPLUS):
            seen = self._look_behind_links(radius, surplus)
            problem = self._out_of_place(seen) or self._too_wide(seen)
            if problem is not None:
                return problem
            directions = self._directions(seen)
            if len(directions):
                self._fit_best_activation(seen, directions, last=attempt == len(_SURPLUS) - 1)
            if self._is_determined() or self._is_hopeless(seen):
                break
        fit = self._fit
        if fit is None:
            return "no Hessian stands out of the noise: there is nothing curved to see at this precision"
        if not self._is_explained():
            return (
                f"{_width(fit)} neurons leave {fit.misfit:.2g} standard deviations where noise alone would "
                "leave 1: another activation, more than one hidden layer, or too few Hessians for this noise"
            )
        if self._may_bisect():
            self._grow_to(_ROWS_BEFORE_FLIPS, seen)
            self._bisect()
        else:
            noisy = self._findings.noise.kind == "noisy"
            default = DEFAULT_ROWS_PER_PARAMETER if noisy else _ROWS_BEFORE_FLIPS
            self._grow_to(self._options.rows_per_parameter or default, seen)
        self._note_width()
        return None

    def _measure_noise(self) -> None:
        noise = self._findings.noise
        if noise.kind != "noisy" or noise.repeatable:
            return
        with self._journal.stage("noise") as stage:
            self._rows.measure_sigma()
            stage.figures["sigma"] = self._rows.largest_sigma

    def _choose_radius(self) -> float:
        """The radius of the stencils; a region in which the neurons hardly bend is widened."""
        likeliest = self._links[-1]
        bounds = self._rows.region.normalised_bounds
        longest = np.inf if bounds is None else _BOX_SHARE * float((bounds[1] - bounds[0]).min())
        relative = self._findings.noise.relative
        with self._journal.stage("radius") as stage:
            radius = choose_radius(
                self._hessians.behind(likeliest),
                lambda count, margin: self._hessians.sites(count, margin, [likeliest]),
                relative,
                longest,
                self._rng,
            )
            # For weights of unit length the best radius is about this; a larger one means shorter weights, of
            # which a wider region shows more.
            wider = float(np.clip(radius / (_BEST_RADIUS * relative**0.25), 1.0, _WIDEST))
            if bounds is None and wider > _WORTH_WIDENING:
                self._rows.widen(wider)
                radius /= wider
                stage.figures["region widened by"] = wider
            stage.figures["radius"] = radius
        return radius

    def _look_behind_links(self, radius: float, surplus: float) -> Seen:
        """Hessians behind every possible link, from the same rows; the link with the fewest neurons wins."""
        told = self._options.width
        known = max(told or 0, 0 if self._fit is None else int(self._evidence.width or 0))
        with self._journal.stage("Hessians") as stage:
            best = self._hessians.sample(radius, surplus, told, known)
            span = best.span
            stage.figures.update(sites=len(best.taken), width=span.width, gap=span.gap, link=best.link.name)
        self._evidence = replace(
            self._evidence,
            spectrum=span.singular_values,
            width=span.width,
            gap=span.gap,
            hessians=span.columns,
        )
        return best

    def _out_of_place(self, seen: Seen) -> str | None:
        """Why another method is better for this target, or None."""
        if self._findings.noise.kind == "float64" and seen.link.name == "identity":
            return "the answers are precise and seem to have no last transformation: short steps see more"
        return None

    def _too_wide(self, seen: Seen) -> str | None:
        """Why the span of the Hessians determines no neurons, or None."""
        width, columns, inputs = seen.span.width, seen.span.columns, self._rows.n_inputs
        full = symmetric_packing(inputs).size
        if self._options.width is not None:
            return None
        if width > inputs * (inputs - 1) // 2 or width >= min(columns, full - 1):
            return (
                f"{columns} Hessians span {width} dimensions, all that they can: more neurons than "
                "their span determines, more than one hidden layer, or not a network of this class"
            )
        return None

    def _directions(self, seen: Seen) -> Array:
        width = max(seen.span.width, self._options.width or 0)
        width = min(width, len(seen.span.singular_values))
        if width == 0:
            return np.empty((0, self._rows.n_inputs))
        with self._journal.stage("power method") as stage:
            rows = noisy_directions(
                seen.span,
                width,
                self._findings.noise.relative,
                self._rng,
                lambda found, wanted, _: self._journal.tell(found, wanted, "neurons"),
            )
            stage.figures.update(found=len(rows), needed=width)
        self._evidence = replace(self._evidence, found=len(rows))
        return rows

    def _fit_best_activation(self, seen: Seen, directions: Array, last: bool) -> None:
        """Fit the network with the activations whose profiles fit best, and keep the best network."""
        names = self._options.activations
        with self._journal.stage("activation") as stage:
            profiles, residuals = {}, {}
            for done, name in enumerate(names):
                self._journal.tell(done, len(names), "activations")
                profiles[name] = noisy_profiles(seen.taken, directions, get_activation(name), self._rng)
                # The geometric mean: one neuron whose fit went astray must not decide.
                residuals[name] = float(np.exp(np.log(np.maximum(profiles[name].residuals, _TINY)).mean()))
            ranking = sorted(residuals, key=lambda name: residuals[name])
            stage.figures["best"] = ranking[0]
        self._evidence = replace(self._evidence, activation_residuals=residuals)
        rivals = [name for name in ranking if not residuals[name] > _RIVAL * residuals[ranking[0]]]
        rivals = rivals if last else rivals[:_RIVALS_AT_FIRST]
        self._rows.extend_to(ROWS_TO_LOOK * self._parameters(len(directions)))
        noise = self._findings.noise
        hides = noise.kind == "noisy" or (noise.kind == "rounded" and noise.relative > _HIDES)
        for name in rivals:
            with self._journal.stage(f"fit {name}") as stage:
                fit = self._fits.from_directions(seen, directions, name, profiles[name])
                stage.figures.update(misfit=fit.misfit, width=_width(fit))
            if self._is_better(fit):
                self._fit = fit
                if seen.taken.selectors is None:  # contrasts of classes have no profile of their own
                    example = hessian_profile(
                        seen.taken.sites,
                        seen.taken.hessians,
                        directions,
                        profiles[name],
                        get_activation(name),
                    )
                    self._evidence = replace(self._evidence, **example)
            # Much noise hides small differences at first: the two best are compared then.
            compared = name != rivals[0] or not hides
            if self._is_explained() and compared:
                break
        assert self._fit is not None
        self._keep(self._fit)

    def _grow_to(self, rows_per_parameter: float, seen: Seen) -> None:
        """Fits on more and more rows."""
        assert self._fit is not None
        fit, rows = self._fit, self._rows
        goal = rows_per_parameter * fit.model.size / self._independent_outputs(seen.link)
        with self._journal.stage("averaging") as stage:
            while len(rows) < goal:
                rows.extend_to(min(goal, _STAGE * len(rows)))
                fit = self._fits.averaged(fit.model, _DAMPING_NEAR)
                if fit.misfit > rows.acceptable_misfit():
                    fit = self._fits.peeled(fit, seen)  # with more rows a weak neuron stands out
                self._fit = fit
            fit = self._fits.settled(fit)  # ... and one that was only fitted to the noise of few does not
            self._keep(fit)
            stage.figures.update(rows=len(rows), misfit=fit.misfit)

    def _bisect(self) -> None:
        """Exact equations from the flips of rounded answers."""
        assert self._fit is not None
        decimals = self._findings.noise.decimals
        assert decimals is not None
        model, grid, rows = self._fit.model, 10.0**-decimals, self._rows
        with self._journal.stage("bisection") as stage:
            used = int(_FLIPS_LOST * np.ceil(_FLIPS_PER_PARAMETER * model.size))
            flips = find_flips(
                rows.view,
                model,
                rows.region,
                rows.points[:used],
                rows.answers[:used],
                grid,
                on_round=lambda done, _: self._journal.tell(done, None, "bits"),
            )
            stage.figures["flips"] = len(flips.values)
            if len(flips.values) < _FEWEST_FLIPS * model.size:
                self._notes.append(
                    f"only {len(flips.values)} flips of the last digit were found where {model.size} "
                    "parameters need as many: the parameters are those of averaging"
                )
                return
            fit = fit_flips(model, flips)
            stage.figures["residual"] = fit.residual
        self._take(fit, flips, grid)

    def _take(self, fit: FlipFit, flips: Flips, grid: float) -> None:
        """The network of the flips, if it meets them to a part of the grid and answers as the target did."""
        scale = max(float(self._findings.output_scale.max()), _TINY)
        off = float(np.abs(fit.model.values(self._rows.points) - self._rows.answers).max())
        # Whoever judges sees how well the exact equations were met.
        history = tuple(value / scale for value in fit.history)
        if fit.residual <= _EXACT * grid and off <= grid * (0.5 + _EXACT):
            self._exact, self._errors = fit.model, fit.standard_errors
            free = max(fit.equations - fit.model.size, 1)
            sigma = max(fit.residual * float(np.sqrt(fit.equations / free)), _TINY)
            self._fitted = flips.points, flips.selected(1 / sigma, fit.model.n_outputs)
            self._evidence = replace(
                self._evidence,
                condition=fit.condition,
                parameter_error_bar=None if self._errors is None else float(self._errors.max()),
                flips=fit.equations,
                fit_history=history,
                fit_floor=max(float(np.finfo(np.float64).eps), fit.residual / scale),
                prediction_floor=fit.residual / scale,
            )
            return
        self._notes.append(
            f"the flips of the last digit fit no such network (residual {fit.residual:.1e}): another "
            "activation or width, or answers not rounded to nearest; the parameters are those of averaging"
        )
        self._evidence = replace(self._evidence, fit_history=history, fit_floor=_EXACT * grid / scale / 1e3)

    # -- what the steps share --------------------------------------------------------------------------

    def _independent_outputs(self, link: Link) -> int:
        return self._rows.n_outputs - (link.name == SOFTMAX)

    def _is_explained(self) -> bool:
        return self._fit is not None and self._fit.misfit <= self._rows.acceptable_misfit()

    def _is_determined(self) -> bool:
        """Whether the network explains the answers, and they determine all its neurons.

        Few rows are also explained by wrong networks that have some neurons more, which the rows leave open.
        """
        return self._fit is not None and self._is_explained() and is_determined(self._fit)

    def _is_better(self, fit: AveragedFit) -> bool:
        """Whether the fit is better than the one at hand; by BIC if both explain: more neurons fit more."""
        best, enough = self._fit, self._rows.acceptable_misfit()
        if best is None or max(fit.misfit, best.misfit) > enough:
            return best is None or fit.misfit < best.misfit
        return self._criterion(fit) < self._criterion(best)

    def _criterion(self, fit: AveragedFit) -> float:
        """log(mean square residual) + P log(n) / n, on as many rows as there are now."""
        n, parameters = self._rows.answers.size, fit.model.size
        mean_square = fit.misfit**2 * max(1 - parameters / n, _TINY)
        return float(np.log(max(mean_square, _TINY)) + parameters * np.log(n) / n)

    def _is_hopeless(self, seen: Seen) -> bool:
        """Whether the fit leaves most of the answers though all neurons were seen: more sites do not help."""
        fit = self._fit
        return fit is not None and self._rows.leaves_most(fit.misfit) and seen.span.gap >= _CLEARLY_SEEN

    def _may_bisect(self) -> bool:
        noise = self._findings.noise
        told = self._options.rows_per_parameter
        return told is None and noise.kind == "rounded" and noise.decimals is not None and noise.repeatable

    def _parameters(self, width: int) -> int:
        inputs, outputs = self._rows.n_inputs, self._rows.n_outputs
        return width * (inputs + 1 + outputs) + outputs

    def _keep(self, fit: AveragedFit) -> None:
        self._fit, self._errors = fit, fit.standard_errors
        rows, sigma = self._rows, self._rows.sigma * max(fit.misfit, 1.0)
        self._fitted = rows.points, np.broadcast_to(1 / sigma, rows.answers.shape)
        floor = self._rows.largest_sigma / max(float(self._findings.output_scale.max()), _TINY)
        self._evidence = replace(
            self._evidence,
            width=_width(fit),
            found=_width(fit),
            fit_history=tuple(value * floor for value in fit.history),
            fit_floor=floor,
            prediction_floor=floor * float(np.sqrt(fit.model.size / max(fit.equations - fit.model.size, 1))),
            condition=fit.condition,
            parameter_error_bar=None if fit.standard_errors is None else float(fit.standard_errors.max()),
            misfit=fit.misfit,
            acceptable_misfit=self._rows.acceptable_misfit(),
            answer_sigma=self._answer_sigma(fit),
            weakest_neuron=self._weakest(fit),
        )

    def _answer_sigma(self, fit: AveragedFit) -> Array:
        """(K,) standard deviation of an answer: of precise ones, of unknown arithmetic, from the fit."""
        if self._findings.noise.kind != "float64":
            return self._rows.sigma
        return self._rows.sigma * float(np.clip(fit.misfit, 1.0, self._rows.acceptable_misfit()))

    def _weakest(self, fit: AveragedFit) -> float:
        """Contribution of the weakest neuron over the largest that an accepted misfit could hide."""
        hidden = float(np.sqrt(self._rows.acceptable_misfit() ** 2 - 1))
        last = fit.model.activations[-1]
        link = Link(SOFTMAX if last is None else last.name)
        return float(self._fits.contributions(fit.model, link).min()) / hidden

    def _error_bars(self, network: Network) -> Network | None:
        """The standard errors of all parameters in the target's inputs, None if they are not determined."""
        if self._errors is None:
            return None
        points, weights = self._fitted
        return standard_error_network(LayeredModel.from_network(network), self._rows.region, points, weights)

    def _note_width(self) -> None:
        given, fit = self._options.width, self._fit
        if given is None or fit is None:
            return
        if _width(fit) < given:
            self._notes.append(
                f"the target needs {_width(fit)} neurons where {given} were given: the others are dead, "
                "duplicates, or too weak to be seen at this precision; the smaller network is returned"
            )
        elif _width(fit) > given:
            self._notes.append(f"the target has {_width(fit)} neurons where {given} were given")

    def _in_inputs(self, model: LayeredModel) -> Network:
        """The network in the target's own inputs."""
        region, network = self._rows.region, model.to_network()
        incoming = network.weights[0] / region.scale[:, None]
        biases = [network.biases[0] - region.location @ incoming, network.biases[1]]
        skip = network.skip
        if skip is not None:
            skip = skip / region.scale[:, None]
            biases[1] = biases[1] - region.location @ skip
        return Network([incoming, network.weights[1]], biases, network.activations, skip=skip)


def _width(fit: AveragedFit) -> int:
    return int(fit.model.weights[0].shape[1])
