"""How many units a fit needs: what each one is worth, and fits with fewer or more.

Leaving out unit i and refitting the linear numbers alone raises the squared residual by

    |H_i|^2 / ((F^T F)^{-1})_ii        (F: the units' features, polynomial projected out),

which is small for a surplus unit, whether its height is small or another unit lies on the same hyperplane. In
an exact fit such units are left out while a refit still reaches the floor. With noise, units go while that
lowers the Bayesian information criterion

    BIC = n K log(RSS) + log(n K) (number of parameters),

whose price of (d + K) log(n K) per unit is above the part of the noise that a unit placed at will can absorb.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg import qr, solve_triangular

from unweave.arrays import Array, IntArray
from unweave.numerics.clock import out_of_time
from unweave.numerics.variable_projection.problem import (
    FEATURE_RANK,
    ProjectedFit,
    ProjectedProblem,
    ProjectionOptions,
    unit_columns,
)

OnStep = Callable[[int, float], None]

_SURPLUS = 1e-8  # relative residual that units left out together may cause in an exact fit
_WORTH_A_TRY = 1e-3  # and up to which leaving out one is tried with a refit
_PARALLEL = 0.98  # cosine of two units (w, b) above which leaving out one of them is tried, whatever it costs
_TRIAL_STEPS = 15
_LARGEST_LITTLE = 0.01  # of the answers: units worth more are not left out without a refit
_IDLE = 0.03  # of the residual: a unit worth less is replaced after a stall
_BLOWN_UP = 100.0  # times the median size of a contribution: one of two units that nearly cancel
_LARGEST_CONDITION = 1e12  # of features of length one whose inverse still tells what is dependent
_SPANNED = 1e-8  # part of a feature that others do not span, below which they do
_LOST_SHARE = 1e-3  # size of a turned inverse, over its size when it was formed, below which digits are lost
_LENGTHS = (0.3, 3.0)  # of random smooth units, in inputs of unit variance
_CANDIDATES = 30  # random units looked at for one that is added


class Elimination:
    """Units that are left out one by one, the linear numbers refitted, without a look at the rows.

    Of F = Q R, with columns of length one, W = R^{-1} and Q^T y are kept: heights are W Q^T y. A reflection
    that turns row i of W into a multiple of e_k turns Q, too, and unit i alone has a part in its column k. So
    leaving out unit i leaves out that row and that column, which takes m^2 operations. W is formed anew once
    it has become so much smaller that digits are lost; while columns are too nearly dependent for it, R is
    made a triangle again each time, which takes m^3.
    """

    def __init__(self, problem: ProjectedProblem, units: Array) -> None:
        point = problem.at(units)
        sizes = np.linalg.norm(point.triangle, axis=0)
        self._triangle = point.triangle / np.where(sizes > 0, sizes, 1.0)
        self._right, self._answers = point.right, problem.size
        self._inverse: Array | None = None
        self._turned = self._right
        self._least = 0.0  # size of W below which it is formed anew
        self.residual = point.size
        """Relative residual of the units that are left."""
        self.left: IntArray = np.arange(units.shape[1])
        """Which units are left."""
        self._in_triangle = self.left

    def costs(self) -> Array:
        """Relative residual (m,) that leaving out each of the units left alone would add, in quadrature."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self._inverse is None or np.linalg.norm(self._inverse) < self._least:
                self._form_anew()
            inverse = self._inverse
            if inverse is None:
                inverse = _inverse(self._triangle)
                heights = np.linalg.lstsq(self._triangle, self._right, rcond=FEATURE_RANK)[0]
            else:
                heights = inverse @ self._turned
            leverage = np.sqrt((inverse**2).sum(axis=1))
            cost = np.linalg.norm(heights, axis=1) / leverage / self._answers
        return np.where(np.isfinite(cost), cost, 0.0)

    def _form_anew(self) -> None:
        """Make R a triangle of the units left, and W its inverse if that has digits."""
        if len(self._in_triangle) > len(self.left):
            kept = self._triangle[:, np.isin(self._in_triangle, self.left)]
            turn, self._triangle = np.linalg.qr(kept)
            self._right, self._in_triangle = turn.T @ self._right, self.left
        inverse = _inverse(self._triangle)
        size = float(np.linalg.norm(inverse))
        well = size * np.linalg.norm(self._triangle) <= _LARGEST_CONDITION
        self._inverse, self._turned = (inverse, self._right) if well else (None, self._right)
        self._least = _LOST_SHARE * size

    def leave_out(self, place: int, cost: float) -> None:
        """Leave out the unit at ``place`` of those left, which adds ``cost``."""
        if self._inverse is not None:
            mirror = self._inverse[place].copy()
            last = int(np.abs(mirror).argmax())  # no digits cancel there
            mirror[last] += np.copysign(np.linalg.norm(mirror), mirror[last])
            mirror *= np.sqrt(2) / np.linalg.norm(mirror)
            inverse = self._inverse - np.outer(self._inverse @ mirror, mirror)
            self._inverse = np.delete(np.delete(inverse, place, axis=0), last, axis=1)
            turned = self._turned - np.outer(mirror, mirror @ self._turned)
            self._turned = np.delete(turned, last, axis=0)
        self.left = np.delete(self.left, place)
        self.residual = float(np.hypot(self.residual, cost))

    def cheapest(self, most: Callable[[float], float]) -> Iterator[int]:
        """Leave out the cheapest unit while its cost is at most ``most(residual)``, and yield its number."""
        while len(self.left) > 1 and not out_of_time():
            costs = self.costs()
            place = int(costs.argmin())
            if costs[place] > most(self.residual):
                return
            yield int(self.left[place])
            self.leave_out(place, float(costs[place]))


