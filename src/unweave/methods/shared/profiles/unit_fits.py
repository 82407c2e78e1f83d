"""From directions and samples along them to a first network, for one activation or the best of several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unweave.arrays import Array, IntArray
from unweave.execution.executor import Executor, SerialExecutor
from unweave.methods.shared.profiles.profiles import (
    FITS_WELL,
    PROFILES,
    ProfileOptions,
    Profiles,
    fit_profiles,
    fit_profiles_from,
    grid_subset,
    in_turns,
    pooled,
    refine_profiles,
)
from unweave.networks.activations import Activation, get_activation
from unweave.networks.parameters import NetworkParameters
from unweave.subspace.symmetric import rank_one_coefficients

_PROFILE_CURVE_POINTS = 200  # of the fitted curve in a picture
_PROFILE_SAMPLES = 200  # kept for a picture, which shows no more
_PROFILE_CURVE_MARGIN = 0.05  # of the samples' range, by which the curve goes beyond them


def rank_activations(
    names: tuple[str, ...],
    projections: Array,
    samples: Array,
    order: int,
    rng: np.random.Generator,
    on_name: Callable[[int], None],
    executor: Executor | None = None,
    options: ProfileOptions = PROFILES,
) -> dict[str, float]:
    """Return the pooled misfit of every activation on some of the units; nan if there is no choice.

    Every activation is a task of ``executor`` (in this process by default).
    """
    if len(names) == 1:
        return {names[0]: np.nan}
    voters = np.sort(rng.permutation(projections.shape[1])[: options.voters])
    # In one layout of memory whoever computes: sums over strided arrays are rounded otherwise.
    few = np.ascontiguousarray(projections[:, voters]), np.ascontiguousarray(samples[:, voters])
    shared = _Ballot(*few, order, options)
    key = ("activations", shared.projections, shared.samples, order, repr(options))
    residuals: dict[str, float] = {}
    on_name(0)
    for group in in_turns(names):
        # The subsets are drawn before work is shared out.
        tasks = [(name, grid_subset(len(projections), rng, options)) for name in group]
        results = (executor or SerialExecutor()).map(_misfits_task, tasks, shared=shared, key=key)
        for (name, _), misfits in zip(tasks, results, strict=True):
            residuals[name] = pooled(misfits[0])
            on_name(len(residuals))
        if min(residuals.values()) <= FITS_WELL:
            break
    return residuals


@dataclass(frozen=True, eq=False)
class _Ballot:
    """The units on which activations are compared."""

    projections: Array
    samples: Array
    order: int
    options: ProfileOptions


def _misfits_task(ballot: _Ballot, task: tuple[str, IntArray]) -> tuple[Array]:
    """Return (m,) relative misfits of the units for one activation."""
    name, subset = task
    fitted = fit_profiles_from(
        subset, ballot.projections, ballot.samples, get_activation(name), ballot.order, ballot.options
    )
    return (fitted.residuals,)


def refit(
    projections: Array,
    samples: Array,
    activation: Activation,
    start: Profiles,
    rng: np.random.Generator,
    options: ProfileOptions = PROFILES,
) -> Profiles:
    """Refine the known profiles; fit from the grid those that do not fit and the units after them."""
    known = len(start.scales)
    refined = refine_profiles(projections[:, :known], samples[:, :known], activation, 2, start, options)
    misfit = max(options.poor_fit, options.poor_fit_ratio * float(np.median(refined.residuals)))
    poor = np.flatnonzero(refined.residuals > misfit)
    again = np.concatenate([poor, np.arange(known, projections.shape[1])])
    if len(again) == 0:
        return refined
    fresh = fit_profiles(projections[:, again], samples[:, again], activation, 2, rng, options)
    return refined.updated(again, fresh)


def model_of(directions: Array, profiles: Profiles, activation: Activation) -> NetworkParameters:
    """Make the network of these units, its linear part still zero; directions are rows (m, d)."""
    return NetworkParameters.shallow(
        activation,
        weights=directions.T * profiles.scales,
        biases=profiles.biases,
        outgoing=profiles.outgoing,
        offset=np.zeros(profiles.outgoing.shape[1]),
    )


def typical_profile(
    projections: Array, samples: Array, profiles: Profiles, activation: Activation, order: int
) -> dict[str, Any]:
    """Return the fields of `SpanEvidence` that show one unit; empty if there is none.

    The curve fitted to the samples is

        c(t) = a s^p g^(p)(s t + b)  (+ an affine function of t, for p = 0),        t = u . x

    of the unit whose relative misfit is the median one: neither the best nor the worst of them.

    Parameters
    ----------
    projections : (n, m)
        t of every unit at every site.
    samples : (n, m, K)
        What was sampled there; the output with the largest outgoing weight is shown.
    order
        Order p of the derivative that was sampled, 0 or 2.
    """
    if not len(profiles.scales) or not len(projections):
        return {}
    unit = int(np.argsort(profiles.residuals)[len(profiles.residuals) // 2])
    output = int(np.argmax(np.abs(profiles.outgoing[unit])))
    ascending = np.argsort(projections[:, unit])
    if len(ascending) > _PROFILE_SAMPLES:
        ascending = ascending[np.linspace(0, len(ascending) - 1, _PROFILE_SAMPLES).astype(np.int64)]
    t, c = projections[ascending, unit], samples[ascending, unit, output]
    scale, bias = float(profiles.scales[unit]), float(profiles.biases[unit])
    amplitude = float(profiles.outgoing[unit, output])

    def profile(at: Array) -> Array:
        return np.asarray(amplitude * scale**order * activation.jet(scale * at + bias, order)[order])

    margin = _PROFILE_CURVE_MARGIN * float(np.ptp(t))
    grid = np.linspace(t[0] - margin, t[-1] + margin, _PROFILE_CURVE_POINTS)
    curve = profile(grid)
    if order == 0:
        design = np.stack([t, np.ones_like(t)], axis=1)
        slope, constant = np.linalg.lstsq(design, c - profile(t), rcond=None)[0]
        curve = curve + slope * grid + constant
    return {
        "profile_samples": np.stack([t, c]),
        "profile_curve": np.stack([grid, curve]),
        "profile_order": order,
    }


def hessian_profile(
    sites: Array, hessians: Array, directions: Array, profiles: Profiles, activation: Activation
) -> dict[str, Any]:
    """Return the same from Hessians (n, K, p) at sites (n, d), for unit directions (m, d)."""
    samples = rank_one_coefficients(directions, hessians)
    return typical_profile(sites @ directions.T, samples, profiles, activation, 2)
