"""From the units' directions on a slice to the whole network there.

1. Fit (s, b, a) of every unit to the derivatives at a few sites, for each possible activation.
2. Fit what enters linearly, the constant and perhaps a skip, to values at random points.
3. Fit all parameters to these values, by Gauss-Newton. The right activation comes down to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.derivatives.sobolev_fit import SobolevFit
from unweave.derivatives.stencils import Jets
from unweave.methods.shared.profiles.profiles import FITS_WELL, Profiles, in_turns
from unweave.methods.shared.profiles.unit_fits import model_of, typical_profile
from unweave.methods.smooth.jet_profiles import (
    JetProfileOptions,
    JetSamples,
    fit_jet_profiles,
    profile_valleys,
)
from unweave.networks.activations import get_activation
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFit, ValueFitResult, suited_to
from unweave.numerics.least_squares import (
    Fit,
    LeastSquares,
    LevenbergMarquardtOptions,
    levenberg_marquardt,
)


@dataclass(frozen=True, kw_only=True)
class SliceFitOptions:
    """How all parameters on a slice are fitted to values."""

    skip_helps: float = 0.03
    """Residual with a skip over that without one, below which the skip is likelier than not."""
    skip_may_help: float = 0.3
    """The same, below which a fit with a skip is tried."""
    negligible_skip: float = 1e-9
    """Entry of a skip, in spreads of the answers per unit of input, that is taken for zero."""
    steps: int = 60
    """Gauss-Newton steps at most."""
    near: float = 1e-2
    """Residual of a start, in spreads of the answers, below which little damping is needed."""
    damping_near: float = 1e-6
    """First damping of a start below this residual."""
    damping_far: float = 1e-3
    """First damping of any other start."""
    slope_tolerance: float = 1e-2
    """Relative residual of a solve for slopes: their truncation is left out of its products."""
    slope_gain: float = 0.3
    """Gain of a step on slopes below which, a few times in a row, units are too much alike for it."""
    settled: float = 20.0
    """Residual of slopes over what noise leaves, from which on a step that gains little is the last, ..."""
    last_ratio: float = 0.5
    """... and what such a step leaves of the residual."""


@dataclass(frozen=True, eq=False)
class SliceValues:
    """Answers (n, K) at points (n, d) of a slice."""

    points: Array
    answers: Array
    noise: float
    """Standard deviation of an answer."""

    @property
    def floor(self) -> float:
        """Residual that noise leaves."""
        return self.noise

    @property
    def equations(self) -> int:
        """Number of equations."""
        return int(self.answers.size)

    def problem(self, model: NetworkParameters) -> LeastSquares:
        """Return the least squares for networks like ``model``."""
        return ValueFit(model, self.points, self.answers)

    def schedule(
        self, model: NetworkParameters, schedule: LevenbergMarquardtOptions, options: SliceFitOptions
    ) -> LevenbergMarquardtOptions:
        """Return how these are solved."""
        rounding = float(np.finfo(np.float64).eps)
        return suited_to(model, replace(schedule, floor=rounding, rounding=self.noise, acceleration=True))


@dataclass(frozen=True, eq=False)
class SliceStars:
    """Values and slopes at sites of a slice: as many equations as rows, whose products cost far less."""

    jets: Jets
    noise: float
    """Standard deviation of an answer."""

    @property
    def points(self) -> Array:
        """Sites (n, d)."""
        return self.jets.sites

    @property
    def answers(self) -> Array:
        """Values (n, K) there."""
        return self.jets.values

    @property
    def floor(self) -> float:
        """Residual that noise leaves."""
        return self.noise * self.jets.gradient_noise

    @property
    def equations(self) -> int:
        """Number of equations."""
        return int(self.jets.values.size + self.jets.gradients.size)

    def problem(self, model: NetworkParameters) -> LeastSquares:
        """Return the least squares for networks like ``model``."""
        return SobolevFit(model, (self.jets,))

    def schedule(
        self, model: NetworkParameters, schedule: LevenbergMarquardtOptions, options: SliceFitOptions
    ) -> LevenbergMarquardtOptions:
        """Return how these are solved."""
        return replace(
            schedule,
            floor=self.floor,
            inner_tolerance=options.slope_tolerance,
            worthwhile=options.slope_gain,
            last_ratio=options.last_ratio,
            last_below=options.settled * self.floor,
        )


SliceData = SliceValues | SliceStars


class SliceFitter:
    """Fits networks whose units point along ``directions`` (m, d) to what is known on a slice."""

    def __init__(
        self,
        directions: Array,
        samples: JetSamples,
        noise: float,
        options: SliceFitOptions,
        profiles: JetProfileOptions,
    ) -> None:
        self._directions, self._options, self._profile_options = directions, options, profiles
        self._noise = max(noise, float(np.finfo(np.float64).eps))
        self._samples = samples
        self._profiles: dict[str, Profiles] = {}

    def rank_activations(self, names: tuple[str, ...], rng: np.random.Generator) -> dict[str, float]:
        """Return the median misfit of the profiles per activation, best first; nan if there is no choice."""
        if len(names) == 1:
            return {names[0]: np.nan}
        voters = np.sort(rng.permutation(len(self._directions))[: self._profile_options.voters])
        options = self._profile_options
        residuals: dict[str, float] = {}
        for turn, group in enumerate(in_turns(names)):
            samples = self._samples.only(voters[: options.further_voters] if turn else voters)
            for name in group:
                fitted = fit_jet_profiles(samples, get_activation(name), options)
                # The median: a direction that is no unit's fits no activation.
                residuals[name] = float(np.median(fitted.residuals))
            if min(residuals.values()) <= FITS_WELL:
                break
        return dict(sorted(residuals.items(), key=lambda entry: entry[1]))

    def starts(self, name: str, points: Array, answers: Array) -> list[tuple[NetworkParameters, float]]:
        """Return networks before the fit and their residuals, likeliest first: without or with a skip."""
        activation = get_activation(name)
        profiles = self._profiles[name] = fit_jet_profiles(self._samples, activation, self._profile_options)
        model = model_of(self._directions, profiles, activation)
        return _with_linear_part(model, points, answers, self._options)

    def example(self, name: str) -> dict[str, Any]:
        """Return the typical unit's profile as fields of `SmoothEvidence`; ``starts`` has fitted it."""
        samples = self._samples
        return typical_profile(
            samples.projections, samples.derivatives[2], self._profiles[name], get_activation(name), 2
        )

    def fit(
        self, start: NetworkParameters, data: SliceData, on_step: Callable[[int, float], None]
    ) -> ValueFitResult:
        """Fit all parameters from ``start`` to ``data``."""
        model, fit = self._minimise(start, data, on_step)
        if model.skip is not None and np.abs(model.skip).max() <= self._options.negligible_skip:
            model, fit = self._minimise(replace(model, skip=None), data, on_step)
        return ValueFitResult.of(model, fit, data.floor, data.equations)

    def _minimise(
        self, start: NetworkParameters, data: SliceData, on_step: Callable[[int, float], None]
    ) -> tuple[NetworkParameters, Fit]:
        options = self._options
        near = float(np.sqrt(np.mean((data.answers - start.values(data.points)) ** 2))) < options.near
        damping = options.damping_near if near else options.damping_far
        schedule = LevenbergMarquardtOptions(steps=options.steps, damping=damping)
        schedule = data.schedule(start, schedule, options)
        fit = levenberg_marquardt(data.problem(start), start.to_vector(), schedule, on_step)
        return start.from_vector(fit.vector), fit