def _inverse(triangle: Array) -> Array:
    return np.asarray(solve_triangular(triangle, np.eye(len(triangle)), check_finite=False))


def removal_costs(problem: ProjectedProblem, units: Array) -> Array:
    """Relative residual (m,) that leaving out each unit alone would add, in quadrature."""
    return Elimination(problem, units).costs()


def prune_exact(
    problem: ProjectedProblem, fit: ProjectedFit, floor: float, on_step: OnStep | None = None
) -> ProjectedFit:
    """Fewest units that still fit to ``floor``, starting from a fit that does."""
    options = ProjectionOptions(floor=floor / 100, steps=40, patience=3)
    if problem.polynomial_residual <= floor:
        return problem.minimise(fit.units[:, :0], options, on_step)
    best = problem.minimise(_without_cheap(problem, fit.units, _SURPLUS), options, on_step)
    if best.residual > floor:
        best = fit
    brief = ProjectionOptions(floor=floor / 100, steps=_TRIAL_STEPS, patience=2)
    while best.units.shape[1] > 1 and not out_of_time():
        for unit in _doubtful(problem, best.units):
            trial = problem.minimise(np.delete(best.units, unit, axis=1), brief, on_step)
            if trial.residual <= floor:
                best = trial
                break
        else:
            break
    return best


def without_idle(problem: ProjectedProblem, fit: ProjectedFit) -> Array:
    """The units of a nearly exact fit less those that are worth little.

    Little is the square root of the residual: half way, in digits, between it and what true units are worth.
    """
    return _without_cheap(problem, fit.units, min(np.sqrt(fit.residual), _LARGEST_LITTLE))


def without_useless(problem: ProjectedProblem, units: Array, share: float) -> Array:
    """``units`` (d+1, m) less the cheapest one while it costs at most ``share`` of what all of them leave.

    Units that are roughly right leave much, and each is needed for more than that; those that are nowhere
    near a true one are not.
    """
    units = _independent(problem, units)
    gone = list(Elimination(problem, units).cheapest(lambda residual: share * residual))
    return np.delete(units, gone, axis=1)


def _independent(problem: ProjectedProblem, units: Array) -> Array:
    """Return ``units`` (d+1, m) less those whose features others span: those met again, and dead ones."""
    triangle = problem.at(units).triangle
    sizes = np.linalg.norm(triangle, axis=0)
    parts, order = qr(triangle / np.where(sizes > 0, sizes, 1.0), mode="r", pivoting=True, check_finite=False)
    return units[:, np.sort(order[np.abs(np.diag(parts)) > _SPANNED])]


def _without_cheap(problem: ProjectedProblem, units: Array, most: float) -> Array:
    """``units`` (d+1, m) less the cheapest one while its relative residual is at most ``most``."""
    return np.delete(units, list(Elimination(problem, units).cheapest(lambda residual: most)), axis=1)


def _doubtful(problem: ProjectedProblem, units: Array) -> list[int]:
    """Units that may be one too many: those almost on another's hyperplane, then the cheapest one."""
    costs = removal_costs(problem, units)
    directions = units / np.linalg.norm(units, axis=0)
    cosines = np.abs(directions.T @ directions) - np.eye(units.shape[1])
    order = [int(unit) for unit in np.argsort(costs)]
    near = [unit for unit in order if cosines[unit].max() > _PARALLEL]
    cheapest = [order[0]] if order[0] not in near and costs[order[0]] <= _WORTH_A_TRY else []
    return near + cheapest


