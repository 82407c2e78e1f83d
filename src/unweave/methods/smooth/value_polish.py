"""All parameters of units whose second derivative jumps, from values alone.

Differences across a kink say little about either side, so that gradients and Hessians only give a start for
such units. Their values depend on the parameters without jumps: least squares on values at random points
comes down to rounding from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from unweave.arrays import Array
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFitResult, fit_values

NEGLIGIBLE_SKIP = 1e-9
"""Entry of a skip, in spreads of the answers per unit of input, that is taken for zero."""


def polish_on_values(
    model: NetworkParameters,
    points: Array,
    answers: Array,
    noise: float,
    settled: float,
    on_step: Callable[[int, float], None],
) -> ValueFitResult:
    """Fit all parameters to answers (n, K) at points (n, d), without a skip if that leaves ``settled``."""
    best: ValueFitResult | None = None
    for with_skip in (False, True):
        start = _with_linear_parts(model, points, answers, with_skip)
        fit = fit_values(start, points, answers, noise, on_step)
        skip = fit.model.skip
        if skip is not None and np.abs(skip).max() <= NEGLIGIBLE_SKIP:
            fit = fit_values(replace(fit.model, skip=None), points, answers, noise, on_step)
        if best is None or fit.history[-1] < best.history[-1]:
            best = fit
        if best.history[-1] <= settled:
            break
    assert best is not None
    return best


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
