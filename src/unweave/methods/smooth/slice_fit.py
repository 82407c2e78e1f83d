"""From the units' directions on a slice to the whole network there.

1. profiles: (s, b, a) of every unit from the derivatives at a few sites, for each possible activation;
2. what enters linearly, constant and perhaps skip, from values at random points;
3. Gauss-Newton on all parameters, on these values. The activation that comes down to rounding is the one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unweave.arrays import Array
from unweave.derivatives.lattice_jets import LatticeJets
from unweave.methods.shared.profiles.profiles import Profiles
from unweave.methods.shared.profiles.unit_fits import model_of, typical_profile
from unweave.methods.smooth.jet_profiles import JetSamples, fit_jet_profiles, jet_samples
from unweave.networks.activations import get_activation
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFit
from unweave.numerics.least_squares import Fit, LevenbergMarquardtOptions, levenberg_marquardt

_UNITS_THAT_VOTE = 64  # units on which activations are compared
_SKIP_HELPS, _SKIP_MAY_HELP = 0.03, 0.3  # ratios of residuals with and without a skip: there is one, perhaps
_SKIP_NEGLIGIBLE = 1e-9  # of the answers' spread per unit of input: then only the start had one
_STEPS = 60
_DAMPING_NEAR, _DAMPING_FAR, _NEAR = 1e-6, 1e-3, 1e-2  # by the start's residual


@dataclass(frozen=True, eq=False)
class SliceFit:
    """A network fitted to values on a slice, in its normalised coordinates."""

    model: NetworkParameters
    history: tuple[float, ...]
    """Root mean square residual, step by step."""
    condition: float
    error_bar: float
    """Largest standard error of a parameter."""
    prediction_error: float
    """Standard error of a prediction on the slice, on average."""


class SliceFitter:
    """Fits networks whose units point along ``directions`` (m, d) to what is known on a slice."""

    def __init__(self, directions: Array, jets: LatticeJets, noise: float) -> None:
        self._directions = directions
        self._noise = max(noise, float(np.finfo(np.float64).eps))
        self._samples: JetSamples = jet_samples(directions, jets.sites, jets.hessians, jets.thirds)
        self._profiles: dict[str, Profiles] = {}

    def rank_activations(self, names: tuple[str, ...], rng: np.random.Generator) -> dict[str, float]:
        """Typical misfit of the profiles for every activation, best first; nan if there is no choice."""
        if len(names) == 1:
            return {names[0]: np.nan}
        voters = np.sort(rng.permutation(len(self._directions))[:_UNITS_THAT_VOTE])
        samples = self._samples.only(voters)
        fitted = {name: fit_jet_profiles(samples, get_activation(name)) for name in names}
        # The median: a direction that is no unit's fits no activation.
        residuals = {name: float(np.median(profiles.residuals)) for name, profiles in fitted.items()}
        return dict(sorted(residuals.items(), key=lambda entry: entry[1]))

    def starts(self, name: str, points: Array, answers: Array) -> list[tuple[NetworkParameters, float]]:
        """Networks before the fit and what they leave, likeliest first: without or with a skip."""
        activation = get_activation(name)
        profiles = self._profiles[name] = fit_jet_profiles(self._samples, activation)
        return _with_linear_part(model_of(self._directions, profiles, activation), points, answers)

    def example(self, name: str) -> dict[str, Any]:
        """The typical unit's profile, as fields of `Evidence`; ``start`` has fitted it."""
        samples = self._samples
        return typical_profile(
            samples.projections, samples.second, self._profiles[name], get_activation(name), 2
        )

    def fit(
        self, start: NetworkParameters, points: Array, answers: Array, on_step: Callable[[int, float], None]
    ) -> SliceFit:
        """Gauss-Newton on all parameters from ``start``, on answers (n, K) at points (n, d)."""
        model, fit = self._minimise(start, points, answers, on_step)
        if model.skip is not None and np.abs(model.skip).max() <= _SKIP_NEGLIGIBLE:
            model, fit = self._minimise(replace(model, skip=None), points, answers, on_step)
        bar = np.inf
        if fit.covariance_diagonal is not None:
            bar = max(fit.rms, self._noise) * float(np.sqrt(fit.covariance_diagonal.max()))
        free = max(answers.size - model.size, 1)
        return SliceFit(model, fit.history, fit.condition, bar, self._noise * np.sqrt(model.size / free))

    def _minimise(
        self, start: NetworkParameters, points: Array, answers: Array, on_step: Callable[[int, float], None]
    ) -> tuple[NetworkParameters, Fit]:
        near = float(np.sqrt(np.mean((answers - start.values(points)) ** 2))) < _NEAR
        options = LevenbergMarquardtOptions(
            steps=_STEPS,
            damping=_DAMPING_NEAR if near else _DAMPING_FAR,
            floor=float(np.finfo(np.float64).eps),
            rounding=self._noise,
            acceleration=True,
        )
        problem = ValueFit(start, points, answers)
        fit = levenberg_marquardt(problem, start.to_vector(), options, on_step)
        return start.from_vector(fit.vector), fit


def _with_linear_part(
    model: NetworkParameters, points: Array, answers: Array
) -> list[tuple[NetworkParameters, float]]:
    """The model with the constant, and perhaps a skip, that fit the answers best, and what they leave."""
    remainder = answers - model.values(points)
    offset = remainder.mean(axis=0)
    columns = np.concatenate([points, np.ones((len(points), 1))], axis=1)
    linear = np.linalg.lstsq(columns, remainder, rcond=None)[0]
    plain, with_skip = (
        float(np.sqrt(np.mean(part**2))) for part in (remainder - offset, remainder - columns @ linear)
    )
    without = replace(model, biases=(model.biases[0], offset)), plain
    if with_skip > _SKIP_MAY_HELP * plain:
        return [without]
    skipping = replace(model, biases=(model.biases[0], linear[-1]), skip=linear[:-1]), with_skip
    return [skipping, without] if with_skip < _SKIP_HELPS * plain else [without, skipping]
