"""Rounded answers, bisected: every flip of the last digit is an exact equation.

A deterministic target that rounds to multiples of g answers y0 at x0 and y0 + g a little further uphill. The
point x* of the flip, found by halving along the line x0 + t u, satisfies

    T(f(x*))_k = y0_k + g/2

to the precision of x*, whatever the number of decimals: one bit per query. With more flips than parameters,
Gauss-Newton on these equations gives all parameters as exactly as if nothing had been rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.networks.error_bars import has_own_error_bars
from unweave.networks.parameters import NetworkParameters
from unweave.networks.value_fit import ValueFit
from unweave.numerics.least_squares import LevenbergMarquardtOptions, levenberg_marquardt
from unweave.targets.region import Region

_BRACKET_ULPS = 4.0  # length of the last bracket in units in the last place of the inputs: halving ends there
_AT_FACE = 1e-9  # of a side of the box: nearer to a face counts as on it


@dataclass(frozen=True, kw_only=True)
class BisectionOptions:
    """Where flips are looked for, and how many are fitted."""

    overshoot: float = 1.2
    """First point tried on a line, over the predicted distance of its flip."""
    growth: float = 1.6
    """Ratio of the next point's distance to the last one's."""
    tries: int = 12
    """Points tried on a line before it is given up."""
    nearest: float = 0.05
    """Least predicted distance of a flip, over the grid divided by the slope."""
    farthest: float = 8.0
    """Predicted distance, over the median one, beyond which a line is not worth its rows."""
    rows_before: float = 8.0
    """Rows per parameter fitted before flips are looked for."""
    per_parameter: float = 1.35
    """Flips fitted per parameter."""
    per_parameter_if_open: float = 2.3
    """The same where these left something open: few of them see a given unit with a kink."""
    fewest_per_parameter: float = 1.05
    """Flips per parameter without which averaging stands."""
    lines_per_flip: float = 1.1
    """Lines tried per flip wanted: some lead out of the region."""
    most_rows_per_flip: float = 2.0
    """Rows from which lines are laid per flip wanted; many outputs share few rows before."""
    exact_share: float = 1e-3
    """Residual, as a share of the grid, that flips leave of a right network that computes in float32."""


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

    @classmethod
    def joined(cls, parts: Sequence[Flips]) -> Flips:
        """Join several sets of flips."""
        return cls(
            np.concatenate([part.points for part in parts]),
            np.concatenate([part.outputs for part in parts]),
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.widths for part in parts]),
        )

    def selected(self, numbers: Array | float, n_outputs: int) -> Array:
        """Return (n, K): ``numbers`` (n,), or one number, at the output that flips, zeros elsewhere."""
        result = np.zeros((len(self.values), n_outputs))
        result[np.arange(len(result)), self.outputs] = numbers
        return result


def find_flips(
    ask: Callable[[Array], Array],
    model: NetworkParameters,
    region: Region,
    points: Array,
    answers: Array,
    grid: float,
    on_round: Callable[[int, int], None] | None = None,
    options: BisectionOptions | None = None,
) -> Flips:
    """Find flips near ``points`` (n, D) whose rounded ``answers`` (n, K) are known; ``model`` predicts where.

    All lines are halved together: one call of ``ask`` per bit. Lines that leave the region or on which the
    answer does not flip where it should are left out. Cost: about 2 + 45 rows per flip.
    """
    options = options or BisectionOptions()
    lines = _lines(model, region, points, answers, grid, options)

    def passed(rows: IntArray, at: Array) -> BoolArray:
        """Return whether the flip is nearer than ``at`` on these lines."""
        seen = ask(lines.at(rows, at))[np.arange(len(rows)), lines.outputs[rows]]
        return np.asarray(lines.signs[rows] * (seen - lines.levels[rows]) > grid / 2)

    low, high = np.zeros(len(points)), options.overshoot * lines.distances
    rows = _bracketed(lines, region, passed, low, high, options)
    scale = np.abs(points).max(axis=1)
    resolution = _BRACKET_ULPS * np.finfo(np.float64).eps * np.maximum(scale, 1.0)
    done, active = 0, rows
    while len(active):
        middle = (low[active] + high[active]) / 2
        beyond = passed(active, middle)
        inside = (low[active] < middle) & (middle < high[active])  # else float64 has nothing in between
        high[active[beyond]] = middle[beyond]
        low[active[~beyond]] = middle[~beyond]
        active = active[inside & ((high - low)[active] > resolution[active])]
        done += 1
        if on_round is not None:
            on_round(done, len(active))
    return Flips(
        lines.at(rows, (low[rows] + high[rows]) / 2),
        lines.outputs[rows],
        lines.levels[rows] + lines.signs[rows] * (grid / 2),
        high[rows] - low[rows],
    )


@dataclass(frozen=True, eq=False)
class _Lines:
    """Where flips are looked for: x + t u with t >= 0."""

    points: Array
    """(n, D) x"""
    directions: Array
    """(n, D) u, of length one where the line is usable"""
    distances: Array
    """(n,) t of the flip as the model predicts it"""
    outputs: IntArray
    """(n,) which output is watched"""
    signs: Array
    """(n,) 1 where it rises along the line, -1 where it falls"""
    levels: Array
    """(n,) its rounded value at x"""
    usable: BoolArray

    def at(self, rows: IntArray, t: Array) -> Array:
        return self.points[rows] + t[:, None] * self.directions[rows]


def _lines(
    model: NetworkParameters,
    region: Region,
    points: Array,
    answers: Array,
    grid: float,
    options: BisectionOptions,
) -> _Lines:
    """Lay lines along the model's gradient: uphill, but at the faces of a box the way that leads inside."""
    n, outputs = answers.shape
    chosen = np.arange(n) % outputs
    predicted, gradients = _output_gradients(model, points, chosen)
    uphill, downhill = (_inwards(sign * gradients, points, region) for sign in (1.0, -1.0))
    slopes = np.linalg.norm(uphill, axis=1)
    falls = np.linalg.norm(downhill, axis=1) > slopes
    uphill[falls] = downhill[falls]
    slopes = np.linalg.norm(uphill, axis=1)
    usable = slopes > 0
    divisor = np.where(usable, slopes, 1.0)
    levels, signs = answers[np.arange(n), chosen], np.where(falls, -1.0, 1.0)
    distances = signs * (levels + signs * (grid / 2) - predicted) / divisor
    distances = np.maximum(distances, options.nearest * grid / divisor)
    if usable.any():
        usable &= distances <= options.farthest * np.median(distances[usable])
    return _Lines(points, uphill / divisor[:, None], distances, chosen, signs, levels, usable)


