"""Search for one smooth hidden layer by queries.

0. Where rows are few, and the units no more than the inputs, two Hessians and values do (`pencil_route`).
   Otherwise, with float64 answers and ten inputs or more, search through a random slice of the inputs
   (`lattice_route`), which takes a fifth of the queries. Go on only if that fails, would take
   long, or the units are nearly as many as their directions allow.
1. Take gradients at random sites: do all inputs matter, or only an active subspace? Everything else happens
   in that subspace (`frame_search`) and is lifted back at the end without further queries.
2. Take Hessians. For as many units as dimensions, matrix pencils on a handful of them give the directions;
   for more, the rank-one members of the span of about 1.15 m of them.
3. Fit one unit at a time: scale, bias and outgoing weights from its profile, for each possible activation.
4. Predict the truncation error of the Hessians by the network, remove it, and repeat 2 and 3.
5. Fit all parameters to the values and gradients already paid for and a few more, by Gauss-Newton.

Steps 1 to 5 take about 1.15 (D^2+D+1)/(D+2) + 1.5 queries per parameter (K = 1) for m > D, and 2.2 + 6 m/D
for m << D. With ``autodiff`` they run on the target's own derivatives (`jet_sources`): there is no truncation
to remove, and they take about 1.15 for m > D, and less for m << D.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.active_subspace import SPARE_GRADIENTS, active_subspace
from unweave.derivatives.jet_sources import LARGEST_MISMATCH, derivative_mismatch, difference_steps
from unweave.derivatives.stencils import Jets
from unweave.derivatives.truncation import difference_gradients
from unweave.methods.shared.profiles.profiles import FURTHER_ACTIVATIONS, SMOOTH_ACTIVATIONS
from unweave.methods.smooth.evidence import FoundSoFar, SmoothEvidence, SmoothReason
from unweave.methods.smooth.frame_search import FrameSearch
from unweave.methods.smooth.frame_target import FrameTarget, lift
from unweave.methods.smooth.frame_units import ProfileSamples, activations_seen
from unweave.methods.smooth.lattice_route import LatticeRoute
from unweave.methods.smooth.options import SmoothOptions
from unweave.methods.smooth.pencil_route import PencilRoute
from unweave.methods.smooth.slice_route import SliceResult
from unweave.methods.smooth.span_members import MemberFinder
from unweave.networks.activations import get_activation
from unweave.networks.network import Network
from unweave.networks.parameters import NetworkParameters
from unweave.search import Candidate, Context, GaveUp, Search

_SINGLE_THREAD_INPUTS = 24  # inputs up to which a second BLAS thread gains nothing


POLYNOMIALS = ("cubic",)
"""Activations tried besides, when none is told: behind coarse answers they would imitate others."""


class SmoothSearch(Search):
    """Tries lattices on a slice of the inputs first, then Hessians in the subspace that matters."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        view, findings = context.view, self.findings
        self._options: SmoothOptions = context.options
        self._activations = self.request.activations_among(
            (*SMOOTH_ACTIVATIONS, *FURTHER_ACTIVATIONS, *POLYNOMIALS)
        )
        self._region, self._scale = findings.region, findings.spread
        self._noise = float(np.max(findings.noise.sigma_per_output / self._scale))
        self._finder = MemberFinder(self._options.members, self.journal, self.rng, view.executor)
        inputs = len(self._region.location)
        self.single_thread = inputs <= _SINGLE_THREAD_INPUTS
        self._target = FrameTarget(
            view,
            self._region,
            self._scale,
            None,
            self._noise,
            self.journal,
            self.rng,
            autodiff=self.request.autodiff,
        )
        self._in_all_inputs: Jets | None = None
        """Gradients in all inputs, which locate the active subspace."""
        self._found = FoundSoFar()
        self._notes: list[str] = []
        self._ambiguity: str | None = None
        self._units_seen = 0
        self._directions: Array | None = None

    def so_far(self) -> str:
        """Count the units that Hessians have shown."""
        return f"at least {self._units_seen} units were seen" if self._units_seen else ""

    def candidate(self) -> Candidate:
        """Return the best network so far."""
        model = self._found.model
        network = None if model is None else self._in_inputs(model)
        return Candidate(
            network,
            self._found.evidence,
            tuple(self._notes),
            ambiguity=self._ambiguity,
            directions=self._directions,
        )

    def run(self) -> None:
        """Find the network through a slice, or through Hessians, and compare its residual with rounding."""
        if self._succeeds_by_pencils() or self._succeeds_by_lattices():
            return
        if self.request.autodiff:
            self._check_derivatives()
        gradients = self._enter_active_subspace()
        frame, gave_up = self._searched_in_frame(gradients)
        if not self._found.at_floor and self._may_have_kinks(frame):
            frame, gave_up = self._searched_between_kinks(gradients, frame, gave_up)
        if self._target.reduced and not self._lift_fits(gradients):
            # A direction was missing: few gradients happened to lie along it, or a unit is very weak.
            self._leave_active_subspace()
            frame = self._in_frame(gradients)
            frame.run()
        elif gave_up is not None:
            raise gave_up
        found = self._found
        if found.model is None:
            return
        self._compare_width(found.model.width)
        if not found.at_floor:
            raise GaveUp(
                SmoothReason.NOT_AT_FLOOR,
                units=found.model.width,
                residual=found.residual,
                floor=found.evidence.fit_floor,
                what_else=self._what_else(frame.profiles),
            )

    def _searched_in_frame(self, gradients: Jets) -> tuple[FrameSearch, GaveUp | None]:
        """Search once; return the search, and why it gave up."""
        frame = self._in_frame(gradients)
        try:
            frame.run()
        except GaveUp as error:
            return frame, error
        finally:
            self._keep_directions(frame.directions)
        return frame, None

    def _keep_directions(self, rows: Array | None) -> None:
        """Keep the directions (m, d) of all units in the target's own inputs, whatever their kind."""
        evidence = self._found.evidence
        kinds = (evidence.activation_residuals or {}).values()
        explained = len(self._activations) == 1 or min(kinds, default=0.0) < self._options.unknown_kind
        if rows is None or explained or len(rows) < (evidence.width or 0):
            return
        frame = np.eye(self._region.n_inputs) if self._target.frame is None else self._target.frame
        own = frame @ rows.T / self._region.scale[:, None]
        self._directions = own / np.linalg.norm(own, axis=0)

    def _may_have_kinks(self, frame: FrameSearch) -> bool:
        """Whether second derivatives seem to jump: the likeliest units have kinks, or Hessians are uneven."""
        if self.request.autodiff or self._target.between_kinks:
            return False
        residuals = self._found.evidence.activation_residuals or {}
        kinked = [left for name, left in residuals.items() if get_activation(name).kinks]
        likely = bool(kinked) and min(kinked) <= self._options.kinks_likely * min(residuals.values())
        return likely or frame.largest_hessian > self._options.frame.directions.largest_between_kinks

    def _searched_between_kinks(
        self, gradients: Jets, frame: FrameSearch, gave_up: GaveUp | None
    ) -> tuple[FrameSearch, GaveUp | None]:
        """Search again with Hessians over short steps; keep the better network."""
        usual, target = self._found.snapshot(), self._target
        for _ in range(self._options.searches_between_kinks):
            self._target = replace(target, between_kinks=True)
            again, stopped = self._searched_in_frame(gradients)
            if self._found.at_floor:
                return again, stopped
            if usual.residual <= self._found.residual:
                self._found.restore(usual)
                continue
            usual, frame, gave_up = self._found.snapshot(), again, stopped
        self._target = target
        return frame, gave_up

    def _in_frame(self, gradients: Jets) -> FrameSearch:
        return FrameSearch(
            self._target,
            gradients,
            self._noise,
            self.request.width,
            self._activations,
            self._found,
            self._finder,
            self._options.frame,
        )

    def _what_else(self, profiles: ProfileSamples | None) -> str:
        """Say what the target may be, when one layer of equal units is not it."""
        options = self._options.frame.units
        if profiles is not None and len(self._activations) > 1:
            seen = activations_seen(self._activations, profiles, self.rng, options)
            if len(seen) > 1 and sum(seen.values()) >= options.named_share * profiles.projections.shape[1]:
                named = ", ".join(f"{count} as {name}" for name, count in seen.items())
                return f"the units are not alike ({named}): mixed activations, which are not handled"
        return (
            "another activation or a mixture of several, more than one hidden layer (residual blocks and "
            "pooling count), or Hessians that are no sum of units"
        )

    def _succeeds_by_pencils(self) -> bool:
        """Search through two Hessians on a slice, where rows are few."""
        width, options = self.request.width, self._options.lattices
        fewer = width is None or width <= self._region.n_inputs
        if not (self.request.tight and self._is_exact and fewer):
            return False
        route = PencilRoute(
            self._target.ask,
            self._region,
            self._target.outputs,
            self._noise,
            width,
            self._activations,
            self.journal,
            self.rng,
            options,
            self._options.pencils,
        )
        try:
            return self._keep(route.run())
        except np.linalg.LinAlgError:  # a fit ran away: what is no network of this class may do that
            return False
        finally:
            self._units_seen = route.units_seen

    def _succeeds_by_lattices(self) -> bool:
        """Search through lattices on a slice of the inputs, which takes few queries."""
        options = self._options.lattices
        inputs = self._region.n_inputs
        if not self._is_exact or not options.fewest_inputs <= inputs <= options.most_inputs:
            return False
        route = LatticeRoute(
            self._target.ask,
            self._region,
            self._target.outputs,
            self._noise,
            self.request.width,
            self._activations,
            self._finder,
            options,
        )
        try:
            return self._keep(route.run())
        except np.linalg.LinAlgError:
            return False

    @property
    def _is_exact(self) -> bool:
        """Whether differences of answers are precise enough to search through a slice."""
        exact = self.findings.noise.kind == "float64" and self._noise <= self._options.lattices.coarsest_noise
        return exact and not self.request.autodiff

    def _keep(self, result: SliceResult | None) -> bool:
        """Keep what a route has found, if anything."""
        if result is None:
            return False
        self._found.model, self._found.evidence = result.model, result.evidence
        self._compare_width(result.model.width)
        return True

    def _check_derivatives(self) -> None:
        """Compare the target's derivatives with its answers at the first few gradients."""
        with self.journal.stage("derivatives") as stage:
            step = difference_steps(self._noise, self._target.dimension).gradient
            jets = self._target.source.gradients(self._target.sample(self._options.checked_gradients, step))
            mismatch = derivative_mismatch(self._target.ask, jets, step, self.rng)
            stage.figures["mismatch"] = mismatch
        self._in_all_inputs = jets
        self._found.note(derivative_mismatch=mismatch)
        if mismatch > LARGEST_MISMATCH:
            raise GaveUp(SmoothReason.DERIVATIVES_DIFFER, mismatch=mismatch)

    def _enter_active_subspace(self) -> Jets:
        """Take gradients until their span ends or is everything, and go there."""
        with self.journal.stage("gradients") as stage:
            options = self._options
            inputs, outputs, width = self._region.n_inputs, self._target.outputs, self.request.width
            everything = -(-(inputs + SPARE_GRADIENTS) // outputs) + 1
            goal = options.first_gradients if width is None else -(-(min(width, inputs) + 1) // outputs) + 1
            while True:
                jets = self._in_all_inputs = self._target.gradients(
                    self._in_all_inputs, min(goal, everything)
                )
                active = active_subspace(jets, self._noise)
                if active.complete or len(jets) >= everything:
                    break
                goal = max(len(jets) + 1, int(np.ceil(options.gradient_growth * len(jets))))
            stage.figures.update(sites=len(jets), **{"active dimension": active.dimension})
        self._found.note(active_dimension=active.dimension)
        if active.reduces:
            self._target = self._target.seen_through(active.frame)
        return jets

    def _leave_active_subspace(self) -> None:
        inputs = self._region.n_inputs
        self._target = self._target.seen_through(None)
        mismatch = self._found.evidence.derivative_mismatch
        self._found.model = None
        self._found.evidence = SmoothEvidence(active_dimension=inputs, derivative_mismatch=mismatch)

    def _lift_fits(self, gradients: Jets) -> bool:
        """Return whether the network, lifted to all inputs, explains the gradients taken there."""
        if self._found.model is None or self._target.frame is None:
            return False
        options = self._options.lift
        lifted = lift(self._found.model, self._target.frame, gradients, options)
        left = gradients.gradients - difference_gradients(
            lifted, gradients.sites, gradients.step, gradients.rule
        )
        size = float(np.sqrt(np.mean(gradients.gradients**2)))
        floor = max(self._noise * gradients.gradient_noise, np.finfo(np.float64).eps * size)
        return float(np.sqrt(np.mean(left**2))) <= options.residual_over_floor * floor

    def _compare_width(self, seen: int) -> None:
        given, shown = self.request.width, self._found.evidence.width
        if shown is not None and seen < shown:
            self._notes.append(f"{seen} of {shown} directions were found in the span of the Hessians")
        if given is not None and seen < given and self._region.has_box:
            self._ambiguity = (
                f"{given - seen} of the {given} units that were given do not act inside the domain: "
                "nothing is known about them"
            )
        elif given is not None and seen < given:
            self._notes.append(
                f"the target needs {seen} units where {given} were given: the others are dead, "
                "duplicates, or have no outgoing weight; the minimal network is returned"
            )
        elif given is not None and seen > given:
            self._notes.append(f"the target has {seen} units where {given} were given")

    def _in_inputs(self, model: NetworkParameters) -> Network:
        """Return the network in the target's own inputs and outputs."""
        if self._target.frame is not None and self._in_all_inputs is not None:
            model = lift(model, self._target.frame, self._in_all_inputs, self._options.lift)
        weights = model.weights[0] / self._region.scale[:, None]
        biases = model.biases[0] - self._region.location @ weights
        outgoing, offset = model.weights[1] * self._scale, model.biases[1] * self._scale
        skip = None
        if model.skip is not None:
            skip = model.skip / self._region.scale[:, None] * self._scale
            offset = offset - self._region.location @ skip
        return Network([weights, outgoing], [biases, offset], [model.activation.name, "identity"], skip=skip)
