"""All parameters of units whose second derivative jumps, from values alone.

Differences across a kink say little about either side, so that gradients and Hessians only give a start for
such units. Their values depend on the parameters without jumps: least squares on values at random points
comes down to rounding from there. Where one unit started badly, it ends far off while the others nearly fit:
then a grid finds it again, along its own direction, in what the others leave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array
from unweave.methods.shared.value_search import NEGLIGIBLE_SKIP_SHARE
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFitResult, fit_values
from unweave.numerics.clock import check


@dataclass(frozen=True, kw_only=True)
class RenewalOptions:
    """When single units are searched for again."""

    nearly_fits: float = 0.05
    """Residual, in spreads of the answers, from which they are."""
    times: int = 3
    """Times that they are, at most."""
    strayed: float = 1e-3
    """1 - |cos| by which a unit has left the direction that Hessians show, which are good to 1e-5."""


RENEWALS = RenewalOptions()
UNIT_SCALES = np.geomspace(0.1, 5.0, 20)
"""Lengths of a unit's weights that are tried, in normalised inputs."""
UNIT_SHIFTS = np.linspace(-4.0, 4.0, 41)
"""Biases that are tried."""


def polish_on_values(
    model: NetworkParameters,
    points: Array,
    answers: Array,
    noise: float,
    settled: float,
    on_step: Callable[[int, float], None],
) -> ValueFitResult:
    """Fit all parameters to answers (n, K) at points (n, d), without a skip if that leaves ``settled``."""
    directions = model.weights[0] / np.linalg.norm(model.weights[0], axis=0)
    best: ValueFitResult | None = None
    for with_skip in (False, True):
        fit = fit_values(
            _with_linear_parts(model, points, answers, with_skip), points, answers, noise, on_step
        )
        fit = _without_stragglers(fit, directions, points, answers, noise, settled, on_step)
        skip = fit.model.skip
        if skip is not None and np.abs(skip).max() <= NEGLIGIBLE_SKIP_SHARE:
            fit = fit_values(replace(fit.model, skip=None), points, answers, noise, on_step)
        if best is None or fit.history[-1] < best.history[-1]:
            best = fit
        if best.history[-1] <= settled:
            break
    assert best is not None
    return best


def _without_stragglers(
    fit: ValueFitResult,
    directions: Array,
    points: Array,
    answers: Array,
    noise: float,
    settled: float,
    on_step: Callable[[int, float], None],
) -> ValueFitResult:
    """Find one unit after the other again, while that makes the fit better and it is not settled."""
    for _ in range(RENEWALS.times):
        if not settled < fit.history[-1] <= RENEWALS.nearly_fits:
            break
        again = _renewed(fit.model, directions, points, answers)
        other = fit_values(
            _with_linear_parts(again, points, answers, fit.model.skip is not None),
            points,
            answers,
            noise,
            on_step,
        )
        if not other.history[-1] < fit.history[-1]:
            break
        fit = other
    return fit


def _renewed(model: NetworkParameters, directions: Array, points: Array, answers: Array) -> NetworkParameters:
    """Find the units again that left their direction (d, m), one after the other in what the rest leaves."""
    (weights, outgoing), (biases, offset) = model.weights, model.biases
    length = np.linalg.norm(weights, axis=0)
    kept = np.abs(np.einsum("dm,dm->m", weights, directions)) / length
    strayed = (1 - kept > RENEWALS.strayed) | (length > UNIT_SCALES[-1] * 2)
    if not strayed.any():
        strayed[np.argmin(kept)] = True
    weights, biases, outgoing = weights.copy(), biases.copy(), outgoing.copy()
    outgoing[strayed] = 0.0
    open_units = list(np.flatnonzero(strayed))
    while open_units:
        check()
        model = replace(model, weights=(weights, outgoing), biases=(biases, offset))
        left = answers - model.values(points)
        left = left - left.mean(axis=0)
        found = [_best_unit(model, directions[:, unit], points, left) for unit in open_units]
        place = int(np.argmax([explained for explained, *_ in found]))
        unit, (_, scale, shift, outgoing_of_unit) = open_units.pop(place), found[place]
        weights[:, unit], biases[unit], outgoing[unit] = scale * directions[:, unit], shift, outgoing_of_unit
    return replace(model, weights=(weights, outgoing), biases=(biases, offset))


def _best_unit(
    model: NetworkParameters, direction: Array, points: Array, left: Array
) -> tuple[float, float, float, Array]:
    """Return how much of ``left`` (n, K) a unit along ``direction`` explains, its scale, bias and weights."""
    scales = np.repeat(np.concatenate([UNIT_SCALES, -UNIT_SCALES]), len(UNIT_SHIFTS))
    shifts = np.tile(UNIT_SHIFTS, 2 * len(UNIT_SCALES))
    shapes = model.activation((points @ direction)[:, None] * scales + shifts)
    shapes -= shapes.mean(axis=0)
    overlap, size = shapes.T @ left, np.einsum("ng,ng->g", shapes, shapes)
    explained = np.einsum("gk,gk->g", overlap, overlap)
    explained = np.divide(explained, size, out=np.zeros_like(size), where=size > 0)
    best = int(np.argmax(explained))
    return float(explained[best]), float(scales[best]), float(shifts[best]), overlap[best] / size[best]


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
