"""Norms of first-layer units from the shape of their steps.

Along its own direction u a far-field crossing shows f(c + t u) = F_c(g(a (u.c + t) + b)): a smooth outer
function F_c, different at every crossing, of one sigmoid with the unit's norm a and bias b. F_c is
replaced by a polynomial, eliminated by least squares, and (a, b) fitted to all crossings of the unit; all
units at once.

The norm comes out to 1e-4 or better. The bias does not: for tanh, g(z + s) is a rational function of g(z),
which a smooth F_c absorbs; it is only a start for `unweave.methods.smooth_deep.first_biases`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np

from unweave.arrays import Array, BoolArray, IntArray
from unweave.methods.smooth_deep.far_field import Unit
from unweave.methods.smooth_deep.known_layers import Ask
from unweave.methods.smooth_deep.saturating import Saturating
from unweave.numerics.least_squares import LevenbergMarquardtOptions, Steps, minimise
from unweave.numerics.least_squares.pair_steps import pair_steps

_CROSSINGS_PER_UNIT = 3
_SAMPLES_PER_CROSSING = 33
_HALF_WIDTH = 7.0  # of the profile, in units of about one pre-activation
_NORM_FACTORS = np.geomspace(0.2, 5, 41)  # of the norm that height and slope suggest
_SHIFTS = np.linspace(-3, 3, 25)
_GRID_DEGREE = 3
_DEGREES = (3, 5, 8)
_CLEAN_MISFIT = 1e-4  # misfit of profiles that only one unit has shaped
DOUBTFUL = 3e-4
"""Misfit that calls for other crossings."""
_SUBSETS = tuple(
    kept
    for kept in itertools.product((False, True), repeat=_CROSSINGS_PER_UNIT)
    if 0 < sum(kept) < _CROSSINGS_PER_UNIT
)
_MUCH_BETTER = 0.2  # fewer profiles always fit somewhat better
_PARAMETER_DIFFERENCE = 1e-6  # of norm and shift, for derivatives of the misfit
_STEP_PROFILE_SCHEDULE = LevenbergMarquardtOptions(
    steps=25,
    stalls=None,
    last_ratio=0.9999,  # of squared misfits: less is not worth a step
    damping=1e-3,
    damping_fall=0.2,
    damping_rise=5.0,
    least_raised=1e-12,
    max_damping=1e8,
)


@dataclass(frozen=True, eq=False)
class StepProfiles:
    """What the steps of the units show; all arrays (m,)."""

    norms: Array
    """Positive: the units' directions are turned to match."""
    biases: Array
    signs: Array
    """-1 where a unit's direction is to be turned round."""
    residuals: Array
    """Relative misfit of the polynomial profiles."""

    def where_better_than(self, other: StepProfiles) -> StepProfiles:
        """Unit by unit, the profile that fits better."""
        better = self.residuals < other.residuals
        return StepProfiles(
            norms=np.where(better, self.norms, other.norms),
            biases=np.where(better, self.biases, other.biases),
            signs=np.where(better, self.signs, other.signs),
            residuals=np.where(better, self.residuals, other.residuals),
        )

    @property
    def typical_residual(self) -> float:
        """Median misfit: large if the activation is another."""
        return float(np.median(self.residuals))


@dataclass(frozen=True, eq=False)
class _Profiles:
    """Samples of the steps: units u, crossings s, samples t, outputs K."""

    positions: Array
    """(u, s, t) along the unit's direction, from its first crossing."""
    values: Array
    """(u, s, t, K) centred, of unit norm per profile; zero where a profile does not count."""

    def keeping(self, units: IntArray, crossings: BoolArray) -> _Profiles:
        """Some of the units, with some of the crossings."""
        values = self.values[units] * crossings[None, :, None, None]
        return replace(self, positions=self.positions[units], values=values)


def fit_step_profiles(ask: Ask, units: list[Unit], g: Saturating) -> StepProfiles:
    """Norms and approximate biases of ``units``: about 100 rows each."""
    profiles, offsets = _sampled(ask, units)
    suggested = np.array([2 / unit.width for unit in units])
    norms, shifts, residuals = _fitted(profiles, _best_on_grid(profiles, suggested, g, fine=False), g)
    # Another unit may be at work near some of the crossings: do without them.
    doubtful = np.flatnonzero(residuals > _CLEAN_MISFIT).astype(np.int64)
    for kept in _SUBSETS if len(doubtful) else ():
        fewer = profiles.keeping(doubtful, np.array(kept))
        again = _fitted(fewer, _best_on_grid(fewer, suggested[doubtful], g, fine=True), g)
        better = again[2] < _MUCH_BETTER * residuals[doubtful]
        for old, new in zip((norms, shifts, residuals), again, strict=True):
            old[doubtful[better]] = new[better]
    signs = np.where(norms < 0, -1.0, 1.0)
    return StepProfiles(np.abs(norms), shifts - norms * offsets, signs, residuals)


