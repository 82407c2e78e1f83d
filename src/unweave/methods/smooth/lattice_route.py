"""One smooth hidden layer from few queries: lattices on a random slice, then the other inputs.

1. Choose a random slice of d < D directions, just enough to determine m units.
2. Take third-order jets on simplex lattices at a few sites until their span ends. Its rank-one members are
   the units' directions (`unweave.derivatives.lattice_jets`).
3. Fit the network on the slice to profiles and values there (`unweave.methods.smooth.slice_fit`).
4. Solve for the weights' components outside, one row each (`unweave.methods.smooth.slice_extension`).

    rows   about  m d^2/6  +  1.1 m (d + 2)  +  1.1 m (D - d)        (one output; d^2/3 if mirrored)

The residual tells success, where it is at rounding, from failure, where it is orders of magnitude above. A
failure mirrors the lattices or adds sites; while no span ends, the slice is widened. No row is asked twice.

Answers must be float64: third differences of coarser ones drown in noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.lattice_jets import LatticeSampler
from unweave.methods.smooth.evidence import SmoothEvidence
from unweave.methods.smooth.jet_profiles import jet_samples
from unweave.methods.smooth.lattice_directions import (
    LatticeDirections,
    LatticeSpan,
    LatticeSpanOptions,
)
from unweave.methods.smooth.random_slice import lattice_step, slice_parameters
from unweave.methods.smooth.slice_fit import SliceFitter
from unweave.methods.smooth.slice_route import SliceResult, SliceRoute, SliceRouteOptions
from unweave.methods.smooth.span_members import MemberFinder
from unweave.networks.activations import get_activation
from unweave.networks.value_fit import MANY_OUTPUTS, ValueFitResult
from unweave.numerics.clock import check
from unweave.subspace.collector import RankOneDirections
from unweave.subspace.hessian_span import CLEAR_GAP
from unweave.targets.region import Region


@dataclass(frozen=True, kw_only=True)
class LatticeOptions(SliceRouteOptions):
    """When a network is searched for through lattices on a slice, and when the search has failed."""

    coarsest_noise: float = 1e-12
    """Largest noise of the answers, relative to their spread, at which third differences show a span."""
    fewest_inputs: int = 10
    """Inputs at which a slice begins to pay."""
    most_inputs: int = 4000
    """Number of inputs beyond which it is not: the slice is taken from a random rotation of all of them."""
    largest_fit: int = 6000
    """Largest number of parameters on a slice where the width is not known: while slices are widened in
    search of it, rows are spent on whatever the target is."""
    failures: int = 3
    """Spans that end but lead to no network before the search gives up."""
    spans: LatticeSpanOptions = field(default_factory=LatticeSpanOptions)

    def is_worth_it(self, width: int, dimension: int, outputs: int, told: bool) -> bool:
        """Return whether ``width`` units are looked for on a slice of ``dimension`` directions."""
        small = slice_parameters(width, dimension, outputs) <= self.largest_fit
        return told or small or outputs >= MANY_OUTPUTS * width


class LatticeRoute(SliceRoute):
    """Searches once; ``run`` returns None if the target is no such network or shows none."""

    def __init__(
        self,
        ask: Callable[[Array], Array],
        region: Region,
        outputs: int,
        noise: float,
        width: int | None,
        activations: tuple[str, ...],
        finder: MemberFinder,
        options: LatticeOptions,
    ) -> None:
        super().__init__(ask, region, outputs, noise, activations, finder.journal, finder.rng, options)
        self._options: LatticeOptions = options
        self._width = width
        self._directions = LatticeDirections(
            region.n_inputs, width, finder, options.spans, options.slices, options.profiles
        )
        self._failures = 0
        self._sampler = LatticeSampler(self._slices.ask, 1.0)

    def run(self) -> SliceResult | None:
        """Return the network, or None."""
        dimension = self._first_dimension() if self._slices.has_room(self._slices.least_margin) else None
        step = one_sided = 1.0
        if dimension is not None:
            with self._journal.stage("step") as stage:
                slices = self._options.slices
                step = lattice_step(self._slices, dimension, self._rng, slices)
                stage.figures["step"] = step
            # A known width is looked for on one side first; an unknown one needs a clear end of the spectrum.
            one_sided = self._shortened(step, dimension)
            self._sampler = LatticeSampler(self._slices.ask, one_sided, mirrored=self._width is None)
        fewest = 0
        while dimension is not None and self._failures < self._options.failures:
            check()
            seen = self._sample(dimension, fewest)
            if seen is not None:
                fitted = self._fit(seen)
                if fitted is not None:
                    return self._extend(fitted)
                self._failures += 1
            if not self._sampler.mirrored:
                with self._journal.stage("mirrored lattices"):
                    if one_sided == step:
                        self._sampler.mirror()
                    else:  # weak units need the longer step, at which two sides still end
                        self._sampler = LatticeSampler(self._slices.ask, step, mirrored=True)
            elif seen is not None:
                fewest = len(self._sampler) + 1
            else:
                dimension = self._affordable(dimension + 1)  # slices are nested: nothing is lost
        return None

    def _shortened(self, step: float, dimension: int) -> float:
        """Return the step of lattices on one side."""
        slices = self._options.slices
        large = self._width is not None and slices.fits_slopes(self._width, dimension, self._outputs)
        return step * slices.one_sided_bend / slices.bend_per_step if large else step

    def _first_dimension(self) -> int | None:
        if self._width is None:
            return self._affordable(min(self._options.slices.fewest_directions, self._inputs))
        cost = self._options.slices.cheapest(self._inputs, self._width, self._outputs)
        return None if cost is None else self._affordable(cost.dimension)

    def _affordable(self, dimension: int) -> int | None:
        """Return the slice to look at next; None if there is none, or its fit would take too long."""
        if dimension > self._inputs:
            return None
        told, shown = self._width is not None, self._options.slices.most_units(dimension, self._inputs)
        width = shown if self._width is None else self._width
        return dimension if self._options.is_worth_it(width, dimension, self._outputs, told) else None

    # -- directions ------------------------------------------------------------------------------------

    def _sample(self, dimension: int, fewest: int) -> LatticeSpan | None:
        """Take lattices, at ``fewest`` sites or more, until their span ends; None if the slice hides it."""
        slices = self._options.slices
        shown = slices.most_units(dimension, self._inputs)
        wanted = shown if self._width is None else min(self._width, shown)
        most = max(fewest, slices.lattices_needed(wanted, dimension, self._outputs))
        fewest = most if self._width is not None else max(fewest, slices.fewest_sites)
        with self._journal.stage("lattices") as stage:
            self._sampler.widen_to(dimension)
            seen = self._span(dimension) if len(self._sampler) >= fewest else None
            while seen is None and len(self._sampler) < most:
                check()
                self._sampler.add(self._slices.draw(1, dimension)[0])
                self._journal.tell(len(self._sampler), most, "lattices")
                seen = self._span(dimension) if len(self._sampler) >= fewest else None
            stage.figures.update(sites=len(self._sampler), directions=dimension)
            if seen is not None:
                stage.figures.update(width=seen.rank, gap=seen.gap)
        return seen

    def _span(self, dimension: int) -> LatticeSpan | None:
        return self._directions.span(self._sampler.jets().rescaled(self._slices.length_scale(dimension)))

    # -- the network on the slice ----------------------------------------------------------------------

    def _fit(self, seen: LatticeSpan) -> ValueFitResult | None:
        """Return the network on the slice, if one comes down to rounding."""
        with self._journal.stage("power method") as stage:
            found = self._directions.find(seen)
            stage.figures.update(found=len(found), needed=seen.rank, restarts=found.restarts)
        if len(found) == 0:
            return None
        with self._journal.stage("activation") as stage:
            fitter = self._fitter(seen, found)
            residuals = fitter.rank_activations(self._activations, self._rng)
            stage.figures["best"] = next(iter(residuals))
        for name in self._likely(residuals):
            fit = self._fit_one(seen, found, name)
            if fit is not None and self._fits(fit):
                self._evidence = replace(self._evidence, activation_residuals=residuals)
                return fit
        return None

    def _fit_one(self, seen: LatticeSpan, found: RankOneDirections, name: str) -> ValueFitResult | None:
        """Fit one activation; None if there is not even a start."""
        jets, restarts, options = seen.jets, found.restarts, self._options
        with self._journal.stage("truncation") as stage:
            seen, found = self._directions.sharpened(seen, found, get_activation(name))
            stage.figures.update(width=seen.rank, found=len(found), gap=seen.gap)
        fit = None
        while len(found) == seen.rank and seen.gap >= CLEAR_GAP:
            self._evidence = _evidence(seen, found, restarts)
            worst = options.hopeless_start if self._failures else options.poor_start
            fit = self._fit_values(self._fitter(seen, found), seen.rank, seen.dimension, name, worst)
            if fit is None or self._fits(fit):
                break
            # A unit may be missing that is weaker than the truncation of the others.
            more = self._directions.completed(jets, fit.model)
            if more is None:
                break
            seen, found = more
        return fit

    def _fitter(self, seen: LatticeSpan, found: RankOneDirections) -> SliceFitter:
        jets = seen.jets
        return self._fitter_of(
            found.directions, jet_samples(found.directions, jets.sites, jets.hessians, jets.thirds)
        )


def _evidence(seen: LatticeSpan, found: RankOneDirections, restarts: int) -> SmoothEvidence:
    return SmoothEvidence(
        spectrum=seen.span.singular_values,
        width=seen.rank,
        gap=seen.gap,
        hessians=seen.span.columns,
        found=len(found),
        restarts=restarts,
        misalignment=found.misalignment,
        rejected=found.rejected,
        rates=np.asarray(seen.space.contraction_rates(found.directions)),
    )
