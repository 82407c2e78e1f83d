"""One smooth hidden layer from few queries: lattices on a random slice, then the other inputs.

1. a random slice of d < D directions, just enough that m units are determined there;
2. third-order jets on simplex lattices at a few sites of it, until their span ends; its rank-one members are
   the units' directions (`unweave.derivatives.lattice_jets`);
3. the network on the slice, exactly, from profiles and values there (`unweave.methods.smooth.slice_fit`);
4. the weights' components outside, exactly, one row per parameter (`unweave.methods.smooth.slice_extension`).

    rows   about  m d^2/6  +  1.1 m (d + 2)  +  1.1 m (D - d)        (one output; d^2/3 if mirrored)

What is tried is checked by its own residual, which is at rounding or orders of magnitude above; a failure
mirrors the lattices or adds sites; while no span ends, the slice is widened. No row is paid twice.

It needs float64 answers: third differences of coarser ones drown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.lattice_jets import LatticeSampler
from unweave.execution.executor import Executor
from unweave.methods.smooth.evidence import SmoothEvidence
from unweave.methods.smooth.lattice_directions import (
    Lattice,
    LatticeDirections,
    LatticeSpan,
    lattice_span,
    members_space,
)
from unweave.methods.smooth.random_slice import (
    FEWEST_SITES,
    LONGEST_STEP,
    SMALLEST,
    RandomSlice,
    cheapest_slice,
    lattice_step,
    lattices_needed,
    most_units,
    slice_parameters,
    values_needed,
)
from unweave.methods.smooth.slice_extension import SHIFT, extend
from unweave.methods.smooth.slice_fit import SliceFit, SliceFitter
from unweave.networks.activations import get_activation
from unweave.networks.mirrored_units import mirror_back
from unweave.networks.parameters import NetworkParameters
from unweave.search.journal import Journal
from unweave.subspace.collector import RankOneDirections
from unweave.subspace.hessian_span import CLEAR_GAP
from unweave.subspace.power_method import PowerMethodOptions
from unweave.targets.region import Region

FEWEST_INPUTS = 10
"""Inputs from which a slice pays."""
LARGEST_FIT = 6000
"""Parameters on a slice up to which Gauss-Newton there is quick."""

_LIFTED = 5.0  # errors of the slice and of the other inputs add up where rows lie far from both
_MOST_FAILURES = 3  # spans that ended but did not lead to a network
_RIVALS = 3  # activations tried at most,
_RIVAL = 10.0  # if their profiles fit at most this much worse than the best
_ABOVE_FLOOR = 30.0  # times the noise: residual of a network that is not the one
_POOR_START = 1e-2  # of the answers' spread: rather than from here, fit after one more site,
_HOPELESS_START = 0.9  # unless that was tried; here, nothing is explained
_LARGEST_OUTGOING = 1e6  # of the answers' spread: beyond, a profile was mistaken for its far tail
_SKIP_NEGLIGIBLE = 1e-9  # of the answers' spread per unit of input, after mirroring


@dataclass(frozen=True, eq=False)
class LatticeResult:
    """A network in all normalised inputs, with its evidence."""

    model: NetworkParameters
    evidence: SmoothEvidence


class LatticeRoute:
    """Runs the route once; ``run`` returns None if this is no such network, or not in sight."""

    def __init__(
        self,
        ask: Callable[[Array], Array],
        region: Region,
        outputs: int,
        noise: float,
        width: int | None,
        activations: tuple[str, ...],
        journal: Journal,
        rng: np.random.Generator,
        power_method: PowerMethodOptions | None = None,
        executor: Executor | None = None,
    ) -> None:
        self._inputs, self._outputs, self._width = region.n_inputs, outputs, width
        self._noise = max(noise, float(np.finfo(np.float64).eps))
        self._activations = activations
        self._journal, self._rng = journal, rng
        reach = max(SHIFT, 3 * LONGEST_STEP) * float(np.sqrt(self._inputs))
        self._slices = RandomSlice(ask, region, reach, rng)
        self._directions = LatticeDirections(width, journal, rng, power_method, executor)
        self._step, self._failures = 0.0, 0
        self._sampler = LatticeSampler(self._slices.ask, 1.0)
        self._points = np.zeros((0, 0))
        self._answers = np.zeros((0, outputs))
        self._evidence = SmoothEvidence()

    def run(self) -> LatticeResult | None:
        """The network, or None."""
        dimension = self._first_dimension() if self._slices.has_room(self._slices.least_margin) else None
        if dimension is not None:
            with self._journal.stage("step") as stage:
                self._step = lattice_step(self._slices, dimension, self._rng)
                stage.figures["step"] = self._step
            # A known width is looked for on one side first; an unknown one needs a clear end of the spectrum.
            self._sampler = LatticeSampler(self._slices.ask, self._step, mirrored=self._width is None)
        fewest = 0
        while dimension is not None and self._failures < _MOST_FAILURES:
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
            return self._affordable(min(SMALLEST, self._inputs))
        cost = cheapest_slice(self._inputs, self._width, self._outputs)
        return None if cost is None else self._affordable(cost.dimension)

    def _affordable(self, dimension: int) -> int | None:
        """The slice to look at next, or None if there is none, or its fit would take too long."""
        width = most_units(dimension) if self._width is None else self._width
        small = slice_parameters(width, dimension, self._outputs) <= LARGEST_FIT
        return dimension if dimension <= self._inputs and small else None

    # -- directions ------------------------------------------------------------------------------------

    def _sample(self, dimension: int, fewest: int) -> LatticeSpan | None:
        """Lattices, at ``fewest`` sites or more, until their span ends; None if the slice cannot show it."""
        wanted = most_units(dimension) if self._width is None else min(self._width, most_units(dimension))
        most = max(fewest, lattices_needed(wanted, dimension, self._outputs))
        fewest = most if self._width is not None else max(fewest, FEWEST_SITES)
        with self._journal.stage("lattices") as stage:
            self._sampler.widen_to(dimension)
            seen = self._span(dimension) if len(self._sampler) >= fewest else None
            while seen is None and len(self._sampler) < most:
                self._sampler.add(self._slices.draw(1, dimension)[0])
                self._journal.tell(len(self._sampler), most, "lattices")
                seen = self._span(dimension) if len(self._sampler) >= fewest else None
            stage.figures.update(sites=len(self._sampler), directions=dimension)
            if seen is not None:
                stage.figures.update(width=seen.rank, gap=seen.gap)
        return seen

    def _span(self, dimension: int) -> LatticeSpan | None:
        return lattice_span(self._sampler.jets().rescaled(self._slices.length_scale(dimension)), self._width)

    # -- the network on the slice ----------------------------------------------------------------------

    def _fit(self, seen: LatticeSpan) -> SliceFit | None:
        """The network on the slice, if one comes down to rounding."""
        with self._journal.stage("power method") as stage:
            found = self._directions.find(seen)
            stage.figures.update(found=len(found), needed=seen.rank, restarts=found.restarts)
        if len(found) == 0:
            return None
        with self._journal.stage("activation") as stage:
            fitter = SliceFitter(found.directions, seen.jets, self._noise)
            residuals = fitter.rank_activations(self._activations, self._rng)
            stage.figures["best"] = best = next(iter(residuals))
        for name, residual in list(residuals.items())[:_RIVALS]:
            if name == best or residual < _RIVAL * residuals[best]:
                fit = self._fit_one(seen, found, name)
                if fit is not None and self._fits(fit):
                    self._evidence = replace(self._evidence, activation_residuals=residuals)
                    return fit
        return None

    def _fit_one(self, seen: LatticeSpan, found: RankOneDirections, name: str) -> SliceFit | None:
        """The fit for one activation; None if there is not even a start."""
        jets, restarts = seen.jets, found.restarts
        lattice = Lattice(self._step / self._slices.length_scale(seen.dimension), self._sampler.mirrored)
        with self._journal.stage("truncation") as stage:
            seen, found = self._directions.sharpened(seen, found, get_activation(name), lattice)
            stage.figures.update(width=seen.rank, found=len(found), gap=seen.gap)
        fit = None
        while len(found) == seen.rank and seen.gap >= CLEAR_GAP:
            self._evidence = _evidence(seen, found, restarts)
            fit = self._fit_values(SliceFitter(found.directions, seen.jets, self._noise), seen, name)
            if fit is None or self._fits(fit):
                break
            # So weak a unit may be missing that its share of the truncation of the others hid it.
            more = self._directions.completed(jets, fit.model, lattice)
            if more is None:
                break
            seen, found = more
        return fit

    def _fits(self, fit: SliceFit) -> bool:
        return fit.history[-1] <= _ABOVE_FLOOR * self._noise

    def _fit_values(self, fitter: SliceFitter, seen: LatticeSpan, name: str) -> SliceFit | None:
        """The best of the fits to values from the starts that make sense."""
        best = None
        with self._journal.stage("slice fit") as stage:
            parameters = slice_parameters(seen.rank, seen.dimension, self._outputs)
            for start, residual in fitter.starts(name, *self._values(parameters, seen.dimension)):
                worst = _HOPELESS_START if self._failures else _POOR_START
                if not residual <= worst or np.abs(start.weights[1]).max() > _LARGEST_OUTGOING:
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
        """Random points of the slice, rescaled, and answers, enough to fit so many parameters."""
        needed = values_needed(parameters, self._outputs) - len(self._points)
        padding = d - self._points.shape[1]
        self._points = np.concatenate([self._points, np.zeros((len(self._points), padding))], axis=1)
        if needed > 0:
            new = self._slices.draw(needed, d)
            self._answers = np.concatenate([self._answers, self._slices.ask(new)])
            self._points = np.concatenate([self._points, new])
        return self._points / self._slices.length_scale(d), self._answers

    # -- all inputs ------------------------------------------------------------------------------------

    def _extend(self, fit: SliceFit) -> LatticeResult | None:
        unit = self._slices.length_scale(len(fit.model.weights[0]))
        skip = None if fit.model.skip is None else fit.model.skip / unit
        model = replace(fit.model, weights=(fit.model.weights[0] / unit, fit.model.weights[1]), skip=skip)
        with self._journal.stage("other inputs") as stage:
            extension = extend(model, self._slices, self._noise)
            stage.figures.update(
                sites=extension.sites, residual=extension.residual, condition=extension.condition
            )
        if extension.residual > _ABOVE_FLOOR * self._noise:
            return None
        model = mirror_back(extension.model)
        if model.skip is not None and np.abs(model.skip).max() <= _SKIP_NEGLIGIBLE:
            model = replace(model, skip=None)
        evidence = replace(
            self._evidence,
            fit_history=(*fit.history, max(fit.history[-1], extension.residual)),
            fit_floor=self._noise,
            prediction_floor=_LIFTED * float(np.hypot(fit.prediction_error, extension.prediction_error)),
            condition=max(fit.condition, extension.condition),
            parameter_error_bar=max(fit.error_bar, extension.error_bar),
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
        rates=np.asarray(members_space(seen).contraction_rates(found.directions)),
    )