def _sampled(ask: Ask, units: list[Unit]) -> tuple[_Profiles, Array]:
    """All profiles in one batch of queries, and the place of each unit's first crossing."""
    directions = np.array([unit.direction for unit in units])
    # Dense in the middle, so that a width that is off by a factor of a few does no harm.
    shape = np.sinh(np.linspace(-1, 1, _SAMPLES_PER_CROSSING) * np.arcsinh(_HALF_WIDTH))
    times = np.array([unit.width for unit in units])[:, None] / 2 * shape
    # A unit seen less often repeats its crossings, which then do not count.
    strongest = [unit.strongest(_CROSSINGS_PER_UNIT) for unit in units]
    counts = [len(points) for points in strongest]
    centres = np.array(
        [[points[i % len(points)] for i in range(_CROSSINGS_PER_UNIT)] for points in strongest]
    )
    points = centres[:, :, None, :] + times[:, None, :, None] * directions[:, None, None, :]
    answers = ask(points.reshape(-1, points.shape[-1])).reshape(*points.shape[:3], -1)
    values = answers - answers.mean(axis=2, keepdims=True)
    norms = np.linalg.norm(values, axis=(2, 3), keepdims=True)
    present = np.arange(_CROSSINGS_PER_UNIT) < np.array(counts)[:, None]
    values = values / np.where(norms > 0, norms, 1.0) * present[:, :, None, None]
    places = np.einsum("usd,ud->us", centres, directions)
    positions = (places - places[:, :1])[:, :, None] + times[:, None, :]  # relative, for accuracy
    return _Profiles(positions, values), places[:, 0]


def _fitted(profiles: _Profiles, start: Array, g: Saturating) -> tuple[Array, Array, Array]:
    """Norms, shifts and misfits (u,) of the sigmoids common to each unit's profiles, from ``start`` (u,
    2).
    """
    parameters = start
    residuals = np.zeros(len(parameters))
    for degree in _DEGREES:
        parameters, residuals = _descended(profiles, parameters, degree, g)
    return parameters[:, 0], parameters[:, 1], residuals


@dataclass(frozen=True, eq=False)
class _StepPoint:
    """All units at once."""

    parameters: Array  # norm and shift, (u, 2)
    residual: Array  # (u, s t K)
    size: Array  # squared misfit, (u,)


class _ProfileSteps(Steps[_StepPoint]):
    """Polynomials of one degree in the sigmoid are eliminated; derivatives are differences."""

    def __init__(self, profiles: _Profiles, degree: int, g: Saturating) -> None:
        self._profiles, self._degree, self._g = profiles, degree, g

    def at(self, parameters: Array) -> _StepPoint:
        residual = self._misfits(parameters)
        return _StepPoint(parameters, residual, np.einsum("ur,ur->u", residual, residual))

    def trial(self, point: _StepPoint, damping: float | Array) -> _StepPoint:
        parameters, residual = point.parameters, point.residual
        moves = []
        for index in range(2):
            step = np.zeros_like(parameters)
            step[:, index] = _PARAMETER_DIFFERENCE * np.maximum(1.0, np.abs(parameters[:, index]))
            moves.append((self._misfits(parameters + step) - residual) / step[:, index, None])
        columns = np.stack(moves, axis=2)
        gram = np.swapaxes(columns, 1, 2) @ columns
        gram[:, [0, 1], [0, 1]] += gram[:, [0, 1], [0, 1]] * np.asarray(damping)[:, None]
        gradient = np.einsum("urp,ur->up", columns, residual)
        normal = gram[:, 0, 0], gram[:, 0, 1], gram[:, 1, 1]
        steps = pair_steps(normal, (gradient[:, 0], gradient[:, 1]), 0.0)
        return self.at(parameters - np.stack(steps, axis=1))

    def accepted(self, better: bool | BoolArray, trial: _StepPoint, point: _StepPoint) -> _StepPoint:
        rows = np.asarray(better)[:, None]
        return _StepPoint(
            np.where(rows, trial.parameters, point.parameters),
            np.where(rows, trial.residual, point.residual),
            np.where(better, trial.size, point.size),
        )

    def _misfits(self, parameters: Array) -> Array:
        profiles = self._profiles
        z = parameters[:, 0, None, None] * profiles.positions + parameters[:, 1, None, None]
        basis = np.linalg.qr(np.polynomial.chebyshev.chebvander(self._g.values(z), self._degree))[0]
        outside = profiles.values - basis @ (np.swapaxes(basis, 2, 3) @ profiles.values)
        return np.asarray(outside.reshape(len(parameters), -1))


def _descended(profiles: _Profiles, start: Array, degree: int, g: Saturating) -> tuple[Array, Array]:
    """Levenberg-Marquardt in two parameters, for all units at once."""
    steps = _ProfileSteps(profiles, degree, g)
    end = minimise(steps, steps.at(start), _STEP_PROFILE_SCHEDULE).point
    counted = np.any(profiles.values, axis=(2, 3)).sum(axis=1)
    return end.parameters, np.where(counted > 0, np.sqrt(end.size / np.maximum(counted, 1)), np.inf)


def _best_on_grid(profiles: _Profiles, suggested: Array, g: Saturating, fine: bool) -> Array:
    """(u, 2) norm and shift of the best sigmoid on a grid."""
    best, parameters = np.full(len(suggested), np.inf), np.zeros((len(suggested), 2))
    each = 1 if fine else 2
    for factor in _NORM_FACTORS[::each]:
        for shift in _SHIFTS[::each]:
            z = (factor * suggested)[:, None, None] * profiles.positions + shift
            y = g.values(z)
            powers = np.stack([y**degree for degree in range(_GRID_DEGREE + 1)], axis=3)
            powers /= np.linalg.norm(powers, axis=2, keepdims=True) + 1e-300
            turned = np.swapaxes(powers, 2, 3)
            gram = turned @ powers + 1e-10 * np.eye(_GRID_DEGREE + 1)
            moments = turned @ profiles.values
            explained = np.einsum("uspk,uspk->u", moments, np.linalg.solve(gram, moments))
            better = -explained < best
            best[better] = -explained[better]
            parameters[better, 0], parameters[better, 1] = factor * suggested[better], shift
    return parameters
