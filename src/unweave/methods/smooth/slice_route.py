"""A network on a random slice of the inputs, from the units' directions there to all inputs.

What finds the directions differs from route to route; the fit of values on the slice and the other inputs are
the same for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.stencils import Jets, forward_jets
from unweave.methods.smooth.evidence import SmoothEvidence
from unweave.methods.smooth.jet_profiles import JetProfileOptions, JetSamples
from unweave.methods.smooth.random_slice import RandomSlice, SliceOptions
from unweave.methods.smooth.slice_extension import ExtensionOptions, extend
from unweave.methods.smooth.slice_fit import (
    SliceData,
    SliceFitOptions,
    SliceFitter,
    SliceStars,
    SliceValues,
)
from unweave.networks.mirrored_units import mirror_back
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFitResult
from unweave.numerics.clock import check
from unweave.search import Journal
from unweave.targets.region import Region


@dataclass(frozen=True, kw_only=True)
class SliceRouteOptions:
    """How a network is fitted on a slice, and carried over to all inputs."""

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
    profiles: JetProfileOptions = field(default_factory=JetProfileOptions)
    fit: SliceFitOptions = field(default_factory=SliceFitOptions)
    extension: ExtensionOptions = field(default_factory=ExtensionOptions)


@dataclass(frozen=True, eq=False)
class SliceResult:
    """A network in all normalised inputs, with its evidence."""

    model: NetworkParameters
    evidence: SmoothEvidence


class SliceRoute:
    """Holds a slice, what was asked there at random, and the evidence."""

    def __init__(
        self,
        ask: Callable[[Array], Array],
        region: Region,
        outputs: int,
        noise: float,
        activations: tuple[str, ...],
        journal: Journal,
        rng: np.random.Generator,
        options: SliceRouteOptions,
    ) -> None:
        self._inputs, self._outputs = region.n_inputs, outputs
        self._noise = max(noise, float(np.finfo(np.float64).eps))
        self._activations, self._options = activations, options
        self._journal, self._rng = journal, rng
        longest = max(options.extension.shift, 3 * options.slices.longest_step)
        self._slices = RandomSlice(ask, region, longest * float(np.sqrt(self._inputs)), rng)
        self._points = np.zeros((0, 0))
        self._answers = np.zeros((0, outputs))
        self._stars: Jets | None = None
        self._evidence = SmoothEvidence()

    def _likely(self, residuals: dict[str, float]) -> list[str]:
        """Return the activations to try, of those ranked by their residuals."""
        options, best = self._options, next(iter(residuals))
        first = list(residuals.items())[: options.activations]
        return [name for name, left in first if name == best or left < options.rival_ratio * residuals[best]]

    def _fitter_of(self, directions: Array, samples: JetSamples) -> SliceFitter:
        options = self._options
        return SliceFitter(directions, samples, self._noise, options.fit, options.profiles)

    def _fits(self, fit: ValueFitResult) -> bool:
        return fit.history[-1] <= self._evidence.residual_over_floor * fit.floor

    def _fit_values(
        self, fitter: SliceFitter, width: int, dimension: int, name: str, worst: float
    ) -> ValueFitResult | None:
        """Return the best of the fits to values from the starts that leave no more than ``worst``."""
        best, options = None, self._options
        with self._journal.stage("slice fit") as stage:
            data = self._data(width, dimension)
            for start, residual in fitter.starts(name, data.points, data.answers):
                check()
                if not residual <= worst or np.abs(start.weights[1]).max() > options.largest_outgoing:
                    continue
                data = self._data(start.width, dimension, start.skip is not None)
                fit = fitter.fit(start, data, lambda step, _: self._journal.tell(step, None, "steps"))
                if best is None or fit.history[-1] < best.history[-1]:
                    best = fit
                if self._fits(fit):
                    break
            if best is not None:
                stage.figures.update(parameters=best.model.size, residual=best.history[-1])
        self._evidence = replace(self._evidence, **fitter.example(name))
        return best

    def _data(self, width: int, d: int, skip: bool = False) -> SliceData:
        """Return answers in rescaled coordinates of the slice, enough to fit all parameters."""
        if self._options.slices.fits_slopes(width, d, self._outputs):
            return SliceStars(self._sloped(width, d, skip), self._noise)
        return SliceValues(*self._values(width, d, skip), self._noise)

    def _sloped(self, width: int, d: int, skip: bool) -> Jets:
        """Return values and slopes at random sites."""
        unit, slices = self._slices.length_scale(d), self._options.slices
        known = 0 if self._stars is None or self._stars.sites.shape[1] != d else len(self._stars)
        needed = slices.stars_needed(width, d, self._outputs, skip) - known
        if needed > 0:
            sites = self._slices.draw(needed, d, spread=slices.star_spread) / unit
            step = slices.star_step(self._inputs) / unit
            new = forward_jets(lambda points: self._slices.ask(unit * points), sites, step)
            self._stars = Jets.concatenate([self._stars, new]) if known and self._stars is not None else new
        assert self._stars is not None
        return self._stars

    def _values(self, width: int, d: int, skip: bool = False) -> tuple[Array, Array]:
        """Return random points of the slice, rescaled, and answers: enough to fit all parameters."""
        needed = self._options.slices.values_needed(width, d, self._outputs, skip) - len(self._points)
        padding = d - self._points.shape[1]
        self._points = np.concatenate([self._points, np.zeros((len(self._points), padding))], axis=1)
        if needed > 0:
            new = self._slices.draw(needed, d)
            self._answers = np.concatenate([self._answers, self._slices.ask(new)])
            self._points = np.concatenate([self._points, new])
        return self._points / self._slices.length_scale(d), self._answers

    # -- all inputs ------------------------------------------------------------------------------------

    def _extend(self, fit: ValueFitResult) -> SliceResult | None:
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
        # Slopes leave more of their own noise in predictions than values do.
        floor = self._noise if fit.floor <= self._noise else fit.prediction_floor
        if extension.residual > self._evidence.residual_over_floor * floor:
            return None
        model = mirror_back(extension.model)
        if model.skip is not None and np.abs(model.skip).max() <= self._options.negligible_skip:
            model = replace(model, skip=None)
        error = float(np.hypot(fit.prediction_floor, extension.prediction_error))
        evidence = replace(
            self._evidence,
            fit_history=(*fit.history, max(fit.history[-1], extension.residual)),
            fit_floor=fit.floor,
            prediction_floor=self._options.far_error * error,
            condition=max(fit.condition, extension.condition),
            parameter_error_bar=np.inf if fit.error_bar is None else max(fit.error_bar, extension.error_bar),
        )
        return SliceResult(model, evidence)