class ChoosingFitter(SliceFitter):
    """Lets values choose where a unit's few samples have several minima."""

    def starts(self, name: str, points: Array, answers: Array) -> list[tuple[NetworkParameters, float]]:
        """Return the units that explain the answers best, with the outgoing weights that do, then others."""
        activation = get_activation(name)
        valleys = profile_valleys(self._samples, activation, self._profile_options)
        profiles = self._profiles[name] = valleys.best(self._samples, activation)
        units = points @ self._directions.T
        values = activation(valleys.scales * units[:, :, None] + valleys.biases)  # (n, m, candidates)
        chosen = np.zeros(len(profiles.scales), dtype=np.int64)
        every = np.arange(len(chosen))

        def outgoing(choice: IntArray) -> tuple[Array, float]:
            columns = np.concatenate([values[:, every, choice], np.ones((len(points), 1))], axis=1)
            solution = np.linalg.lstsq(columns, answers, rcond=None)[0]
            return solution, float(np.sqrt(np.mean((answers - columns @ solution) ** 2)))

        solution, residual = outgoing(chosen)
        for unit in np.argsort(-profiles.residuals):  # the worst first
            for candidate in range(1, valleys.scales.shape[1]):
                other = np.where(every == unit, candidate, chosen)
                better, left = outgoing(other)
                if left < residual:
                    chosen, solution, residual = other, better, left
        scales, biases = valleys.scales[every, chosen], valleys.biases[every, chosen]
        weights = self._directions.T * scales
        model = NetworkParameters.shallow(activation, weights, biases, solution[:-1], solution[-1])
        plain = model_of(self._directions, profiles, activation)
        return [(model, residual), *_with_linear_part(plain, points, answers, self._options)]


def _with_linear_part(
    model: NetworkParameters, points: Array, answers: Array, options: SliceFitOptions
) -> list[tuple[NetworkParameters, float]]:
    """Add the constant, and perhaps a skip, that fit the answers best; return the models and residuals."""
    remainder = answers - model.values(points)
    offset = remainder.mean(axis=0)
    columns = np.concatenate([points, np.ones((len(points), 1))], axis=1)
    linear = np.linalg.lstsq(columns, remainder, rcond=None)[0]
    plain, with_skip = (
        float(np.sqrt(np.mean(part**2))) for part in (remainder - offset, remainder - columns @ linear)
    )
    without = replace(model, biases=(model.biases[0], offset)), plain
    if with_skip > options.skip_may_help * plain:
        return [without]
    skipping = replace(model, biases=(model.biases[0], linear[-1]), skip=linear[:-1]), with_skip
    return [skipping, without] if with_skip < options.skip_helps * plain else [without, skipping]
