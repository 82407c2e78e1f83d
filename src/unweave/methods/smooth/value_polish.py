"""All parameters of units whose second derivative jumps, from values alone.

Differences across a kink say little about either side, so that gradients and Hessians only give a start for
such units. Their values depend on the parameters without jumps: least squares on values at random points
comes down to rounding from there. Where one unit started badly, or none was seen where there is one, it is
found in what the others leave (`missing_unit`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.value_search import NEGLIGIBLE_SKIP_SHARE
from unweave.networks.missing_unit import MissingUnitOptions, missing_unit
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFitResult, fit_values


@dataclass(frozen=True, kw_only=True)
class RenewalOptions:
    """When single units are searched for again."""

    nearly_fits: float = 0.05
    """Residual, in spreads of the answers, from which they are."""
    times: int = 6
    """Times that they are, at most."""
    directions: int = 60
    """Random directions in which a unit is sought besides its own."""
    better: float = 0.5
    """Part of the residual to which a renewal must bring it down."""
    longest: float = 10.0
    """Length of a unit's weights, in normalised inputs, from which it has gone astray."""


RENEWALS = RenewalOptions()


def polish_on_values(
    model: NetworkParameters,
    points: Array,
    answers: Array,
    noise: float,
    settled: float,
    rng: np.random.Generator,
    on_step: Callable[[int, float], None],
) -> ValueFitResult:
    """Fit all parameters to answers (n, K) at points (n, d), without a skip if that leaves ``settled``."""
    directions = model.weights[0] / np.linalg.norm(model.weights[0], axis=0)
    best: ValueFitResult | None = None
    for with_skip in (False, True):
        fit = fit_values(
            _with_linear_parts(model, points, answers, with_skip), points, answers, noise, on_step
        )
        fit = _repaired(fit, directions, points, answers, noise, settled, rng, on_step)
        skip = fit.model.skip
        if skip is not None and np.abs(skip).max() <= NEGLIGIBLE_SKIP_SHARE:
            fit = fit_values(replace(fit.model, skip=None), points, answers, noise, on_step)
        if best is None or fit.history[-1] < best.history[-1]:
            best = fit
        if best.history[-1] <= settled:
            break
    assert best is not None
    return best


def _repaired(
    fit: ValueFitResult,
    directions: Array,
    points: Array,
    answers: Array,
    noise: float,
    settled: float,
    rng: np.random.Generator,
    on_step: Callable[[int, float], None],
) -> ValueFitResult:
    """Find the unit that strayed most again, or one that is missing, while that makes the fit better."""
    for _ in range(RENEWALS.times):
        if not settled < fit.history[-1] <= RENEWALS.nearly_fits:
            break
        for strayed in (_most_strayed(fit.model, directions), None):
            kept, begun, options = fit.model, directions, MissingUnitOptions()
            if strayed is not None:
                others = np.arange(kept.width) != strayed
                kept = _with_linear_parts(kept.keep(others), points, answers, kept.skip is not None)
                begun = np.hstack([directions[:, others], directions[:, [strayed]]])
                options = MissingUnitOptions(directions=RENEWALS.directions)
            unit = missing_unit(kept, points, answers, rng, begun[:, kept.width :], options)
            if unit is None:
                continue
            if strayed is None:
                begun = np.hstack([begun, unit.weights[:, None] / np.linalg.norm(unit.weights)])
            again = fit_values(unit.added_to(kept), points, answers, noise, on_step)
            if again.history[-1] < RENEWALS.better * fit.history[-1]:
                fit, directions = again, begun
                break
        else:
            break
    return fit


def _most_strayed(model: NetworkParameters, directions: Array) -> int:
    """Return the unit that ran away, or left its direction (d, m) most."""
    length = np.linalg.norm(model.weights[0], axis=0)
    kept = np.abs(np.einsum("dm,dm->m", model.weights[0], directions)) / length
    return int(np.argmin(np.where(length > RENEWALS.longest, -1.0, kept)))


def _with_linear_parts(
    model: NetworkParameters, points: Array, answers: Array, with_skip: bool
) -> NetworkParameters:
    """Give ``model`` the outgoing weights, the constant and perhaps the skip that fit best."""
    width = model.width
    states = model.activation(points @ model.weights[0] + model.biases[0])
    columns = [states, np.ones((len(points), 1)), *([points] if with_skip else [])]
    design = np.concatenate(columns, axis=1)
    solution: Array = np.asarray(np.linalg.lstsq(design, answers, rcond=None)[0], dtype=np.float64)
    return replace(
        model,
        weights=(model.weights[0], solution[:width]),
        biases=(model.biases[0], solution[width]),
        skip=solution[width + 1 :] if with_skip else None,
    )
