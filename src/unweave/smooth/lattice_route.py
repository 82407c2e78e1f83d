"""One smooth hidden layer from few queries: lattices on a random slice, then the other inputs.

1. a random slice of d < D directions, just enough that m neurons are determined there;
2. third-order jets on simplex lattices at a few sites of it, until their span ends; its rank-one members are
   the neurons' directions (`unweave.derivatives.lattice_jets`);
3. the network on the slice, exactly, from profiles and values there (`unweave.smooth.slice_fit`);
4. the weights' components outside, exactly, one row per parameter (`unweave.smooth.slice_extension`).

    rows   about  m d^2/6  +  1.1 m (d + 2)  +  1.1 m (D - d)        (one output; d^2/3 if mirrored)

What is tried is checked by its own residual, which is at rounding or orders of magnitude above; a failure
first mirrors the lattices, then adds sites, then widens the slice, so that no row is paid twice.

It needs float64 answers: third differences of coarser ones drown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unweave.access.region import Region
from unweave.arrays import Array
from unweave.candidate import Evidence
from unweave.derivatives.lattice_jets import LatticeJets, LatticeSampler
from unweave.execution.executor import Executor
from unweave.journal import Journal
from unweave.smooth.hessian_route import acceptance_threshold, find_directions, width_shown
from unweave.smooth.linear_part import mirror_back
from unweave.smooth.random_slice import (
    FEWEST_SITES,
    SMALLEST,
    RandomSlice,
    cheapest_slice,
    lattices_needed,
    most_neurons,
    slice_parameters,
    values_needed,
)
from unweave.smooth.shallow_model import ShallowModel
from unweave.smooth.slice_extension import SHIFT, extend
from unweave.smooth.slice_fit import SliceFit, SliceFitter
from unweave.subspace.hessian_span import CLEAR_GAP, HessianSpan, hessian_span
from unweave.subspace.power_method import PowerMethodOptions
from unweave.subspace.rank_one_space import RankOneSpace
from unweave.subspace.symmetric import symmetric_packing

FEWEST_INPUTS = 10
"""Inputs from which a slice pays."""
LARGEST_FIT = 6000
"""Parameters on a slice up to which Gauss-Newton there is quick."""

_STEP = 4.5e-4  # times sqrt(D): truncation and rounding of mirrored third differences are then alike
_EXTRA_SITES = 2  # lattices added when a span that ended did not lead to a network
_RIVALS = 3  # activations tried
_ABOVE_FLOOR = 30.0  # times the noise: residual of a network that is not the one
_HOPELESS_START = 0.9  # of the answers' spread: a start that explains nothing
_LARGEST_OUTGOING = 1e6  # of the answers' spread: beyond, a profile was mistaken for its far tail
_SKIP_NEGLIGIBLE = 1e-9  # of the answers' spread per unit of input, after mirroring


@dataclass(frozen=True, eq=False)
class LatticeResult:
    """A network in all normalised inputs, with its evidence."""

    model: ShallowModel
    evidence: Evidence


@dataclass(frozen=True, eq=False)
class _Span:
    jets: LatticeJets
    span: HessianSpan
    rank: int
    gap: float


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
        self._activations, self._power_method, self._executor = activations, power_method, executor
        self._journal, self._rng = journal, rng
        root = float(np.sqrt(self._inputs))
        self._slices = RandomSlice(ask, region, max(3 * _STEP, SHIFT) * root, rng)
        # A known width is looked for on one side first; an unknown one needs a clear end of the spectrum.
        self._sampler = LatticeSampler(self._slices.ask, _STEP * root, mirrored=width is None)
        self._points = np.zeros((0, 0))
        self._answers = np.zeros((0, outputs))
        self._evidence = Evidence()

    def run(self) -> LatticeResult | None:
        """The network, or None."""
        dimension = self._first_dimension()
        fewest, retries = 0, 0
        while dimension is not None:
            seen = self._sample(dimension, fewest)
            if seen is not None:
                fitted = self._fit(seen)
                if fitted is not None:
                    return self._extend(fitted)
            if not self._sampler.mirrored:
                with self._journal.stage("mirrored lattices"):
                    self._sampler.mirror()
            elif seen is not None and retries < _EXTRA_SITES:
                retries, fewest = retries + 1, len(self._sampler) + 1
            else:
                dimension, retries = self._affordable(dimension + 1), 0  # slices are nested: nothing is lost
        return None

    def _first_dimension(self) -> int | None:
        if self._width is None:
            return self._affordable(min(SMALLEST, self._inputs))
        cost = cheapest_slice(self._inputs, self._width, self._outputs)
        return None if cost is None else self._affordable(cost.dimension)

    def _affordable(self, dimension: int) -> int | None:
        """The slice to look at next, or None if there is none, or its fit would take too long."""
        width = most_neurons(dimension) if self._width is None else self._width
        small = slice_parameters(width, dimension, self._outputs) <= LARGEST_FIT
        return dimension if dimension <= self._inputs and small else None

    # -- directions ------------------------------------------------------------------------------------

    def _sample(self, dimension: int, fewest: int) -> _Span | None:
        """Lattices until their span ends, at ``fewest`` sites or more, or None if the slice cannot show it."""
        wanted = most_neurons(dimension) if self._width is None else min(self._width, most_neurons(dimension))
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

    def _span(self, dimension: int) -> _Span | None:
        jets = self._sampler.jets().rescaled(self._slices.unit(dimension))
        members = jets.members()
        span = hessian_span(members)
        rank, gap = width_shown(span, self._width)
        enough = len(members) >= rank + 2 and len(jets) >= FEWEST_SITES
        if gap < CLEAR_GAP or rank > most_neurons(dimension) or not enough:
            return None
        return _Span(jets, span, rank, gap)

    def _directions(self, seen: _Span) -> Array | None:
        """(m, d) rank-one members of the span, or None if some are missing."""
        d = seen.jets.sites.shape[1]
        options = self._power_method or PowerMethodOptions()
        with self._journal.stage("power method") as stage:
            found = find_directions(
                seen.span, seen.rank, d, self._journal, self._rng, options, executor=self._executor
            )
            restarts = found.restarts
            if len(found) < seen.rank and self._power_method is None:
                # Weak neurons lie farther from the span than most, but still within its own error.
                loose = replace(options, min_objective=1 - acceptance_threshold(seen.gap))
                found = find_directions(
                    seen.span, seen.rank, d, self._journal, self._rng, loose, found.directions, self._executor
                )
                restarts += found.restarts
            stage.figures.update(found=len(found), needed=seen.rank, restarts=restarts)
        if len(found) < seen.rank:
            return None
        space = RankOneSpace(seen.span.basis(seen.rank), symmetric_packing(d))
        self._evidence = Evidence(
            spectrum=seen.span.singular_values,
            width=seen.rank,
            gap=seen.gap,
            hessians=seen.span.columns,
            found=len(found),
            restarts=restarts,
            misalignment=found.misalignment,
            rejected=found.rejected,
            rates=np.asarray(space.contraction_rates(found.directions)),
        )
        return found.directions

    # -- the network on the slice ----------------------------------------------------------------------

    def _fit(self, seen: _Span) -> SliceFit | None:
        """The network on the slice, if one comes down to rounding."""
        directions = self._directions(seen)
        if directions is None:
            return None
        fitter = SliceFitter(directions, seen.jets, self._noise)
        with self._journal.stage("activation") as stage:
            residuals = fitter.rank_activations(self._activations, self._rng)
            stage.figures["best"] = next(iter(residuals))
        self._evidence = replace(self._evidence, activation_residuals=residuals)
        with self._journal.stage("slice fit") as stage:
            for name in list(residuals)[:_RIVALS]:
                fit = self._fit_one(fitter, name, seen)
                if fit is not None:
                    stage.figures.update(
                        activation=name,
                        parameters=fit.model.size,
                        residual=fit.history[-1],
                        steps=len(fit.history) - 1,
                    )
                    if fit.history[-1] <= _ABOVE_FLOOR * self._noise:
                        self._evidence = replace(self._evidence, **fitter.example(name))
                        return fit
        return None

    def _fit_one(self, fitter: SliceFitter, name: str, seen: _Span) -> SliceFit | None:
        d = seen.jets.sites.shape[1]
        points, answers = self._values(slice_parameters(seen.rank, d, self._outputs), d)
        start, residual = fitter.start(name, points, answers)
        if not residual <= _HOPELESS_START or np.abs(start.outgoing).max() > _LARGEST_OUTGOING:
            return None
        points, answers = self._values(start.size, d)
        return fitter.fit(
            start, points, answers, lambda step, _: self._journal.tell(step, None, "steps")
        )

    def _values(self, parameters: int, d: int) -> tuple[Array, Array]:
        """Random points of the slice, rescaled, and answers, enough to fit so many parameters."""
        needed = values_needed(parameters, self._outputs) - len(self._points)
        padding = d - self._points.shape[1]
        self._points = np.concatenate([self._points, np.zeros((len(self._points), padding))], axis=1)
        if needed > 0:
            new = self._slices.draw(needed, d)
            self._answers = np.concatenate([self._answers, self._slices.ask(new)])
            self._points = np.concatenate([self._points, new])
        return self._points / self._slices.unit(d), self._answers

    # -- all inputs ------------------------------------------------------------------------------------

    def _extend(self, fit: SliceFit) -> LatticeResult | None:
        unit = self._slices.unit(len(fit.model.weights))
        skip = None if fit.model.skip is None else fit.model.skip / unit
        model = replace(fit.model, weights=fit.model.weights / unit, skip=skip)
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
            prediction_floor=float(np.hypot(fit.prediction_error, extension.prediction_error)),
            condition=max(fit.condition, extension.condition),
            parameter_error_bar=max(fit.error_bar, extension.error_bar),
        )
        return LatticeResult(model, evidence)
