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
from unweave.methods.smooth.jet_profiles import JetProfileOptions
from unweave.methods.smooth.lattice_directions import (
    LatticeDirections,
    LatticeSpan,
    LatticeSpanOptions,
)
from unweave.methods.smooth.random_slice import RandomSlice, SliceOptions, lattice_step, slice_parameters
from unweave.methods.smooth.slice_extension import ExtensionOptions, extend
from unweave.methods.smooth.slice_fit import SliceFitOptions, SliceFitter
from unweave.methods.smooth.span_members import MemberFinder
from unweave.networks.activations import get_activation
from unweave.networks.mirrored_units import mirror_back
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFitResult
from unweave.numerics.clock import check
from unweave.subspace.collector import RankOneDirections
from unweave.subspace.hessian_span import CLEAR_GAP
from unweave.targets.region import Region


@dataclass(frozen=True, kw_only=True)
class LatticeOptions:
    """When a network is searched for through a slice, and when the search has succeeded or failed."""

    coarsest_noise: float = 1e-12
    """Largest noise of the answers, relative to their spread, at which third differences show a span."""
    fewest_inputs: int = 10
    """Inputs at which a slice begins to pay."""
    most_inputs: int = 4000
    """Number of inputs beyond which it is not: the slice is taken from a random rotation of all of them."""
    largest_fit: int = 6000
    """Largest number of parameters on a slice: Gauss-Newton is quick up to there."""
    failures: int = 3
    """Spans that end but lead to no network before the search gives up."""
    activations: int = 3
    """Activations tried at most."""
    rival_ratio: float = 10.0
    """Also try an activation whose profiles fit within this factor of the best one's."""
    poor_start: float = 1e-2
    """Residual of a start, in spreads of the answers, above which one more site is taken first, ..."""
    hopeless_start: float = 0.9
    """... and above which it is never fitted: it explains nothing."""
    largest_outgoing: float = 1e6
    """Outgoing weight, in spreads of the answers, of a profile that was mistaken for its far tail."""
    negligible_skip: float = 1e-9
    """Entry of a skip, in spreads of the answers per unit of input, that is taken for zero."""
    far_error: float = 5.0
    """Factor on the prediction error: rows far from the slice add up its errors and those outside it."""
    slices: SliceOptions = field(default_factory=SliceOptions)
    spans: LatticeSpanOptions = field(default_factory=LatticeSpanOptions)
    profiles: JetProfileOptions = field(default_factory=JetProfileOptions)
    fit: SliceFitOptions = field(default_factory=SliceFitOptions)
    extension: ExtensionOptions = field(default_factory=ExtensionOptions)


@dataclass(frozen=True, eq=False)
class LatticeResult:
    """A network in all normalised inputs, with its evidence."""

    model: NetworkParameters
    evidence: SmoothEvidence