def information(problem: ProjectedProblem, fit: ProjectedFit) -> float:
    """BIC of a fit, up to a constant."""
    outputs, width = problem.rest.shape[1], fit.units.shape[1]
    numbers = problem.rows * outputs
    parameters = width * (fit.units.shape[0] - 1 + outputs) + problem.polynomial.count * outputs
    return float(
        2 * numbers * np.log(max(fit.residual, np.finfo(np.float64).tiny)) + parameters * np.log(numbers)
    )


def prune_noisy(
    problem: ProjectedProblem, fit: ProjectedFit, width: int | None, on_step: OnStep | None = None
) -> ProjectedFit:
    """Leave out the cheapest unit and refit: down to ``width``, or while the information criterion falls."""
    options = ProjectionOptions(steps=25, patience=2)
    best = fit
    while best.units.shape[1] > (0 if width is None else width) and not out_of_time():
        cheapest = int(removal_costs(problem, best.units).argmin())
        trial = problem.minimise(np.delete(best.units, cheapest, axis=1), options, on_step)
        if width is None and information(problem, trial) > information(problem, best):
            break
        best = trial
    return best


def repaired(problem: ProjectedProblem, fit: ProjectedFit, count: int, rng: np.random.Generator) -> Array:
    """Units (d+1, count) to go on with after a stall: without those that nearly cancel, with new ones.

    New units are the best of many random ones, by what they would explain of the residual.
    """
    units = fit.units
    if units.shape[1] > 2:
        sizes = np.linalg.norm(fit.heights, axis=1)
        blown_up = sizes > _BLOWN_UP * np.median(sizes)
        drop = removal_costs(problem, units) < _IDLE * max(fit.residual, _SURPLUS)
        if blown_up.any():
            drop[np.flatnonzero(blown_up)[0]] = True
        units = units[:, ~drop]
    missing = max(count - units.shape[1], 1)
    residual = problem.residual_at(units)
    count = _CANDIDATES * missing
    candidates = np.hstack([random_units(problem, count, rng), _units_at(problem, residual, count, rng)])
    gains = problem.gain(candidates, residual)
    return np.hstack([units, candidates[:, np.argsort(gains)[::-1][:missing]]])


def _units_at(problem: ProjectedProblem, residual: Array, count: int, rng: np.random.Generator) -> Array:
    """Units (d+1, count) that switch on towards samples of large residual.

    A unit whose kink lies far out leaves its mark on few samples, all of them in its direction.
    """
    inputs = problem.inputs[:, :-1]
    weight = (residual**2).sum(axis=1)
    total = float(weight.sum())
    if not total > 0:
        return random_units(problem, count, rng)
    chosen = inputs[rng.choice(len(inputs), count, p=weight / total)]
    length = np.linalg.norm(chosen, axis=1, keepdims=True)
    scatter = rng.standard_normal(chosen.shape) * length / np.sqrt(chosen.shape[1])
    directions = (chosen + rng.uniform(0, 1, (count, 1)) * scatter).T
    directions /= np.maximum(np.linalg.norm(directions, axis=0), np.finfo(np.float64).tiny)
    biases = -rng.uniform(0.2, 1, count) * np.einsum("ij,ji->i", chosen, directions)
    return _with_lengths(problem, np.vstack([directions, biases]), rng)


def random_units(problem: ProjectedProblem, count: int, rng: np.random.Generator) -> Array:
    """Units (d+1, count) of random direction whose hyperplanes pass half way to random samples."""
    inputs = problem.inputs[:, :-1]
    directions = rng.standard_normal((inputs.shape[1], count))
    directions /= np.linalg.norm(directions, axis=0)
    towards = inputs[rng.integers(0, len(inputs), count)]
    biases = -0.5 * np.einsum("ij,ji->i", towards, directions)
    return _with_lengths(problem, np.vstack([directions, biases]), rng)


def _with_lengths(problem: ProjectedProblem, units: Array, rng: np.random.Generator) -> Array:
    """Units (d+1, m) with |w| = 1, or with random lengths where these matter."""
    units = unit_columns(units)
    if problem.feature.homogeneous:
        return units
    least, most = np.log(_LENGTHS)
    return np.asarray(units * np.exp(rng.uniform(least, most, units.shape[1])))
