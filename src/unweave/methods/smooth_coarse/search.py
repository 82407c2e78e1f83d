"""One smooth hidden layer from coarse answers: the route.

1. what the last transformation may be; a radius for the stencils at which Hessians tell most;
2. rotated Hessians until their spectrum, against the sample of noise they carry, shows all units; the link
   behind which there are fewest is the right one;
3. directions, then scale, bias and outgoing weights of every unit, for each activation;
4. least squares on answers: scales first, then all parameters, with more and more rows; units that are
   missing come out of the residual Hessians, units that do not act are taken out;
5. rounded answers of a target that repeats itself are bisected, and the flips fitted exactly.

The noise level decides radius, number of sites, acceptance and when to stop. Nothing here passes a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.coarse_answers.averaged_fit import AveragedFit
from unweave.methods.shared.coarse_answers.evidence import CoarseEvidence
from unweave.methods.shared.coarse_answers.refinement import CoarseOptions, Refinement
from unweave.methods.shared.coarse_answers.rows import AnsweredRows
from unweave.methods.shared.coarse_answers.sliced import SlicedOptions
from unweave.methods.shared.profiles.profiles import SMOOTH_ACTIVATIONS
from unweave.methods.shared.profiles.unit_fits import hessian_profile
from unweave.methods.shared.refusals import links_to_try
from unweave.methods.shared.span_evidence import SpanEvidence
from unweave.methods.smooth_coarse.fit import UnitFitOptions, UnitFits
from unweave.methods.smooth_coarse.hessians_behind_links import HessiansBehindLinks, Seen, SiteOptions
from unweave.methods.smooth_coarse.noisy_hessians import NoisySpan, RadiusOptions, choose_radius
from unweave.methods.smooth_coarse.start import DirectionOptions, noisy_directions, noisy_profiles
from unweave.networks.activations import get_activation
from unweave.networks.links import Link
from unweave.search import Candidate, Context, GaveUp, Reason, Search
from unweave.subspace.symmetric import symmetric_packing


@dataclass(frozen=True, kw_only=True)
class SmoothCoarseOptions:
    """How hard to search for smooth units in coarse answers."""

    coarse: CoarseOptions = field(default_factory=CoarseOptions)
    """Rows, noise, final fit and flips."""
    radius: RadiusOptions = field(default_factory=RadiusOptions)
    """Ladder of radii of the stencils."""
    sites: SiteOptions = field(default_factory=SiteOptions)
    """Where Hessians are taken, and at how many sites."""
    directions: DirectionOptions = field(default_factory=DirectionOptions)
    """Which members of their span are units."""
    fits: UnitFitOptions = field(default_factory=UnitFitOptions)
    """Fits to answers, units added and left out."""
    slices: SlicedOptions = field(default_factory=SlicedOptions)
    """The slice that is searched where inputs are many."""
    hessians_per_unit: tuple[float, ...] = (1.25, 2.5, 6.0)
    """Least number of Hessians per unit seen, attempt by attempt: more where a fit to the answers failed."""
    rival_ratio: float = 4.0
    """Activations are fitted in full whose profile residual is within this factor of the best one."""
    first_rivals: int = 2
    """Number of them while more Hessians may be taken instead."""
    hiding_noise: float = 3e-3
    """Relative error of rounded answers above which a wrong activation may explain few rows."""
    clearly_seen: float = 10.0
    """Ratio of the weakest unit's singular value to the noise that excludes further units."""
    best_radius: float = 6.4
    """Best radius for weights of unit length, over (sigma / spread)^(1/4)."""
    worth_widening: float = 1.25
    """Least factor by which the region is widened."""
    widest: float = 6.0
    """Largest factor by which it is widened."""
    box_share: float = 0.35
    """Longest radius over the narrowest side of a box."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothCoarseEvidence(SpanEvidence, CoarseEvidence):
    """What was measured on the way to smooth units behind noise or rounding."""

    clear_gap: ClassVar[float] = NoisySpan.stands_out
    """Noisy Hessians are measured against the noise they carry."""
    gap_is_a_ratio: ClassVar[bool] = False


class SmoothCoarseReason(Reason):
    """Why no network of this class was found."""

    NOTHING_CURVED = "no Hessian stands out of the noise: there is nothing curved to see at this precision"
    NOT_EXPLAINED = (
        "{units} units leave {misfit:.2g} standard deviations where noise alone would leave 1: another "
        "activation, more than one hidden layer, or too few Hessians for this noise"
    )
    PRECISE = "the answers are precise and seem to have no last transformation: short steps see more"
    TOO_WIDE = (
        "{columns} Hessians span {width} dimensions, all that they can: more units than their span "
        "determines, more than one hidden layer, or not a network of this class"
    )


class SmoothCoarseSearch(Search):
    """Finds units in the span of Hessians with long steps, then refines the network whose misfit is noise."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        findings, request, journal = self.findings, self.request, self.journal
        options: SmoothCoarseOptions = context.options
        self._options = options
        self._rows = AnsweredRows(context.view, findings.noise, self.rng, options.coarse.rows)
        self._links = [Link(name) for name in links_to_try(request, findings)]
        self._hessians = HessiansBehindLinks(
            self._rows,
            self._links,
            self.rng,
            lambda count: journal.tell(count, None, "Hessians"),
            options.sites,
        )
        self._fits = UnitFits(
            self._rows, self.rng, lambda step, _: journal.tell(step, None, "steps"), options.fits
        )
        self._best = Refinement(context, self._rows, SmoothCoarseEvidence(), options.coarse)

    def candidate(self) -> Candidate:
        """Return the best network so far."""
        return self._best.candidate()

    def run(self) -> None:
        """Look for units behind every possible link, fit them, then refine."""
        self._best.measure_noise()
        radius = self._choose_radius()
        attempts = self._options.hessians_per_unit
        for attempt, surplus in enumerate(attempts):
            seen = self._look_behind_links(radius, surplus)
            self._stop_if_out_of_place(seen)
            directions = self._directions(seen)
            if len(directions):
                self._fit_best_activation(seen, directions, last=attempt == len(attempts) - 1)
            if self._is_determined() or self._is_hopeless(seen):
                break
        fit = self._best.fit
        if fit is None:
            raise GaveUp(SmoothCoarseReason.NOTHING_CURVED)
        if not self._best.is_explained:
            raise GaveUp(SmoothCoarseReason.NOT_EXPLAINED, units=fit.model.width, misfit=fit.misfit)
        self._best.refine(lambda fit: self._fits.peeled(fit, seen), self._fits.settled)

    def _choose_radius(self) -> float:
        """Choose the radius of the stencils; widen a region in which the units hardly bend."""
        options, likeliest = self._options, self._links[-1]
        bounds = self._rows.region.normalised_bounds
        longest = np.inf if bounds is None else options.box_share * float((bounds[1] - bounds[0]).min())
        relative = self.findings.noise.relative
        with self.journal.stage("radius") as stage:
            radius = choose_radius(
                self._hessians.behind(likeliest),
                lambda count, margin: self._hessians.sites(count, margin, [likeliest]),
                relative,
                longest,
                self.rng,
                options.radius,
            )
            # For weights of unit length the best radius is about this; a larger one means shorter weights, of
            # which a wider region shows more.
            wider = float(np.clip(radius / (options.best_radius * relative**0.25), 1.0, options.widest))
            if bounds is None and wider > options.worth_widening:
                self._rows.widen(wider)
                radius /= wider
                stage.figures["region widened by"] = wider
            stage.figures["radius"] = radius
        return radius

    def _look_behind_links(self, radius: float, surplus: float) -> Seen:
        """Take Hessians behind every possible link; the link with the fewest units wins."""
        told = self.request.width
        known = max(told or 0, 0 if self._best.fit is None else int(self._best.evidence.width or 0))
        with self.journal.stage("Hessians") as stage:
            best = self._hessians.sample(radius, surplus, told, known)
            span = best.span
            stage.figures.update(sites=len(best.taken), width=span.width, gap=span.gap, link=best.link.name)
        self._best.evidence = replace(
            self._best.evidence,
            spectrum=span.singular_values,
            width=span.width,
            gap=span.gap,
            hessians=span.columns,
        )
        return best

    def _stop_if_out_of_place(self, seen: Seen) -> None:
        """Give up where another method sees more, or the span of the Hessians determines no units."""
        if self.findings.noise.kind == "float64" and seen.link.name == "identity":
            raise GaveUp(SmoothCoarseReason.PRECISE)
        width, columns, inputs = seen.span.width, seen.span.columns, self._rows.n_inputs
        full = symmetric_packing(inputs).size
        if self.request.width is not None:
            return
        if width > inputs * (inputs - 1) // 2 or width >= min(columns, full - 1):
            raise GaveUp(SmoothCoarseReason.TOO_WIDE, columns=columns, width=width)

    def _directions(self, seen: Seen) -> Array:
        width = max(seen.span.width, self.request.width or 0)
        width = min(width, len(seen.span.singular_values))
        if width == 0:
            return np.empty((0, self._rows.n_inputs))
        with self.journal.stage("power method") as stage:
            rows = noisy_directions(
                seen.span,
                width,
                self.findings.noise.relative,
                self.rng,
                lambda found, wanted, _: self.journal.tell(found, wanted, "units"),
                self._options.directions,
            )
            stage.figures.update(found=len(rows), needed=width)
        self._best.evidence = replace(self._best.evidence, found=len(rows))
        return rows

    def _fit_best_activation(self, seen: Seen, directions: Array, last: bool) -> None:
        """Fit the network with the activations whose profiles fit best, and keep the best network."""
        names, options = self.request.activations_among(SMOOTH_ACTIVATIONS), self._options
        with self.journal.stage("activation") as stage:
            profiles, residuals = {}, {}
            for done, name in enumerate(names):
                self.journal.tell(done, len(names), "activations")
                profiles[name] = noisy_profiles(seen.taken, directions, get_activation(name), self.rng)
                # The geometric mean: one unit whose fit went astray must not decide.
                residuals[name] = float(
                    np.exp(np.log(np.maximum(profiles[name].residuals, np.finfo(np.float64).tiny)).mean())
                )
            ranking = sorted(residuals, key=lambda name: residuals[name])
            stage.figures["best"] = ranking[0]
        self._best.evidence = replace(self._best.evidence, activation_residuals=residuals)
        rivals = [
            name for name in ranking if not residuals[name] > options.rival_ratio * residuals[ranking[0]]
        ]
        rivals = rivals if last else rivals[: options.first_rivals]
        width = len(directions)
        self._rows.extend_to(self._fits.rows_for(width, self._parameters(width)))
        noise = self.findings.noise
        hides = noise.kind == "noisy" or (noise.kind == "rounded" and noise.relative > options.hiding_noise)
        for name in rivals:
            best = self._best.fit
            # A rival of what explains the answers must do so with no more units.
            most = best.model.width if best is not None and self._best.is_explained else np.inf
            with self.journal.stage(f"fit {name}") as stage:
                fit = self._fits.from_directions(seen, directions, name, profiles[name], most)
                stage.figures.update(misfit=fit.misfit, width=fit.model.width)
            if self._is_better(fit):
                self._best.fit = fit
                if seen.taken.selectors is None:  # contrasts of classes have no profile of their own
                    example = hessian_profile(
                        seen.taken.sites,
                        seen.taken.hessians,
                        directions,
                        profiles[name],
                        get_activation(name),
                    )
                    self._best.evidence = replace(self._best.evidence, **example)
            # Much noise hides small differences at first: the two best are compared then.
            compared = name != rivals[0] or not hides
            if self._best.is_explained and compared:
                break
        assert self._best.fit is not None
        self._best.keep(self._best.fit)

    def _is_determined(self) -> bool:
        """Return whether the network explains the answers, and they determine all its units.

        Few rows are also explained by wrong networks that have some units more, which the rows leave open.
        """
        best = self._best
        return best.fit is not None and best.is_explained and self._fits.is_determined(best.fit)

    def _is_better(self, fit: AveragedFit) -> bool:
        """Return whether the fit is better than the best one; by BIC if both explain: more units fit more."""
        best, enough = self._best.fit, self._rows.acceptable_misfit()
        if best is None or max(fit.misfit, best.misfit) > enough:
            return best is None or fit.misfit < best.misfit
        return self._criterion(fit) < self._criterion(best)

    def _criterion(self, fit: AveragedFit) -> float:
        """Return log(mean square residual) + P log(n) / n, on as many rows as there are now."""
        n, parameters = self._rows.answers.size, fit.model.size
        mean_square = fit.misfit**2 * max(1 - parameters / n, np.finfo(np.float64).tiny)
        return float(np.log(max(mean_square, np.finfo(np.float64).tiny)) + parameters * np.log(n) / n)

    def _is_hopeless(self, seen: Seen) -> bool:
        """Return whether the fit leaves most of the answers though all units were seen."""
        fit = self._best.fit
        return (
            fit is not None
            and self._rows.leaves_most(fit.misfit)
            and seen.span.gap >= self._options.clearly_seen
        )

    def _parameters(self, width: int) -> int:
        inputs, outputs = self._rows.n_inputs, self._rows.n_outputs
        return width * (inputs + 1 + outputs) + outputs
