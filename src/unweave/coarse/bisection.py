"""Rounded answers, bisected: every flip of the last digit is an exact equation.

A deterministic target that rounds to multiples of g answers y0 at x0 and y0 + g a little further uphill. The
point x* of the flip, found by halving along the line x0 + t u, satisfies

    T(f(x*))_k = y0_k + g/2

to the precision of x*, whatever the number of decimals: one bit per query. With more flips than parameters,
Gauss-Newton on these equations gives all parameters as exactly as if nothing had been rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unweave.access.region import Region
from unweave.arrays import Array, IntArray
from unweave.deep.layered_model import LayeredModel
from unweave.deep.value_fit import ValueFit
from unweave.optimize import LevenbergMarquardtOptions, levenberg_marquardt

_OVERSHOOT = 1.2  # times the predicted distance of the flip, the first point that is tried
_FURTHER = 1.6  # factor of the next ones
_TRIES = 12  # after which a line is given up
_RESOLUTION = 4.0  # units in the last place of the inputs at which halving ends
_FARTHEST = 8.0  # distance, in predicted ones' median, beyond which a line is not worth it


@dataclass(frozen=True, eq=False)
class Flips:
    """Points at which a rounded answer flips."""

    points: Array
    """(n, D) normalised inputs"""
    outputs: IntArray
    """(n,) whose answer flips there"""
    values: Array
    """(n,) what that output is before rounding"""
    widths: Array
    """(n,) length of the last bracket"""

    def selected(self, numbers: Array | float, n_outputs: int) -> Array:
        """(n, K) with ``numbers`` (n,), or one number, at the output that flips, and zeros elsewhere."""
        result = np.zeros((len(self.values), n_outputs))
        result[np.arange(len(result)), self.outputs] = numbers
        return result


def find_flips(
    ask: Callable[[Array], Array],
    model: LayeredModel,
    region: Region,
    points: Array,
    answers: Array,
    grid: float,
    on_round: Callable[[int, int], None] | None = None,
) -> Flips:
    """Flips near ``points`` (n, D), whose rounded ``answers`` (n, K) are known; ``model`` predicts where.

    All lines are halved together: one call of ``ask`` per bit. Lines that leave the region or on which the
    answer does not flip where it should are left out. Cost: about 2 + 45 rows per flip.
    """
    n, outputs = answers.shape
    chosen = np.arange(n) % outputs
    predicted, gradients = _output_gradients(model, points, chosen)
    slope = np.linalg.norm(gradients, axis=1)
    usable = slope > 0
    towards = gradients / np.where(usable, slope, 1.0)[:, None]
    level = answers[np.arange(n), chosen]
    # Uphill to the next multiple, or downhill where the output cannot rise further.
    distance = (level + grid / 2 - predicted) / np.where(usable, slope, 1.0)
    distance = np.maximum(distance, 0.05 * grid / np.where(usable, slope, 1.0))
    usable &= distance <= _FARTHEST * np.median(distance[usable]) if usable.any() else usable
    rows = np.flatnonzero(usable)
    low = np.zeros(n)
    high = _OVERSHOOT * distance
    bracketed = np.zeros(n, dtype=np.bool_)
    for _ in range(_TRIES):
        trial = points[rows] + high[rows, None] * towards[rows]
        inside = region.contains(trial)
        rows, trial = rows[inside], trial[inside]
        if not len(rows):
            break
        seen = ask(trial)[np.arange(len(rows)), chosen[rows]]
        above = seen > level[rows] + grid / 2
        # Only the very next multiple makes the equation; from beyond it, go back.
        bracketed[rows[above]] = True
        low[rows[~above]] = high[rows[~above]]
        high[rows[~above]] *= _FURTHER
        rows = rows[~above]
    rows = np.flatnonzero(bracketed)
    scale = np.abs(points).max(axis=1)
    resolution = _RESOLUTION * np.finfo(np.float64).eps * np.maximum(scale, 1.0)
    done = 0
    active = rows
    while len(active):
        middle = (low[active] + high[active]) / 2
        seen = ask(points[active] + middle[:, None] * towards[active])[np.arange(len(active)), chosen[active]]
        above = seen > level[active] + grid / 2
        high[active[above]] = middle[above]
        low[active[~above]] = middle[~above]
        active = active[(high - low)[active] > resolution[active]]
        done += 1
        if on_round is not None:
            on_round(done, len(active))
    at = (low[rows] + high[rows]) / 2
    return Flips(
        points[rows] + at[:, None] * towards[rows],
        chosen[rows],
        level[rows] + grid / 2,
        high[rows] - low[rows],
    )


@dataclass(frozen=True, eq=False)
class FlipFit:
    """A network fitted to flips."""

    model: LayeredModel
    residual: float
    """Root mean square of what the equations are missed by"""
    standard_errors: Array | None
    """(P,) from that residual; None if the flips do not determine all parameters"""
    condition: float
    history: tuple[float, ...]
    equations: int


def fit_flips(model: LayeredModel, flips: Flips) -> FlipFit:
    """Fit all parameters to the equations T(f(x*))_k = y*, one output of each row."""
    answers = flips.selected(flips.values, model.n_outputs)
    weights = flips.selected(1.0, model.n_outputs)
    rounding = float(np.finfo(np.float64).eps * np.abs(answers).max())
    options = LevenbergMarquardtOptions(damping=1e-9, rounding=rounding)
    with np.errstate(over="ignore", invalid="ignore"):  # a fit that runs away ends with a large residual
        fit = levenberg_marquardt(ValueFit(model, flips.points, answers, weights), model.to_vector(), options)
    one_output = float(np.sqrt(answers.shape[1]))  # the mean went over all outputs, of which one counts
    residual = fit.rms * one_output
    free = max(len(answers) - model.size, 1)
    errors = None
    if fit.covariance_diagonal is not None:
        errors = residual * np.sqrt(len(answers) / free * fit.covariance_diagonal)
    history = tuple(value * one_output for value in fit.history)
    return FlipFit(model.from_vector(fit.vector), residual, errors, fit.condition, history, len(answers))


def _output_gradients(model: LayeredModel, points: Array, chosen: IntArray) -> tuple[Array, Array]:
    """The chosen output (n,) of the model and its gradient (n, D) at each point."""
    states = model.forward(points)
    first = model.sensitivities(states.slopes)
    row = np.arange(len(points))
    gradient = first[0][row, chosen] @ model.weights[0].T
    if model.skip is not None:
        gradient = gradient + first[-1][row, chosen] @ model.skip.T
    return states.outputs[row, chosen], np.asarray(gradient)