class LatticeRoute:
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
        self._inputs, self._outputs, self._width = region.n_inputs, outputs, width
        self._noise = max(noise, float(np.finfo(np.float64).eps))
        self._activations, self._options = activations, options
        self._journal, self._rng = finder.journal, finder.rng
        longest = max(options.extension.shift, 3 * options.slices.longest_step)
        self._slices = RandomSlice(ask, region, longest * float(np.sqrt(self._inputs)), self._rng)
        self._directions = LatticeDirections(width, finder, options.spans, options.slices, options.profiles)
        self._failures = 0
        self._sampler = LatticeSampler(self._slices.ask, 1.0)
        self._points = np.zeros((0, 0))
        self._answers = np.zeros((0, outputs))
        self._evidence = SmoothEvidence()

    def run(self) -> LatticeResult | None:
        """Return the network, or None."""
        dimension = self._first_dimension() if self._slices.has_room(self._slices.least_margin) else None
        if dimension is not None:
            with self._journal.stage("step") as stage:
                step = lattice_step(self._slices, dimension, self._rng, self._options.slices)
                stage.figures["step"] = step
            # A known width is looked for on one side first; an unknown one needs a clear end of the spectrum.
            self._sampler = LatticeSampler(self._slices.ask, step, mirrored=self._width is None)
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
                    self._sampler.mirror()
            elif seen is not None:
                fewest = len(self._sampler) + 1
            else:
                dimension = self._affordable(dimension + 1)  # slices are nested: nothing is lost
        return None

    def _first_dimension(self) -> int | None:
        if self._width is None:
            return self._affordable(min(self._options.slices.fewest_directions, self._inputs))
        cost = self._options.slices.cheapest(self._inputs, self._width, self._outputs)
        return None if cost is None else self._affordable(cost.dimension)

    def _affordable(self, dimension: int) -> int | None:
        """Return the slice to look at next; None if there is none, or its fit would take too long."""
        width = self._options.slices.most_units(dimension) if self._width is None else self._width
        small = slice_parameters(width, dimension, self._outputs) <= self._options.largest_fit
        return dimension if dimension <= self._inputs and small else None

    # -- directions ------------------------------------------------------------------------------------

    def _sample(self, dimension: int, fewest: int) -> LatticeSpan | None:
        """Take lattices, at ``fewest`` sites or more, until their span ends; None if the slice hides it."""
        slices = self._options.slices
        shown = slices.most_units(dimension)
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
            stage.figures["best"] = best = next(iter(residuals))
        for name, residual in list(residuals.items())[: self._options.activations]:
            if name == best or residual < self._options.rival_ratio * residuals[best]:
                fit = self._fit_one(seen, found, name)
                if fit is not None and self._fits(fit):
                    self._evidence = replace(self._evidence, activation_residuals=residuals)
                    return fit
        return None

    def _fit_one(self, seen: LatticeSpan, found: RankOneDirections, name: str) -> ValueFitResult | None:
        """Fit one activation; None if there is not even a start."""
        jets, restarts = seen.jets, found.restarts
        with self._journal.stage("truncation") as stage:
            seen, found = self._directions.sharpened(seen, found, get_activation(name))
            stage.figures.update(width=seen.rank, found=len(found), gap=seen.gap)
        fit = None
        while len(found) == seen.rank and seen.gap >= CLEAR_GAP:
            self._evidence = _evidence(seen, found, restarts)
            fit = self._fit_values(self._fitter(seen, found), seen, name)
            if fit is None or self._fits(fit):
                break
            # A unit may be missing that is weaker than the truncation of the others.
            more = self._directions.completed(jets, fit.model)
            if more is None:
                break
            seen, found = more
        return fit

    def _fitter(self, seen: LatticeSpan, found: RankOneDirections) -> SliceFitter:
        options = self._options
        return SliceFitter(found.directions, seen.jets, self._noise, options.fit, options.profiles)

    def _fits(self, fit: ValueFitResult) -> bool:
        return fit.history[-1] <= self._evidence.residual_over_floor * self._noise

    def _fit_values(self, fitter: SliceFitter, seen: LatticeSpan, name: str) -> ValueFitResult | None:
        """Return the best of the fits to values from the starts that make sense."""
        best, options = None, self._options
        with self._journal.stage("slice fit") as stage:
            parameters = slice_parameters(seen.rank, seen.dimension, self._outputs)
            for start, residual in fitter.starts(name, *self._values(parameters, seen.dimension)):
                check()
                worst = options.hopeless_start if self._failures else options.poor_start
                if not residual <= worst or np.abs(start.weights[1]).max() > options.largest_outgoing:
                    continue
                points, answers = self._values(start.size, seen.dimension)
                fit = fitter.fit(
                    start, points, answers, lambda step, _: self._journal.tell(step, None, "steps")
                )
                if best is None or fit.history[-1] < best.history[-1]:
                    best = fit
                if self._fits(fit):
                    break
            if best is not None:
                stage.figures.update(parameters=best.model.size, residual=best.history[-1])
        self._evidence = replace(self._evidence, **fitter.example(name))
        return best

    def _values(self, parameters: int, d: int) -> tuple[Array, Array]:
        """Return random points of the slice, rescaled, and answers: enough to fit the parameters."""
        needed = self._options.slices.values_needed(parameters, self._outputs) - len(self._points)
        padding = d - self._points.shape[1]
        self._points = np.concatenate([self._points, np.zeros((len(self._points), padding))], axis=1)
        if needed > 0:
            new = self._slices.draw(needed, d)
            self._answers = np.concatenate([self._answers, self._slices.ask(new)])
            self._points = np.concatenate([self._points, new])
        return self._points / self._slices.length_scale(d), self._answers

    # -- all inputs ------------------------------------------------------------------------------------

    def _extend(self, fit: ValueFitResult) -> LatticeResult | None:
        unit = self._slices.length_scale(len(fit.model.weights[0]))
        skip = None if fit.model.skip is None else fit.model.skip / unit
        model = replace(fit.model, weights=(fit.model.weights[0] / unit, fit.model.weights[1]), skip=skip)
        with self._journal.stage("other inputs") as stage:
            extension = extend(
                model, self._slices, self._noise, self._options.extension, self._options.slices
            )
            stage.figures.update(
                sites=extension.sites, residual=extension.residual, condition=extension.condition
            )
        if extension.residual > self._evidence.residual_over_floor * self._noise:
            return None
        model = mirror_back(extension.model)
        if model.skip is not None and np.abs(model.skip).max() <= self._options.negligible_skip:
            model = replace(model, skip=None)
        error = float(np.hypot(fit.prediction_floor, extension.prediction_error))
        evidence = replace(
            self._evidence,
            fit_history=(*fit.history, max(fit.history[-1], extension.residual)),
            fit_floor=self._noise,
            prediction_floor=self._options.far_error * error,
            condition=max(fit.condition, extension.condition),
            parameter_error_bar=np.inf if fit.error_bar is None else max(fit.error_bar, extension.error_bar),
        )
        return LatticeResult(model, evidence)


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
