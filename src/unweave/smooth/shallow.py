"""One-hidden-layer smooth networks from queries: the default route.

1. gradients at random sites: do all inputs matter, or only a subspace (active subspace)?
2. Hessians inside that subspace; as many neurons as dimensions or fewer: matrix pencils on a handful of
   them; more: the span of about 1.15 m of them and its rank-one members;
3. one neuron at a time: scale, bias and outgoing weights from its profile, for each possible activation;
4. the network predicts the truncation error of its own Hessians; with it removed, 2 and 3 once more;
5. Gauss-Newton on all parameters, on the values and gradients already paid for and a few more.

Queries per parameter (K = 1): about 1.15 (D^2+D+1)/(D+2) + 1 for m > D, and 2.5 + 4 (m+1)/(D+2) for m << D.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from unweave.access.probe import Findings
from unweave.access.region import NormalisedQueries
from unweave.activations import Activation, get_activation
from unweave.arrays import Array
from unweave.candidate import Candidate, Evidence
from unweave.derivatives.active_subspace import SPARE_GRADIENTS, ActiveSubspace, active_subspace
from unweave.derivatives.stencils import Jets, gradient_jets
from unweave.errors import BudgetExhausted
from unweave.journal import Journal
from unweave.network import Network
from unweave.optimize import LevenbergMarquardtOptions, levenberg_marquardt
from unweave.placement import points_at_neurons
from unweave.smooth.hessian_route import (
    HessianSampler,
    SampledSpan,
    find_directions,
    refine_directions,
    sample_until_span_ends,
    width_shown,
)
from unweave.smooth.linear_part import fit_linear_part, mirror_back, skip_matrix
from unweave.smooth.profiles import Profiles, fit_profiles, refine_profiles
from unweave.smooth.shallow_model import ShallowModel
from unweave.smooth.sobolev_fit import SobolevFit
from unweave.smooth.steps import Steps, difference_steps
from unweave.smooth.truncation import hessian_truncation
from unweave.subspace.hessian_span import CLEAR_GAP, HessianSpan, hessian_span
from unweave.subspace.joint_diagonal import jointly_diagonalise
from unweave.subspace.power_method import PowerMethodOptions
from unweave.subspace.rank_one_space import RankOneSpace
from unweave.subspace.symmetric import symmetric_packing

SMOOTH_ACTIVATIONS = ("tanh", "erf", "softplus", "gelu", "swish", "sine")
"""Activations tried when none is given; tanh stands for the logistic function too."""

_PENCIL_HESSIANS = 3
_PENCIL_HESSIANS_SMALL = 6  # up to this dimension three matrices are easily diagonalised by accident
_SMALL_DIMENSION = 12
_PENCIL_RESIDUAL = 0.03  # above it there are more neurons than dimensions: then it is of order one
_LINE_POINTS = 17
_LINE_REACH = 3.5  # standard deviations of u_k . x covered by a line
_OVERDETERMINED = 1.6  # equations per parameter in the final fit
_OVERDETERMINED_REDUCED = 1.15  # the same when every equation has to be bought at D + 1 per site
_SITES_AT_NEURONS = 0.25  # sites per neuron placed where it acts, for the neurons that are seen least
_CORRECTIONS = 4
_SETTLED = 1e-9  # change of the weights below which another correction is not worth its time
_SAME_DIRECTION = 1e-8  # 1 - |cos| of directions that are one
_POOR_FIT = 1e-4  # relative misfit of a neuron's profile above which it is fitted from scratch,
_POOR_FIT_RATIO = 30.0  # if it is also this much worse than the typical one
_RIVAL = 10.0  # an activation whose profiles fit at most this much worse than the best may be the right one
_SKIP_SEEN = 1e-3  # skip matrix relative to the gradients, above which it is taken to be there
_NEURONS_THAT_VOTE = 64  # neurons on which activations are compared
_LARGE = 400  # neurons from which the power steps run in single precision
_ABOVE_FLOOR = 30.0  # times the floor: a residual that the next activation may explain better


@dataclass(frozen=True)
class ShallowOptions:
    """What the user said about the network."""

    width: int | None = None
    activations: tuple[str, ...] = SMOOTH_ACTIVATIONS
    power_method: PowerMethodOptions | None = None


@dataclass(frozen=True, eq=False)
class _Directions:
    """Unit directions of the neurons in the active subspace, rows (m, d)."""

    rows: Array
    sampled: SampledSpan | None
    """The Hessian span they came from; None if they came from a pencil."""


class ShallowRecovery:
    """Runs the route; `run` never raises when budget or time is gone but hands back what there is."""

    def __init__(
        self,
        view: NormalisedQueries,
        findings: Findings,
        options: ShallowOptions,
        journal: Journal,
        rng: np.random.Generator,
    ) -> None:
        self._view = view
        self._region = findings.region
        self._scale = np.where(findings.output_scale > 0, findings.output_scale, 1.0)
        self._outputs = findings.n_outputs
        self._noise = float(np.max(findings.noise.sigma_per_output / self._scale))
        self._options = options
        self._journal = journal
        self._rng = rng
        self._inputs = len(self._region.location)
        self._evidence = Evidence()
        self._notes: list[str] = []
        self._model: ShallowModel | None = None

    def run(self) -> Candidate:
        """Recover the network, as far as the budget goes."""
        problem, interrupted = None, False
        try:
            problem = self._recover()
        except BudgetExhausted as error:
            problem = str(error)
        except KeyboardInterrupt:
            problem, interrupted = "interrupted", True
        network = None if self._model is None else self._in_inputs(self._model)
        return Candidate(network, self._evidence, tuple(self._notes), problem, interrupted=interrupted)

    def _recover(self) -> str | None:
        steps = difference_steps(self._noise, self._inputs)
        with self._journal.stage("gradients") as stage:
            gradients, active = self._take_gradients(steps)
            stage.figures["sites"] = len(gradients)
            stage.figures["active dimension"] = active.dimension
        self._evidence = replace(self._evidence, active_dimension=active.dimension)
        steps = replace(difference_steps(self._noise, active.dimension), gradient=steps.gradient)
        sampler = HessianSampler(
            lambda v: self._ask(v @ active.frame.T),
            lambda n, margin: self._draw_reduced(n, margin, active),
            steps,
            self._journal,
        )
        pencil = self._pencil_directions(sampler, active)
        if pencil is not None:
            gradients = self._finish(pencil, active, steps, gradients)
        if pencil is None or not self._at_floor():
            span = self._span_directions(sampler, active)
            if isinstance(span, str):
                return span
            gradients = self._finish(span, active, steps, gradients)
        assert self._model is not None
        self._compare_width(self._model.width)
        return None

    def _finish(self, found: _Directions, active: ActiveSubspace, steps: Steps, gradients: Jets) -> Jets:
        """From directions to a fitted network; the next best activation is tried if the best does not fit."""
        previous, evidence = self._model, self._evidence
        ranking = self._fit_neurons(found, active, steps)
        gradients = self._polish(gradients, active, found)
        if len(ranking) > 1 and not self._at_floor() and self._is_rival(*ranking[:2]):
            self._try_next_activation(ranking[1], found, active, steps, gradients)
        if previous is not None and evidence.fit_history[-1] <= self._evidence.fit_history[-1]:
            self._model, self._evidence = previous, evidence
        return gradients

    def _is_rival(self, best: str, second: str) -> bool:
        residuals = self._evidence.activation_residuals
        return residuals[second] < _RIVAL * residuals[best]

    def _at_floor(self) -> bool:
        """Whether the final fit leaves no more than rounding or noise."""
        floor = self._evidence.fit_floor
        return floor is not None and self._evidence.fit_history[-1] <= _ABOVE_FLOOR * floor

    # -- directions ------------------------------------------------------------------------------------

    def _ask(self, points: Array) -> Array:
        """Answers at normalised points, every output divided by its spread."""
        return self._view(points) / self._scale

    def _take_gradients(self, steps: Steps) -> tuple[Jets, ActiveSubspace]:
        """Gradients until their span is seen to end, or to be everything."""
        everything = -(-(self._inputs + SPARE_GRADIENTS) // self._outputs) + 1
        width = self._options.width
        known = everything if width is None or width >= self._inputs else (width + SPARE_GRADIENTS)
        goal = min(everything, 12 if width is None else -(-known // self._outputs) + 1)
        jets: Jets | None = None
        while True:
            jets = self._add_gradients(jets, goal, steps.gradient)
            active = active_subspace(jets, self._noise)
            if active.complete or len(jets) >= everything:
                return jets, active
            goal = min(everything, max(len(jets) + 2, int(np.ceil(1.1 * len(jets)))))

    def _add_gradients(self, jets: Jets | None, goal: int, step: float) -> Jets:
        missing = goal - (0 if jets is None else len(jets))
        if missing <= 0 and jets is not None:
            return jets
        sites = self._region.sample(missing, self._rng, margin=step)
        new = gradient_jets(self._ask, sites, step)
        self._journal.tell(goal, None, "gradients")
        return new if jets is None else Jets.concatenate([jets, new])

    def _pencil_directions(self, sampler: HessianSampler, active: ActiveSubspace) -> _Directions | None:
        """As many neurons as dimensions: their directions from a few Hessians, or None if there are more."""
        d, width = active.dimension, self._options.width
        if width is not None and width > d and not active.reduces:
            return None
        with self._journal.stage("pencils") as stage:
            sampler.extend_to(_PENCIL_HESSIANS_SMALL if d <= _SMALL_DIMENSION else _PENCIL_HESSIANS)
            pencil = jointly_diagonalise(sampler.columns(), d, self._rng)
            residual = np.inf if pencil is None else pencil.residual
            stage.figures["residual"] = residual
        if pencil is None or residual > _PENCIL_RESIDUAL:
            return None
        hessians = sampler.count * self._outputs
        self._evidence = replace(self._evidence, width=d, found=d, hessians=hessians)
        return _Directions(pencil.directions, None)

    def _span_directions(self, sampler: HessianSampler, active: ActiveSubspace) -> _Directions | str:
        """More neurons than dimensions: the rank-one members of the span of many Hessians."""
        d = active.dimension
        with self._journal.stage("Hessians") as stage:
            sampled = sample_until_span_ends(sampler, self._outputs, d, self._options.width)
            stage.figures.update(sites=sampler.count, width=sampled.rank, gap=sampled.gap)
        if sampled.gap < CLEAR_GAP:
            return self._no_gap(sampled, d)
        if sampled.rank > d * (d - 1) // 2:
            return (
                f"the Hessians span {sampled.rank} dimensions; in {d} inputs at most {d * (d - 1) // 2} "
                "neurons are determined by their span"
            )
        self._evidence = replace(
            self._evidence,
            spectrum=sampled.span.singular_values,
            width=sampled.rank,
            gap=sampled.gap,
            hessians=sampled.span.columns,
        )
        return self._rank_one_directions(sampled, d)

    def _no_gap(self, sampled: SampledSpan, d: int) -> str:
        return (
            f"no gap in the spectrum of {sampled.span.columns} Hessians (largest ratio {sampled.gap:.3g}, a "
            f"network with one smooth hidden layer shows at least {CLEAR_GAP:.0f}): more than "
            f"{d * (d - 1) // 2} neurons, more than one hidden layer, answers too coarse to see it, or not a "
            "network of this class"
        )

    def _rank_one_directions(self, sampled: SampledSpan, d: int) -> _Directions | str:
        with self._journal.stage("power method") as stage:
            result = find_directions(
                sampled.span, sampled.rank, d, self._journal, self._rng, self._power_options(sampled.rank)
            )
            stage.figures.update(found=len(result), needed=sampled.rank, restarts=result.restarts)
        self._evidence = replace(
            self._evidence,
            found=len(result),
            restarts=result.restarts,
            misalignment=result.misalignment,
            rejected=result.rejected,
        )
        if len(result) == 0:
            return (
                f"the span of the Hessians has dimension {sampled.rank} but no rank-one member: not a sum of "
                "functions of one direction each"
            )
        return _Directions(result.directions, sampled)

    def _power_options(self, rank: int) -> PowerMethodOptions:
        return self._options.power_method or PowerMethodOptions(single_precision=rank >= _LARGE)

    def _draw_reduced(self, n: int, margin: float, active: ActiveSubspace) -> Array:
        """Sites in the coordinates of the frame; inside the box, if there is one."""
        sites = self._region.sample(n, self._rng, margin=margin)
        if not active.reduces:
            return sites
        if not self._region.has_box:
            return self._rng.standard_normal((n, active.dimension))
        reduced = sites @ active.frame
        while not (inside := self._region.contains((reduced @ active.frame.T) * (1 + margin))).all():
            reduced[~inside] *= 0.8
        return reduced

    def _compare_width(self, seen: int) -> None:
        given, shown = self._options.width, self._evidence.width
        if shown is not None and seen < shown:
            self._notes.append(f"{seen} of {shown} directions were found in the span of the Hessians")
        if given is None or given == seen:
            return
        if seen < given:
            self._notes.append(
                f"the target needs {seen} neurons where {given} were given: the others are dead, "
                "duplicates, or have no outgoing weight; the minimal network is returned"
            )
        else:
            self._notes.append(f"the target has {seen} neurons where {given} were given")

    # -- neurons ---------------------------------------------------------------------------------------

    def _fit_neurons(self, found: _Directions, active: ActiveSubspace, steps: Steps) -> list[str]:
        """Fit every neuron with the best activation; returns the activations, best first."""
        with self._journal.stage("neurons") as stage:
            projections, samples, order = self._profile_samples(found, active, steps)
            residuals = self._rank_activations(projections, samples, order)
            ranking = sorted(residuals, key=lambda name: residuals[name])
            self._evidence = replace(self._evidence, activation_residuals=residuals)
            stage.figures["activation"] = ranking[0]
            model, profiles = self._model_of(found, projections, samples, order, ranking[0])
            stage.figures["residual"] = profiles.pooled_residual()
            self._model = self._lifted(model, active)
        if found.sampled is not None:
            self._correct_truncation(found, active, steps, model, profiles)
        return ranking

    def _profile_samples(
        self, found: _Directions, active: ActiveSubspace, steps: Steps
    ) -> tuple[Array, Array, int]:
        if found.sampled is None:
            return self._line_samples(found.rows, active)
        jets = found.sampled.jets
        assert jets.hessians is not None
        return jets.sites @ found.rows.T, rank_one_coefficients(found.rows, jets.hessians), 2

    def _line_samples(self, rows: Array, active: ActiveSubspace) -> tuple[Array, Array, int]:
        """Values on lines through the centre along which a single neuron moves (the dual directions)."""
        duals = (active.frame @ np.linalg.inv(rows)).T  # (m, D)
        reach = _LINE_REACH
        while not self._region.contains(np.concatenate([reach * duals, -reach * duals])).all():
            reach *= 0.8
        t = reach * np.sin(np.linspace(-np.pi / 2, np.pi / 2, _LINE_POINTS))
        points = (t[:, None, None] * duals).reshape(-1, duals.shape[1])
        samples = self._ask(points).reshape(_LINE_POINTS, len(duals), -1)
        return np.broadcast_to(t[:, None], samples.shape[:2]), samples, 0

    def _rank_activations(self, projections: Array, samples: Array, order: int) -> dict[str, float]:
        """Pooled misfit of every candidate activation, on some of the neurons."""
        names = self._options.activations
        if len(names) == 1:
            return {names[0]: np.nan}
        m = projections.shape[1]
        voters = np.sort(self._rng.permutation(m)[:_NEURONS_THAT_VOTE])
        return {
            name: fit_profiles(
                projections[:, voters], samples[:, voters], get_activation(name), order, self._rng
            ).pooled_residual()
            for name in names
        }

    def _model_of(
        self, found: _Directions, projections: Array, samples: Array, order: int, name: str
    ) -> tuple[ShallowModel, Profiles]:
        activation = get_activation(name)
        profiles = fit_profiles(projections, samples, activation, order, self._rng)
        model = ShallowModel(
            activation,
            weights=found.rows.T * profiles.scales,
            biases=profiles.biases,
            outgoing=profiles.outgoing,
            offset=np.zeros(self._outputs),
        )
        return model, profiles

    def _correct_truncation(
        self,
        found: _Directions,
        active: ActiveSubspace,
        steps: Steps,
        model: ShallowModel,
        profiles: Profiles,
    ) -> None:
        """Refine directions and neurons on Hessians from which the predicted truncation was taken away.

        Weak neurons that the truncation had hidden come out of the corrected spectrum and are added.
        """
        assert found.sampled is not None
        assert found.sampled.jets.hessians is not None
        d, rows, rank = active.dimension, found.rows, found.sampled.rank
        jets, measured = found.sampled.jets, found.sampled.jets.hessians
        with self._journal.stage("truncation") as stage:
            for done in range(_CORRECTIONS):
                corrected = measured - hessian_truncation(model, jets, steps.scheme)
                span = hessian_span(corrected.reshape(-1, corrected.shape[2]))
                seen, gap = width_shown(span, self._options.width)
                rank = max(rank, seen) if gap >= CLEAR_GAP else rank
                rows = refine_directions(span, rank, rows, d)
                if len(rows) < rank:
                    rows = self._add_missing(span, rank, rows, d)
                projections, samples = jets.sites @ rows.T, rank_one_coefficients(rows, corrected)
                profiles = self._refit(projections, samples, model.activation, profiles)
                previous, model = (
                    model,
                    replace(
                        model,
                        weights=rows.T * profiles.scales,
                        biases=profiles.biases,
                        outgoing=profiles.outgoing,
                    ),
                )
                self._journal.tell(done + 1, _CORRECTIONS, "corrections")
                if previous.width == model.width:
                    change = float(np.abs(model.weights - previous.weights).max())
                    stage.figures["change"] = change
                    if change < _SETTLED:
                        break
            rates = RankOneSpace(span.basis(rank), symmetric_packing(d)).contraction_rates(rows)
            stage.figures.update(
                width=rank,
                gap=span.gap(rank),
                residual=profiles.pooled_residual(),
                **{"slowest rate": float(rates.max())},
            )
        self._evidence = replace(
            self._evidence,
            width=rank,
            found=len(rows),
            gap=span.gap(rank),
            spectrum=span.singular_values,
            rates=rates,
        )
        self._model = self._lifted(model, active)

    def _add_missing(self, span: HessianSpan, rank: int, rows: Array, d: int) -> Array:
        """Known directions, in their order, and behind them those that a search finds besides."""
        result = find_directions(
            span, rank, d, self._journal, self._rng, self._power_options(rank), known=rows
        )
        new = np.abs(result.directions @ rows.T).max(axis=1) < 1 - _SAME_DIRECTION
        self._evidence = replace(
            self._evidence,
            restarts=self._evidence.restarts + result.restarts,
            misalignment=result.misalignment,
        )
        return np.concatenate([rows, result.directions[new]])

    def _refit(self, projections: Array, samples: Array, activation: Activation, start: Profiles) -> Profiles:
        """Refine the profiles that are known; fit anew those that do not fit and those just found."""
        known = len(start.scales)
        refined = refine_profiles(projections[:, :known], samples[:, :known], activation, 2, start)
        misfit = max(_POOR_FIT, _POOR_FIT_RATIO * float(np.median(refined.residuals)))
        again = np.concatenate(
            [np.flatnonzero(refined.residuals > misfit), np.arange(known, projections.shape[1])]
        )
        if len(again) == 0:
            return refined
        fresh = fit_profiles(projections[:, again], samples[:, again], activation, 2, self._rng)
        return refined.updated(again, fresh)

    # -- all parameters --------------------------------------------------------------------------------

    def _polish(self, gradients: Jets, active: ActiveSubspace, found: _Directions) -> Jets:
        """Gauss-Newton on everything, on values and gradients in all D inputs."""
        assert self._model is not None
        with self._journal.stage("polish") as stage:
            jets = [gradients]
            if found.sampled is not None and not active.reduces:
                jets.append(found.sampled.jets)
            per_site = (self._inputs + 1) * self._outputs
            ratio = _OVERDETERMINED_REDUCED if active.reduces else _OVERDETERMINED
            needed = int(np.ceil(ratio * self._model.size / per_site)) - sum(len(part) for part in jets)
            if needed > 0:
                gradients = self._add_gradients(gradients, len(gradients) + needed, gradients.step)
            if not active.reduces:
                gradients = self._add_gradients_at_neurons(gradients)
            jets[0] = gradients
            self._fit_all(tuple(jets))
            stage.figures.update(
                equations=sum(len(part) for part in jets) * per_site,
                parameters=self._model.size,
                residual=self._evidence.fit_history[-1],
                floor=float(self._evidence.fit_floor or 0.0),
                steps=len(self._evidence.fit_history) - 1,
            )
        return gradients

    def _add_gradients_at_neurons(self, jets: Jets) -> Jets:
        """Gradients where the neurons act that the sites so far see least."""
        assert self._model is not None
        model = self._model
        z = jets.sites @ model.weights + model.biases
        seen = np.einsum("nm,nm->m", *(2 * [model.activation.jet(z, 2)[2]]))
        least = np.argsort(seen)[: int(np.ceil(_SITES_AT_NEURONS * model.width))]
        sites = points_at_neurons(
            model.weights, model.biases, least, self._region, self._rng, margin=jets.step
        )
        return Jets.concatenate([jets, gradient_jets(self._ask, sites, jets.step)])

    def _fit_all(self, jets: tuple[Jets, ...]) -> None:
        assert self._model is not None
        start = self._with_linear_part(self._model, jets)
        sites = sum(len(part) for part in jets)
        floor = self._noise * float(np.sqrt(sum(len(part) * part.gradient_noise**2 for part in jets) / sites))
        options = LevenbergMarquardtOptions(floor=floor)
        fit = levenberg_marquardt(
            SobolevFit(start, jets),
            start.to_vector(),
            options,
            on_step=lambda step, _: self._journal.tell(step, None, "steps"),
        )
        self._model = mirror_back(start.from_vector(fit.vector))
        unknowns, equations = (
            start.size,
            sum(part.gradients[:, :, 0].size * (self._inputs + 1) for part in jets),
        )
        error_bar = None
        if fit.covariance_diagonal is not None:
            error_bar = max(fit.rms, floor) * float(np.sqrt(fit.covariance_diagonal.max()))
        self._evidence = replace(
            self._evidence,
            fit_history=fit.history,
            fit_floor=floor,
            prediction_floor=floor * float(np.sqrt(unknowns / max(equations - unknowns, 1))),
            condition=fit.condition,
            parameter_error_bar=error_bar,
        )

    def _with_linear_part(self, model: ShallowModel, jets: tuple[Jets, ...]) -> ShallowModel:
        data = jets[0]
        skip = skip_matrix(model, data)
        size = float(np.sqrt(np.mean(data.gradients**2)))
        seen = float(np.abs(skip).max()) > _SKIP_SEEN * max(size, np.finfo(np.float64).tiny)
        return fit_linear_part(model, data, with_skip=seen)

    def _try_next_activation(
        self, name: str, found: _Directions, active: ActiveSubspace, steps: Steps, gradients: Jets
    ) -> None:
        """Keep the better of two activations whose profiles fitted best."""
        first, evidence = self._model, self._evidence
        projections, samples, order = self._profile_samples(found, active, steps)
        model, profiles = self._model_of(found, projections, samples, order, name)
        self._model = self._lifted(model, active)
        if found.sampled is not None:
            self._correct_truncation(found, active, steps, model, profiles)
        self._polish(gradients, active, found)
        if self._evidence.fit_history[-1] > evidence.fit_history[-1]:
            self._model, self._evidence = first, evidence

    def _lifted(self, model: ShallowModel, active: ActiveSubspace) -> ShallowModel:
        return replace(model, weights=active.frame @ model.weights) if active.reduces else model

    def _in_inputs(self, model: ShallowModel) -> Network:
        """The network in the target's own inputs and outputs."""
        weights = model.weights / self._region.scale[:, None]
        biases = model.biases - self._region.location @ weights
        outgoing, offset = model.outgoing * self._scale, model.offset * self._scale
        skip = None
        if model.skip is not None:
            skip = model.skip / self._region.scale[:, None] * self._scale
            offset = offset - self._region.location @ skip
        return Network([weights, outgoing], [biases, offset], [model.activation.name, "identity"], skip=skip)


def rank_one_coefficients(directions: Array, hessians: Array) -> Array:
    """Least-squares coefficients (n, m, K) of Hessians (n, K, p) on the squares of directions (m, d)."""
    packing = symmetric_packing(directions.shape[1])
    terms = packing.outer(directions).T  # (p, m)
    q, r = scipy.linalg.qr(terms, mode="economic", check_finite=False)
    n, outputs, size = hessians.shape
    coefficients = scipy.linalg.solve_triangular(r, q.T @ hessians.reshape(-1, size).T, check_finite=False)
    return np.ascontiguousarray(coefficients.reshape(-1, n, outputs).transpose(1, 0, 2))