def _inwards(directions: Array, points: Array, region: Region) -> Array:
    """Drop from ``directions`` (n, D) the inputs in which they lead out of the box from its faces."""
    bounds = region.normalised_bounds
    if bounds is None:
        return directions.copy()
    slack = _AT_FACE * (bounds[1] - bounds[0])
    blocked = np.where(directions > 0, points >= bounds[1] - slack, points <= bounds[0] + slack)
    return np.where(blocked, 0.0, directions)


def _bracketed(
    lines: _Lines,
    region: Region,
    passed: Callable[[IntArray, Array], BoolArray],
    low: Array,
    high: Array,
    options: BisectionOptions,
) -> IntArray:
    """Move ``low`` and ``high`` (n,) outwards until the flip lies between; return the lines where it does."""
    rows = np.flatnonzero(lines.usable)
    found = np.zeros(len(low), dtype=np.bool_)
    for _ in range(options.tries):
        rows = rows[region.contains(lines.at(rows, high[rows]))]
        if not len(rows):
            break
        beyond = passed(rows, high[rows])
        # Only the very next multiple makes the equation; from beyond it, halving goes back.
        found[rows[beyond]] = True
        rows = rows[~beyond]
        low[rows] = high[rows]
        high[rows] *= options.growth
    return np.flatnonzero(found)


@dataclass(frozen=True, eq=False)
class FlipFit:
    """A network fitted to flips."""

    model: NetworkParameters
    residual: float
    """Root mean square of what the equations are missed by"""
    standard_errors: Array | None
    """(P,) from that residual; None if the flips do not determine all parameters"""
    condition: float
    history: tuple[float, ...]
    equations: int


def fit_flips(model: NetworkParameters, flips: Flips) -> FlipFit:
    """Fit all parameters to the equations T(f(x*))_k = y*, one output of each row."""
    answers = flips.selected(flips.values, model.n_outputs)
    weights = flips.selected(1.0, model.n_outputs)
    rounding = float(np.finfo(np.float64).eps * np.abs(answers).max())
    options = LevenbergMarquardtOptions(
        damping=1e-9, rounding=rounding, conditioning=not has_own_error_bars(model)
    )
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


def _output_gradients(model: NetworkParameters, points: Array, chosen: IntArray) -> tuple[Array, Array]:
    """Return the chosen output (n,) of the model and its gradient (n, D) at each point."""
    states = model.forward(points)
    first = model.sensitivities(states.slopes)
    row = np.arange(len(points))
    gradient = first[0][row, chosen] @ model.weights[0].T
    if model.skip is not None:
        gradient = gradient + first[-1][row, chosen] @ model.skip.T
    return states.outputs[row, chosen], np.asarray(gradient)
