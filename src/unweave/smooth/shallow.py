"""One-hidden-layer smooth networks from queries: the default route.

0. float64 answers and ten inputs or more: the whole network through a random slice of its inputs
   (`unweave.smooth.lattice_route`), from a fifth of the queries of what follows; only if that fails, or would
   take long, or the neurons are nearly as many as their directions allow:
1. gradients at random sites: do all inputs matter, or only a subspace (active subspace)? From here on
   everything happens in that subspace, and is lifted back at the end without further queries;
2. Hessians; as many neurons as dimensions: matrix pencils on a handful of them; more: the span of about
   1.15 m of them and its rank-one members;
3. one neuron at a time: scale, bias and outgoing weights from its profile, for each possible activation;
4. the network predicts the truncation error of its own Hessians; with it removed, 2 and 3 once more;
5. Gauss-Newton on all parameters, on the values and gradients already paid for and a few more.

Queries per parameter (K = 1) of 1 to 5: about 1.15 (D^2+D+1)/(D+2) + 1.5 for m > D, and 2.2 + 6 m/D for
m << D. With ``autodiff`` 1 to 5 run on the target's own derivatives (`unweave.smooth.jet_sources`): there is
no truncation to remove, and they take about 1.15 for m > D, and less for m << D.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unweave.access.probe import Findings
from unweave.access.region import NormalisedQueries
from unweave.activations import get_activation
from unweave.arrays import Array
from unweave.candidate import Candidate, Evidence
from unweave.derivatives.active_subspace import SPARE_GRADIENTS, active_subspace
from unweave.derivatives.stencils import Jets
from unweave.errors import BudgetExhausted
from unweave.evaluation import single_threaded_blas
from unweave.journal import Journal
from unweave.network import Network
from unweave.smooth.derivative_check import LARGEST_MISMATCH, derivative_mismatch
from unweave.smooth.final_fit import fit_all_parameters
from unweave.smooth.frame_target import FrameTarget
from unweave.smooth.hessian_route import (
    HessianSampler,
    SampledSpan,
    find_directions,
    refine_directions,
    sample_until_span_ends,
    width_shown,
)
from unweave.smooth.lattice_route import FEWEST_INPUTS, LatticeRoute
from unweave.smooth.lifting import lift
from unweave.smooth.mixed_activations import activations_seen
from unweave.smooth.neuron_fits import model_of, rank_activations, rank_one_coefficients, refit
from unweave.smooth.profiles import Profiles, fit_profiles
from unweave.smooth.shallow_model import ShallowModel
from unweave.smooth.steps import difference_steps
from unweave.smooth.typical_profile import typical_profile
from unweave.subspace.hessian_span import CLEAR_GAP, HessianSpan, hessian_span
from unweave.subspace.joint_diagonal import jointly_diagonalise
from unweave.subspace.power_method import PowerMethodOptions
from unweave.subspace.rank_one_space import RankOneSpace
from unweave.subspace.symmetric import symmetric_packing

SMOOTH_ACTIVATIONS = ("tanh", "erf", "softplus", "gelu", "swish", "sine")
"""Activations tried when none is given; tanh stands for the logistic function too."""

_CHECKED_GRADIENTS = 3  # by autodiff, compared with answers
_FIRST_GRADIENTS = 6
_PENCIL_HESSIANS = 3
_PENCIL_HESSIANS_SMALL = 6  # in few dimensions three matrices are easily diagonalised by accident
_SMALL_DIMENSION = 8
_PENCIL_RESIDUAL = 0.03  # above it there are more neurons than dimensions: then it is of order one
_LINE_POINTS = 17
_LINE_REACH = 3.5  # standard deviations of u_k . x covered by a line
_OVERDETERMINED = 1.6  # equations per parameter in the final fit
_SITES_PER_NEURON = 1.5  # at least, however many equations several outputs give per site
_SITES_AT_NEURONS = 0.25  # sites per neuron placed where it acts, for the neurons that are seen least
_CORRECTIONS = 4
_SETTLED = 1e-9  # change of the weights below which another correction is not worth its time
_SAME_DIRECTION = 1e-8  # 1 - |cos| of directions that are one
_COARSEST_FOR_LATTICES = 1e-12  # relative noise up to which third differences show a span
_RIVAL = 10.0  # an activation whose profiles fit at most this much worse than the best may be the right one
_LARGE = 400  # neurons from which the power steps run in single precision
_ABOVE_FLOOR = 30.0  # times the floor: a residual that something else may explain better
_LIFT_ABOVE_FLOOR = 1e4  # times the floor: far above what lifting loses, far below a missing direction
_MOST_EXPLAINED = 0.7  # of the neurons must be explained by an activation each, for a mixture to be named
_LARGEST_CONDITION = 1e10  # of the final fit's scaled Jacobian: beyond, there are neurons too many
_ONE_THREAD = 24  # inputs up to which matrices are so small that a second BLAS thread gains nothing,
# but on busy cores makes every product wait for it


@dataclass(frozen=True)
class ShallowOptions:
    """What the user said about the network."""

    width: int | None = None
    activations: tuple[str, ...] = SMOOTH_ACTIVATIONS
    power_method: PowerMethodOptions | None = None
    autodiff: bool = False
    """Whether gradients and Hessians are the target's own instead of differences of its answers."""


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
        self._region = findings.region
        self._scale = np.where(findings.output_scale > 0, findings.output_scale, 1.0)
        self._noise = float(np.max(findings.noise.sigma_per_output / self._scale))
        self._exact = findings.noise.kind == "float64" and self._noise <= _COARSEST_FOR_LATTICES
        self._options, self._journal, self._rng = options, journal, rng
        self._executor = view.executor
        inputs = len(self._region.location)
        self._target = FrameTarget(
            view,
            self._region,
            self._scale,
            np.eye(inputs),
            self._noise,
            journal,
            rng,
            autodiff=options.autodiff,
        )
        self._in_all_inputs: Jets | None = None
        """Gradients in all inputs, which locate the active subspace."""
        self._jets: Jets | None = None
        """Gradients in the frame, on which the final fit stands besides the Hessians' own."""
        self._model: ShallowModel | None = None
        self._profiles: tuple[Array, Array, int] | None = None
        """Projections, samples and their order, of the neurons' own profiles."""
        self._evidence = Evidence()
        self._notes: list[str] = []
        self._ambiguity: str | None = None

    def run(self) -> Candidate:
        """Recover the network, as far as the budget goes."""
        problem, interrupted = None, False
        try:
            if len(self._target.frame) <= _ONE_THREAD:
                with single_threaded_blas():
                    problem = self._recover()
            else:
                problem = self._recover()
        except BudgetExhausted as error:
            problem = str(error)
        except KeyboardInterrupt:
            problem, interrupted = "interrupted", True
        except np.linalg.LinAlgError as error:
            problem = f"the numbers broke down ({error}): not a network of this class"
        network = None if self._model is None else self._in_inputs(self._model)
        notes = tuple(self._notes)
        return Candidate(network, self._evidence, notes, problem, self._ambiguity, interrupted)

    def _recover(self) -> str | None:
        if self._recover_by_lattices():
            return None
        if self._options.autodiff:
            problem = self._check_derivatives()
            if problem is not None:
                return problem
        self._enter_active_subspace()
        problem = self._recover_in_frame()
        if self._target.reduced and not self._lift_fits():
            # A direction was missing: few gradients happened to lie along it, or a neuron is very weak.
            self._leave_active_subspace()
            problem = self._recover_in_frame()
        if problem is None and self._model is not None:
            self._compare_width(self._model.width)
            if not self._at_floor():
                problem = (
                    f"{self._model.width} neurons leave a residual of {_residual(self._evidence):.2g} where "
                    f"rounding or noise would leave {self._evidence.fit_floor:.2g}: {self._what_else()}"
                )
        return problem

    def _what_else(self) -> str:
        """What the target may be, when one layer of equal neurons is not it."""
        if self._profiles is not None and len(self._options.activations) > 1:
            seen = activations_seen(self._options.activations, *self._profiles, self._rng)
            if len(seen) > 1 and sum(seen.values()) >= _MOST_EXPLAINED * self._profiles[0].shape[1]:
                named = ", ".join(f"{count} as {name}" for name, count in seen.items())
                return f"the neurons are not alike ({named}): mixed activations, which are not handled"
        return (
            "another activation or a mixture of several, more than one hidden layer (residual blocks and "
            "pooling count), or Hessians that are no sum of neurons"
        )

    def _recover_by_lattices(self) -> bool:
        """Whether the network was found through a slice of the inputs, from the fewest queries."""
        if not self._exact or self._options.autodiff or len(self._target.frame) < FEWEST_INPUTS:
            return False
        route = LatticeRoute(
            self._target.ask,
            self._region,
            self._target.outputs,
            self._noise,
            self._options.width,
            self._options.activations,
            self._journal,
            self._rng,
            self._options.power_method,
            self._executor,
        )
        try:
            found = route.run()
        except np.linalg.LinAlgError:  # a fit ran away: what is no network of this class may do that
            return False
        if found is None:
            return False
        self._model, self._evidence = found.model, found.evidence
        self._compare_width(found.model.width)
        return True

    def _check_derivatives(self) -> str | None:
        """What is wrong with the target's derivatives, seen at the first few gradients; None if nothing."""
        with self._journal.stage("derivatives") as stage:
            step = difference_steps(self._noise, self._target.dimension).gradient
            jets = self._target.source.gradients(self._target.sample(_CHECKED_GRADIENTS, step))
            mismatch = derivative_mismatch(self._target.ask, jets, step, self._rng)
            stage.figures["mismatch"] = mismatch
        self._in_all_inputs = jets
        self._evidence = replace(self._evidence, derivative_mismatch=mismatch)
        if mismatch <= LARGEST_MISMATCH:
            return None
        return (
            f"the target's derivatives by autodiff are not those of its answers (off by {mismatch:.2g} of "
            "their size): a part is detached, or has a backward pass of its own; leave derivatives at "
            '"queries"'
        )

    def _recover_in_frame(self) -> str | None:
        sampler = HessianSampler(self._target.source, self._target.sample, self._journal)
        pencil = self._pencil_directions(sampler)
        if pencil is not None:
            self._finish(pencil, sampler)
        if pencil is None or not (self._at_floor() and self._is_determined()):
            span = self._span_directions(sampler)
            if isinstance(span, str):
                return None if pencil is not None and self._at_floor() else span
            self._finish(span, sampler)
        return None

    def _finish(self, found: _Directions, sampler: HessianSampler) -> None:
        """From directions to a fitted network; the next best activation is tried if the best does not fit."""
        previous, evidence = self._model, self._evidence
        projections, samples, order, ranking = self._rank_activations(found)
        self._profiles = projections, samples, order
        for rank, name in enumerate(ranking[:2]):
            if rank and (self._at_floor() or not self._is_rival(ranking[0], name)):
                break
            best, best_evidence = (self._model, self._evidence) if rank else (None, self._evidence)
            self._fit_neurons(found, projections, samples, order, name)
            self._polish(sampler.jets)
            if best is not None and _residual(best_evidence) <= _residual(self._evidence):
                self._model, self._evidence = best, best_evidence
        better = self._at_floor() and self._is_determined()
        if previous is not None and not better and _residual(evidence) <= _residual(self._evidence):
            self._model, self._evidence = previous, evidence

    def _is_determined(self) -> bool:
        """Whether the equations of the final fit determine all parameters (no neuron too many)."""
        condition = self._evidence.condition
        return condition is None or not condition > _LARGEST_CONDITION

    def _is_rival(self, best: str, second: str) -> bool:
        residuals = self._evidence.activation_residuals
        return residuals[second] < _RIVAL * residuals[best]

    def _at_floor(self) -> bool:
        """Whether the final fit leaves no more than rounding or noise."""
        floor = self._evidence.fit_floor
        return floor is not None and _residual(self._evidence) <= _ABOVE_FLOOR * floor

    # -- directions ------------------------------------------------------------------------------------

    def _enter_active_subspace(self) -> None:
        """Take gradients until their span is seen to end, or to be everything, and go there."""
        with self._journal.stage("gradients") as stage:
            inputs, outputs, width = len(self._target.frame), self._target.outputs, self._options.width
            everything = -(-(inputs + SPARE_GRADIENTS) // outputs) + 1
            goal = _FIRST_GRADIENTS if width is None else -(-(min(width, inputs) + 1) // outputs) + 1
            jets, active = self._in_all_inputs, None
            while active is None or not (active.complete or len(jets or ()) >= everything):
                jets = self._target.gradients(jets, min(goal, everything))
                active = active_subspace(jets, self._noise)
                goal = max(len(jets) + 1, int(np.ceil(1.1 * len(jets))))
            stage.figures.update(sites=len(jets or ()), **{"active dimension": active.dimension})
        self._in_all_inputs = jets
        self._evidence = replace(self._evidence, active_dimension=active.dimension)
        if active.reduces:
            self._target = self._target.seen_through(active.frame)
        else:
            self._jets = jets

    def _leave_active_subspace(self) -> None:
        inputs = len(self._target.frame)
        self._target = self._target.seen_through(np.eye(inputs))
        self._jets = self._in_all_inputs
        mismatch = self._evidence.derivative_mismatch
        self._model = None
        self._evidence = Evidence(active_dimension=inputs, derivative_mismatch=mismatch)

    def _lift_fits(self) -> bool:
        """Whether the network, lifted to all inputs, explains the gradients taken there."""
        if self._model is None or self._in_all_inputs is None:
            return False
        lifted, jets = lift(self._model, self._target.frame, self._in_all_inputs), self._in_all_inputs
        left = jets.gradients - lifted.difference_gradients(jets.sites, jets.step, jets.rule)
        size = float(np.sqrt(np.mean(jets.gradients**2)))
        floor = max(self._noise * jets.gradient_noise, np.finfo(np.float64).eps * size)
        return float(np.sqrt(np.mean(left**2))) <= _LIFT_ABOVE_FLOOR * floor

    def _pencil_directions(self, sampler: HessianSampler) -> _Directions | None:
        """As many neurons as dimensions: their directions from a few Hessians, or None if there are more."""
        d, width = self._target.dimension, self._options.width
        if width is not None and width > d and not self._target.reduced:
            return None
        with self._journal.stage("pencils") as stage:
            sampler.extend_to(_PENCIL_HESSIANS_SMALL if d <= _SMALL_DIMENSION else _PENCIL_HESSIANS)
            pencil = jointly_diagonalise(sampler.columns(), d, self._rng)
            if pencil is None:
                stage.figures["result"] = "more neurons than dimensions"
                return None
            stage.figures["residual"] = pencil.residual
        if pencil.residual > _PENCIL_RESIDUAL:
            return None
        hessians = sampler.count * self._target.outputs
        self._evidence = replace(self._evidence, width=d, found=d, hessians=hessians)
        return _Directions(pencil.directions, None)

    def _span_directions(self, sampler: HessianSampler) -> _Directions | str:
        """More neurons than dimensions: the rank-one members of the span of many Hessians."""
        d = self._target.dimension
        with self._journal.stage("Hessians") as stage:
            sampled = sample_until_span_ends(sampler, self._target.outputs, d, self._options.width)
            stage.figures.update(sites=sampler.count, width=sampled.rank, gap=sampled.gap)
        if sampled.gap < CLEAR_GAP:
            if self._evidence.width is None:  # nothing better is known: show what was seen
                spectrum, columns = sampled.span.singular_values, sampled.span.columns
                self._evidence = replace(self._evidence, spectrum=spectrum, hessians=columns)
            return (
                f"no gap in the spectrum of {sampled.span.columns} Hessians (largest ratio "
                f"{sampled.gap:.2g}; one smooth hidden layer shows at least {CLEAR_GAP:.0f}): more than "
                f"{d * (d - 1) // 2} neurons, more than one hidden layer, answers too coarse to see it, or "
                "not a network of this class"
            )
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
        with self._journal.stage("power method") as stage:
            rows = self._search(sampled.span, sampled.rank, None)
            stage.figures.update(found=len(rows), needed=sampled.rank, restarts=self._evidence.restarts)
        if len(rows) == 0:
            return (
                f"the span of the Hessians has dimension {sampled.rank} but no rank-one member: not a sum of "
                "functions of one direction each"
            )
        return _Directions(rows, sampled)

    def _search(self, span: HessianSpan, rank: int, known: Array | None) -> Array:
        """Directions (m, d) in the span: the known ones, in their order, and those that are found besides."""
        options = self._options.power_method or PowerMethodOptions(single_precision=rank >= _LARGE)
        d = self._target.dimension
        result = find_directions(span, rank, d, self._journal, self._rng, options, known, self._executor)
        self._evidence = replace(
            self._evidence,
            found=len(result),
            restarts=self._evidence.restarts + result.restarts,
            misalignment=result.misalignment,
            rejected=result.rejected,
        )
        if known is None:
            return result.directions
        new = np.abs(result.directions @ known.T).max(axis=1) < 1 - _SAME_DIRECTION
        return np.concatenate([known, result.directions[new]])

    def _compare_width(self, seen: int) -> None:
        given, shown = self._options.width, self._evidence.width
        if shown is not None and seen < shown:
            self._notes.append(f"{seen} of {shown} directions were found in the span of the Hessians")
        if given is not None and seen < given and self._region.has_box:
            self._ambiguity = (
                f"{given - seen} of the {given} neurons that were given do not act inside the domain: "
                "nothing is known about them"
            )
        elif given is not None and seen < given:
            self._notes.append(
                f"the target needs {seen} neurons where {given} were given: the others are dead, "
                "duplicates, or have no outgoing weight; the minimal network is returned"
            )
        elif given is not None and seen > given:
            self._notes.append(f"the target has {seen} neurons where {given} were given")

    # -- neurons ---------------------------------------------------------------------------------------

    def _profile_samples(self, found: _Directions) -> tuple[Array, Array, int]:
        """Projections (n, m), samples (n, m, K) and the order of the derivative that was sampled."""
        if found.sampled is None:
            return self._line_samples(found.rows)
        jets = found.sampled.jets
        assert jets.hessians is not None
        return jets.sites @ found.rows.T, rank_one_coefficients(found.rows, jets.hessians), 2

    def _line_samples(self, rows: Array) -> tuple[Array, Array, int]:
        """Values on lines through the centre along which a single neuron moves (the dual directions)."""
        duals = np.asarray(np.linalg.inv(rows).T, dtype=np.float64)
        reach = self._target.longest_reach(duals, _LINE_REACH)
        t = reach * np.sin(np.linspace(-np.pi / 2, np.pi / 2, _LINE_POINTS))
        points = (t[:, None, None] * duals).reshape(-1, duals.shape[1])
        samples = self._target.ask(points).reshape(_LINE_POINTS, len(duals), -1)
        return np.broadcast_to(t[:, None], samples.shape[:2]), samples, 0

    def _rank_activations(self, found: _Directions) -> tuple[Array, Array, int, list[str]]:
        """Samples of the neurons' profiles, and the activations that explain them, best first."""
        names = self._options.activations
        with self._journal.stage("activation") as stage:
            projections, samples, order = self._profile_samples(found)
            residuals = rank_activations(
                names,
                projections,
                samples,
                order,
                self._rng,
                on_name=lambda done: self._journal.tell(done, len(names), "activations"),
                executor=self._executor,
            )
            ranking = sorted(residuals, key=lambda name: residuals[name])
            stage.figures["best"] = ranking[0]
        self._evidence = replace(self._evidence, activation_residuals=residuals)
        return projections, samples, order, ranking

    def _fit_neurons(
        self, found: _Directions, projections: Array, samples: Array, order: int, name: str
    ) -> None:
        with self._journal.stage("neurons") as stage:
            profiles = fit_profiles(projections, samples, get_activation(name), order, self._rng)
            self._model = model_of(found.rows, profiles, get_activation(name))
            stage.figures["residual"] = profiles.pooled_residual()
        self._note_profile(projections, samples, profiles, order)
        if found.sampled is not None:
            self._correct_truncation(found.rows, found.sampled, profiles)

    def _note_profile(self, projections: Array, samples: Array, profiles: Profiles, order: int) -> None:
        assert self._model is not None
        example = typical_profile(projections, samples, profiles, self._model.activation, order)
        self._evidence = replace(self._evidence, **example)

    def _correct_truncation(self, rows: Array, sampled: SampledSpan, profiles: Profiles) -> None:
        """Refine directions and neurons on Hessians from which the predicted truncation was taken away.

        Weak neurons that the truncation had hidden come out of the corrected spectrum and are added.
        """
        assert self._model is not None
        assert sampled.jets.hessians is not None
        d, rank, jets, model = self._target.dimension, sampled.rank, sampled.jets, self._model
        source = self._target.source
        with self._journal.stage("refinement" if source.exact else "truncation") as stage:
            for done in range(_CORRECTIONS):
                corrected = sampled.jets.hessians - source.hessian_truncation(model, jets)
                span = hessian_span(corrected.reshape(-1, corrected.shape[2]))
                seen, gap = width_shown(span, self._options.width)
                if gap >= CLEAR_GAP and rank < seen <= d * (d - 1) // 2:
                    rank = seen
                rows = refine_directions(span, rank, rows, d)
                if len(rows) < rank:
                    rows = self._search(span, rank, rows)
                projections, samples = jets.sites @ rows.T, rank_one_coefficients(rows, corrected)
                profiles = refit(projections, samples, model.activation, profiles, self._rng)
                previous, model = model, model_of(rows, profiles, model.activation)
                self._journal.tell(done + 1, _CORRECTIONS, "corrections")
                if previous.width == model.width:
                    change = float(np.abs(model.weights - previous.weights).max())
                    stage.figures["change"] = change
                    if change < _SETTLED:
                        break
            rates = RankOneSpace(span.basis(rank), symmetric_packing(d)).contraction_rates(rows)
            stage.figures.update(width=rank, gap=span.gap(rank), residual=profiles.pooled_residual())
            stage.figures["slowest rate"] = float(rates.max())
        self._model = model
        self._note_profile(projections, samples, profiles, 2)
        self._evidence = replace(
            self._evidence,
            width=rank,
            found=len(rows),
            gap=span.gap(rank),
            spectrum=span.singular_values,
            rates=rates,
        )

    # -- all parameters --------------------------------------------------------------------------------

    def _polish(self, hessian_sites: Jets) -> None:
        """Gauss-Newton on everything, on values and gradients."""
        assert self._model is not None
        with self._journal.stage("polish") as stage:
            per_site = (self._target.dimension + 1) * self._target.outputs
            enough = max(_OVERDETERMINED * self._model.size / per_site, _SITES_PER_NEURON * self._model.width)
            needed = int(np.ceil(enough)) - len(hessian_sites)
            self._jets = self._target.gradients(self._jets, max(needed, 1))
            if not self._target.reduced:
                self._add_sites_at_neurons(self._jets)
            jets = (self._jets, hessian_sites)
            self._fit_all(jets)
            stage.figures.update(
                equations=sum(len(part) for part in jets) * per_site,
                parameters=self._model.size,
                residual=_residual(self._evidence),
                floor=float(self._evidence.fit_floor or 0.0),
                steps=len(self._evidence.fit_history) - 1,
            )

    def _add_sites_at_neurons(self, jets: Jets) -> None:
        """Gradients where the neurons act that the sites so far see least."""
        assert self._model is not None
        model = self._model
        bend = model.activation.jet(jets.sites @ model.weights + model.biases, 2)[2]
        seen = np.einsum("nm,nm->m", bend, bend)
        least = np.argsort(seen)[: int(np.ceil(_SITES_AT_NEURONS * model.width))]
        self._jets = Jets.concatenate([jets, self._target.gradients_at(model, least)])

    def _fit_all(self, jets: tuple[Jets, ...]) -> None:
        assert self._model is not None
        fit = fit_all_parameters(
            self._model, jets, self._noise, lambda step, _: self._journal.tell(step, None, "steps")
        )
        if fit.model.width < self._model.width:
            self._evidence = replace(self._evidence, width=fit.model.width, found=fit.model.width)
        self._model = fit.model
        self._evidence = replace(
            self._evidence,
            fit_history=fit.history,
            fit_floor=fit.floor,
            prediction_floor=float(np.hypot(fit.prediction_floor, self._lifting_floor())),
            condition=fit.condition,
            parameter_error_bar=fit.error_bar,
        )

    def _lifting_floor(self) -> float:
        """What the noise of the gradients that locate the subspace leaves of a prediction."""
        if not self._target.reduced or self._in_all_inputs is None:
            return 0.0
        jets, d = self._in_all_inputs, self._target.dimension
        spare = max((len(jets) - 1) * self._target.outputs - d, 1)
        return self._noise * jets.gradient_noise * float(np.sqrt(jets.sites.shape[1] * d / spare))

    def _in_inputs(self, model: ShallowModel) -> Network:
        """The network in the target's own inputs and outputs."""
        if self._target.reduced and self._in_all_inputs is not None:
            model = lift(model, self._target.frame, self._in_all_inputs)
        weights = model.weights / self._region.scale[:, None]
        biases = model.biases - self._region.location @ weights
        outgoing, offset = model.outgoing * self._scale, model.offset * self._scale
        skip = None
        if model.skip is not None:
            skip = model.skip / self._region.scale[:, None] * self._scale
            offset = offset - self._region.location @ skip
        return Network([weights, outgoing], [biases, offset], [model.activation.name, "identity"], skip=skip)


def _residual(evidence: Evidence) -> float:
    return evidence.fit_history[-1] if evidence.fit_history else np.inf
